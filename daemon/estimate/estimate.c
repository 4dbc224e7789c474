// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates from windows
 *
 * Weights. A window represents itself, half of the gap before it and half of the gap after it. Its
 * figures are multiplied by 1 + gaps / length, both in the program's own time. No other weight is
 * needed, because each moment was equally likely to be in a window as its neighbours
 * (session/windows.c). If the whole preceding gap belonged to a window, then code that follows
 * expensive intervals, after which no window may open for a while, would be overestimated. Finally
 * everything is multiplied by a factor near 1, so that rows add up to the CPU time that the
 * target's CPU clock shows, without the probes' (a combined ratio estimate).
 *
 * If probes took almost all of a window's CPU time, a small error of the measured cost is a large
 * error of the remainder, and the cost may even exceed the total. As each call takes some time on
 * any machine, at least WINDOW_OWN_NS per event is kept.
 *
 * Errors. They follow from the differences between windows. For a figure z in a window that
 * represents M ns of the target, with R the ratio of the sums of z and M over all windows, the
 * variance is
 *
 *    n / (n - 1)  *  sum over windows of (1 - f) (z - R M)^2
 *
 * where f is the window's share of the time it represents: without gaps there is no error. This
 * needs only the sums of z^2, z M and M^2. Few windows give an uncertain variance, so it is
 * widened. It is the error of sampling independent windows. The uncertainty of the probes' cost is
 * an error that all windows share: fit.c computes it, and it is added to the errors of counts and
 * cumulative times.
 *
 * Where traps are slow, code takes many times as long after hits, and a window shows as many fewer
 * calls of the time it represents. By how many is uncertain, and windows without calls say nothing about it.
 * So it is computed for each window, and adds up as calls that may have been missed (0 where traps are
 * not slow). Marks show the progress made, so counts scaled by them do not have this error.
 *
 * Complexity. A window costs time in proportion to the CCT nodes that it touched: the tree lists
 * them, and only they and their callers are visited. The tree may be as large as all windows have
 * made it.
 */
#include "estimate/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/estimate_priv.h"
#include "estimate/taken.h"
#include "estimate/window.h"
#include "stats/func.h"

/* A CCT node in the current window */
struct estimate_scratch {
	struct taken_ends callees;
	double taken; /* probes' part of its own time */
	double cum[SNAPSHOT_CLOCKS];
};

/*
 * Limit of callers searched for the same function. A recursion from further away counts its
 * cumulative time's error twice. Searching all callers of 100,000 nested functions would take
 * 5,000,000,000 steps.
 */
#define OUTERMOST_STEPS 1024u

void estimate_init(struct estimate *e)
{
	*e = (struct estimate){0};
}

void estimate_deinit(struct estimate *e)
{
	free(e->nodes);
	free(e->outermost);
	free(e->scratch);
	free(e->funcs);
	free(e->touched);
	last_deinit(&e->last);
	*e = (struct estimate){0};
}

void estimate_clear(struct estimate *e)
{
	struct estimate kept = {
		.nodes = e->nodes,
		.outermost = e->outermost,
		.scratch = e->scratch,
		.cap = e->cap,
		.funcs = e->funcs,
		.touched = e->touched,
		.nfuncs = e->nfuncs,
		.funcs_cap = e->funcs_cap,
		.last = e->last,
		.progress.on = e->progress.on,
	};

	if (e->nfuncs)
		memset(e->funcs, 0, e->nfuncs * sizeof(*e->funcs));
	last_clear(&kept.last);
	*e = kept;
}

/* ---- allocation ---- */

