// SPDX-License-Identifier: BSD-2-Clause
/*
 * From events to stacks: the rules
 *
 * An ENTER says "this frame runs now, and that frame is below it"; a LEAVE says "this frame has
 * stopped". Were that all, a counter would do. But what happens between two events is not all
 * visible: greenlets swap whole stacks by plain stores, exceptions and interpreter shortcuts end
 * frames that never began, events can be lost, and the first event of a thread finds it in the
 * middle of its work. So events are matched by frame address, never by position, and each mismatch
 * has exactly one meaning.
 *
 * A thread has one current stack and any number of parked ones. `top` is the innermost activation
 * of the current stack.
 *
 * ENTER(frame, code, caller), and THROW:
 *
 *   E1  frame is top's: the same entry seen twice. RESUME_CHECK that fails its check falls back to
 *       RESUME, and both are probed. Ignored. If the code is another one, however, the old frame
 *       has gone unseen and its memory is used again: pop it (unmatched) and go on.
 *
 *   E2  caller is top's: the normal case. Push. (Interpreter entry frames are skipped by the BPF
 *       side, so a function called from C code has the Python function below that as its caller.)
 *
 *   E3  caller is 0 and the stack is not empty: a stack of its own begins, which is how a greenlet
 *       starts. Park the current stack; push on a new one.
 *
 *   E4  caller is on the current stack, below top: what is above it has gone without a leave. Pop
 *       those (each unmatched), then push.
 *
 *   E5  caller is on a parked stack: the program has switched to it. Make it the current one; as in
 *       E4, pop what is above the caller. Push.
 *
 *   E6  caller is unknown and the stack is empty: nothing contradicts it. Push.
 *
 *   E7  caller is unknown, the stack is not empty, and it is a THROW: a generator that waits in
 *       `yield from` or `await` passes the exception on to what it waits for without running
 *       itself, and only pretends to be the caller. Push on top.
 *
 *   E8  caller is unknown and the stack is not empty. After a loss a CHAIN comes first, so nothing
 *       was lost: this stack was parked before we looked, and runs again. A new stack begins, with
 *       a place for the caller, "(unseen)", so that what it calls from now on finds it; counted as
 *       such. The old stack is kept parked.
 *
 * A frame that is entered is on no stack. If a parked stack still has it, that stack's greenlet
 * died without a word and the memory is used again: the frame and what is above it are removed
 * there (unmatched).
 *
 * LEAVE(frame), and YIELD, which is the same to us: a generator that is resumed is entered again,
 * and that counts as a call, as in cProfile.
 *
 *   L1  frame is top's: pop.
 *   L2  frame is on the current stack, below top: pop those above it (each unmatched), then it.
 *   L3  frame is on a parked stack: switch to that; then as L1 or L2.
 *   L4  frame is unknown: it was unwound before it began to run (an entry that raised
 *       RecursionError), or it is an interpreter's shim. Counted as unstarted, otherwise ignored.
 *
 * CHAIN(frames): the truth, read from the target's own frames: on first sight of a thread, and
 * after a loss. What the current stack and the chain have in common, from the outermost frame
 * inwards (same frame, same function), goes on as if nothing had happened. What the stack has
 * besides ended in the gap. What the chain has besides is running, but was entered before we
 * looked: it is pushed without counting a call, and without a duration when it ends. In a thread
 * that switches stacks, a chain with another outermost frame than the current stack's belongs to
 * another stack, and the current one is parked.
 *
 * Stacks end as they empty: an empty current stack is dropped when another one becomes current.
 * Parked stacks of greenlets that were killed never empty; the oldest go when there are too many.
 *
 * Too deep, or too many contexts: activations without a place of their own are summed in the
 * thread's "(truncated)" node, and so is everything that they call. Above the limit of depth they
 * are not even kept, only counted: `overflow` says how many there are above the last one kept.
 */
#include "stack/rebuild.h"

#include <stdlib.h>

#include "stats/func.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Pushing and popping ---------------------------------------------------------------------- */

