// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profile with windows: the current window, and folding its figures into estimates. The
 * arithmetic is in estimate/.
 */
#include "profile/profile.h"

#include <math.h>

#include "profile/profile_priv.h"

/* Share of calls that may be made by other threads than those that pass as many marks */
#define MARKS_APART 0.1

void profile_in_windows(struct profile *p)
{
	p->windows = true;
	/* Durations longer than a window would be missing. */
	p->rb.durations.off = true;
	/* Out of memory: each window visits all nodes. */
	(void)calltree_keep_touched(&p->rb.tree);
}

void profile_fold(struct profile *p, uint64_t length_ns, const struct cost *cost, double scale)
{
	/* Out of memory: the figures stay in the tree until the next fold. */
	(void)estimate_fold(&p->estimate, &p->rb.tree, p->codes.funcs.n, length_ns, cost, scale);
}

void profile_fold_end(struct profile *p)
{
	estimate_fold_end(&p->estimate);
}

void profile_costs_change(struct profile *p, double times)
{
	estimate_costs_change(&p->estimate, times);
}

bool profile_makes_calls(const struct profile *p, uint32_t tid)
{
	const struct thread *th = threads_find(&p->threads, tid);

	return !th || thread_makes_calls(th, p->shown);
}

/*
 * Whether the threads' calls and marks in windows are distributed alike. If one thread makes the calls and
 * another passes the marks, then windows, in which the first is slower, show too few calls per mark.
 */
static bool marks_are_alike(const struct profile *p)
{
	double shown = 0, marks = 0, apart = 0;

	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct thread *th = p->threads.v[i];

		shown += (double)th->shown;
		marks += (double)th->marks;
	}
	for (uint32_t i = 0; i < p->threads.n && shown > 0 && marks > 0; i++) {
		const struct thread *th = p->threads.v[i];

		apart += fabs((double)th->shown / shown - (double)th->marks / marks);
	}
	return shown > 0 && marks > 0 && apart / 2 < MARKS_APART;
}

void profile_count_marks(struct profile *p, bool on, uint64_t unlike_ns)
{
	estimate_count_marks(&p->estimate, on, unlike_ns);
}

void profile_set_marks(struct profile *p, uint64_t total, double per_ns)
{
	estimate_set_marks(&p->estimate, marks_are_alike(p) ? total : 0, per_ns);
}

void profile_gap(struct profile *p, uint64_t ns)
{
	estimate_gap(&p->estimate, ns);
}

void profile_own_cpu(struct profile *p, double ns)
{
	estimate_own_cpu(&p->estimate, ns);
}

void profile_limit(struct profile *p, uint64_t length_ns, const struct cost *cost)
{
	window_open(&p->window, length_ns, cost);
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

/*
 * A thread that was runnable when the window opened either ran until its first event or waited for
 * a CPU. If no context switch has shown which, the process's CPU clock decides.
 */
static void reconcile_gaps(struct profile *p, uint64_t cpu_ns)
{
	struct calltree *tree = &p->rb.tree;
	double gaps = 0, part;

	for (uint32_t i = 0; i < calltree_ntouched(tree); i++) {
		uint64_t cpu = tree->nodes[calltree_touched(tree, i)].self[SNAPSHOT_CPU];

		cpu_ns = cpu_ns > cpu ? cpu_ns - cpu : 0;
	}
	for (uint32_t i = 0; i < p->threads.n; i++)
		gaps += (double)timing_gap(p->threads.v[i]);
	part = gaps > 0 ? (double)cpu_ns / gaps : 0;
	for (uint32_t i = 0; i < p->threads.n; i++) {
		struct thread *th = p->threads.v[i];

		timing_reconcile_gap(tree, th, (uint64_t)(part * (double)timing_gap(th)));
	}
}

uint64_t profile_window_end(struct profile *p, uint64_t ts, uint64_t cpu_ns, double scale)
{
	uint64_t shown = p->window.shown_ns; /* the limit has ended it, so it had no parts */
	uint64_t end;

	if (p->tracing) {
		shown = window_close(&p->window, ts, &end);
		profile_pause(p, end);
	}
	reconcile_gaps(p, cpu_ns);
	profile_fold_ended(p);
	/* If hits cost more than assumed while the window was open, it covered less time. */
	return window_rescale(&p->window, shown, scale);
}

uint64_t profile_window_part(struct profile *p, uint64_t ts)
{
	return p->tracing ? window_part(&p->window, ts) : 0;
}

void profile_windows(const struct profile *p, struct snapshot_windows *ret)
{
	const struct estimate *e = &p->estimate;

	ret->sampled = estimate_sampled(e);
	ret->n = e->windows;
	ret->samples = (uint64_t)e->samples;
	ret->seen_cpu_ns = (uint64_t)e->seen_cpu;
	ret->all_cpu_ns = (uint64_t)(e->own_cpu > e->seen_cpu ? e->own_cpu : e->seen_cpu);
}
