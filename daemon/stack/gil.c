// SPDX-License-Identifier: BSD-2-Clause
/*
 * Deducing which thread holds the GIL
 *
 * - A call or return of a thread proves that it holds the GIL, because only the holder runs Python
 *   code. It holds it until another thread is proven to hold it or until it waits for it itself.
 * - A thread that blocks in anything else may have released the GIL or not (page faults, C code
 *   that keeps it). If it has released it, a waiter gets it at once and proves that; otherwise it
 *   still holds it.
 * - A waiter that runs again has got the GIL, or its wait timed out (every switch interval, 5 ms).
 *   After a timeout it requests the GIL from the holder and waits again within microseconds. Until
 *   that is known, time is pending. It is charged to the waiter, from its wakeup on, if it has an
 *   event, if it blocks in anything but the GIL, or if it has run for LONG_NS before it waits
 *   again; it is charged to the holder if all such waiters wait again before that.
 * - If the holder has started to wait and no thread is proven to hold the GIL, time is pending as
 *   well and is charged to the next thread that is proven to hold it.
 *
 * Limitations: C code that has released the GIL and keeps running without events cannot be
 * distinguished from code that holds it, until another thread is proven to hold it. Holding it for
 * less than LONG_NS without an event is not detected. A waiter is considered waiting until it runs;
 * if all CPUs are busy, that is longer than until it gets the GIL, and that time is charged to the
 * next holder. At a snapshot, time counts up to the last switch or event of the threads concerned.
 */
#include "stack/gil.h"

#include <stdlib.h>
#include <string.h>

#include "stack/waits.h"

#define LONG_NS UINT64_C(50000) /* far longer than a timed out waiter runs before it waits again */

void gils_deinit(struct gils *g)
{
	free(g->pairs);
	g->pairs = NULL;
}

void gils_clear(struct gils *g)
{
	free(g->pairs);
	g->pairs = NULL;
	g->npairs = 0;
	g->dropped = 0;
	for (int i = 0; i < PYP_GIL_RANGES; i++) {
		g->of[i].pending = 0;
		for (uint32_t k = 0; k < GIL_GROUPS; k++)
			g->of[i].groups[k].pending = 0;
	}
}

static void add_pair(struct gils *g, uint32_t holder, uint32_t waiter, uint64_t ns)
{
	uint32_t at = (holder * 2654435761u ^ waiter * 40503u) & (GIL_PAIRS - 1);

	if (!ns)
		return;
	if (!g->pairs)
		g->pairs = calloc(GIL_PAIRS, sizeof(*g->pairs));
	for (uint32_t i = 0; g->pairs && i < GIL_PAIRS; i++) {
		struct gil_pair *p = &g->pairs[(at + i) & (GIL_PAIRS - 1)];

		if (!p->ns && g->npairs > GIL_PAIRS / 2)
			break;
		if (!p->ns)
			g->npairs++;
		else if (p->holder != holder || p->waiter != waiter)
			continue;
		p->holder = holder;
		p->waiter = waiter;
		p->ns += ns;
		return;
	}
	g->dropped += ns;
}

/* ---- waiting threads --------------------------------------------------------------------- */

/*
 * Returns the group of a function. If all groups are in use, returns the last one, whatever its
 * function.
 */
static uint8_t group_of(struct gil *of, uint32_t func)
{
	uint8_t free_one = GIL_GROUPS - 1;

	for (uint32_t i = GIL_GROUPS; i-- > 0;) {
		if (of->groups[i].n || of->groups[i].pending) {
			if (of->groups[i].func == func)
				return (uint8_t)i;
		} else {
			free_one = (uint8_t)i;
		}
	}
	if (!of->groups[free_one].n && !of->groups[free_one].pending)
		of->groups[free_one].func = func;
	return free_one;
}

static void begin_waiting(struct gil *of, struct thread *th, uint32_t func)
{
	th->gil.waits = true;
	th->gil.group = group_of(of, func);
	of->groups[th->gil.group].n++;
	of->waiting++;
}

