// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory of threads: MEMORY and BLOCK events are booked to the function that runs. In mode trace
 * that is the top of the thread's stack; in other modes the stack follows the event, as a sample.
 */
#include "profile/profile_priv.h"

static bool is_measured(const struct profile *p)
{
	return p->measured & COLUMN_BIT(COLUMN_grown);
}

static void book_change(struct profile *p, uint32_t node, const struct thread_memory *m)
{
	struct calltree *t = &p->rb.tree;

	calltree_touch(t, node);
	if (m->resident > 0)
		calltree_add(t, node, COLUMN_grown, (uint64_t)m->resident);
	if (m->resident < 0)
		calltree_add(t, node, COLUMN_shrunk, (uint64_t)-m->resident);
	if (m->mapped > 0) {
		calltree_add(t, node, COLUMN_mapped, (uint64_t)m->mapped);
		calltree_add(t, node, COLUMN_large, 1);
	}
	if (m->mapped < 0)
		calltree_add(t, node, COLUMN_unmapped, (uint64_t)-m->mapped);
	if (m->pools)
		calltree_add(t, node, COLUMN_pools, m->pools);
}

/* Of the context that has mapped the block, wherever it is unmapped. Sums wrap. */
static void on_freed(void *ctx, uint32_t node, uint64_t bytes)
{
	struct profile *p = ctx;

	calltree_add(&p->rb.tree, node, COLUMN_live, -bytes);
}

/*
 * Blocks that were mapped before tracing began are unmapped, too; of their unmapping, only that of
 * large ones is counted.
 */
static void book_block(struct profile *p, uint32_t node, const struct thread_memory *m)
{
	struct calltree *t = &p->rb.tree;

	calltree_touch(t, node);
	if (m->unmap && m->size >= PYP_BLOCK_MIN)
		calltree_add(t, node, COLUMN_unmapped, m->size);
	if (m->unmap)
		return;
	calltree_add(t, node, COLUMN_mapped, m->size);
	calltree_add(t, node, COLUMN_large, 1);
	if (p->measured & COLUMN_BIT(COLUMN_live) &&
	    blocks_add(&p->blocks, m->address, m->size, node, on_freed, p) == 0)
		calltree_add(t, node, COLUMN_live, m->size);
}

static void book(struct profile *p, uint32_t node, const struct thread_memory *m)
{
	if (m->size)
		book_block(p, node, m);
	else
		book_change(p, node, m);
}

/*
 * Without mode trace, the stack follows the event, unless there was no budget or no room in the ring
 * for it.
 */
static void await_stack(struct profile *p, const struct event *e, const struct thread_memory *m)
{
	struct thread *th = p->tracing ? threads_get(&p->threads, e->tid, e->ts) : NULL;

	if (!th)
		return;
	if (th->memory.known)
		book(p, NODE_LOST(th->root), &th->memory);
	th->memory = *m;
	th->memory.known = e->arg & PYP_MEMORY_STACK;
	if (!th->memory.known)
		book(p, NODE_LOST(th->root), m);
}

void profile_memory_stack(struct profile *p, struct thread *th, uint32_t node)
{
	if (th->memory.known)
		book(p, node, &th->memory);
	th->memory.known = false;
}

static void report(struct profile *p, const struct event *e, enum watch_kind kind, uint64_t count)
{
	struct thread *th = p->tracing ? profile_live_thread(p, e->tid) : NULL;

	if (th && p->watch && count)
		watch_memory(p->watch, th, e->ts, kind, count);
}

static void on_change(struct profile *p, const struct event *e, const struct thread_memory *m)
{
	struct thread *th;

	if (!p->traces_calls) {
		await_stack(p, e, m);
		return;
	}
	th = profile_live_thread(p, e->tid);
	if (!th || !p->tracing)
		return;
	if (e->arg & PYP_MEMORY_LOST || th->counters_gap)
		book(p, NODE_LOST(th->root), m);
	else
		book(p, th->node, m);
}

void profile_count_memory(struct profile *p, const struct event *e)
{
	const struct thread_memory m = {.resident = e->u.memory.resident,
					.mapped = e->u.memory.mapped,
					.pools = e->u.memory.pools};

	if (!is_measured(p))
		return;
	on_change(p, e, &m);
	report(p, e, WATCH_RESIDENT, m.resident ? e->u.memory.total : 0);
}

void profile_count_block(struct profile *p, const struct event *e)
{
	const struct thread_memory m = {.address = e->u.block.address,
					.size = e->u.block.size,
					.unmap = e->arg & PYP_BLOCK_UNMAP};
	const uint64_t before = p->blocks.bytes;

	if (!is_measured(p))
		return;
	if (m.unmap)
		blocks_remove(&p->blocks, m.address, m.size, on_freed, p);
	on_change(p, e, &m);
	if (!m.unmap || m.size >= PYP_BLOCK_MIN)
		report(p, e, m.unmap ? WATCH_UNMAP : WATCH_MAP, m.size);
	if (p->blocks.bytes != before)
		report(p, e, WATCH_LARGE, p->blocks.bytes);
}

void profile_move_blocks(struct profile *p, uint32_t from, uint32_t to)
{
	const uint64_t *live = p->rb.tree.columns[COLUMN_live];

	if (live && live[from])
		blocks_move(&p->blocks, from, to);
}

bool profile_has_memory(const struct profile *p, uint32_t node)
{
	for (int c = COLUMN_MEMORY_FIRST; c < COLUMN_MEMORY_END; c++)
		if (p->rb.tree.columns[c] && p->rb.tree.columns[c][node])
			return true;
	return false;
}

void profile_forget_blocks(struct profile *p)
{
	uint64_t *live = p->rb.tree.columns[COLUMN_live];

	blocks_clear(&p->blocks);
	for (uint32_t i = 0; live && i < p->rb.tree.n; i++)
		live[i] = 0;
}
