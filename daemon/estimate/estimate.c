// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates from windows
 *
 * Weights. A window stands for itself, for half of the gap before it, and for half of the gap after:
 * what was seen in it is multiplied by 1 + gaps / length, both in the program's own time, and nothing
 * else, since each moment of the program was as likely to be in a window as any other near it
 * (session/windows.c). Were the whole gap before it a window's, then what follows dear times, after
 * which no window may open for a while, would count for too much. Then all of it is multiplied once
 * more, by a factor near 1, so that the rows add up to the CPU time that the target has really used for
 * itself, which its CPU clock tells (a combined ratio estimate).
 *
 * Where almost all of a window's CPU time was the probes', a small error of their measured cost is a
 * large one of what is left: the costs of another moment may even come to more than there was. A call
 * takes some time of its own on any machine; at least that is left for each event.
 *
 * Errors. Windows differ; by how much is what the errors are made from. For a figure that is z in a
 * window that stands for M ns of the target, and R times all of them together, the variance is
 *
 *	n / (n - 1)  *  sum over windows of (1 - f) (z - R M)^2
 *
 * where f is the window's part of what it stands for: without a gap there is no error. Sums of z^2,
 * z M and M^2 are all that has to be kept for it. It is the error of sampling, as it is when windows
 * tell nothing about each other. What is not known of the probes' costs is an error that all windows
 * share: it is added, as it comes out of fit.c, to the errors of counts and cumulative times.
 *
 * Work. A window costs what it touched: the tree lists the contexts that have figures, and only these
 * and their callers are looked at. The tree may be as large as all windows together have made it.
 *
 * Samples. Between windows a clock looks now and then at what runs, and that runs undisturbed. What
 * these samples say about costs, and how much of a function's own time they decide, is fit.c's; here
 * their contexts get it. Counts are the windows'. What a report subtracts for the probes is put back
 * on, so that what is left are those times.
 */
#include "estimate/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/last.h"
#include "estimate/window.h"
#include "stats/func.h"

/* What began and ended: a context's own activations, or its callees'. */
struct ends {
	uint64_t calls, yields;
};

/* A context in the window at hand. */
struct estimate_scratch {
	struct ends callees;
	double taken; /* of its own time, by probes */
	double cum[SNAPSHOT_CLOCKS];
};

/*
 * So many callers are looked at to find out whether a function is among them. One that recurses from
 * further away adds to the error of its cumulative time twice; all callers of 100,000 nested functions
 * would be 5,000,000,000 steps.
 */
#define OUTERMOST_STEPS 1024u

/* What hits cost tells how much the program slows down, and that what they cost. */
#define TURNS 3

/* By what the slowdown differs from what is expected, from program to program. */
#define SLOWDOWN_ERROR 0.3

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
	};

	if (e->nfuncs)
		memset(e->funcs, 0, e->nfuncs * sizeof(*e->funcs));
	last_clear(&kept.last);
	*e = kept;
}

/* ---- room ---- */