static void end_waiting(struct gil *of, struct thread *th)
{
	if (!th->gil.waits)
		return;
	th->gil.waits = false;
	of->groups[th->gil.group].n--;
	of->waiting--;
}

static void end_awake(struct gil *of, struct thread *th)
{
	of->awake -= th->gil.awake;
	th->gil.awake = false;
}

/* ---- charging ---------------------------------------------------------------------------- */

/* Charges the pending time to this thread. */
static void resolve(struct gils *g, struct calltree *t, struct gil *of, const struct thread *th)
{
	uint32_t func = t->nodes[th->node].func;

	if (!of->pending)
		return;
	if (waits_kept(t))
		calltree_add(t, th->node, COLUMN_gil_held_ns, of->pending);
	for (uint32_t i = 0; i < GIL_GROUPS; i++) {
		add_pair(g, func, of->groups[i].func, of->groups[i].pending);
		of->groups[i].pending = 0;
	}
	of->pending = 0;
}

/* Charges the time up to ts to the holder, unless the holder is undecided. */
static void charge(struct gils *g, struct calltree *t, struct gil *of, uint64_t ts)
{
	uint64_t d = ts > of->ts ? ts - of->ts : 0;

	if (ts > of->ts)
		of->ts = ts;
	if (!of->waiting || !d)
		return;
	of->pending += d;
	for (uint32_t i = 0; i < GIL_GROUPS; i++)
		of->groups[i].pending += d * of->groups[i].n;
	if (of->holder && !of->awake)
		resolve(g, t, of, of->holder);
}

void gil_proves(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	struct gil *of = &g->of[th->gil.of];

	charge(g, t, of, ts);
	/* It runs, even if its wakeup was not reported. */
	end_waiting(of, th);
	end_awake(of, th);
	resolve(g, t, of, th);
	of->holder = th;
}

static void get_cpu(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		    uint64_t runtime)
{
	struct gil *of = &g->of[th->gil.of];

	if (!th->gil.waits)
		return;
	charge(g, t, of, ts);
	end_waiting(of, th);
	th->gil.awake = true;
	th->gil.runtime = runtime;
	of->awake++;
}

/* Returns whether it has held the GIL since its wakeup. */
static bool has_held(const struct thread *th, const struct event_switch *sw)
{
	if (sw->wait == PYP_WAIT_GIL)
		return sw->runtime > th->gil.runtime && sw->runtime - th->gil.runtime >= LONG_NS;
	return sw->wait != PYP_WAIT_CPU;
}

static void leave_cpu(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		      const struct event_switch *sw)
{
	struct gil *of = &g->of[th->gil.of];

	if (th->gil.awake && has_held(th, sw))
		gil_proves(g, t, th, ts);
	if (sw->wait != PYP_WAIT_GIL)
		return;
	if (th->gil.of != sw->gil) {
		gil_forget(g, t, th, ts);
		th->gil.of = sw->gil;
		of = &g->of[sw->gil];
	}
	charge(g, t, of, ts);
	if (of->holder == th)
		of->holder = NULL;
	if (th->gil.awake) {
		end_awake(of, th);
		/* It has not held the GIL: the holder is unchanged. */
		if (of->holder && !of->awake)
			resolve(g, t, of, of->holder);
	}
	if (!th->gil.waits)
		begin_waiting(of, th, t->nodes[th->node].func);
}

void gil_switch(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		const struct event_switch *sw, bool in)
{
	if (in)
		get_cpu(g, t, th, ts, sw->runtime);
	else
		leave_cpu(g, t, th, ts, sw);
}

void gil_forget(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	struct gil *of = &g->of[th->gil.of];

	charge(g, t, of, ts);
	end_waiting(of, th);
	end_awake(of, th);
	if (of->holder == th)
		of->holder = NULL;
}
