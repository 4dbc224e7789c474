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

#include "accuracy/evidence_priv.h"
#include "accuracy/window.h"
#include "stats/func.h"

/* Numbers of activations that began and that yielded */
struct ends {
	uint64_t calls, yields;
};

/* A CCT node in the current window */
struct evidence_scratch {
	struct ends callees;
	double taken; /* probes' part of its own time */
};

void evidence_deinit(struct evidence *e)
{
	free(e->nodes);
	free(e->scratch);
	free(e->funcs);
	free(e->touched);
	last_deinit(&e->last);
	*e = (struct evidence){0};
}

void evidence_clear(struct evidence *e)
{
	struct evidence kept = {
		.nodes = e->nodes,
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

static int reserve_nodes(struct evidence *e, const struct calltree *tree)
{
	if (tree->n > e->cap) {
		if (grow((void **)&e->nodes, tree->cap, sizeof(*e->nodes)) ||
		    grow((void **)&e->scratch, tree->cap, sizeof(*e->scratch)))
			return -ENOMEM;
		e->cap = tree->cap;
	}
	for (; e->n < tree->n; e->n++)
		e->nodes[e->n] = (struct evidence_node){0};
	return 0;
}

static int reserve_funcs(struct evidence *e, uint32_t n)
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

/* All threads in a window, from measured costs */
struct folding {
	double raw, taken, events;
};

static bool is_pseudo(const struct node *n)
{
	return n->func != SNAPSHOT_NONE && func_is_pseudo(n->func) && !func_is_gc(n->func);
}

static uint64_t leaves_of(const struct ends *e)
{
	return e->calls > e->yields ? e->calls - e->yields : 0;
}

/* Probes' part of a node's own time: see accuracy/finish.c. */
static double taken_of(const struct cost *c, const struct ends *n, const struct ends *callees,
		       bool pseudo)
{
	double own = (double)n->calls * c->after[COST_ENTER] +
		     (double)leaves_of(n) * c->before[COST_LEAVE] +
		     (double)n->yields * c->before[COST_YIELD];

	if (!c->known)
		return 0;
	if (pseudo)
		return own + (double)n->calls * (c->before[COST_ENTER] + c->after[COST_LEAVE]);
	return own + (double)callees->calls * c->before[COST_ENTER] +
	       (double)leaves_of(callees) * c->after[COST_LEAVE] +
	       (double)callees->yields * c->after[COST_YIELD];
}

/* Backwards, because callees come after callers. */
static void sum_nodes(struct evidence *e, const struct calltree *tree, const struct cost *cost,
		      struct folding *w)
{
	uint32_t count = calltree_ntouched(tree);

	for (uint32_t k = 0; k < count; k++)
		e->scratch[calltree_touched(tree, k)] = (struct evidence_scratch){0};
	for (uint32_t k = count; k-- > 0;) {
		uint32_t i = calltree_touched(tree, k), parent = tree->parents[i];
		const struct node *n = &tree->nodes[i];
		const struct ends own = {n->calls, tree->yields[i]};
		struct evidence_scratch *s = &e->scratch[i];

		s->taken = taken_of(cost, &own, &s->callees, is_pseudo(n));
		w->taken += s->taken;
		w->raw += (double)n->self[SNAPSHOT_CPU];
		w->events += 2.0 * (double)n->calls;
		if (parent == NODE_NONE || is_pseudo(n))
			continue;
		e->scratch[parent].callees.calls += own.calls;
		e->scratch[parent].callees.yields += own.yields;
	}
}

/* Factor by which costs must have been lower, so that enough of the window's CPU time remains. */
static double cost_factor(const struct folding *w, double taken)
{
	double most = w->raw - WINDOW_OWN_NS * w->events;

	if (taken <= 0 || taken <= most)
		return 1;
	return most > 0 ? most / taken : 0;
}

static void clear_node(struct calltree *tree, uint32_t i)
{
	struct node *n = &tree->nodes[i];

	n->calls = n->self[SNAPSHOT_CPU] = n->self[SNAPSHOT_WALL] = 0;
	tree->yields[i] = 0;
}

static void keep_nodes(struct evidence *e, struct calltree *tree, double stolen)
{
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		uint32_t i = calltree_touched(tree, k);
		const struct node *n = &tree->nodes[i];
		const struct evidence_last_node seen = {
			.node = i,
			.calls = (double)n->calls,
			.yields = (double)tree->yields[i],
			.cpu = stolen * (double)n->self[SNAPSHOT_CPU],
			.taken = e->scratch[i].taken,
		};

		if (n->calls && n->func != SNAPSHOT_NONE) {
			struct evidence_func *f = &e->funcs[n->func];

			if (!f->touched)
				e->touched[e->ntouched++] = n->func;
			f->touched = true;
			f->now += seen.calls;
		}
		if (n->calls || n->self[SNAPSHOT_CPU] || tree->yields[i])
			last_add_node(e, &seen);
		clear_node(tree, i);
	}
	calltree_untouch(tree);
	for (uint32_t i = 0; i < e->ntouched; i++) {
		struct evidence_func *f = &e->funcs[e->touched[i]];

		last_add_func(&e->last, e->touched[i], f->now);
		f->now = 0;
		f->touched = false;
	}
	e->ntouched = 0;
}

/* Forget the last window, which represents nothing of what follows. */
static void end_last(struct evidence *e)
{
	for (uint32_t k = 0; k < e->last.n; k++)
		e->nodes[e->last.nodes[k].node].last = 0;
	last_clear(&e->last);
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
	double stolen;
	struct folding w = {0};

	if (!given->length_ns) {
		/* It was cleared; what its calls did afterwards is in no sum. */
		for (uint32_t k = 0; k < calltree_ntouched(tree); k++)
			clear_node(tree, calltree_touched(tree, k));
		calltree_untouch(tree);
		return 0;
	}
	if (reserve_nodes(e, tree) || reserve_funcs(e, nfuncs))
		return -ENOMEM;
	calltree_close_touched(tree);
	if (last_reserve(&e->last, calltree_ntouched(tree), nfuncs))
		return -ENOMEM;
	share_gap(e);
	end_last(e);
	sum_nodes(e, tree, given->cost, &w);
	/* A hypervisor may have had the CPU meanwhile, which no event shows. */
	stolen = w.raw > given->cpu_ns ? given->cpu_ns / w.raw : 1;
	w.raw *= stolen;
	e->last.length = given->length_ns;
	e->last.cpu = fmax(0, w.raw - times * cost_factor(&w, times * w.taken) * w.taken);
	e->last.calls = w.events / 2;
	e->last.marked = e->progress.on;
	e->last.marks = e->progress.now;
	e->progress.shown += e->progress.now;
	e->progress.now = 0;
	e->seen_cpu += e->last.cpu;
	keep_nodes(e, tree, stolen);
	last_raise(e, given->length_ns + e->gap_ns);
	e->gap_ns = 0;
	e->partial = true;
	return 0;
}

int evidence_keep(struct evidence *e, struct calltree *tree, bool light)
{
	if (reserve_nodes(e, tree))
		return -ENOMEM;
	if (e->last.length > 0) {
		last_raise(e, e->gap_ns);
		e->gap_ns = 0;
	}
	end_last(e);
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		uint32_t i = calltree_touched(tree, k);
		struct evidence_exact *exact = light ? &e->nodes[i].exact : &e->nodes[i].heavy;

		exact->calls += tree->nodes[i].calls;
		exact->yields += tree->yields[i];
		exact->cpu += light ? tree->nodes[i].self[SNAPSHOT_CPU] : 0;
		clear_node(tree, i);
	}
	calltree_untouch(tree);
	for (uint32_t i = 0; i < e->n; i++) {
		struct evidence_node *n = &e->nodes[i];

		*(light ? &n->exact.samples : &n->samples) += n->within;
		n->within = 0;
	}
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
	for (uint32_t i = 0; i < e->n; i++)
		e->nodes[i].taken *= times;
	for (uint32_t k = 0; k < e->last.n; k++)
		e->last.nodes[k].taken *= times;
}

