// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sums over windows, and what is exact
 *
 * Weights. A window represents itself, half of the gap before it and half of the gap after it. Its
 * calls are multiplied by 1 + gaps / length, both in the program's own time. No other weight is
 * needed, because each moment was equally likely to be in a window as its neighbours
 * (session/windows.c). If the whole preceding gap belonged to a window, then code that follows
 * expensive intervals, after which no window may open for a while, would be overestimated. Stretches
 * represent themselves only; the gap between a window and a stretch is the window's.
 *
 * If probes took almost all of a window's CPU time, a small error of the measured cost is a large
 * error of the remainder, and the cost may even exceed the total. As each call takes some time on
 * any machine, at least WINDOW_OWN_NS per event is kept.
 *
 * Errors. They follow from the differences between windows. For calls z in a window that
 * represents M ns of the target, with R the ratio of the sums of z and M over all windows, the
 * variance is
 *
 *    n / (n - 1)  *  sum over windows of (1 - f) (z - R M)^2
 *
 * where f is the window's share of the time it represents: without gaps there is no error. This
 * needs only the sums of z^2, z M and M^2. It is the error of sampling independent windows; what is
 * common to all of them is in calls.c.
 *
 * Complexity. A window costs time in proportion to the CCT nodes that it touched: the tree lists
 * them. The tree may be as large as all windows have made it.
 */
#include "accuracy/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/window.h"
#include "base/array.h"
#include "stats/func.h"

void evidence_deinit(struct evidence *e)
{
	free(e->nodes);
	free(e->funcs);
	free(e->last.nodes);
	free(e->last.funcs);
	*e = (struct evidence){0};
}

static void clear_last(struct evidence_last *last)
{
	*last = (struct evidence_last){
		.nodes = last->nodes,
		.funcs = last->funcs,
		.cap = last->cap,
		.funcs_cap = last->funcs_cap,
	};
}

void evidence_clear(struct evidence *e)
{
	struct evidence kept = {
		.nodes = e->nodes,
		.cap = e->cap,
		.funcs = e->funcs,
		.nfuncs = e->nfuncs,
		.funcs_cap = e->funcs_cap,
		.last = e->last,
		.progress.on = e->progress.on,
	};

	if (e->n)
		memset(e->nodes, 0, e->n * sizeof(*e->nodes));
	if (e->nfuncs)
		memset(e->funcs, 0, e->nfuncs * sizeof(*e->funcs));
	clear_last(&kept.last);
	*e = kept;
}

/* ---- allocation: elements that have not been used are all 0 ---- */

static int reserve_nodes(struct evidence *e, const struct calltree *tree)
{
	struct evidence_node *v =
		array_room(e->nodes, &e->cap, tree->n + 1, ARRAY_FIRST, sizeof(*v));

	if (!v)
		return -ENOMEM;
	e->nodes = v;
	e->n = tree->n > e->n ? tree->n : e->n;
	return 0;
}

static int reserve_funcs(struct evidence *e, uint32_t n)
{
	struct evidence_func *v =
		array_room(e->funcs, &e->funcs_cap, n + 1, ARRAY_FIRST, sizeof(*v));

	if (!v)
		return -ENOMEM;
	e->funcs = v;
	e->nfuncs = n > e->nfuncs ? n : e->nfuncs;
	return 0;
}

static int reserve_last(struct evidence_last *last, uint32_t nodes, uint32_t funcs)
{
	uint32_t *v = array_room(last->nodes, &last->cap, nodes + 1, ARRAY_FIRST, sizeof(*v));

	if (!v)
		return -ENOMEM;
	last->nodes = v;
	v = array_room(last->funcs, &last->funcs_cap, funcs + 1, ARRAY_FIRST, sizeof(*v));
	if (!v)
		return -ENOMEM;
	last->funcs = v;
	return 0;
}

/* ---- the last window ---- */

/* Growth of the sums of z and z^2. A window that represents only itself has no error. */
struct growth {
	double sum, square;
};

static struct growth growth(double from, double to)
{
	return (struct growth){
		.sum = to - (from > 1 ? from : 0),
		.square = to * (to - 1) - (from > 1 ? from * (from - 1) : 0),
	};
}