static uint32_t child_slow(struct rebuild *rb, struct thread *th, uint32_t func)
{
	uint32_t child = NODE_NONE;

	if (func != FUNC_TRUNCATED && rb->tree.nodes[th->node].func != FUNC_TRUNCATED)
		child = calltree_child(&rb->tree, th->node, func);
	if (child == NODE_NONE) {
		rb->truncated++;
		return NODE_TRUNCATED(th->root);
	}
	rb->tree.nodes[th->node].last_child = child;
	return child;
}

/* Node 0 is a root, whose function is none: no last child, no match. */
static inline uint32_t child_of(struct rebuild *rb, struct thread *th, uint32_t func)
{
	uint32_t last = rb->tree.nodes[th->node].last_child;

	if (likely(rb->tree.nodes[last].func == func))
		return last;
	return child_slow(rb, th, func);
}

static inline void record(struct node *n, int c, uint64_t duration)
{
	if (duration < n->min[c])
		n->min[c] = duration;
	if (duration > n->max[c])
		n->max[c] = duration;
}

/* An activation ends, with its stack's clocks as they are. */
static inline void finish(struct rebuild *rb, const struct activation *a, uint64_t cpu,
			  uint64_t wall)
{
	struct node *n = &rb->tree.nodes[a->node];

	if (unlikely(a->enter[SNAPSHOT_WALL] == ACTIVATION_PARTIAL))
		return;
	record(n, SNAPSHOT_CPU, cpu - a->enter[SNAPSHOT_CPU]);
	record(n, SNAPSHOT_WALL, wall - a->enter[SNAPSHOT_WALL]);
}

static void finish_parked(struct rebuild *rb, const struct stack *s, const struct activation *a)
{
	finish(rb, a, s->clock[SNAPSHOT_CPU], s->clock[SNAPSHOT_WALL]);
}

static inline void pop(struct rebuild *rb, struct thread *th)
{
	struct stack *s = &th->cur;
	const struct activation *a = &s->acts[--s->depth];

	if (unlikely(s->overflow)) {
		rb->unmatched += s->overflow;
		s->overflow = 0;
	}
	finish(rb, a, thread_clock(th, SNAPSHOT_CPU), thread_clock(th, SNAPSHOT_WALL));
	if (unlikely(s->depth < s->indexed))
		thread_unindex(th, s, a->frame);
	th->node = likely(s->depth) ? a[-1].node : th->root;
}

static void push_overflow(struct rebuild *rb, struct thread *th, uint64_t frame, bool counted)
{
	uint32_t node = NODE_TRUNCATED(th->root);

	th->cur.overflow++;
	th->cur.overflow_frame = frame;
	th->node = node;
	rb->tree.nodes[node].calls += counted;
	rb->truncated++;
}

/* A frame about to be entered is on a parked stack: that part of it is dead. */
static void forget_dead(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	struct stack *s;
	uint32_t slot;
	bool found = false;

	if (thread_find(th, frame, &slot) != PLACE_PARKED)
		return;
	s = &th->parked[slot].stack;
	while (s->depth && !found) {
		const struct activation *a = &s->acts[--s->depth];

		found = a->frame == frame;
		rb->unmatched++;
		finish_parked(rb, s, a);
		thread_unindex(th, s, a->frame);
	}
	s->overflow = 0;
	if (!s->depth)
		thread_drop_parked(th, slot);
}

static inline void push(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func,
			bool counted)
{
	struct stack *s = &th->cur;
	struct activation *a;
	uint32_t node;

	if (unlikely(th->nparked))
		forget_dead(rb, th, frame);
	if (unlikely(s->depth == s->cap) && !thread_reserve(th, rb->max_depth)) {
		push_overflow(rb, th, frame, counted);
		return;
	}
	node = child_of(rb, th, func);
	a = &s->acts[s->depth++];
	a->frame = frame;
	a->node = node;
	a->func = func;
	a->enter[SNAPSHOT_CPU] = thread_clock(th, SNAPSHOT_CPU);
	a->enter[SNAPSHOT_WALL] = counted ? thread_clock(th, SNAPSHOT_WALL) : ACTIVATION_PARTIAL;
	rb->tree.nodes[node].calls += counted;
	th->node = node;
}

