// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread's stacks: see thread.h.
 *
 * A program with greenlets switches between thousands of stacks, and the only evidence of a switch
 * is a frame that is not on the current stack. Finding a frame among the parked stacks must
 * therefore be fast. An index maps their frames to slots. It is updated lazily: a stack's frames
 * are added when it is parked, and stay there when it becomes current again, until they are popped.
 * Each push therefore costs at most one insertion and one removal, however often stacks switch, and
 * a thread that never switches pays nothing.
 *
 * A deep current stack is also indexed, as soon as a frame has to be searched on it. A program can
 * make every event search (beyond the depth limit, or with frames that are on no stack), and
 * scanning 100,000 activations for each would delay the events of all other targets.
 */
#include "stack/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pyprof/bpf_abi.h"
#include "stack/mirror.h"
#include "stats/calltree.h"

#define STACK_MIN  16u
#define STACK_SCAN 32u /* activations that are scanned linearly rather than indexed */

static void stack_init(struct stack *s)
{
	*s = (struct stack){.slot = STACK_NO_SLOT};
}

static void stack_free(struct thread *th, struct stack *s)
{
	if (th->room)
		th->room->used -= s->cap;
	free(s->acts);
	s->acts = NULL;
	s->cap = 0;
}

struct thread *thread_new(uint32_t tid, uint32_t root)
{
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->tid = tid;
	th->root = root;
	th->node = root;
	th->entry = SNAPSHOT_NONE;
	th->waiting.node = th->waiting.next_node = th->waiting.rest = NODE_NONE;
	th->alive = true;
	stack_init(&th->cur);
	th->free_slot = th->oldest = th->newest = STACK_NO_SLOT;
	return th;
}

void thread_drop_stacks(struct thread *th)
{
	for (uint32_t i = 0; i < th->nslots; i++)
		if (th->parked[i].parked)
			stack_free(th, &th->parked[i].stack);
	free(th->parked);
	th->parked = NULL;
	th->nparked = th->nslots = th->slots_cap = 0;
	th->free_slot = th->oldest = th->newest = STACK_NO_SLOT;
	stack_free(th, &th->cur);
	stack_init(&th->cur);
	map_deinit(&th->index);
	th->node = th->root;
}

void thread_drop_chain(struct thread *th)
{
	free(th->chain);
	th->chain = NULL;
	th->chain_n = th->chain_cap = 0;
}

static bool chain_grow(struct thread *th, uint32_t n)
{
	struct chain_frame *chain;
	uint32_t cap = th->chain_cap ? th->chain_cap : PYP_CHAIN_FRAMES;

	if (n > PYP_CHAIN_MAX_DEPTH)
		return false;
	while (cap < n)
		cap *= 2;
	if (cap == th->chain_cap)
		return true;
	chain = reallocarray(th->chain, cap, sizeof(*chain));
	if (!chain)
		return false;
	th->chain = chain;
	th->chain_cap = cap;
	return true;
}

bool thread_chain_reserve(struct thread *th, uint32_t first, uint32_t count, uint32_t most)
{
	if (first == 0) {
		th->chain_n = 0;
		th->chain_flags = 0;
	}
	if (first == th->chain_n && count <= most && chain_grow(th, first + count))
		return true;
	th->chain_n = 0;
	return false;
}

void thread_free(struct thread *th)
{
	if (!th)
		return;
	thread_drop_stacks(th);
	thread_drop_chain(th);
	mirror_free(th->mirror);
	free(th);
}

void thread_set_name(struct thread *th, const char *name)
{
	snprintf(th->name, sizeof(th->name), "%s", name);
}

bool thread_reserve(struct thread *th, uint32_t max_depth)
{
	struct stack *s = &th->cur;
	uint32_t cap = s->cap ? s->cap * 2 : STACK_MIN;
	struct activation *acts;

	if (s->depth < s->cap)
		return true;
	if (cap > max_depth)
		cap = max_depth;
	if (s->depth >= cap)
		return false;
	if (th->room && cap - s->cap > th->room->limit - th->room->used)
		return false;
	acts = reallocarray(s->acts, cap, sizeof(*acts));
	if (!acts)
		return false;
	if (th->room)
		th->room->used += cap - s->cap;
	s->acts = acts;
	s->cap = cap;
	return true;
}

void thread_update_node(struct thread *th)
{
	const struct activation *top = thread_top(th);

	th->node = top ? top->node : th->root;
}

/* Slots ------------------------------------------------------------------------------------ */

