// SPDX-License-Identifier: BSD-2-Clause
/*
 * Of each context, its time by samples and its calls by windows
 *
 * calls.h has one factor for all calls. By chance, windows have seen some parts of the program more often than others:
 * half a millisecond is less than a request to a service takes. Samples show by how much. A request whose view has a
 * third of the samples, but half of the windows' time, has a third of the calls. So each context has a factor of its
 * own: that of its caller, corrected by the quotient of the samples and of the windows' own time in it and in all that
 * it calls. Both are weighted by precision:
 *
 * - Of the caller's factor: with k windows' worth of time in the caller, and i of them in the context, their quotient
 *   varies by 1 / i - 1 / k.
 * - Of the quotient: one sample in S; and the error of the windows' own time, which is large if the context mostly
 *   makes calls (calls_own). Its callees that compute make it precise.
 */
#include "accuracy/rest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/square.h"

void rest_deinit(struct rest *r)
{
	free(r->cpu);
	free(r->factor);
	free(r->variance);
	*r = (struct rest){0};
}

/* What samples stand for outside of light stretches, of which the open one may be one. */
static double sampled_ns(const struct rest_given *g, const struct evidence_node *n)
{
	return (double)n->samples + (g->light ? 0 : (double)n->within);
}

/*
 * Samples show Python functions only. Windows show how the time of a function is divided between
 * itself and the C functions that it calls. Sums up what both show of each node.
 */
static int divide_samples(const struct rest_given *g, double *own, struct calls_row *rows)
{
	const struct evidence *e = g->e;
	_cleanup_free_ double *group = calloc((size_t)e->n + 1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->n; i++) {
		const struct evidence_node *n = &e->nodes[i];
		struct calls_row *row = &rows[g->callers[i]];

		own[i] = fmax(0, n->cpu - g->times * n->taken);
		group[g->callers[i]] += own[i];
		row->cpu += n->cpu;
		row->taken += n->taken;
		row->intervals += n->calls;
		row->samples += sampled_ns(g, n);
		if (g->tree->parents[i] != NODE_NONE)
			rows[g->callers[g->tree->parents[i]]].intervals += n->calls;
	}
	for (uint32_t i = e->n; i-- > 0;) {
		const uint32_t at = g->callers[i];
		const double ns = sampled_ns(g, &e->nodes[at]);

		own[i] = group[at] > 0 ? ns * own[i] / group[at] : i == at ? ns : 0;
	}
	return 0;
}

/* Sums them up by function; the last row is outside Python. */
static struct calls_estimate estimate(const struct rest_given *g, struct calls_given *given,
				      const struct calls_row *nodes, struct calls_row *funcs)
{
	for (uint32_t i = 0; i < g->e->n; i++) {
		const uint32_t func = g->tree->nodes[i].func;
		struct calls_row *row = &funcs[func == SNAPSHOT_NONE ? g->nfuncs : func];

		row->cpu += nodes[i].cpu;
		row->taken += nodes[i].taken;
		row->intervals += nodes[i].intervals;
		row->samples += nodes[i].samples;
	}
	given->rows = funcs;
	return calls_estimate(g->e, given);
}

/* A context with all that it calls: time by samples; the own time in windows, its error; windows' worth of it */
struct context {
	double samples, own, error, windows;
	double left; /* the part of the variance between windows that samples leave */
};

static void sum_contexts(const struct rest_given *g, const struct calls_given *given,
			 const struct calls_row *rows, struct context *v)
{
	const double window = g->e->windows ? g->e->all_cpu / (double)g->e->windows : 0;

	for (uint32_t i = g->e->n; i-- > 0;) {
		const struct calls_own own = calls_own(&rows[i], given);
		const uint32_t parent = g->tree->parents[i];

		v[i].samples += rows[i].samples;
		v[i].own += own.ns;
		v[i].error += own.error;
		v[i].windows = window > 0 ? v[i].own / window : 0;
		if (parent == NODE_NONE)
			continue;
		v[parent].samples += v[i].samples;
		v[parent].own += v[i].own;
		v[parent].error += v[i].error;
	}
}