static int grow(void **array, size_t cap, size_t size)
{
	void *grown = reallocarray(*array, cap, size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/* Found out when it is first needed: a node's place may be used again by another context. */
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

static double waiting(const struct node *n)
{
	return n->self[SNAPSHOT_WALL] > n->self[SNAPSHOT_CPU]
		       ? (double)(n->self[SNAPSHOT_WALL] - n->self[SNAPSHOT_CPU])
		       : 0;
}

struct folding {
	double cpu, wait; /* of all threads, without the probes' time */
	double raw_cpu, events;
	double cost_factor;
};

static uint64_t leaves_of(struct ends e)
{
	return e.calls > e.yields ? e.calls - e.yields : 0;
}

/* What the probes took of a context's own time: see snapshot/correct.c. */
static double probes_time(const struct cost *c, struct ends n, struct ends callees, bool pseudo)
{
	double own = (double)n.calls * c->after[COST_ENTER] +
		     (double)leaves_of(n) * c->before[COST_LEAVE] +
		     (double)n.yields * c->before[COST_YIELD];

	if (!c->known)
		return 0;
	if (pseudo)
		return own + (double)n.calls * (c->before[COST_ENTER] + c->after[COST_LEAVE]);
	return own + (double)callees.calls * c->before[COST_ENTER] +
	       (double)leaves_of(callees) * c->after[COST_LEAVE] +
	       (double)callees.yields * c->after[COST_YIELD];
}

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

static bool is_pseudo(const struct node *n)
{
	return n->func != SNAPSHOT_NONE && func_is_pseudo(n->func);
}

static void add_ends(struct ends *to, struct ends n)
{
	to->calls += n.calls;
	to->yields += n.yields;
}

/* Backwards: callees come after their callers. What probes took, by the costs that were measured. */
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
		struct ends own = {n->calls, tree->yields[i]};
		uint32_t parent = tree->parents[i];

		s->taken = probes_time(cost, own, s->callees, is_pseudo(n));
		taken += s->taken;
		w->raw_cpu += (double)n->self[SNAPSHOT_CPU];
		w->events += 2.0 * (double)n->calls;
		if (parent == NODE_NONE || is_pseudo(n))
			continue;
		add_ends(&e->scratch[parent].callees, own);
	}
	return taken;
}

/* By how much the costs were lower, or it cannot be. */
static double cost_factor(const struct folding *w, double taken)
{
	double most = w->raw_cpu - WINDOW_OWN_NS * w->events;

	if (taken <= 0 || taken <= most)
		return 1;
	return most > 0 ? most / taken : 0;
}

