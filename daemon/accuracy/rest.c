// SPDX-License-Identifier: BSD-2-Clause
#include "accuracy/rest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void rest_deinit(struct rest *r)
{
	free(r->cpu);
	*r = (struct rest){0};
}

/* What samples stand for outside of light stretches, of which the open one may be one. */
static double sampled_ns(const struct rest_given *g, const struct evidence_node *n)
{
	return (double)n->samples + (g->light ? 0 : (double)n->within);
}

static struct calls_row *row_of(const struct rest_given *g, struct calls_row *rows, uint32_t node)
{
	const uint32_t func = g->tree->nodes[g->callers[node]].func;

	return &rows[func == SNAPSHOT_NONE ? g->nfuncs : func];
}

/*
 * Samples show Python functions only. Windows show how the time of a function is divided between
 * itself and the C functions that it calls. Sums up what both show of each function; the last row
 * is outside Python.
 */
static int divide_samples(const struct rest_given *g, double *own, struct calls_row *rows)
{
	const struct evidence *e = g->e;
	_cleanup_free_ double *group = calloc((size_t)e->n + 1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->n; i++) {
		const struct evidence_node *n = &e->nodes[i];
		struct calls_row *row = row_of(g, rows, i);

		own[i] = fmax(0, n->cpu - g->times * n->taken);
		group[g->callers[i]] += own[i];
		row->cpu += n->cpu;
		row->taken += n->taken;
		row->intervals += n->calls;
		row->samples += sampled_ns(g, n);
		if (g->tree->parents[i] != NODE_NONE)
			row_of(g, rows, g->tree->parents[i])->intervals += n->calls;
	}
	for (uint32_t i = e->n; i-- > 0;) {
		const uint32_t at = g->callers[i];
		const double ns = sampled_ns(g, &e->nodes[at]);

		own[i] = group[at] > 0 ? ns * own[i] / group[at] : i == at ? ns : 0;
	}
	return 0;
}

int rest_solve(const struct rest_given *g, struct rest *ret)
{
	const size_t nrows = (size_t)g->nfuncs + 1;
	_cleanup_free_ double *own = calloc((size_t)g->e->n + 1, sizeof(*own));
	_cleanup_free_ struct calls_row *rows = calloc(nrows, sizeof(*rows));

	if (!own || !rows || divide_samples(g, own, rows) < 0)
		return -ENOMEM;
	ret->calls = calls_estimate(g->e, &(struct calls_given){
						  .rows = rows,
						  .n = nrows,
						  .hit_ns = g->hit_ns,
						  .times = g->times,
						  .error = g->error,
						  .period_ns = g->period_ns,
					  });
	ret->cpu = TAKE_PTR(own);
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
	const bool heavy = g->stretch && !g->light; /* the open stretch */

	return (struct snapshot_rest){
		.calls = rounded(r->calls.factor * n->calls) + n->heavy.calls +
			 (heavy ? g->tree->nodes[node].calls : 0),
		.yields = rounded(r->calls.factor * n->yields) + n->heavy.yields +
			  (heavy ? g->tree->yields[node] : 0),
		.cpu = node < g->e->n ? (uint64_t)r->cpu[node] : 0,
	};
}