static void raise_ratio(struct evidence_ratio *r, const struct growth *g, double z, double x)
{
	r->sum += g->sum * z;
	r->square += g->square * z * z;
	r->product += g->square * z * x;
}

static void raise_errors(struct evidence *e, double from, double to)
{
	const struct evidence_last *last = &e->last;
	struct evidence_marked *p = &e->progress.marked;
	const struct growth g = growth(from, to);

	e->windows += from <= 1;
	e->size += g.sum * last->cpu;
	e->size2 += g.square * last->cpu * last->cpu;
	if (last->marked) {
		raise_ratio(&p->calls, &g, last->calls, last->marks);
		p->marks += g.sum * last->marks;
		p->marks2 += g.square * last->marks * last->marks;
	}
	for (uint32_t k = 0; k < last->nfuncs; k++) {
		struct evidence_func *f = &e->funcs[last->funcs[k]];

		raise_ratio(&f->by_cpu, &g, f->now, last->cpu);
		if (last->marked)
			raise_ratio(&f->by_marks, &g, f->now, last->marks);
	}
}

static void raise_nodes(struct evidence *e, double by)
{
	for (uint32_t k = 0; k < e->last.n; k++) {
		struct evidence_node *n = &e->nodes[e->last.nodes[k]];

		n->calls += by * n->now.calls;
		n->yields += by * n->now.yields;
		n->cpu += by * n->now.cpu;
		n->taken += by * n->now.taken;
	}
}

/* The window represents ns more: raise its weight in the sums. */
static void last_raise(struct evidence *e, double ns)
{
	struct evidence_last *last = &e->last;
	double from = last->weight, by;

	if (ns <= 0 || last->length <= 0)
		return;
	by = ns / last->length;
	last->weight += by;
	raise_nodes(e, by);
	if (last->weight > 1)
		raise_errors(e, from, last->weight);
	e->all_ns += ns;
	e->all_cpu += by * last->cpu;
	e->calls += by * last->calls;
	if (!last->marked)
		return;
	e->progress.marked.all_calls += by * last->calls;
	e->progress.marked.all_marks += by * last->marks;
}

/* Forget the last window, which represents nothing of what follows. */
static void end_last(struct evidence *e)
{
	for (uint32_t k = 0; k < e->last.n; k++) {
		struct evidence_node *n = &e->nodes[e->last.nodes[k]];

		n->now = (struct evidence_seen){0};
		n->last = 0;
	}
	for (uint32_t k = 0; k < e->last.nfuncs; k++)
		e->funcs[e->last.funcs[k]].now = 0;
	clear_last(&e->last);
}

/* ---- one window ---- */

/*
 * The kernel brings a running thread's CPU clock up to date at its scheduling ticks only (kernel/sched/cputime.c,
 * thread_group_cputime), so that of another process is late by up to 10 ms: of windows of 2 ms, it showed 0.
 */
#define CLOCK_LATE_NS 10e6

/* All threads in a window, from measured costs */
struct folding {
	double raw, taken, events;
};

static bool is_pseudo(const struct node *n)
{
	return n->func != SNAPSHOT_NONE && func_is_pseudo(n->func) && !func_is_gc(n->func);
}

static struct cost_ends ends_of(const struct calltree *tree, uint32_t i)
{
	const uint64_t calls = tree->nodes[i].calls, yields = tree->yields[i];

	return (struct cost_ends){
		.calls = calls,
		.leaves = calls > yields ? calls - yields : 0,
		.yields = yields,
	};
}