int evidence_sample(struct evidence *e, const struct calltree *tree, uint32_t node, uint64_t ns,
		    bool stretch)
{
	if (reserve_nodes(e, tree))
		return -ENOMEM;
	*(stretch ? &e->nodes[node].within : &e->nodes[node].samples) += ns;
	e->samples++;
	return 0;
}

void evidence_count_marks(struct evidence *e, bool on)
{
	if (e->last.length > 0)
		last_raise(e, e->gap_ns);
	/* Windows in which marks are counted represent no time in which they were not. */
	if (e->last.length > 0 || on)
		e->gap_ns = 0;
	end_last(e);
	for (uint32_t i = 0; i < e->nfuncs; i++)
		e->funcs[i].marked = (struct evidence_func_marked){0};
	e->progress = (struct evidence_progress){.on = on, .cpu_before = e->own_cpu};
}

void evidence_set_marks(struct evidence *e, uint64_t total)
{
	struct evidence_marked *m = &e->progress.marked;

	m->total = fmax(0, (double)total - m->kept);
}

/* ---- nodes ---- */

int evidence_move(struct evidence *e, const struct calltree *tree, uint32_t from, uint32_t to)
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
		last_move(e, from, to);
	} else if (b->last) {
		e->last.nodes[b->last - 1] = (struct evidence_last_node){.node = from};
	}
	*b = (struct evidence_node){0};
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
