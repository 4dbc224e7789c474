// SPDX-License-Identifier: BSD-2-Clause
/*
 * What windows and samples come to: see estimate.h
 *
 * Samples. Between windows a clock looks now and then at what runs, and that runs undisturbed. What
 * these samples say about costs, and how much of a function's own time they decide, is fit.c's; here
 * their contexts get it. Counts are the windows'. What a report subtracts for the probes is put back
 * on, so that what is left are those times.
 *
 * These samples know Python functions alone. So a Python function and the C functions that it calls make
 * one row, and each of its contexts one with those below it: inside, windows decide.
 *
 * Counts. Windows are scaled up to the whole run by the CPU time that the target has used for itself
 * (r->rest), which many figures go along with. But what of a window's CPU time is the target's own is
 * known only as well as what hits cost: with an error of A of it. Or they are scaled by time that
 * passes, whoever runs: if the target waits for the most part, probes take little of that, and the
 * error B is smaller. Then windows differ in how much of the work they happen to show: by V. What hits
 * cost is in both errors, in the same direction. Scaled by the one to the power of t and by the other to
 * the power of 1 - t, counts have the error
 *
 *	(t A + (1 - t) B)^2  +  (1 - t)^2 V^2
 *
 * besides what they do not share with CPU time, and the t is taken that makes it least. Times are
 * scaled by CPU time always: they must add up to it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/estimate.h"
#include "estimate/last.h"
#include "estimate/taken.h"

/* What hits cost tells how much the program slows down, and that what they cost. */
#define TURNS 3

/* By what the slowdown differs from what is expected, from program to program. */
#define SLOWDOWN_ERROR 0.3

/* By what hits of functions differ in cost from the mean, as in fit.c. */
#define APART 0.08

/* A context: its own CPU time and what probes took, unscaled; what a report will subtract. */
struct estimate_settled {
	double own, taken, slowdown, subtracted, intervals;
	double group; /* its own time and that of the C functions it calls */
	struct taken_ends callees;
};

/* Of a C function: itself; of a Python function: those that it calls. */
struct estimate_native {
	bool native;
	double own, taken;
	double variance; /* of own, by what windows differ */
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
	sum.wait += taken_waiting(n);
	return sum;
}

static uint32_t func_of(const struct estimate_result *r, uint32_t node)
{
	uint32_t func = r->tree->nodes[node].func;

	return func < r->nfuncs ? func : r->nfuncs;
}

/* The context of the Python function that calls a C function; of any other, itself. */
static uint32_t group_of(const struct estimate_result *r, uint32_t node)
{
	while (r->natives && r->tree->parents[node] != NODE_NONE &&
	       r->natives[func_of(r, node)].native)
		node = r->tree->parents[node];
	return node;
}

static struct fit_row *row_of(const struct estimate_result *r, uint32_t node)
{
	return &r->rows[func_of(r, group_of(r, node))];
}

/*
 * A variance that is itself known from n windows alone: widened so that 1.96 errors hold 95 % all the
 * same. Student's t by its expansion in 1 / (n - 1) (Abramowitz and Stegun, 26.7.5).
 */
static double widened(double var, double n)
{
	const double z = 1.96, v = n - 1, z3 = z * z * z;
	double t = z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);

	return var * (t / z) * (t / z);
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
	return var > 0 ? widened(var * n / (n - 1), n) : 0;
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

/* V squared: by how much CPU time, scaled by time that passes, differs from window to window. Negative:
 * not known. */
static double luck_of_windows(const struct estimate *e)
{
	double n = (double)e->windows, ratio, var;

	if (e->windows < 2 || e->length <= 0 || e->size[SNAPSHOT_CPU] <= 0)
		return -1;
	ratio = e->size[SNAPSHOT_CPU] / e->length;
	var = e->size2[SNAPSHOT_CPU] - 2 * ratio * e->length_cpu + ratio * ratio * e->length2;
	return var > 0 ? widened(var * n / (n - 1), n) / pow(e->size[SNAPSHOT_CPU], 2) : 0;
}

