// SPDX-License-Identifier: BSD-2-Clause
/* Stack samples: see samples.h. */
#include "counting/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "stack/codes.h"
#include "stack/rebuild.h"
#include "stats/tree.h"

uint32_t samples_node(struct rebuild *rb, const struct thread *th, const struct chain_frame *v,
		      uint32_t n, bool truncated)
{
	uint32_t node = truncated ? NODE_TRUNCATED(th->root) : th->root;

	for (uint32_t i = n; i > 0 && node != NODE_NONE; i--)
		node = v[i - 1].func == FUNC_TRUNCATED
			       ? NODE_NONE
			       : calltree_child(&rb->tree, node, v[i - 1].func);
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
	node = samples_node(rb, th, th->chain, th->chain_n, s->flags & PYP_SAMPLE_TRUNCATED);
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
	uint64_t *of = array_room(b->of, &b->n, func + 1, 256, sizeof(*of));

	if (!of)
		return false;
	b->of = of;
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

/* The estimated part of waiting, in ns, and its variance. */
struct waited {
	double ns, variance;
};

static void waited_add(struct waited *to, const struct waited *more)
{
	to->ns += more->ns;
	to->variance += more->variance;
}

struct spent {
	bool seen;
	uint32_t depth; /* number of occurrences on the current path */
	double tot, cum;
	struct waited own, below; /* below: with callees */
};

struct spending {
	const struct tree *tree;
	struct spent *by_func;
	const struct samples_waiting *waiting; /* NULL: unknown */
	const double *cum;		       /* per node: CPU time by samples, with callees */
	const struct samples_cpu *cpu;
	struct waited *below; /* per node: with callees */
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
	f->tot += (double)(w->cpu->of ? w->cpu->of[i] : n->self[SNAPSHOT_CPU]);
	if (w->waiting)
		waited_add(&f->own,
			   &(struct waited){w->waiting->estimated[i], w->waiting->variance[i]});
	if (f->depth++ > 0)
		return 0;
	f->cum += w->cum[i];
	waited_add(&f->below, &w->below[i]);
	return 0;
}

static void spend_leave(void *ctx, uint32_t i)
{
	const struct spending *w = ctx;
	const struct snapshot_node *n = &w->tree->snapshot->nodes[i];

	if (n->func != SNAPSHOT_NONE)
		w->by_func[n->func].depth--;
}

/* Adds up waiting with callees; children follow their parents. Returns the sum of all. */
static struct waited wait_below(const struct spending *w, const struct snapshot *s)
{
	struct waited all = {0};

	for (uint32_t i = s->nnodes; i-- > 0 && w->waiting;) {
		const struct waited own = {w->waiting->estimated[i], w->waiting->variance[i]};
		const uint32_t parent = s->nodes[i].parent;

		waited_add(&w->below[i], &own);
		waited_add(&all, &own);
		if (parent != SNAPSHOT_NONE)
			waited_add(&w->below[parent], &w->below[i]);
	}
	return all;
}

/*
 * The variance of a part of the waiting, of which the whole is known: the share q of the part is the
 * quotient of two sums of weights.
 */
static double wait_variance(const struct waited *part, const struct waited *all)
{
	const double q = all->ns > 0 ? part->ns / all->ns : 0;
	const double rest = all->variance - part->variance;

	return (1 - q) * (1 - q) * part->variance + q * q * (rest > 0 ? rest : 0);
}

static void set_errors(struct snapshot_func *f, const struct spent *spent,
		       const struct samples_cpu *cpu, const struct waited *all)
{
	const double period = (double)cpu->period_ns;
	const double tot = spent->tot * period, cum = spent->cum * period;
	const double variance[SNAPSHOT_FIGURES] = {
		[SNAPSHOT_CALLS] = cpu->of ? 0 : -1,
		/* What was not sampled may still have used some time. */
		[SNAPSHOT_TOT_CPU] = cpu->of ? fmax(tot, period * period) : tot,
		[SNAPSHOT_TOT_WALL] = all ? tot + wait_variance(&spent->own, all) : -1,
		[SNAPSHOT_CUM_CPU] = cpu->of ? fmax(cum, period * period) : cum,
		[SNAPSHOT_CUM_WALL] = all ? cum + wait_variance(&spent->below, all) : -1,
	};

	if (spent->seen)
		snapshot_add_variance(f, variance);
}

int samples_errors(struct snapshot *s, uint32_t first_thread, const struct samples_cpu *cpu,
		   const struct samples_waiting *waiting)
{
	_cleanup_free_ struct spent *by_func = calloc((size_t)s->nfuncs + 1, sizeof(*by_func));
	_cleanup_free_ struct waited *below = calloc((size_t)s->nnodes + 1, sizeof(*below));
	_cleanup_free_ double *cum = calloc((size_t)s->nnodes + 1, sizeof(*cum));
	_cleanup_(tree_freep) struct tree *tree = NULL;
	struct spending w = {
		.by_func = by_func, .waiting = waiting, .cpu = cpu, .cum = cum, .below = below};
	const struct tree_visitor visitor = {spend_enter, spend_leave, &w};
	struct waited all;

	if (!by_func || !below || !cum || tree_build(s, &tree) < 0)
		return -ENOMEM;
	w.tree = tree;
	for (uint32_t i = s->nnodes; i-- > 0;) {
		cum[i] += (double)(cpu->of ? cpu->of[i] : s->nodes[i].self[SNAPSHOT_CPU]);
		if (s->nodes[i].parent != SNAPSHOT_NONE)
			cum[s->nodes[i].parent] += cum[i];
	}
	all = wait_below(&w, s);
	for (uint32_t t = first_thread; t < s->nthreads; t++)
		tree_walk(tree, s->threads[t].root, &visitor);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		set_errors(&s->funcs[i], &by_func[i], cpu, waiting ? &all : NULL);
	return 0;
}