/* Switching -------------------------------------------------------------------------------- */

static bool stack_has(const struct stack *s, uint64_t frame)
{
	for (uint32_t i = s->depth; i > 0; i--)
		if (s->acts[i - 1].frame == frame)
			return true;
	return false;
}

/* Pop what is above frame, which is on the current stack. */
static void unwind_to(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	if (!stack_has(&th->cur, frame))
		return;
	while (thread_top(th)->frame != frame) {
		rb->unmatched++;
		pop(rb, th);
	}
}

static void drop_oldest(struct rebuild *rb, struct thread *th)
{
	const struct stack *s = &th->parked[th->oldest].stack;

	rb->unmatched += s->depth + s->overflow;
	thread_drop_parked(th, th->oldest);
}

/* The current stack is parked, if there is anything on it; an empty one is current then. */
static void park(struct rebuild *rb, struct thread *th)
{
	if (!th->cur.depth || thread_park(th) == 0)
		return;
	/* Out of memory: it is lost. */
	while (th->cur.depth) {
		rb->unmatched++;
		pop(rb, th);
	}
}

/* Begin a new stack. */
static void park_for_new(struct rebuild *rb, struct thread *th)
{
	if (th->cur.depth && th->nparked >= THREAD_MAX_PARKED)
		drop_oldest(rb, th);
	park(rb, th);
}

static void switch_to(struct rebuild *rb, struct thread *th, uint32_t slot)
{
	park(rb, th);
	thread_unpark(th, slot);
	rb->stack_switches++;
}

/* The rules -------------------------------------------------------------------------------- */

/* Above the limit of depth nothing is kept, so nothing can be matched but the last frame. */
static bool enter_overflow(struct rebuild *rb, struct thread *th, uint64_t frame, uint64_t caller)
{
	uint32_t slot;

	if (!th->cur.overflow || !caller)
		return false;
	if (frame == th->cur.overflow_frame)
		return true;
	if (thread_find(th, caller, &slot) != PLACE_NOWHERE)
		return false;
	rb->calls++;
	push_overflow(rb, th, frame, true);
	return true;
}

/* E6 and E8. */
static void meet_parked(struct rebuild *rb, struct thread *th, uint64_t caller)
{
	bool other = th->cur.depth > 0;

	park_for_new(rb, th);
	if (!other)
		return;
	rb->unseen++;
	push(rb, th, caller, FUNC_UNSEEN, false);
}

/* Everything but E2. Leaves the stack so that the frame can be pushed; false: it is there (E1). */
static bool enter_prepare(struct rebuild *rb, struct thread *th, uint64_t frame, uint64_t caller,
			  uint32_t func, bool thrown)
{
	const struct activation *top = thread_top(th);
	uint32_t slot;

	if (top && frame == top->frame) {
		if (func == top->func)
			return false;
		rb->unmatched++;
		pop(rb, th);
	}
	if (!caller) {
		if (th->cur.depth)
			rb->stack_switches++;
		park_for_new(rb, th);
		return true;
	}
	switch (thread_find(th, caller, &slot)) {
	case PLACE_PARKED:
		switch_to(rb, th, slot);
		unwind_to(rb, th, caller);
		break;
	case PLACE_CURRENT:
		unwind_to(rb, th, caller);
		break;
	case PLACE_NOWHERE:
		if (thrown)
			break;
		meet_parked(rb, th, caller);
		break;
	}
	return true;
}

void rebuild_enter(struct rebuild *rb, struct thread *th, uint64_t frame, uint64_t caller,
		   uint32_t func, bool thrown)
{
	const struct activation *top = thread_top(th);

	if (unlikely(!top || caller != top->frame || frame == caller)) {
		if (enter_overflow(rb, th, frame, caller) ||
		    !enter_prepare(rb, th, frame, caller, func, thrown))
			return;
	}
	rb->calls++;
	push(rb, th, frame, func, true);
}

static void leave_overflow(struct thread *th)
{
	th->cur.overflow_frame = 0;
	if (--th->cur.overflow == 0)
		thread_update_node(th);
}