static void weigh(const struct rest_given *g, const struct calls_estimate *calls, struct context *v,
		  double *factor)
{
	for (uint32_t i = 0; i < g->e->n; i++) {
		const uint32_t parent = g->tree->parents[i], at = g->callers[i];
		const double before = parent == NODE_NONE ? calls->factor : factor[parent];
		const double all = parent == NODE_NONE ? (double)g->e->windows : v[parent].windows;
		const double mine = 1 / fmax(1, v[i].windows);
		const double of_chance = fmax(0, mine - 1 / fmax(1, all));
		const double quotient = v[i].own > 0 ? v[i].samples / v[i].own : 0;
		double of_quotient, rest;

		factor[i] = at == i ? before : factor[at];
		v[i].left = parent == NODE_NONE ? 1 : v[parent].left;
		if (at != i || quotient <= 0 || of_chance <= 0 || before <= 0)
			continue;
		of_quotient = g->period_ns / (v[i].samples + g->period_ns) +
			      square(v[i].error / v[i].own);
		rest = of_chance * of_quotient / (of_chance + of_quotient);
		factor[i] =
			(of_quotient * before + of_chance * quotient) / (of_chance + of_quotient);
		v[i].left = fmin(1, (rest + v[i].left * (mine - of_chance)) / mine);
	}
}

/* Of a function's contexts, sums over their calls in windows */
struct sums {
	double calls, factor, left;
};

static void set_variances(const struct rest_given *g, const struct calls_estimate *calls,
			  const struct context *v, const double *factor, double *variance,
			  struct sums *sums)
{
	for (uint32_t i = 0; i < g->e->n; i++) {
		const uint32_t func = g->tree->nodes[i].func;
		const double n = g->e->nodes[i].calls;

		if (func == SNAPSHOT_NONE)
			continue;
		sums[func].calls += n;
		sums[func].factor += n * factor[i];
		sums[func].left += n * v[i].left;
	}
	for (uint32_t f = 0; f < g->nfuncs; f++) {
		const struct sums *s = &sums[f];

		variance[f] = s->calls > 0 ? calls_variance(g->e, calls, f, s->factor / s->calls,
							    s->left / s->calls)
					   : calls_variance(g->e, calls, f, calls->factor, 1);
	}
}

int rest_solve(const struct rest_given *g, struct rest *ret)
{
	const size_t nnodes = (size_t)g->e->n + 1, nfuncs = (size_t)g->nfuncs + 1;
	_cleanup_free_ struct calls_row *nodes = calloc(nnodes, sizeof(*nodes));
	_cleanup_free_ struct calls_row *funcs = calloc(nfuncs, sizeof(*funcs));
	_cleanup_free_ struct sums *sums = calloc(nfuncs, sizeof(*sums));
	_cleanup_free_ struct context *v = calloc(nnodes, sizeof(*v));
	struct calls_given given = {
		.n = nfuncs,
		.hit_ns = g->hit_ns,
		.times = g->times,
		.error = g->error,
		.period_ns = g->period_ns,
	};
	struct calls_estimate calls;

	*ret = (struct rest){calloc(nnodes, sizeof(*ret->cpu)),
			     calloc(nnodes, sizeof(*ret->factor)),
			     calloc(nfuncs, sizeof(*ret->variance))};
	if (!nodes || !funcs || !sums || !v || !ret->cpu || !ret->factor || !ret->variance ||
	    divide_samples(g, ret->cpu, nodes) < 0) {
		rest_deinit(ret);
		return -ENOMEM;
	}
	calls = estimate(g, &given, nodes, funcs);
	sum_contexts(g, &given, nodes, v);
	weigh(g, &calls, v, ret->factor);
	set_variances(g, &calls, v, ret->factor, ret->variance, sums);
	return 0;
}

static uint64_t rounded(double x)
{
	return x < 1 ? x > 0 : (uint64_t)(x + 0.5);
}

struct snapshot_rest rest_of(const struct rest_given *g, const struct rest *r, uint32_t node)
{
	const struct evidence_node none = {.calls = 0};
	const struct evidence_node *n = node < g->e->n ? &g->e->nodes[node] : &none;
	const double factor = node < g->e->n ? r->factor[node] : 0;
	const bool heavy = g->stretch && !g->light; /* the open stretch */

	return (struct snapshot_rest){
		.calls = rounded(factor * n->calls) + n->heavy.calls +
			 (heavy ? g->tree->nodes[node].calls : 0),
		.yields = rounded(factor * n->yields) + n->heavy.yields +
			  (heavy ? g->tree->yields[node] : 0),
		.cpu = node < g->e->n ? (uint64_t)r->cpu[node] : 0,
	};
}
