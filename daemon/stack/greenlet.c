// SPDX-License-Identifier: BSD-2-Clause
#include "stack/greenlet.h"

void greenlet_charge(struct coro_sum *sum, const struct stack *s,
		     const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts)
{
	uint64_t running = clock[SNAPSHOT_WALL] - s->begun[SNAPSHOT_WALL];
	uint64_t all = ts > s->born ? ts - s->born : 0;

	sum->running[SNAPSHOT_CPU] += clock[SNAPSHOT_CPU] - s->begun[SNAPSHOT_CPU];
	sum->running[SNAPSHOT_WALL] += running;
	sum->suspended += all > running ? all - running : 0;
}

void greenlet_begin(struct coros *coros, struct thread *th, uint32_t func)
{
	struct coro_sum *sum = th->nparked ? coro_sum(&coros->greenlets, func) : NULL;
	struct stack *s = &th->cur;

	if (!sum)
		return;
	sum->started++;
	sum->steps++;
	s->greenlet = true;
	s->first = s->born = th->last_ts;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		s->begun[c] = thread_clock(th, c);
}

void greenlet_resume(struct coros *coros, const struct thread *th)
{
	struct coro_sum *sum =
		th->cur.greenlet && th->cur.depth
			? coro_sum(&coros->greenlets, activation_func(&th->cur.acts[0]))
			: NULL;

	if (sum)
		sum->steps++;
}

void greenlet_end(struct coros *coros, struct stack *s, uint32_t func,
		  const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts, bool ended)
{
	struct coro_sum *sum = s->greenlet ? coro_sum(&coros->greenlets, func) : NULL;

	s->greenlet = false;
	if (!sum)
		return;
	greenlet_charge(sum, s, clock, ts);
	if (ended)
		coro_sum_end(sum, s->first, ts);
}

void greenlet_end_current(struct coros *coros, struct thread *th, uint32_t func, bool ended)
{
	const uint64_t clock[SNAPSHOT_CLOCKS] = {thread_clock(th, SNAPSHOT_CPU),
						 thread_clock(th, SNAPSHOT_WALL)};

	greenlet_end(coros, &th->cur, func, clock, th->last_ts, ended);
}

void greenlet_restart(struct coros *coros, const struct thread *th, struct stack *s)
{
	struct coro_sum *sum = s->greenlet && s->depth
				       ? coro_sum(&coros->greenlets, activation_func(&s->acts[0]))
				       : NULL;

	if (!sum)
		return;
	sum->partial++;
	s->first = 0;
	s->born = th->last_ts;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		s->begun[c] = s == &th->cur ? 0 - s->clock[c] : s->clock[c];
}