static int grow(void **array, size_t cap, size_t size)
{
	void *grown = reallocarray(*array, cap, size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/* Computed when first needed, because a node may be reused for another calling context. */
enum { OUTERMOST_UNKNOWN = 0, OUTERMOST_YES, OUTERMOST_NO };

static bool find_outermost(const struct calltree *tree, uint32_t node)
{
	uint32_t func = tree->nodes[node].func;

	uint32_t steps = 0;

	for (uint32_t i = tree->parents[node]; i != NODE_NONE; i = tree->parents[i]) {
		if (tree->nodes[i].func == func)
			return false;
		if (++steps == OUTERMOST_STEPS)
			break;
	}
	return true;
}

static int reserve_nodes(struct estimate *e, const struct calltree *tree)
{
	if (tree->n > e->cap) {
		if (grow((void **)&e->nodes, tree->cap, sizeof(*e->nodes)) ||
		    grow((void **)&e->outermost, tree->cap, sizeof(*e->outermost)) ||
		    grow((void **)&e->scratch, tree->cap, sizeof(*e->scratch)))
			return -ENOMEM;
		e->cap = tree->cap;
	}
	for (; e->n < tree->n; e->n++) {
		e->nodes[e->n] = (struct estimate_node){0};
		e->outermost[e->n] = OUTERMOST_UNKNOWN;
	}
	return 0;
}

static bool is_outermost(struct estimate *e, const struct calltree *tree, uint32_t node)
{
	if (e->outermost[node] == OUTERMOST_UNKNOWN)
		e->outermost[node] = find_outermost(tree, node) ? OUTERMOST_YES : OUTERMOST_NO;
	return e->outermost[node] == OUTERMOST_YES;
}

static int reserve_funcs(struct estimate *e, uint32_t n)
{
	uint32_t cap = e->funcs_cap ? e->funcs_cap : 256;

	if (n <= e->nfuncs)
		return 0;
	while (cap < n)
		cap *= 2;
	if (cap > e->funcs_cap) {
		if (grow((void **)&e->funcs, cap, sizeof(*e->funcs)) ||
		    grow((void **)&e->touched, cap, sizeof(*e->touched)))
			return -ENOMEM;
		e->funcs_cap = cap;
	}
	memset(e->funcs + e->nfuncs, 0, (n - e->nfuncs) * sizeof(*e->funcs));
	e->nfuncs = n;
	return 0;
}

/* ---- one window ---- */

struct folding {
	double cpu, wait; /* all threads, without the probes' time */
	double raw_cpu, events;
	double cost_factor;
};

static void touch(struct estimate *e, uint32_t func, const struct node *n, double cpu, double wait,
		  const struct estimate_scratch *s, bool outermost)
{
	struct estimate_func *f = &e->funcs[func];

	if (!f->touched) {
		f->touched = true;
		e->touched[e->ntouched++] = func;
	}
	f->now[SNAPSHOT_CALLS] += (double)n->calls;
	f->now[SNAPSHOT_TOT_CPU] += cpu;
	f->now[SNAPSHOT_TOT_WALL] += wait;
	if (!outermost)
		return;
	f->now[SNAPSHOT_CUM_CPU] += s->cum[SNAPSHOT_CPU];
	f->now[SNAPSHOT_CUM_WALL] += s->cum[SNAPSHOT_WALL];
}

/* Sum up the probes' time from measured costs. Backwards, because callees come after callers. */
static double count_callees(struct estimate *e, const struct calltree *tree,
			    const struct cost *cost, struct folding *w)
{
	uint32_t count = calltree_ntouched(tree);
	double taken = 0;

	for (uint32_t k = 0; k < count; k++)
		e->scratch[calltree_touched(tree, k)] = (struct estimate_scratch){0};
	for (uint32_t k = count; k-- > 0;) {
		uint32_t i = calltree_touched(tree, k);
		const struct node *n = &tree->nodes[i];
		struct estimate_scratch *s = &e->scratch[i];
		struct taken_ends own = {n->calls, tree->yields[i]};
		uint32_t parent = tree->parents[i];

		s->taken = taken_of(cost, own, s->callees, taken_is_pseudo(n));
		taken += s->taken;
		w->raw_cpu += (double)n->self[SNAPSHOT_CPU];
		w->events += 2.0 * (double)n->calls;
		if (parent == NODE_NONE || taken_is_pseudo(n))
			continue;
		taken_ends_add(&e->scratch[parent].callees, own);
	}
	return taken;
}

/* Factor by which costs must have been lower, so that enough of the window's CPU time remains. */
static double cost_factor(const struct folding *w, double taken)
{
	double most = w->raw_cpu - WINDOW_OWN_NS * w->events;

	if (taken <= 0 || taken <= most)
		return 1;
	return most > 0 ? most / taken : 0;
}

static void sum_nodes(struct estimate *e, const struct calltree *tree, struct folding *w)
{
	for (uint32_t k = calltree_ntouched(tree); k-- > 0;) {
		uint32_t i = calltree_touched(tree, k);
		const struct node *n = &tree->nodes[i];
		struct estimate_scratch *s = &e->scratch[i];
		uint32_t parent = tree->parents[i];
		double cpu = (double)n->self[SNAPSHOT_CPU], wait = taken_waiting(n);
		double taken = w->cost_factor * s->taken;

		cpu = cpu > taken ? cpu - taken : 0;
		w->cpu += cpu;
		w->wait += wait;
		s->cum[SNAPSHOT_CPU] += cpu;
		s->cum[SNAPSHOT_WALL] += wait;
		if (parent == NODE_NONE)
			continue;
		e->scratch[parent].cum[SNAPSHOT_CPU] += s->cum[SNAPSHOT_CPU];
		e->scratch[parent].cum[SNAPSHOT_WALL] += s->cum[SNAPSHOT_WALL];
		if (n->calls || s->cum[SNAPSHOT_CPU] > 0 || s->cum[SNAPSHOT_WALL] > 0)
			touch(e, n->func, n, cpu, wait, s, is_outermost(e, tree, i));
	}
}

/* ---- adding to the sums ---- */

static void keep_funcs(struct estimate *e)
{
	for (uint32_t i = 0; i < e->ntouched; i++) {
		struct estimate_func *f = &e->funcs[e->touched[i]];

		/* so far only waiting, because wall time is kept as CPU time plus waiting */
		f->now[SNAPSHOT_TOT_WALL] += f->now[SNAPSHOT_TOT_CPU];
		f->now[SNAPSHOT_CUM_WALL] += f->now[SNAPSHOT_CUM_CPU];
		last_add_func(&e->last, e->touched[i], f->now);
		memset(f->now, 0, sizeof(f->now));
		f->touched = false;
	}
	e->ntouched = 0;
}

static void keep_nodes(struct estimate *e, struct calltree *tree, const struct folding *w)
{
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		uint32_t i = calltree_touched(tree, k);
		struct node *n = &tree->nodes[i];
		const struct estimate_node seen = {
			.calls = (double)n->calls,
			.yields = (double)tree->yields[i],
			.cpu = (double)n->self[SNAPSHOT_CPU],
			.wait = taken_waiting(n),
			.taken = w->cost_factor * e->scratch[i].taken,
		};

		if (!n->calls && !n->self[SNAPSHOT_CPU] && !n->self[SNAPSHOT_WALL] &&
		    !tree->yields[i])
			continue;
		last_add_node(e, i, &seen);
		n->calls = n->self[SNAPSHOT_CPU] = n->self[SNAPSHOT_WALL] = 0;
		tree->yields[i] = 0;
	}
	calltree_untouch(tree);
}

/* Forget the nodes of the previous window. */
static void forget_last(struct estimate *e)
{
	for (uint32_t k = 0; k < e->last.n; k++)
		e->nodes[e->last.nodes[k].node].last = 0;
}

/* Half of the gap belongs to the window before it. */
static void share_gap(struct estimate *e)
{
	double half = e->last.length > 0 ? e->gap_ns / 2 : 0;

	last_raise(e, half);
	e->gap_ns -= half;
}

void estimate_gap(struct estimate *e, uint64_t ns)
{
	e->gap_ns += (double)ns;
}

void estimate_own_cpu(struct estimate *e, double ns)
{
	if (ns > 0)
		e->own_cpu += ns;
}

void estimate_fold_end(struct estimate *e)
{
	forget_last(e);
	last_clear(&e->last);
}

void estimate_count_marks(struct estimate *e, bool on, uint64_t unlike_ns)
{
	const double gap = e->gap_ns, unlike = fmin(gap, (double)unlike_ns);

	/* Marks that follow a gap show more of it than the window before. */
	if (!on)
		last_raise(e, gap - unlike);
	e->gap_ns = on ? 0 : unlike;
	estimate_fold_end(e);
	progress_settle(e);
	e->progress.on = on;
	if (!on)
		return;
	e->progress.marked.lost = gap;
	e->progress.marked.had_window = e->progress.has_rate;
	e->progress.marked.before = e->progress.rate * gap;
}

void estimate_set_marks(struct estimate *e, uint64_t total, double per_ns)
{
	struct estimate_marked *m = &e->progress.marked;

	m->total = (double)total;
	m->guessed = per_ns * m->lost;
}

/* length_ns: of a window with these calls and CPU time, without probes' time */
static double missed_calls(const struct folding *w, double length_ns, double hit_ns)
{
	const double each = cost_each(hit_ns) * w->events;
	double own;

	if (each <= 0)
		return 0;
	own = cost_undisturbed(cost_cold(hit_ns), w->events, fmax(w->cpu - each, 0), 1);
	return cost_slowness(hit_ns) * w->events / 2 *
	       estimate_inverse_widened(fmin(1, (w->cpu - own) / length_ns));
}

int estimate_fold(struct estimate *e, struct calltree *tree, uint32_t nfuncs, uint64_t length_ns,
		  const struct cost *cost, double scale)
{
	struct folding w = {0};
	double taken;

	if (!length_ns)
		return 0;
	if (reserve_nodes(e, tree) || reserve_funcs(e, nfuncs))
		return -ENOMEM;
	calltree_close_touched(tree);
	if (last_reserve(&e->last, calltree_ntouched(tree), nfuncs))
		return -ENOMEM;
	share_gap(e);
	forget_last(e);
	taken = count_callees(e, tree, cost, &w);
	w.cost_factor = scale * cost_factor(&w, scale * taken);
	sum_nodes(e, tree, &w);
	last_begin(&e->last, (double)length_ns, w.cpu, w.wait);
	e->last.calls = w.events / 2;
	e->last.missed = missed_calls(&w, (double)length_ns, scale * cost_enter(cost));
	progress_add_window(e);
	e->last.expected = taken;
	e->last.taken = w.cost_factor * taken;
	e->seen_cpu += w.cpu;
	keep_funcs(e);
	keep_nodes(e, tree, &w);
	last_raise(e, (double)length_ns + e->gap_ns);
	e->gap_ns = 0;
	return 0;
}

int estimate_sample(struct estimate *e, const struct calltree *tree, uint32_t node)
{
	if (reserve_nodes(e, tree))
		return -ENOMEM;
	e->nodes[node].samples++;
	e->samples++;
	return 0;
}

int estimate_move(struct estimate *e, const struct calltree *tree, uint32_t from, uint32_t to)
{
	struct estimate_node *a, *b;
	int err;

	if (from >= e->n)
		return 0;
	err = reserve_nodes(e, tree);
	b = &e->nodes[from];
	if (!err) {
		a = &e->nodes[to];
		a->calls += b->calls;
		a->yields += b->yields;
		a->cpu += b->cpu;
		a->wait += b->wait;
		a->taken += b->taken;
		a->samples += b->samples;
		last_move(e, from, to);
	} else if (b->last) {
		e->last.nodes[b->last - 1].seen = (struct estimate_node){0};
	}
	*b = (struct estimate_node){0};
	e->outermost[from] = OUTERMOST_UNKNOWN;
	return err;
}

bool estimate_has(const struct estimate *e, uint32_t node)
{
	const struct estimate_node *n;

	if (node >= e->n)
		return false;
	n = &e->nodes[node];
	return n->calls > 0 || n->cpu > 0 || n->wait > 0 || n->samples > 0;
}

void estimate_costs_change(struct estimate *e, double times)
{
	e->expected *= times;
	e->last.expected *= times;
}

bool estimate_sampled(const struct estimate *e)
{
	return e->windows > 0 || e->gap_ns > 0;
}
