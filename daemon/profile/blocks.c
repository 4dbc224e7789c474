// SPDX-License-Identifier: BSD-2-Clause
/* Large blocks of memory: see blocks.h. */
#include "profile/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void blocks_deinit(struct blocks *b)
{
	free(b->v);
	*b = (struct blocks){0};
}

void blocks_clear(struct blocks *b)
{
	b->n = 0;
	b->bytes = b->dropped = 0;
}

/* Returns the first block that ends after this address. */
static uint32_t at_or_after(const struct blocks *b, uint64_t address)
{
	uint32_t low = 0, high = b->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (b->v[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int insert(struct blocks *b, uint32_t at, const struct block *block)
{
	const uint32_t cap = b->cap ? 2 * b->cap : 64;
	struct block *v;

	if (b->n == BLOCKS_MAX)
		return -ENOSPC;
	if (b->n == b->cap) {
		v = reallocarray(b->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		b->v = v;
		b->cap = cap;
	}
	memmove(&b->v[at + 1], &b->v[at], (b->n - at) * sizeof(*b->v));
	b->v[at] = *block;
	b->n++;
	b->bytes += block->end - block->start;
	return 0;
}

/* Removes the part from start to end of a block that contains it; the rest stays. */
static void cut(struct blocks *b, uint32_t at, uint64_t start, uint64_t end)
{
	struct block *v = &b->v[at];
	struct block after = {.start = end, .end = v->end, .node = v->node};

	b->bytes -= end - start;
	if (v->start < start && v->end > end) {
		b->bytes -= after.end - after.start;
		v->end = start;
		b->dropped += insert(b, at + 1, &after) < 0;
	} else if (v->start < start) {
		v->end = start;
	} else if (v->end > end) {
		v->start = end;
	} else {
		memmove(v, v + 1, (b->n - at - 1) * sizeof(*v));
		b->n--;
	}
}

void blocks_remove(struct blocks *b, uint64_t start, uint64_t size, blocks_freed_fn freed,
		   void *ctx)
{
	const uint64_t end = start + size;

	for (uint32_t at = at_or_after(b, start); at < b->n && b->v[at].start < end;
	     at = at_or_after(b, start)) {
		const struct block v = b->v[at];
		const uint64_t from = v.start > start ? v.start : start;
		const uint64_t to = v.end < end ? v.end : end;

		freed(ctx, v.node, to - from);
		cut(b, at, from, to);
	}
}

int blocks_add(struct blocks *b, uint64_t start, uint64_t size, uint32_t node,
	       blocks_freed_fn freed, void *ctx)
{
	const struct block block = {.start = start, .end = start + size, .node = node};
	int err;

	blocks_remove(b, start, size, freed, ctx);
	err = insert(b, at_or_after(b, start), &block);
	b->dropped += err < 0;
	return err;
}

void blocks_move(struct blocks *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->v[i].node == from)
			b->v[i].node = to;
}
