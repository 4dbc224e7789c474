// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call counts in the calling-context tree. A count has only a caller and a callee, so calling
 * contexts are two deep: a thread's root has a node for each function that called others or was
 * called from outside Python, and callees are below their caller. Nodes of callers have no calls of
 * their own, because those are counted below their own callers.
 */
#include "counting/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/codes.h"
#include "stack/rebuild.h"
#include "stack/threads.h"

void counts_deinit(struct counts *t)
{
	free(t->func_of);
	free(t->parts);
}

void counts_clear(struct counts *t)
{
	t->nparts = 0;
	t->kept = t->truncated = 0;
}

void counts_name(struct counts *t, struct codes *codes, uint32_t id, uint64_t code)
{
	uint32_t n = t->nfuncs ? t->nfuncs : 1024, *func_of;

	if (id >= PYP_COUNT_IDS)
		return;
	while (n <= id)
		n *= 2;
	if (n != t->nfuncs) {
		func_of = reallocarray(t->func_of, n, sizeof(*func_of));
		if (!func_of)
			return; /* its calls are shown as "(lost)" */
		memset(func_of + t->nfuncs, 0xff, (n - t->nfuncs) * sizeof(*func_of));
		t->func_of = func_of;
		t->nfuncs = n;
	}
	t->func_of[id] = codes_func(codes, code);
}

static uint32_t func_of(const struct counts *t, uint32_t id)
{
	if (id >= PYP_COUNT_GC && id < PYP_COUNT_FIRST)
		return func_of_gc(id - PYP_COUNT_GC);
	if (id >= t->nfuncs || t->func_of[id] == UINT32_MAX)
		return FUNC_LOST;
	return t->func_of[id];
}

static uint32_t child_of(struct rebuild *rb, const struct thread *th, uint32_t parent,
			 uint32_t func)
{
	uint32_t node;

	if (func == FUNC_LOST && parent == th->root)
		return NODE_LOST(th->root);
	node = func == FUNC_TRUNCATED ? NODE_NONE : calltree_child(&rb->tree, parent, func);
	if (node != NODE_NONE)
		return node;
	rb->truncated++;
	return NODE_TRUNCATED(th->root);
}

/* The node for the calls of c in thread th. */
static uint32_t node_of(const struct counts *t, struct rebuild *rb, const struct thread *th,
			const struct call_count *c)
{
	uint32_t parent = th->root;

	if (c->caller != PYP_COUNT_OUTSIDE)
		parent = child_of(rb, th, parent, func_of(t, c->caller));
	if (parent == NODE_TRUNCATED(th->root))
		return parent;
	return child_of(rb, th, parent, func_of(t, c->callee));
}

/* Remember a count that the next reading replaces. False: out of memory; it is left out until
 * then. */
static bool remember(struct counts *t, uint32_t node, uint64_t calls)
{
	size_t cap = t->cap ? 2 * t->cap : 256;
	struct counts_part *parts;

	if (t->nparts == t->cap) {
		parts = reallocarray(t->parts, cap, sizeof(*parts));
		if (!parts)
			return false;
		t->parts = parts;
		t->cap = cap;
	}
	t->parts[t->nparts++] = (struct counts_part){.node = node, .calls = calls};
	return true;
}

static void add(struct counts *t, struct rebuild *rb, const struct thread *th,
		const struct call_count *c)
{
	uint64_t before = rb->truncated, calls = func_is_gc(func_of(t, c->callee)) ? 0 : c->calls;
	uint32_t node = th->at == THREADS_OVERFLOW ? NODE_TRUNCATED(th->root)
						   : node_of(t, rb, th, c);

	if (c->final) {
		t->kept += calls;
		t->truncated += rb->truncated - before;
	} else if (!remember(t, node, c->calls)) {
		return;
	}
	rb->tree.nodes[node].calls += c->calls;
	rb->calls += calls; /* collections do not count as calls */
}

void counts_take_back(struct counts *t, struct rebuild *rb)
{
	for (size_t i = 0; i < t->nparts; i++)
		rb->tree.nodes[t->parts[i].node].calls -= t->parts[i].calls;
	t->nparts = 0;
}

void counts_add(struct counts *t, struct rebuild *rb, struct threads *threads, uint64_t ts,
		const struct call_count *v, size_t n)
{
	rb->calls = t->kept;
	rb->truncated = t->truncated;
	for (size_t i = 0; i < n; i++) {
		const struct thread *th = threads_get(threads, v[i].tid, ts);

		add(t, rb, th ? th : threads->v[THREADS_OVERFLOW], &v[i]);
	}
}