static void look_at_nodes(struct estimate *e, const struct calltree *tree, struct folding *w)
{
	for (uint32_t k = calltree_ntouched(tree); k-- > 0;) {
		uint32_t i = calltree_touched(tree, k);
		const struct node *n = &tree->nodes[i];
		struct estimate_scratch *s = &e->scratch[i];
		uint32_t parent = tree->parents[i];
		double cpu = (double)n->self[SNAPSHOT_CPU], wait = waiting(n);
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

/* ---- its part in the sums ---- */

static void keep_funcs(struct estimate *e)
{
	for (uint32_t i = 0; i < e->ntouched; i++) {
		struct estimate_func *f = &e->funcs[e->touched[i]];

		/* So far it is the waiting of these. */
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
			.wait = waiting(n),
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

/* The places of the window before. */
static void forget_last(struct estimate *e)
{
	for (uint32_t k = 0; k < e->last.n; k++)
		e->nodes[e->last.nodes[k].node].last = 0;
}

/* The gap between two windows: a half is of each. */
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
	look_at_nodes(e, tree, &w);
	last_begin(&e->last, (double)length_ns, w.cpu, w.wait);
	e->last.expected = taken;
	e->last.taken = w.cost_factor * taken;
	e->seen_cpu += w.cpu;
	keep_funcs(e);
	keep_nodes(e, tree, &w);
	last_raise(e, (double)length_ns + e->gap_ns);
	e->gap_ns = 0;
	return 0;
}

void estimate_fold_end(struct estimate *e)
{
	forget_last(e);
	last_clear(&e->last);
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

/* ---- what it comes to ---- */

/* A context: its own CPU time and what probes took, unscaled; what a report will subtract. */
struct estimate_settled {
	double own, taken, slowdown, subtracted, intervals;
	struct ends callees;
};

static double rest_of(const struct estimate *e, double own)
{
	return estimate_sampled(e) && own > 0 && e->own_cpu > 0 ? e->own_cpu / own : 1;
}

static uint64_t rounded(double x)
{
	return x < 1 ? x > 0 : (uint64_t)(x + 0.5);
}

static double wait_rest(const struct estimate *e)
{
	return e->all_ns > 0 ? 1 + e->gap_ns / e->all_ns : 1;
}

/* What was folded and what is in the tree now. */
static struct estimate_node sum_of(const struct estimate_result *r, uint32_t node)
{
	struct estimate_node sum = {0};
	const struct node *n = &r->tree->nodes[node];

	if (node < r->e->n)
		sum = r->e->nodes[node];
	sum.calls += (double)n->calls;
	sum.yields += (double)r->tree->yields[node];
	sum.cpu += (double)n->self[SNAPSHOT_CPU];
	sum.wait += waiting(n);
	return sum;
}

static struct fit_row *row_of(const struct estimate_result *r, uint32_t node)
{
	uint32_t func = r->tree->nodes[node].func;

	return &r->rows[func < r->nfuncs ? func : r->nfuncs];
}

/* The variance of what windows say, unscaled. */
static double windows_variance(const struct estimate *e, uint32_t func, enum snapshot_figure figure)
{
	bool wall = figure == SNAPSHOT_TOT_WALL || figure == SNAPSHOT_CUM_WALL;
	double n = (double)e->windows, ratio, var;
	const struct estimate_func *f;

	if (!estimate_sampled(e))
		return 0;
	if (e->windows < 2 || func >= e->nfuncs || e->size[wall] <= 0)
		return -1;
	f = &e->funcs[func];
	ratio = f->sum[figure] / e->size[wall];
	var = f->square[figure] - 2 * ratio * f->product[figure] + ratio * ratio * e->size2[wall];
	return var > 0 ? var * n / (n - 1) : 0;
}

/* Code runs slower after hits (base/cost.h): that is not its own time either. Of what probes took,
 * the part remains that its own time would change by. */
static void take_slowdown(struct estimate_settled *s, double cold_ns)
{
	double own = s->own;

	if (own <= 0)
		return;
	s->own = cost_undisturbed(cold_ns, s->intervals, own, 1);
	s->slowdown = own - s->own;
	s->taken /= 1 + cost_cold_slope(cold_ns, s->intervals, s->own);
}

/* By function: what windows and samples say. */
static void fill_rows(struct estimate_result *r, const struct cost *cost)
{
	const struct calltree *tree = r->tree;
	const double cold = cost_cold(r->cost_factor * r->fit.factor *
				      ((double)cost->before[COST_ENTER] + cost->after[COST_ENTER]));

	memset(r->nodes, 0, tree->n * sizeof(*r->nodes));
	memset(r->rows, 0, ((size_t)r->nfuncs + 1) * sizeof(*r->rows));

	for (uint32_t i = 0; i < r->nfuncs; i++)
		r->rows[i].variance = windows_variance(r->e, i, SNAPSHOT_TOT_CPU);
	r->rows[r->nfuncs].variance = -1;
	for (uint32_t i = tree->n; i-- > 0;) {
		const struct node *n = &tree->nodes[i];
		const struct ends now = {n->calls, tree->yields[i]};
		struct estimate_settled *s = &r->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct fit_row *row = row_of(r, i);

		s->taken = sum.taken +
			   r->cost_factor * probes_time(cost, now, s->callees, is_pseudo(n));
		s->own = sum.cpu - s->taken;
		s->intervals += sum.calls;
		take_slowdown(s, cold);
		row->own += s->own;
		row->taken += s->taken;
		row->samples += sum.samples;
		if (tree->parents[i] == NODE_NONE || is_pseudo(n))
			continue;
		add_ends(&r->nodes[tree->parents[i]].callees, now);
		r->nodes[tree->parents[i]].intervals += sum.calls;
	}
}

/* Each context's part of its function's share, from windows and from samples. */
static void share_out(struct estimate_result *r)
{
	double own = 0, shared = 0, taken = 0, slowdown = 0;

	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_settled *s = &r->nodes[i];

		s->own -= (r->fit.factor - 1) * s->taken;
		if (s->own < 0)
			s->own = 0;
		own += s->own;
		taken += s->taken;
		slowdown += s->slowdown;
	}
	if (own > 0)
		r->systematic = hypot(r->fit.error * taken, SLOWDOWN_ERROR * slowdown) / own;
	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_settled *s = &r->nodes[i];
		const struct fit_row *row = row_of(r, i);
		double samples = i < r->e->n ? r->e->nodes[i].samples : 0;

		if (row->part > 0)
			s->own = (1 - row->part) * s->own +
				 row->part * own * samples / r->fit.samples;
		shared += s->own;
	}
	for (uint32_t i = 0; i < r->tree->n && shared > 0; i++)
		r->nodes[i].own *= own / shared;
	r->rest = rest_of(r->e, own);
}

/* What will be taken out of each context: by counts as the report has them, and whole ns. */
static void put_back(struct estimate_result *r, const struct cost *cost)
{
	const struct calltree *tree = r->tree;
	const struct cost c = cost_scaled(cost, r->cost_factor);

	for (uint32_t i = 0; i < tree->n; i++)
		r->nodes[i].callees = (struct ends){0};
	for (uint32_t i = tree->n; i-- > 0;) {
		const struct node *n = &tree->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct ends own = {rounded(r->rest * sum.calls), rounded(r->rest * sum.yields)};

		r->nodes[i].subtracted = probes_time(&c, own, r->nodes[i].callees, is_pseudo(n));
		if (tree->parents[i] != NODE_NONE && !is_pseudo(n))
			add_ends(&r->nodes[tree->parents[i]].callees, own);
	}
}

void estimate_result_deinit(struct estimate_result *r)
{
	free(r->nodes);
	free(r->rows);
	*r = (struct estimate_result){0};
}

int estimate_settle(const struct estimate *e, const struct calltree *tree, uint32_t nfuncs,
		    const struct cost *cost, struct estimate_result *ret)
{
	struct estimate_result r = {
		.e = e,
		.tree = tree,
		.rest = rest_of(e, e->all_cpu),
		.cost_factor = e->expected > 0 ? e->taken / e->expected : 1,
		.fit = {.factor = 1},
		.nfuncs = nfuncs,
	};

	/* Where costs are not known nothing is subtracted. */
	if (e->windows > 0 && cost->known) {
		r.nodes = calloc(tree->n, sizeof(*r.nodes));
		r.rows = calloc((size_t)nfuncs + 1, sizeof(*r.rows));
		if (!r.nodes || !r.rows) {
			estimate_result_deinit(&r);
			return -ENOMEM;
		}
		for (int pass = 0; pass < TURNS; pass++) {
			fill_rows(&r, cost);
			r.fit = fit_solve(r.rows, (size_t)nfuncs + 1);
		}
		r.cost_factor *= r.fit.factor;
		share_out(&r);
		put_back(&r, cost);
	}
	*ret = r;
	return 0;
}

struct estimate_figures estimate_figures(const struct estimate_result *r, uint32_t node)
{
	struct estimate_node sum = sum_of(r, node);
	double cpu = r->rest * (r->nodes ? r->nodes[node].own : sum.cpu);

	if (r->nodes)
		cpu += r->nodes[node].subtracted;
	return (struct estimate_figures){
		.calls = rounded(r->rest * sum.calls),
		.yields = rounded(r->rest * sum.yields),
		.self = {[SNAPSHOT_CPU] = rounded(cpu),
			 [SNAPSHOT_WALL] = rounded(cpu + wait_rest(r->e) * sum.wait)},
	};
}

double estimate_variance(const struct estimate_result *r, uint32_t func,
			 enum snapshot_figure figure)
{
	double var = windows_variance(r->e, func, figure), spread, systematic;

	if (r->fit.samples > 0 && figure == SNAPSHOT_TOT_CPU && func < r->nfuncs) {
		spread = r->rows[func].spread * r->e->own_cpu;
		return spread * spread;
	}
	if (var < 0 || func >= r->e->nfuncs)
		return var;
	/* What windows show is scaled by the CPU time that was theirs without probes. */
	systematic = r->systematic * r->rest * r->e->funcs[func].sum[figure];
	return r->rest * r->rest * var + systematic * systematic;
}
