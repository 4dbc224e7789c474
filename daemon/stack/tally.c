// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts of calls in the tree. A count knows caller and callee and nothing below them, so contexts
 * are two deep: a thread's root has a node for each function that called or was called from outside
 * Python, and that one has its callees. A caller's node has no calls of its own: what is known of
 * its calls is with its callers.
 */
#include "stack/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/profile_priv.h"
#include "stats/tree.h"

void tally_deinit(struct tally *t)
{
	free(t->func_of);
	free(t->parts);
}

void tally_clear(struct tally *t)
{
	t->nparts = 0;
	t->kept = t->truncated = 0;
}

void tally_name(struct profile *p, uint32_t id, uint64_t code)
{
	struct tally *t = &p->tally;
	uint32_t n = t->nfuncs ? t->nfuncs : 1024, *func_of;

	if (id >= PYP_COUNT_IDS)
		return;
	while (n <= id)
		n *= 2;
	if (n != t->nfuncs) {
		func_of = reallocarray(t->func_of, n, sizeof(*func_of));
		if (!func_of)
			return; /* its calls are "(lost)" */
		memset(func_of + t->nfuncs, 0xff, (n - t->nfuncs) * sizeof(*func_of));
		t->func_of = func_of;
		t->nfuncs = n;
	}
	t->func_of[id] = codes_func(&p->codes, code);
}

static uint32_t func_of(const struct tally *t, uint32_t id)
{
	if (id >= t->nfuncs || t->func_of[id] == UINT32_MAX)
		return FUNC_LOST;
	return t->func_of[id];
}

static uint32_t child_of(struct profile *p, const struct thread *th, uint32_t parent, uint32_t func)
{
	uint32_t node;

	if (func == FUNC_LOST && parent == th->root)
		return NODE_LOST(th->root);
	node = func == FUNC_TRUNCATED ? NODE_NONE : calltree_child(&p->rb.tree, parent, func);
	if (node != NODE_NONE)
		return node;
	p->rb.truncated++;
	return NODE_TRUNCATED(th->root);
}

/* Where the calls of c belong. */
static uint32_t node_of(struct profile *p, const struct profile_calls *c)
{
	struct thread *th = profile_thread(p, c->tid, p->begin_ts);
	uint32_t parent;

	if (!th)
		return NODE_TRUNCATED(p->threads[PROFILE_OVERFLOW_THREAD]->root);
	parent = th->root;
	if (c->caller != PYP_COUNT_OUTSIDE)
		parent = child_of(p, th, parent, func_of(&p->tally, c->caller));
	if (parent == NODE_TRUNCATED(th->root))
		return parent;
	return child_of(p, th, parent, func_of(&p->tally, c->callee));
}

/* Taken back when the next reading comes; false: out of memory, it is left out until then. */
static bool remember(struct tally *t, uint32_t node, uint64_t calls)
{
	size_t cap = t->cap ? 2 * t->cap : 256;
	struct tally_part *parts;

	if (t->nparts == t->cap) {
		parts = reallocarray(t->parts, cap, sizeof(*parts));
		if (!parts)
			return false;
		t->parts = parts;
		t->cap = cap;
	}
	t->parts[t->nparts++] = (struct tally_part){.node = node, .calls = calls};
	return true;
}

static void add(struct profile *p, const struct profile_calls *c)
{
	uint64_t before = p->rb.truncated;
	uint32_t node = node_of(p, c);

	if (c->final) {
		p->tally.kept += c->calls;
		p->tally.truncated += p->rb.truncated - before;
	} else if (!remember(&p->tally, node, c->calls)) {
		return;
	}
	p->rb.tree.nodes[node].calls += c->calls;
	p->rb.calls += c->calls;
}

void profile_set_calls(struct profile *p, const struct profile_calls *v, size_t n)
{
	struct tally *t = &p->tally;

	for (size_t i = 0; i < t->nparts; i++)
		p->rb.tree.nodes[t->parts[i].node].calls -= t->parts[i].calls;
	t->nparts = 0;
	ended_fold(p);
	p->rb.calls = t->kept;
	p->rb.truncated = t->truncated;
	for (size_t i = 0; i < n; i++)
		add(p, &v[i]);
	p->events = p->rb.calls;
}

/* Samples ---------------------------------------------------------------------------------- */

/* Collected in the thread's chain, innermost first. False: a part before it was lost. */
static bool sample_append(struct profile *p, struct thread *th, const struct event_sample *s)
{
	if (s->first == 0) {
		th->chain_n = 0;
		th->chain_flags = 0;
	}
	if (s->first != th->chain_n || s->count > PYP_SAMPLE_CODES ||
	    !profile_chain_reserve(th, s->first + s->count))
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		th->chain[th->chain_n++] = (struct chain_frame){
			.func = codes_func(&p->codes, s->codes[i]),
		};
	return true;
}

/* The context at the end of the path. Where its beginning is not known it hangs below "(truncated)";
 * what does not fit is all "(truncated)". */
static uint32_t sample_node(struct profile *p, const struct thread *th, bool truncated)
{
	uint32_t node = truncated ? NODE_TRUNCATED(th->root) : th->root;

	for (uint32_t i = th->chain_n; i > 0 && node != NODE_NONE; i--)
		node = th->chain[i - 1].func == FUNC_TRUNCATED
			       ? NODE_NONE
			       : calltree_child(&p->rb.tree, node, th->chain[i - 1].func);
	if (node != NODE_NONE)
		return node;
	p->rb.truncated++;
	return NODE_TRUNCATED(th->root);
}

void tally_sample(struct profile *p, const struct event *e)
{
	const struct event_sample *s = &e->u.sample;
	bool wanted = p->tracing || p->windows;
	struct thread *th = wanted ? profile_thread(p, e->tid, e->ts) : NULL;
	uint32_t node;

	p->samples += p->windows && s->flags & PYP_SAMPLE_LAST;
	if (!th) {
		p->rb.truncated += wanted && s->flags & PYP_SAMPLE_LAST;
		return;
	}
	if (!sample_append(p, th, s)) {
		th->chain_n = 0;
		return;
	}
	if (!(s->flags & PYP_SAMPLE_LAST))
		return;
	node = sample_node(p, th, s->flags & PYP_SAMPLE_TRUNCATED);
	th->chain_n = 0;
	/* Between windows it is a witness, and no time by itself. */
	if (p->windows) {
		(void)estimate_sample(&p->estimate, &p->rb.tree, node);
		return;
	}
	p->rb.tree.nodes[node].self[SNAPSHOT_CPU] += s->period;
	th->total[SNAPSHOT_CPU] += s->period;
	th->last_ts = e->ts > th->last_ts ? e->ts : th->last_ts;
	p->events++;
}

/* Errors of samples ------------------------------------------------------------------------ */

struct spent {
	bool seen;
	uint32_t depth; /* times on the path */
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

int tally_errors(struct snapshot *s, uint32_t first_thread, uint64_t period_ns)
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