/* wrong: the error of all of the probes' time in windows, ns; own: what is left of CPU time. */
static void scale_counts(struct estimate_result *r, double wrong, double own)
{
	double a = own > 0 ? wrong / own : 0, b = r->e->all_ns > 0 ? wrong / r->e->all_ns : a;
	double luck = luck_of_windows(r->e), t = 1;

	if (luck >= 0 && a > b)
		t = fmax(0, (luck - b * (a - b)) / (luck + (a - b) * (a - b)));
	r->counts = pow(r->rest, t) * pow(wait_rest(r->e), 1 - t);
	r->counts_error = hypot(t * a + (1 - t) * b, (1 - t) * sqrt(fmax(0, luck)));
}

/* ---- C functions ---- */

static int natives_init(struct estimate_result *r, const struct funcs *funcs)
{
	bool any = false;

	if (!funcs)
		return 0;
	r->natives = calloc((size_t)r->nfuncs + 1, sizeof(*r->natives));
	if (!r->natives)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nfuncs; i++)
		any |= r->natives[i].native = funcs_is_native(funcs, i) || func_is_gc(i);
	if (any)
		return 0;
	free(r->natives);
	r->natives = NULL;
	return 0;
}

static void natives_clear(struct estimate_result *r)
{
	for (uint32_t i = 0; i <= r->nfuncs; i++)
		r->natives[i] = (struct estimate_native){.native = r->natives[i].native};
}

/* What windows say of C functions is part of what they say of the functions that call them. */
static void add_natives(struct estimate_result *r)
{
	natives_clear(r);
	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_native *f = &r->natives[func_of(r, i)];

		if (f->native && r->nodes[i].own > 0)
			f->own += r->nodes[i].own;
	}
	for (uint32_t i = 0; i < r->tree->n; i++) {
		const uint32_t func = func_of(r, i), caller = func_of(r, group_of(r, i));
		struct estimate_native *f = &r->natives[func], *g = &r->natives[caller];
		double all = windows_variance(r->e, func, SNAPSHOT_TOT_CPU), own = r->nodes[i].own;

		if (func == caller)
			continue;
		f->taken += r->nodes[i].taken;
		g->taken += r->nodes[i].taken;
		f->variance = fmax(0, all);
		if (f->own > 0 && own > 0)
			g->variance += f->variance * own / f->own;
	}
	for (uint32_t i = 0; i <= r->nfuncs; i++)
		if (!r->natives[i].native && r->rows[i].variance >= 0)
			r->rows[i].variance += r->natives[i].variance;
}

/* Of what is told apart by windows alone. */
static double native_variance(const struct estimate_result *r, uint32_t func)
{
	const struct estimate_native *f = &r->natives[func];
	double of_costs = hypot(r->fit.error, APART) * f->taken;

	return r->rest * r->rest * (f->variance + of_costs * of_costs);
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
		const struct taken_ends now = {n->calls, tree->yields[i]};
		struct estimate_settled *s = &r->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct fit_row *row = row_of(r, i);

		s->taken = sum.taken +
			   r->cost_factor * taken_of(cost, now, s->callees, taken_is_pseudo(n));
		s->own = sum.cpu - s->taken;
		s->intervals += sum.calls;
		take_slowdown(s, cold);
		row->own += s->own;
		row->taken += s->taken;
		row->samples += sum.samples;
		if (tree->parents[i] == NODE_NONE || taken_is_pseudo(n))
			continue;
		taken_ends_add(&r->nodes[tree->parents[i]].callees, now);
		r->nodes[tree->parents[i]].intervals += sum.calls;
	}
	if (r->natives)
		add_natives(r);
}

/* A context's own time by windows and samples, of all that is the program's own. */
static double with_samples(const struct estimate_result *r, uint32_t node, double own)
{
	const uint32_t at = group_of(r, node);
	const struct fit_row *row = row_of(r, node);
	double samples = at < r->e->n ? r->e->nodes[at].samples : 0;
	double group = r->nodes[at].group, both;

	if (row->part <= 0)
		return r->nodes[node].own;
	both = (1 - row->part) * group + row->part * own * samples / r->fit.samples;
	if (group > 0)
		return both * r->nodes[node].own / group;
	return node == at ? both : 0;
}

