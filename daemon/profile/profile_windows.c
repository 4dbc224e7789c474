// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profile whose probes are limited: the current window or stretch, and folding its figures into the
 * evidence. The arithmetic is in accuracy/.
 */
#include "profile/profile.h"

#include <math.h>

#include "accuracy/calls.h"
#include "base/array.h"
#include "profile/profile_priv.h"

/* The share of a stretch's CPU time that its probes may take, so that times of calls are taken from it */
#define LIGHT 0.2

/* Share of calls that may be made by other threads than those that pass as many marks */
#define MARKS_APART 0.1

void profile_in_windows(struct profile *p, uint64_t ts)
{
	p->windows = true;
	if (p->accuracy.times <= 0)
		p->accuracy.times = 1;
	p->observed_ns = ts;
	/* Out of memory: each window visits all nodes. */
	(void)calltree_keep_touched(&p->rb.tree);
}

void profile_fold(struct profile *p, const struct evidence_window *w)
{
	/* Out of memory: the figures stay in the tree until the next fold. */
	(void)evidence_fold(&p->evidence, &p->rb.tree, p->codes.funcs.n, w);
}

void profile_costs_change(struct profile *p, double times)
{
	evidence_costs_change(&p->evidence, times);
}

bool profile_is_light(const struct profile *p, uint64_t cpu_ns)
{
	return (double)p->window.taken <= LIGHT * (double)cpu_ns;
}

void profile_set_accuracy(struct profile *p, bool light, double times, double error)
{
	p->accuracy.light = light;
	p->accuracy.times = times;
	p->accuracy.error = error;
}

void profile_set_stretches(struct profile *p, uint64_t cpu_ns)
{
	p->accuracy.stretches_cpu_ns = cpu_ns;
}

void profile_keep(struct profile *p, bool light)
{
	(void)evidence_keep(&p->evidence, &p->rb.tree, light);
}

bool profile_makes_calls(const struct profile *p, uint32_t tid)
{
	const struct thread *th = threads_find(&p->threads, tid);

	return !th || thread_makes_calls(th, p->shown);
}

/*
 * Whether the threads' calls and marks in windows are distributed alike. If one thread makes the calls and
 * another passes the marks, then windows, in which the first is slower, show too few calls per mark. The threads
 * of a pool differ by chance: a thread with a share p of n windows has one of p +- sqrt(p (1 - p) / n) of either.
 */
static bool marks_are_alike(const struct profile *p)
{
	const double n = calls_windows_marked(&p->evidence);
	double shown = 0, marks = 0, apart = 0, chance = 0;

	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct thread *th = p->threads.v[i];

		shown += (double)th->shown;
		marks += (double)th->marks;
	}
	for (uint32_t i = 0; i < p->threads.n && shown > 0 && marks > 0; i++) {
		const struct thread *th = p->threads.v[i];
		const double a = (double)th->shown / shown, b = (double)th->marks / marks;

		apart += fabs(a - b) / 2;
		chance += n > 0 ? sqrt((a * (1 - a) + b * (1 - b)) / n) / 2 : 0;
	}
	return shown > 0 && marks > 0 && apart < MARKS_APART + chance;
}

void profile_count_marks(struct profile *p, bool on)
{
	evidence_count_marks(&p->evidence, on);
}

void profile_set_marks(struct profile *p, uint64_t total)
{
	evidence_set_marks(&p->evidence, marks_are_alike(p) ? total : 0);
}

void profile_gap(struct profile *p, uint64_t ns)
{
	evidence_gap(&p->evidence, ns);
}

void profile_own_cpu(struct profile *p, double ns)
{
	evidence_own_cpu(&p->evidence, ns);
}

void profile_limit(struct profile *p, const struct profile_limit *l)
{
	window_open(&p->window, l->length_ns, l->cost);
	p->stretch = !l->length_ns;
	p->tail.end_ns = 0;
	p->wholes.on = p->wholes.admits = p->stretch || l->whole;
	p->rb.tree.waits_apart = !p->stretch;
	/* Longer ones than a window would be missing. */
	p->rb.durations.off = !p->stretch;
	for (uint32_t i = 0; i < p->threads.n && p->stretch; i++)
		profile_wait_give(p, p->threads.v[i], p->window.begin_ts);
}

bool profile_tail_begin(struct profile *p, uint64_t ts)
{
	struct calltree *tree = &p->rb.tree;
	struct evidence_exact *v = p->tail.shown;
	uint32_t n;

	if (!p->wholes.open)
		return false;
	for (uint32_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i]->live)
			timing_charge(tree, p->threads.v[i], ts);
	n = calltree_ntouched(tree);
	if (n)
		v = array_room(v, &p->tail.cap, n, ARRAY_FIRST, sizeof(*v));
	if (n && !v)
		return false;
	p->tail.shown = v;
	p->tail.n = n;
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = calltree_touched(tree, k);

		v[k] = (struct evidence_exact){
			.calls = tree->nodes[i].calls,
			.yields = tree->yields[i],
			.cpu = tree->nodes[i].self[SNAPSHOT_CPU],
		};
	}
	p->wholes.admits = false;
	p->tail.end_ns = ts;
	return true;
}

/* The window's nodes as they were at its end. */
static void forget_tail(struct profile *p)
{
	struct calltree *tree = &p->rb.tree;

	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		const uint32_t i = calltree_touched(tree, k);
		const struct evidence_exact none = {0},
					    *shown = k < p->tail.n ? &p->tail.shown[k] : &none;

		tree->nodes[i].calls = shown->calls;
		tree->nodes[i].self[SNAPSHOT_CPU] = shown->cpu;
		tree->yields[i] = shown->yields;
	}
}

bool profile_window_lasts(const struct profile *p)
{
	return p->tracing && !p->stretch && p->wholes.open > 0;
}

void profile_window_cut(struct profile *p)
{
	p->window.cut = true;
}

uint64_t profile_tail_ns(const struct profile *p, uint64_t ts)
{
	return p->tail.end_ns && ts > p->tail.end_ns ? ts - p->tail.end_ns : 0;
}

bool profile_window_is_over(const struct profile *p)
{
	return p->windows && !p->tracing && p->window.limit_ns;
}

uint64_t profile_taken(const struct profile *p)
{
	return p->window.taken_ever;
}

uint64_t profile_samples(const struct profile *p)
{
	return p->samples;
}

uint64_t profile_window_end(struct profile *p, uint64_t ts, double scale)
{
	uint64_t shown = p->window.shown_ns; /* the limit has ended it */
	uint64_t end;

	if (p->tracing && p->tail.end_ns) {
		profile_pause(p, ts);
	} else if (p->tracing) {
		shown = window_close(&p->window, ts, &end);
		profile_pause(p, end);
	}
	if (p->wholes.on)
		wholes_fold(&p->wholes, &p->rb.tree);
	p->wholes.on = false;
	if (p->tail.end_ns)
		forget_tail(p);
	p->tail.end_ns = 0;
	profile_fold_ended(p);
	/* If hits cost more than assumed while the window was open, it covered less time. */
	return window_rescale(&p->window, shown, scale);
}

void profile_windows(const struct profile *p, struct snapshot_windows *ret)
{
	const struct evidence *e = &p->evidence;

	ret->sampled = e->partial;
	ret->n = e->windows;
	ret->samples = e->samples;
	ret->seen_cpu_ns = (uint64_t)e->seen_cpu + p->accuracy.stretches_cpu_ns;
	ret->all_cpu_ns = (uint64_t)(e->own_cpu > e->seen_cpu ? e->own_cpu : e->seen_cpu) +
			  p->accuracy.stretches_cpu_ns;
}