static void leave_slow(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	uint32_t slot;

	switch (thread_find(th, frame, &slot)) {
	case PLACE_PARKED:
		switch_to(rb, th, slot);
		break;
	case PLACE_CURRENT:
		break;
	case PLACE_NOWHERE:
		if (th->cur.overflow)
			leave_overflow(th);
		else
			rb->unstarted++;
		return;
	}
	unwind_to(rb, th, frame);
	if (thread_top(th) && thread_top(th)->frame == frame)
		pop(rb, th);
}

void rebuild_leave(struct rebuild *rb, struct thread *th, uint64_t frame, bool suspended)
{
	const struct activation *top = thread_top(th);

	if (unlikely(!top || top->frame != frame)) {
		leave_slow(rb, th, frame);
		return;
	}
	if (suspended)
		rb->tree.yields[top->node]++;
	pop(rb, th);
}

/* Chains ----------------------------------------------------------------------------------- */

static bool same(const struct activation *a, const struct chain_frame *f)
{
	return a->frame == f->frame && a->func == f->func;
}

/* Find the stack the chain belongs to, by its outermost frame; return at which depth that is. */
static uint32_t chain_stack(struct rebuild *rb, struct thread *th, const struct chain_frame *outer,
			    bool truncated)
{
	const struct stack *s = &th->cur;
	uint32_t slot;

	if (s->depth && same(&s->acts[0], outer))
		return 0;
	if (thread_find(th, outer->frame, &slot) == PLACE_PARKED &&
	    (truncated || same(&th->parked[slot].stack.acts[0], outer)))
		switch_to(rb, th, slot);
	else if (th->greenlets && !truncated)
		park_for_new(rb, th);
	/* Only a chain without its outermost frames may begin in the middle of the stack. */
	for (uint32_t i = 0; truncated && i < s->depth; i++)
		if (same(&s->acts[i], outer))
			return i;
	return 0;
}

void rebuild_chain(struct rebuild *rb, struct thread *th, const struct chain_frame *frames,
		   uint32_t n, bool truncated)
{
	uint32_t keep = 0;

	if (n) {
		keep = chain_stack(rb, th, &frames[n - 1], truncated);
		while (n && keep < th->cur.depth && same(&th->cur.acts[keep], &frames[n - 1])) {
			keep++;
			n--;
		}
	}
	th->cur.overflow = 0;
	while (th->cur.depth > keep)
		pop(rb, th);
	thread_update_node(th);
	for (; n; n--)
		push(rb, th, frames[n - 1].frame, frames[n - 1].func, false);
}

/* All of it -------------------------------------------------------------------------------- */

void rebuild_drop_all(struct rebuild *rb, struct thread *th, bool complete)
{
	for (uint32_t i = 0; complete && i < th->nslots; i++) {
		const struct stack *s = &th->parked[i].stack;

		for (uint32_t k = 0; th->parked[i].parked && k < s->depth; k++)
			finish_parked(rb, s, &s->acts[k]);
	}
	for (uint32_t k = 0; complete && k < th->cur.depth; k++)
		finish(rb, &th->cur.acts[k], thread_clock(th, SNAPSHOT_CPU),
		       thread_clock(th, SNAPSHOT_WALL));
	thread_drop_stacks(th);
}

static void replant_stack(struct rebuild *rb, struct thread *th, struct stack *s)
{
	th->node = th->root;
	for (uint32_t i = 0; i < s->depth; i++) {
		struct activation *a = &s->acts[i];

		a->node = child_of(rb, th, a->func);
		a->enter[SNAPSHOT_WALL] = ACTIVATION_PARTIAL;
		th->node = a->node;
	}
	if (s->overflow)
		th->node = NODE_TRUNCATED(th->root);
}

bool rebuild_replant(struct rebuild *rb, struct thread *th)
{
	uint32_t root = calltree_add_root(&rb->tree);

	if (root == NODE_NONE)
		return false;
	th->root = root;
	for (uint32_t i = 0; i < th->nslots; i++)
		if (th->parked[i].parked)
			replant_stack(rb, th, &th->parked[i].stack);
	replant_stack(rb, th, &th->cur);
	return true;
}