/* Each context's part of its function's share, from windows and from samples. */
static void share_out(struct estimate_result *r)
{
	double own = 0, shared = 0, taken = 0, slowdown = 0, wrong;

	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_settled *s = &r->nodes[i];

		s->own -= (r->fit.factor - 1) * s->taken;
		if (s->own < 0)
			s->own = 0;
		own += s->own;
		taken += s->taken;
		slowdown += s->slowdown;
	}
	wrong = hypot(r->fit.error * taken, SLOWDOWN_ERROR * slowdown);
	if (own > 0)
		r->systematic = wrong / own;
	for (uint32_t i = 0; i < r->tree->n; i++)
		r->nodes[group_of(r, i)].group += r->nodes[i].own;
	for (uint32_t i = 0; i < r->tree->n; i++) {
		r->nodes[i].own = with_samples(r, i, own);
		shared += r->nodes[i].own;
	}
	for (uint32_t i = 0; i < r->tree->n && shared > 0; i++)
		r->nodes[i].own *= own / shared;
	r->rest = rest_of(r->e, own);
	scale_counts(r, wrong, own);
}

/* What will be taken out of each context: by counts as the report has them, and whole ns. */
static void put_back(struct estimate_result *r, const struct cost *cost)
{
	const struct calltree *tree = r->tree;
	const struct cost c = cost_scaled(cost, r->cost_factor);

	for (uint32_t i = 0; i < tree->n; i++)
		r->nodes[i].callees = (struct taken_ends){0};
	for (uint32_t i = tree->n; i-- > 0;) {
		const struct node *n = &tree->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct taken_ends own = {rounded(r->counts * sum.calls),
					 rounded(r->counts * sum.yields)};

		r->nodes[i].subtracted = taken_of(&c, own, r->nodes[i].callees, taken_is_pseudo(n));
		if (tree->parents[i] != NODE_NONE && !taken_is_pseudo(n))
			taken_ends_add(&r->nodes[tree->parents[i]].callees, own);
	}
}

void estimate_result_deinit(struct estimate_result *r)
{
	free(r->nodes);
	free(r->rows);
	free(r->natives);
	*r = (struct estimate_result){0};
}

int estimate_settle(const struct estimate *e, const struct calltree *tree, uint32_t nfuncs,
		    const struct funcs *funcs, const struct cost *cost, struct estimate_result *ret)
{
	struct estimate_result r = {
		.e = e,
		.tree = tree,
		.rest = rest_of(e, e->all_cpu),
		.cost_factor = e->expected > 0 ? e->taken / e->expected : 1,
		.fit = {.factor = 1},
		.nfuncs = nfuncs,
	};

	r.counts = r.rest;

	/* Where costs are not known nothing is subtracted. */
	if (e->windows > 0 && cost->known) {
		r.nodes = calloc(tree->n, sizeof(*r.nodes));
		r.rows = calloc((size_t)nfuncs + 1, sizeof(*r.rows));
		if (!r.nodes || !r.rows || natives_init(&r, funcs) < 0) {
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
		.calls = rounded(r->counts * sum.calls),
		.yields = rounded(r->counts * sum.yields),
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
		return spread * spread + (r->natives ? native_variance(r, func) : 0);
	}
	if (var < 0 || func >= r->e->nfuncs)
		return var;
	/* What windows show is scaled by the CPU time that was theirs without probes. */
	if (figure != SNAPSHOT_CALLS) {
		systematic = r->systematic * r->rest * r->e->funcs[func].sum[figure];
		return r->rest * r->rest * var + systematic * systematic;
	}
	systematic = r->counts_error * r->counts * r->e->funcs[func].sum[figure];
	return r->counts * r->counts * var + systematic * systematic;
}
