// SPDX-License-Identifier: BSD-2-Clause
/* A profile's data about waiting: see take_waits.h. */
#include "profile/take_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/syscalls.h"
#include "stack/waits.h"

#define CALLS_MAX 16u
#define PAIRS_MAX 256u

/* ---- system calls ------------------------------------------------------------------------ */

static int by_ns_call(const void *a, const void *b)
{
	const struct snapshot_call *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int take_calls(const struct profile *p, struct snapshot *s, struct snapshot_waits *ret)
{
	_cleanup_free_ struct snapshot_call *v = calloc(WAIT_SYSCALLS + 1, sizeof(*v));
	char name[SYSCALL_NAME_MAX];
	uint32_t n = 0;

	if (!v)
		return -ENOMEM;
	for (int nr = 0; nr <= WAIT_SYSCALLS; nr++) {
		const struct timing_call *c = &p->timing.other[nr];

		if (!c->ns)
			continue;
		v[n++] = (struct snapshot_call){
			.name = snapshot_str(s, nr < WAIT_SYSCALLS
							? syscall_name(nr, name, sizeof(name))
							: "unknown"),
			.ns = c->ns,
			.n = c->n,
		};
	}
	qsort(v, n, sizeof(*v), by_ns_call);
	n = n < CALLS_MAX ? n : CALLS_MAX;
	ret->other = snapshot_alloc(s, (size_t)n + 1, sizeof(*v));
	if (!ret->other)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (!v[i].name)
			return -ENOMEM;
		ret->other[i] = v[i];
	}
	ret->nother = n;
	return 0;
}

/* ---- the GIL ----------------------------------------------------------------------------- */

static int by_ns_pair(const void *a, const void *b)
{
	const struct snapshot_gil_pair *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Returns false if the function is not in the snapshot. */
static bool map_func(const uint32_t *func_map, uint32_t func, uint32_t *ret)
{
	*ret = func == SNAPSHOT_NONE ? func : func_map[func];
	return func == SNAPSHOT_NONE || *ret != SNAPSHOT_NONE;
}

static int take_pairs(const struct profile *p, const uint32_t *func_map, struct snapshot *s,
		      struct snapshot_target *target)
{
	_cleanup_free_ struct snapshot_gil_pair *v = calloc(GIL_PAIRS, sizeof(*v));
	struct snapshot_gil_pair *all;
	uint32_t n = 0;

	if (!v)
		return -ENOMEM;
	target->waits.pairs_dropped = p->gils.dropped;
	for (uint32_t i = 0; i < GIL_PAIRS && p->gils.pairs; i++) {
		const struct gil_pair *pair = &p->gils.pairs[i];

		v[n] = (struct snapshot_gil_pair){.pid = target->pid, .ns = pair->ns};
		if (pair->ns && map_func(func_map, pair->holder, &v[n].holder) &&
		    map_func(func_map, pair->waiter, &v[n].waiter))
			n++;
	}
	qsort(v, n, sizeof(*v), by_ns_pair);
	for (; n > PAIRS_MAX; n--)
		target->waits.pairs_dropped += v[n - 1].ns;
	all = snapshot_grow(s, &s->adding.gil_pairs, s->gil_pairs, s->ngil_pairs, n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		all[s->ngil_pairs + i] = v[i];
	s->gil_pairs = all;
	s->ngil_pairs += n;
	return 0;
}

/* ---- the longest waits ------------------------------------------------------------------- */

static int by_ns_wait(const void *a, const void *b)
{
	const struct snapshot_wait *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int take_wait(const struct long_wait *w, int why, const uint32_t *func_map,
		     struct snapshot *s, struct snapshot_wait *ret)
{
	char name[SYSCALL_NAME_MAX];

	*ret = (struct snapshot_wait){
		.tid = w->tid,
		.why = (uint8_t)why,
		.ns = w->ns,
		.end_ns = w->end_ts,
		.fd = w->fd < 0 ? SNAPSHOT_NONE : (uint32_t)w->fd,
	};
	if (!map_func(func_map, w->func, &ret->func))
		ret->func = SNAPSHOT_NONE;
	if (w->syscall < 0)
		return 0;
	ret->syscall = snapshot_str(s, syscall_name(w->syscall, name, sizeof(name)));
	return ret->syscall ? 0 : -ENOMEM;
}

static int take_longest(const struct profile *p, const uint32_t *func_map, struct snapshot *s,
			uint32_t pid)
{
	struct snapshot_wait *v, *all;
	uint32_t n = 0, at = 0;

	for (int why = 0; why < WAITS; why++)
		n += p->timing.longest.of[why].n;
	all = snapshot_grow(s, &s->adding.waits, s->waits, s->nwaits, n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	v = all + s->nwaits;
	for (int why = 0; why < WAITS; why++)
		for (uint32_t i = 0; i < p->timing.longest.of[why].n; i++, at++) {
			if (take_wait(&p->timing.longest.of[why].v[i], why, func_map, s, &v[at]))
				return -ENOMEM;
			v[at].pid = pid;
		}
	qsort(v, n, sizeof(*v), by_ns_wait);
	s->waits = all;
	s->nwaits += n;
	return 0;
}

int take_waits(const struct profile *p, const uint32_t *func_map, struct snapshot *s,
	       struct snapshot_target *target)
{
	int r;

	if (!waits_kept(&p->rb.tree))
		return 0;
	target->waits.measured = true;
	/* In stretches, all of it is known. */
	target->waits.walked = p->waiting.kept && (!p->windows || p->evidence.partial);
	target->waits.walks = p->waiting.walks;
	r = take_calls(p, s, &target->waits);
	if (!r)
		r = take_pairs(p, func_map, s, target);
	return r < 0 ? r : take_longest(p, func_map, s, target->pid);
}