static int slot_alloc(struct thread *th, uint32_t *ret)
{
	uint32_t cap = th->slots_cap ? th->slots_cap * 2 : 8;
	struct parked *parked;

	if (th->free_slot != STACK_NO_SLOT) {
		*ret = th->free_slot;
		th->free_slot = th->parked[*ret].newer;
		return 0;
	}
	if (th->nslots == th->slots_cap) {
		parked = reallocarray(th->parked, cap, sizeof(*parked));
		if (!parked)
			return -ENOMEM;
		th->parked = parked;
		th->slots_cap = cap;
	}
	*ret = th->nslots++;
	th->parked[*ret] = (struct parked){.parked = false};
	return 0;
}

static void slot_free(struct thread *th, uint32_t slot)
{
	th->parked[slot] = (struct parked){.newer = th->free_slot};
	th->free_slot = slot;
}

static void list_append(struct thread *th, uint32_t slot)
{
	struct parked *pk = &th->parked[slot];

	pk->older = th->newest;
	pk->newer = STACK_NO_SLOT;
	if (th->newest != STACK_NO_SLOT)
		th->parked[th->newest].newer = slot;
	else
		th->oldest = slot;
	th->newest = slot;
	pk->parked = true;
	th->nparked++;
}

static void list_remove(struct thread *th, uint32_t slot)
{
	struct parked *pk = &th->parked[slot];

	if (pk->older != STACK_NO_SLOT)
		th->parked[pk->older].newer = pk->newer;
	else
		th->oldest = pk->newer;
	if (pk->newer != STACK_NO_SLOT)
		th->parked[pk->newer].older = pk->older;
	else
		th->newest = pk->older;
	pk->parked = false;
	th->nparked--;
}

/* Parking ---------------------------------------------------------------------------------- */

void thread_unindex(struct thread *th, struct stack *s, uint64_t frame)
{
	uint32_t slot;

	/* In a valid stream the slot is always s's; a malformed one may differ. */
	if (map_get(&th->index, frame, &slot) && slot == s->slot)
		map_del(&th->index, frame);
	if (s->indexed > s->depth)
		s->indexed = s->depth;
}

static int index_frames(struct thread *th, struct stack *s)
{
	for (; s->indexed < s->depth; s->indexed++) {
		int err = map_put(&th->index, s->acts[s->indexed].frame, s->slot);

		if (err)
			return err;
	}
	return 0;
}

int thread_park(struct thread *th)
{
	struct stack *s = &th->cur;
	int err = 0;

	if (s->slot == STACK_NO_SLOT)
		err = slot_alloc(th, &s->slot);
	if (!err)
		err = index_frames(th, s);
	if (err)
		return err;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		s->clock[c] = thread_clock(th, c);
	s->probes = thread_probes(th);
	th->parked[s->slot].stack = *s;
	list_append(th, s->slot);
	stack_init(s);
	th->greenlets = true;
	th->node = th->root;
	return 0;
}

void thread_unpark(struct thread *th, uint32_t slot)
{
	stack_free(th, &th->cur);
	if (th->cur.slot != STACK_NO_SLOT)
		slot_free(th, th->cur.slot);
	list_remove(th, slot);
	th->cur = th->parked[slot].stack;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		th->cur.clock[c] = th->total[c] - th->cur.clock[c];
	th->cur.probes = th->probes - th->cur.probes;
	th->parked[slot].stack.acts = NULL;
	thread_update_node(th);
}

void thread_drop_parked(struct thread *th, uint32_t slot)
{
	struct stack *s = &th->parked[slot].stack;

	while (s->depth > 0) {
		s->depth--;
		thread_unindex(th, s, s->acts[s->depth].frame);
	}
	stack_free(th, s);
	list_remove(th, slot);
	slot_free(th, slot);
}

/* Out of memory: the remaining frames are not indexed and will be scanned. */
static void index_deep(struct thread *th)
{
	struct stack *s = &th->cur;

	if (s->depth - s->indexed <= STACK_SCAN)
		return;
	if (s->slot == STACK_NO_SLOT && slot_alloc(th, &s->slot) < 0)
		return;
	(void)index_frames(th, s);
}

enum thread_place thread_find(struct thread *th, uint64_t frame, uint32_t *ret_slot)
{
	const struct stack *s = &th->cur;
	uint32_t slot;

	index_deep(th);
	if (map_get(&th->index, frame, &slot)) {
		if (slot == s->slot)
			return PLACE_CURRENT;
		if (th->parked[slot].parked) {
			*ret_slot = slot;
			return PLACE_PARKED;
		}
	}
	for (uint32_t i = s->depth; i > s->indexed; i--)
		if (s->acts[i - 1].frame == frame)
			return PLACE_CURRENT;
	return PLACE_NOWHERE;
}
