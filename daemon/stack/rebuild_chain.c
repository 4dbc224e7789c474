// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chains: compares a thread's stack as read from the target with the rebuilt one (CHAIN in
 * rebuild.c).
 */
#include "stack/rebuild_priv.h"

static bool same(const struct activation *a, const struct chain_frame *f)
{
	return a->frame == f->frame && activation_func(a) == f->func;
}

/*
 * Makes the stack to which the chain belongs current, by its outermost frame. Returns the depth of
 * that frame.
 */
static uint32_t chain_stack(struct rebuild *rb, struct thread *th, const struct chain_frame *outer,
			    bool truncated)
{
	const struct stack *s = &th->cur;
	uint32_t slot;

	if (s->depth && same(&s->acts[0], outer))
		return 0;
	if (thread_find(th, outer->frame, &slot) == PLACE_PARKED &&
	    (truncated || same(&th->parked[slot].stack.acts[0], outer)))
		rebuild_switch_to(rb, th, slot);
	else if (th->greenlets && !truncated)
		rebuild_park_for_new(rb, th);
	/* Only a chain without its outermost frames may begin in the middle of the stack. */
	for (uint32_t i = 0; truncated && i < s->depth; i++)
		if (same(&s->acts[i], outer))
			return i;
	return 0;
}

/*
 * Returns whether the activation at *at is this frame's. Skips C functions and collections there,
 * and advances *at past them on success.
 */
static bool chain_goes_on(const struct stack *s, uint32_t *at, const struct chain_frame *f)
{
	uint32_t i = *at;

	while (i && i < s->depth && s->acts[i].frame != activation_of(s->acts[i].frame))
		i++;
	if (i >= s->depth || !same(&s->acts[i], f))
		return false;
	*at = i;
	return true;
}

void rebuild_chain(struct rebuild *rb, struct thread *th, const struct chain_frame *frames,
		   uint32_t n, bool truncated)
{
	uint32_t keep = 0;

	if (n) {
		keep = chain_stack(rb, th, &frames[n - 1], truncated);
		while (n && chain_goes_on(&th->cur, &keep, &frames[n - 1])) {
			keep++;
			n--;
		}
	}
	th->cur.overflow = 0;
	while (th->cur.depth > keep)
		rebuild_pop(rb, th);
	thread_update_node(th);
	for (; n; n--)
		rebuild_push(rb, th, &frames[n - 1]);
}
