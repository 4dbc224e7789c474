// SPDX-License-Identifier: BSD-2-Clause
/* Contexts: see contexts.h. */
#include "clickhouse/contexts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void contexts_deinit(struct contexts *c)
{
	free(c->list);
	map_deinit(&c->by_key);
	free(c->functions);
	free(c->used);
	free(c->stack);
	free(c->inner);
	*c = (struct contexts){0};
}

uint32_t context_depth(const struct snapshot *s, uint32_t node)
{
	uint32_t depth = 0;

	for (; s->nodes[node].parent != SNAPSHOT_NONE; node = s->nodes[node].parent)
		depth++;
	return depth;
}

static bool has_figures(const struct snapshot *s, uint32_t node)
{
	const struct snapshot_node *n = &s->nodes[node];

	for (int c = 0; c < COLUMNS; c++)
		if (snapshot_figure(s, c, node))
			return true;
	return n->calls || n->yields || n->inflight || n->self[SNAPSHOT_CPU] ||
	       n->self[SNAPSHOT_WALL] || n->max[SNAPSHOT_CPU] || n->max[SNAPSHOT_WALL];
}

/* Returns the context with this id, a new one if there is none; NULL: out of memory. */
static struct context *context_get(struct contexts *c, const struct stack_id *id, uint32_t node)
{
	uint64_t key = stack_id_key(id);
	struct context *list;
	uint32_t at;

	if (map_get(&c->by_key, key, &at) &&
	    memcmp(c->list[at].id.bytes, id->bytes, STACK_ID_BYTES) == 0)
		return &c->list[at];
	if (c->n == c->cap) {
		uint32_t cap = c->cap ? c->cap * 2 : 256;

		list = reallocarray(c->list, cap, sizeof(*list));
		if (!list)
			return NULL;
		c->list = list;
		c->cap = cap;
	}
	if (map_put(&c->by_key, key, c->n) < 0)
		return NULL;
	c->list[c->n] = (struct context){.id = *id, .node = node, .min = {UINT64_MAX, UINT64_MAX}};
	return &c->list[c->n++];
}

static void context_add(struct context *to, const struct snapshot *s, uint32_t node)
{
	const struct snapshot_node *n = &s->nodes[node];

	to->calls += n->calls;
	to->yields += n->yields;
	to->inflight += n->inflight;
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++) {
		to->self[k] += n->self[k];
		to->min[k] = n->min[k] < to->min[k] ? n->min[k] : to->min[k];
		to->max[k] = n->max[k] > to->max[k] ? n->max[k] : to->max[k];
	}
	for (int i = 0; i < COLUMNS; i++)
		column_merge(i, &to->columns[i], snapshot_figure(s, i, node));
}

/* Parents come first, so their ids are known. */
static void identify(struct contexts *c)
{
	const struct snapshot *s = c->snapshot;

	for (uint32_t i = 0; i < s->nfuncs; i++)
		c->functions[i] = function_id(&s->funcs[i]);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->parent == SNAPSHOT_NONE) {
			c->stack[i] = stack_id_root;
			continue;
		}
		c->stack[i] = stack_id_child(&c->stack[n->parent], c->functions[n->func]);
		c->inner[n->parent] = true;
		c->used[n->func] = true;
	}
}

int contexts_collect(struct contexts *c, const struct snapshot *s)
{
	*c = (struct contexts){.snapshot = s};
	c->functions = calloc(s->nfuncs + 1, sizeof(*c->functions));
	c->used = calloc(s->nfuncs + 1, sizeof(*c->used));
	c->stack = calloc(s->nnodes + 1, sizeof(*c->stack));
	c->inner = calloc(s->nnodes + 1, sizeof(*c->inner));
	if (!c->functions || !c->used || !c->stack || !c->inner)
		return -ENOMEM;
	identify(c);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		bool root = s->nodes[i].parent == SNAPSHOT_NONE;
		struct context *context;

		if (!root && c->inner[i] && !has_figures(s, i))
			continue;
		context = context_get(c, &c->stack[i], i);
		if (!context)
			return -ENOMEM;
		context_add(context, s, i);
	}
	return 0;
}
