// SPDX-License-Identifier: BSD-2-Clause
/* Stack samples: see samples.h. */
#include "counting/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "stack/codes.h"
#include "stack/rebuild.h"
#include "stats/tree.h"

/* The CCT node at the end of the path. If the outermost frames are unknown, the path starts below
 * "(truncated)"; if the tree is full, the result is "(truncated)" itself. */
static uint32_t sample_node(struct rebuild *rb, const struct thread *th, bool truncated)
{
	uint32_t node = truncated ? NODE_TRUNCATED(th->root) : th->root;

	for (uint32_t i = th->chain_n; i > 0 && node != NODE_NONE; i--)
		node = th->chain[i - 1].func == FUNC_TRUNCATED
			       ? NODE_NONE
			       : calltree_child(&rb->tree, node, th->chain[i - 1].func);
	if (node != NODE_NONE)
		return node;
	rb->truncated++;
	return NODE_TRUNCATED(th->root);
}

static uint32_t sample_func(struct codes *codes, const struct event_sample *s, uint32_t i)
{
	if (i < event_sample_natives(s) && s->flags & PYP_SAMPLE_NATIVE)
		return codes_native(codes, s->codes[i]);
	return codes_func(codes, s->codes[i]);
}

uint32_t samples_add(struct rebuild *rb, struct codes *codes, struct thread *th,
		     const struct event_sample *s)
{
	uint32_t node;

	if (!thread_chain_reserve(th, s->first, s->count, PYP_SAMPLE_CODES))
		return NODE_NONE;
	for (uint32_t i = 0; i < s->count; i++)
		th->chain[th->chain_n++] = (struct chain_frame){
			.func = sample_func(codes, s, i),
		};
	if (!(s->flags & PYP_SAMPLE_LAST))
		return NODE_NONE;
	node = sample_node(rb, th, s->flags & PYP_SAMPLE_TRUNCATED);
	th->chain_n = 0;
	return node;
}

/* By function ------------------------------------------------------------------------------- */

void samples_by_func_deinit(struct samples_by_func *b)
{
	free(b->of);
}

void samples_by_func_clear(struct samples_by_func *b)
{
	if (b->of)
		memset(b->of, 0, b->n * sizeof(*b->of));
	b->outside = 0;
}

static bool by_func_reserve(struct samples_by_func *b, uint32_t func)
{
	uint32_t n = b->n ? b->n : 256;
	uint64_t *of;

	if (func < b->n)
		return true;
	while (n <= func)
		n = n < UINT32_MAX / 2 ? 2 * n : UINT32_MAX;
	of = reallocarray(b->of, n, sizeof(*of));
	if (!of)
		return false;
	memset(of + b->n, 0, (n - b->n) * sizeof(*of));
	b->of = of;
	b->n = n;
	return true;
}

void samples_by_func_add(struct samples_by_func *b, struct codes *codes,
			 const struct event_sample *s)
{
	const uint32_t at = event_sample_natives(s);
	uint32_t func;

	if (s->first)
		return;
	func = s->count > at ? codes_func(codes, s->codes[at]) : FUNC_TRUNCATED;
	if (func != FUNC_TRUNCATED && by_func_reserve(b, func))
		b->of[func]++;
	else
		b->outside++;
}

/* Errors of samples ------------------------------------------------------------------------ */

struct spent {
	bool seen;
	uint32_t depth; /* number of occurrences on the current path */
	double tot, cum;
};

struct spending {
	const struct tree *tree;
	struct spent *by_func;
};

static int spend_enter(void *ctx, uint32_t i)
{
	const struct spending *w = ctx;
	const struct snapshot_node *n = &w->tree->snapshot->nodes[i];
	struct spent *f;

	if (n->func == SNAPSHOT_NONE)
		return 0;
	f = &w->by_func[n->func];
	f->seen = true;
	f->tot += (double)n->self[SNAPSHOT_CPU];
	if (f->depth++ == 0)
		f->cum += (double)w->tree->nodes[i].cum[SNAPSHOT_CPU];
	return 0;
}

static void spend_leave(void *ctx, uint32_t i)
{
	const struct spending *w = ctx;
	const struct snapshot_node *n = &w->tree->snapshot->nodes[i];

	if (n->func != SNAPSHOT_NONE)
		w->by_func[n->func].depth--;
}

int samples_errors(struct snapshot *s, uint32_t first_thread, uint64_t period_ns)
{
	_cleanup_free_ struct spent *by_func = calloc((size_t)s->nfuncs + 1, sizeof(*by_func));
	_cleanup_(tree_freep) struct tree *tree = NULL;
	struct spending w = {.by_func = by_func};
	const struct tree_visitor visitor = {spend_enter, spend_leave, &w};
	const double period = (double)period_ns;

	if (!by_func || tree_build(s, &tree) < 0)
		return -ENOMEM;
	w.tree = tree;
	for (uint32_t t = first_thread; t < s->nthreads; t++)
		tree_walk(tree, s->threads[t].root, &visitor);
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		const double variance[SNAPSHOT_FIGURES] = {
			[SNAPSHOT_CALLS] = -1,	  [SNAPSHOT_TOT_CPU] = by_func[i].tot * period,
			[SNAPSHOT_TOT_WALL] = -1, [SNAPSHOT_CUM_CPU] = by_func[i].cum * period,
			[SNAPSHOT_CUM_WALL] = -1,
		};

		if (by_func[i].seen)
			snapshot_add_variance(&s->funcs[i], variance);
	}
	return 0;
}