/* Adds a node to the window. Its callees are there already. */
static void add_node(struct evidence *e, const struct calltree *tree, uint32_t i,
		     const struct cost *cost, struct folding *w)
{
	const struct node *n = &tree->nodes[i];
	const uint32_t parent = tree->parents[i];
	const struct cost_ends own = ends_of(tree, i);
	const bool pseudo = is_pseudo(n);
	const struct cost_ends *below = pseudo ? &own : &e->nodes[i].callees;
	const struct evidence_seen seen = {
		.calls = (double)n->calls,
		.yields = (double)own.yields,
		.cpu = (double)n->self[SNAPSHOT_CPU],
		.taken = cost->known ? (double)cost_taken(cost, &own, below) : 0,
	};

	w->taken += seen.taken;
	w->raw += seen.cpu;
	w->events += 2.0 * seen.calls;
	if (n->calls && n->func != SNAPSHOT_NONE) {
		if (!e->funcs[n->func].now)
			e->last.funcs[e->last.nfuncs++] = n->func;
		e->funcs[n->func].now += seen.calls;
	}
	if (seen.calls > 0 || seen.cpu > 0 || seen.yields > 0) {
		e->nodes[i].now = seen;
		e->last.nodes[e->last.n] = i;
		e->nodes[i].last = ++e->last.n;
	}
	if (parent == NODE_NONE || pseudo)
		return;
	e->nodes[parent].callees.calls += own.calls;
	e->nodes[parent].callees.leaves += own.leaves;
	e->nodes[parent].callees.yields += own.yields;
}

/* Backwards, because callees come after callers. */
static void add_nodes(struct evidence *e, const struct calltree *tree, const struct cost *cost,
		      struct folding *w)
{
	const uint32_t count = calltree_ntouched(tree);

	for (uint32_t k = 0; k < count; k++)
		e->nodes[calltree_touched(tree, k)].callees = (struct cost_ends){0};
	for (uint32_t k = count; k-- > 0;)
		add_node(e, tree, calltree_touched(tree, k), cost, w);
}

/* Factor by which costs must have been lower, so that enough of the window's CPU time remains. */
static double cost_factor(const struct folding *w, double taken)
{
	double most = w->raw - WINDOW_OWN_NS * w->events;

	if (taken <= 0 || taken <= most)
		return 1;
	return most > 0 ? most / taken : 0;
}

/* Ends a window or stretch. light: it was a stretch, whose samples are in it. */
static void clear_tree(struct evidence *e, struct calltree *tree, bool light)
{
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		const uint32_t i = calltree_touched(tree, k);
		struct node *n = &tree->nodes[i];

		n->calls = n->self[SNAPSHOT_CPU] = n->self[SNAPSHOT_WALL] = 0;
		tree->yields[i] = 0;
		if (i < e->n) {
			struct evidence_node *of = &e->nodes[i];

			*(light ? &of->exact.samples : &of->samples) += of->within;
			of->within = 0;
		}
	}
	calltree_untouch(tree);
}

/* The whole gap belongs to the window before it, if there is one, and the next one represents nothing of it. */
static void close_gap(struct evidence *e)
{
	if (e->last.length > 0) {
		last_raise(e, e->gap_ns);
		e->gap_ns = 0;
	}
	end_last(e);
}

/* Half of the gap belongs to the window before it. */
static void share_gap(struct evidence *e)
{
	double half = e->last.length > 0 ? e->gap_ns / 2 : 0;

	last_raise(e, half);
	e->gap_ns -= half;
}

int evidence_fold(struct evidence *e, struct calltree *tree, uint32_t nfuncs,
		  const struct evidence_window *given)
{
	const double times = given->times;
	double most, stolen;
	struct folding w = {0};

	if (!given->length_ns) {
		/* It was cleared; what its calls did afterwards is in no sum. */
		clear_tree(e, tree, false);
		return 0;
	}
	if (reserve_nodes(e, tree) || reserve_funcs(e, nfuncs))
		return -ENOMEM;
	calltree_close_touched(tree);
	if (reserve_last(&e->last, calltree_ntouched(tree), nfuncs))
		return -ENOMEM;
	share_gap(e);
	end_last(e);
	add_nodes(e, tree, given->cost, &w);
	/* A hypervisor may have had the CPU meanwhile, which no event shows. */
	most = given->cpu_ns + CLOCK_LATE_NS;
	stolen = w.raw > most ? most / w.raw : 1;
	w.raw *= stolen;
	e->last.length = given->length_ns;
	e->last.cpu = fmax(0, w.raw - times * cost_factor(&w, times * w.taken) * w.taken);
	e->last.calls = w.events / 2;
	e->last.marked = e->progress.on;
	e->last.marks = e->progress.now;
	e->progress.shown += e->progress.now;
	e->progress.now = 0;
	e->seen_cpu += e->last.cpu;
	for (uint32_t k = 0; k < e->last.n; k++)
		e->nodes[e->last.nodes[k]].now.cpu *= stolen;
	clear_tree(e, tree, false);
	last_raise(e, given->length_ns + e->gap_ns);
	e->gap_ns = 0;
	e->partial = true;
	return 0;
}

int evidence_keep(struct evidence *e, struct calltree *tree, bool light)
{
	if (reserve_nodes(e, tree))
		return -ENOMEM;
	close_gap(e);
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		uint32_t i = calltree_touched(tree, k);
		struct evidence_exact *exact = light ? &e->nodes[i].exact : &e->nodes[i].heavy;

		exact->calls += tree->nodes[i].calls;
		exact->yields += tree->yields[i];
		exact->cpu += light ? tree->nodes[i].self[SNAPSHOT_CPU] : 0;
	}
	clear_tree(e, tree, light);
	return 0;
}

/* ---- between windows ---- */

void evidence_gap(struct evidence *e, uint64_t ns)
{
	e->gap_ns += (double)ns;
	e->partial |= ns > 0;
}

void evidence_own_cpu(struct evidence *e, double ns)
{
	if (ns > 0)
		e->own_cpu += ns;
}

void evidence_costs_change(struct evidence *e, double times)
{
	for (uint32_t i = 0; i < e->n; i++) {
		e->nodes[i].taken *= times;
		e->nodes[i].now.taken *= times;
	}
}

int evidence_sample(struct evidence *e, struct calltree *tree, uint32_t node, uint64_t ns,
		    bool stretch)
{
	if (reserve_nodes(e, tree))
		return -ENOMEM;
	if (stretch)
		calltree_touch(tree, node);
	*(stretch ? &e->nodes[node].within : &e->nodes[node].samples) += ns;
	e->samples++;
	return 0;
}

void evidence_count_marks(struct evidence *e, bool on)
{
	close_gap(e);
	/* Windows in which marks are counted represent no time in which they were not. */
	if (on)
		e->gap_ns = 0;
	for (uint32_t i = 0; i < e->nfuncs; i++)
		e->funcs[i].by_marks = (struct evidence_ratio){0};
	e->progress = (struct evidence_progress){.on = on, .cpu_before = e->own_cpu};
}

void evidence_set_marks(struct evidence *e, uint64_t total)
{
	struct evidence_marked *m = &e->progress.marked;

	m->total = fmax(0, (double)total - m->kept);
}

/* ---- nodes ---- */

int evidence_move(struct evidence *e, struct calltree *tree, uint32_t from, uint32_t to)
{
	struct evidence_node *a, *b;
	int err;

	if (from >= e->n)
		return 0;
	err = reserve_nodes(e, tree);
	b = &e->nodes[from];
	if (!err) {
		a = &e->nodes[to];
		a->exact.calls += b->exact.calls;
		a->exact.yields += b->exact.yields;
		a->exact.cpu += b->exact.cpu;
		a->exact.samples += b->exact.samples;
		a->heavy.calls += b->heavy.calls;
		a->heavy.yields += b->heavy.yields;
		a->calls += b->calls;
		a->yields += b->yields;
		a->cpu += b->cpu;
		a->taken += b->taken;
		a->samples += b->samples;
		a->within += b->within;
		calltree_touch(tree, to);
		a->now.calls += b->now.calls;
		a->now.yields += b->now.yields;
		a->now.cpu += b->now.cpu;
		a->now.taken += b->now.taken;
		if (b->last && !a->last) {
			e->last.nodes[b->last - 1] = to;
			a->last = b->last;
			b->last = 0;
		}
	}
	/* It may stay in the list, without figures. */
	*b = (struct evidence_node){.last = b->last};
	return err;
}

bool evidence_has(const struct evidence *e, uint32_t node)
{
	const struct evidence_node *n;

	if (node >= e->n)
		return false;
	n = &e->nodes[node];
	return n->exact.calls || n->heavy.calls || n->exact.cpu || n->calls > 0 || n->cpu > 0 ||
	       n->samples || n->within || n->exact.samples;
}
