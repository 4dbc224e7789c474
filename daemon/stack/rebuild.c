// SPDX-License-Identifier: BSD-2-Clause
/*
 * From events to stacks: the rules
 *
 * An ENTER reports that a frame now runs, and which frame has called it; a LEAVE reports that a
 * frame has stopped. If all changes were visible, a counter would suffice. They are not: greenlets
 * swap whole stacks by plain stores, exceptions and interpreter shortcuts end frames that never
 * began to run, events can be lost, and a thread already has frames at its first event. Events are
 * therefore matched by frame address, not by position, and each mismatch has exactly one
 * interpretation.
 *
 * A thread has one current stack and any number of parked ones. `top` is the innermost activation
 * of the current stack.
 *
 * ENTER(frame, code, caller), and THROW:
 *
 *   E1  frame is top's: the same entry was reported twice. A RESUME_CHECK that fails its check
 *       falls back to RESUME, and both are probed. Ignored. If the code is different, however, the
 *       old frame has ended unseen and its memory was reused: pop it (unmatched) and continue.
 *
 *   E2  caller is top's: the normal case. Push. (The BPF program skips the interpreter's entry
 *       frames, so the caller of a function called from C code is the Python function below that.)
 *
 *   E3  caller is 0 and the stack is not empty: a separate stack begins, as when a greenlet starts.
 *       Park the current stack; push on a new one.
 *
 *   E4  caller is on the current stack, below top: the activations above it have ended without a
 *       LEAVE. Pop them (each unmatched), then push.
 *
 *   E5  caller is on a parked stack: the program has switched to it. Make it the current one; as in
 *       E4, pop the activations above the caller. Push.
 *
 *   E6  caller is on no stack, and the event is a THROW, or caller is a suspended generator. A
 *       generator that waits in `yield from` or `await` passes an exception on to the awaited
 *       object without running itself, and only appears to be its caller. The awaited object may
 *       catch the exception and return, which resumes the next outer generator; that event is not a
 *       THROW. Push on top. (3.11 also resumes a generator without an event, after the awaited
 *       object has caught an exception; its calls, until it is left, are counted as those of the
 *       function that resumed it.)
 *
 *   E7  caller is on no stack otherwise. After a loss a CHAIN comes first, so nothing was lost:
 *       this stack was parked before tracing began, and runs again. A new stack begins with a
 *       placeholder for the caller, "(unseen)", which later calls by the caller match; it is
 *       counted as unseen. The old stack, unless it is empty, is kept parked.
 *
 * A frame that is entered is on no stack. If a parked stack still contains it, that stack's
 * greenlet has died without an event and the memory was reused: the frame and the activations above
 * it are removed from that stack (unmatched).
 *
 * LEAVE(frame), and YIELD, which is handled the same way: a generator that is resumed is entered
 * again, and that counts as a call, as in cProfile.
 *
 *   L1  frame is top's: pop.
 *   L2  frame is on the current stack, below top: pop the activations above it (each unmatched),
 *       then pop it.
 *   L3  frame is on a parked stack: switch to that stack; then as L1 or L2.
 *   L4  frame is on no stack: it was unwound before it began to run (an entry that raised
 *       RecursionError), or it is an interpreter's shim. Counted as unstarted, otherwise ignored.
 *
 * C_ENTER(frame, method): the running frame calls a C function. A frame has one such call at a
 * time, so the activation is identified by the frame's address with a bit set that no address has,
 * frame' below, and its caller is the frame. C_LEAVE(frame): the call has returned.
 *
 *   C1  C_ENTER while frame' is on top: the end of that call was not seen. Pop it.
 *   C2  Then as ENTER(frame', method, frame).
 *   C3  ENTER whose caller is frame, while frame' is on the same stack: the C function has called
 *       back, so it is the caller. E2, E4 and E5 unwind to frame' instead of the frame.
 *   C4  LEAVE(frame) while frame' is above it: frame' has ended with it, which is not a mismatch.
 *   C5  C_LEAVE as LEAVE(frame'), but an unknown frame' is not a mismatch: the same instruction is
 *       also executed after calls of other objects, and a thread may be inside of a call when it is
 *       first seen. (greenlet.switch is such a function: it returns on a stack that was parked.)
 *   C6  A CHAIN has no such activations: those between two frames that continue also continue. One
 *       at the inner end is popped, because it is unknown whether it still runs.
 *
 * GC_START(frame): the frame, or a C function that it calls, has triggered a garbage collection. A
 * thread is in one collection at a time. The activation of a collection is identified by the
 * address of its trigger's activation with another bit set. Functions that the collection calls
 * (callbacks, finalizers) name the frame as their caller, as in C3. No LEAVE reports its end, only
 * GC_STOP.
 *
 *   G1  GC_START while a collection is open: the end of that one was not seen. Pop it.
 *   G2  The frame is found as a caller is in E2, E4 and E5. If it is on no stack, it is being
 *       created (a generator's, 3.11) or unknown: the trigger is then top.
 *   G3  ENTER whose caller is on no stack, while a collection is on top: the collection is the
 *       caller.
 *   G4  C_ENTER(frame), LEAVE(frame): the frame runs, so a collection on top of it has ended.
 *   G5  GC_STOP pops the collection and the activations above it. It is ignored if no collection is
 *       open: that one began before tracing, or during a loss (C6 applies to collections as well).
 *
 * CHAIN(frames): the thread's actual stack, read from the target's own frames: when a thread is
 * first seen, and after a loss. The common part of the current stack and the chain, from the
 * outermost frame inwards (same frame, same function), continues unchanged. The other activations
 * of the stack have ended in the gap. The other frames of the chain are running, but their entry
 * was not seen: they are pushed without counting a call, and without a duration when they end. In a
 * thread that switches stacks, a chain whose outermost frame differs from the current stack's
 * belongs to another stack, and the current one is parked.
 *
 * Stacks end when they are empty: an empty current stack is dropped when another one becomes
 * current. Parked stacks of greenlets that were killed never become empty; the oldest are dropped
 * when there are too many.
 *
 * Limits of depth and contexts: activations without a node of their own are added up in the
 * thread's "(truncated)" node, and so is everything that they call. Above the depth limit,
 * activations are not even stored, only counted: `overflow` is their number above the last stored
 * one. No rule scans a stack beyond the activations that it pops: a frame is found in O(1) at any
 * depth (thread_find), and every popped frame was pushed.
 */
#include "stack/rebuild_priv.h"

#include <stdlib.h>

#include "stack/greenlet.h"
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

/* Node 0 is a root and has no function, so it never matches as the last child. */
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

/* Ends a step of a generator or coroutine. */
static void finish_step(struct rebuild *rb, const struct thread *th, const struct activation *a,
			uint64_t cpu, uint64_t wall, bool suspended)
{
	uint64_t running[SNAPSHOT_CLOCKS] = {0};

	if (a->enter[SNAPSHOT_WALL] != ACTIVATION_PARTIAL) {
		running[SNAPSHOT_CPU] = cpu - a->enter[SNAPSHOT_CPU];
		running[SNAPSHOT_WALL] = wall - a->enter[SNAPSHOT_WALL];
	}
	coro_leave(&rb->coros, a->frame, activation_func(a), th->last_ts, running, suspended);
}

/*
 * Records a duration without the cost of the activation's own probes and of those of all its
 * callees.
 */
static inline void record_duration(struct durations *d, const struct activation *a, uint64_t cpu,
				   uint64_t wall, uint64_t probes)
{
	/* A C function whose call is a single event has no duration. */
	if (d->off || !wall)
		return;
	durations_add(d, activation_func(a), cpu > probes ? cpu - probes : 0,
		      wall > probes ? wall - probes : 0);
}

/* Ends an activation. cpu, wall, probes: its stack's clocks at that time, in ns. */
static inline void finish(struct rebuild *rb, const struct thread *th, const struct activation *a,
			  uint64_t cpu, uint64_t wall, uint64_t probes, bool suspended)
{
	struct node *n = &rb->tree.nodes[a->node];

	if (unlikely(a->func_kind & ACTIVATION_SUSPENDS))
		finish_step(rb, th, a, cpu, wall, suspended);
	if (unlikely(a->enter[SNAPSHOT_WALL] == ACTIVATION_PARTIAL))
		return;
	cpu -= a->enter[SNAPSHOT_CPU];
	wall -= a->enter[SNAPSHOT_WALL];
	record(n, SNAPSHOT_CPU, cpu);
	record(n, SNAPSHOT_WALL, wall);
	probes += (uint64_t)(int32_t)rb->own_ns[suspended];
	record_duration(&rb->durations, a, cpu, wall, probes - a->probes);
}

static void finish_parked(struct rebuild *rb, const struct thread *th, const struct stack *s,
			  const struct activation *a)
{
	finish(rb, th, a, s->clock[SNAPSHOT_CPU], s->clock[SNAPSHOT_WALL], s->probes, false);
}

static inline void pop(struct rebuild *rb, struct thread *th, bool suspended)
{
	struct stack *s = &th->cur;
	const struct activation *a = &s->acts[--s->depth];

	if (unlikely(s->overflow)) {
		rb->unmatched += s->overflow;
		s->overflow = 0;
	}
	finish(rb, th, a, thread_clock(th, SNAPSHOT_CPU), thread_clock(th, SNAPSHOT_WALL),
	       thread_probes(th), suspended);
	if (unlikely(s->depth < s->indexed))
		thread_unindex(th, s, a->frame);
	if (likely(s->depth)) {
		th->node = a[-1].node;
		return;
	}
	th->node = th->root;
	if (unlikely(s->greenlet))
		greenlet_end_current(&rb->coros, th, activation_func(a), true);
}

static inline void count_call(struct calltree *t, uint32_t node, bool counted)
{
	struct node *n = &t->nodes[node];

	if (unlikely(!n->calls))
		calltree_touch(t, node);
	n->calls += counted;
}

static void push_overflow(struct rebuild *rb, struct thread *th, uint64_t frame, bool counted)
{
	uint32_t node = NODE_TRUNCATED(th->root);

	th->cur.overflow++;
	th->cur.overflow_frame = frame;
	th->node = node;
	count_call(&rb->tree, node, counted);
	rb->truncated++;
}

/*
 * Removes a frame that is about to be entered from a parked stack, with the activations above it:
 * they are dead.
 */
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
		finish_parked(rb, th, s, a);
		thread_unindex(th, s, a->frame);
	}
	s->overflow = 0;
	if (s->depth)
		return;
	greenlet_end(&rb->coros, s, activation_func(&s->acts[0]), s->clock, s->parked_at, true);
	thread_drop_parked(th, slot);
}

/* kind: 0 or ACTIVATION_SUSPENDS. counted: the entry counts as a call, and has a duration. */
static inline void push(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func,
			uint32_t kind, bool counted)
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
	a->func_kind = func | kind;
	a->enter[SNAPSHOT_CPU] = thread_clock(th, SNAPSHOT_CPU);
	a->probes = thread_probes(th);
	a->enter[SNAPSHOT_WALL] = counted ? thread_clock(th, SNAPSHOT_WALL) : ACTIVATION_PARTIAL;
	count_call(&rb->tree, node, counted);
	durations_expect(&rb->durations, func);
	th->node = node;
}

void rebuild_push(struct rebuild *rb, struct thread *th, const struct chain_frame *f)
{
	push(rb, th, f->frame, f->func, 0, false);
}

void rebuild_pop(struct rebuild *rb, struct thread *th)
{
	pop(rb, th, false);
}

/* Switching -------------------------------------------------------------------------------- */

static bool stack_has(const struct stack *s, uint64_t frame)
{
	for (uint32_t i = s->depth; i > 0; i--)
		if (s->acts[i - 1].frame == frame)
			return true;
	return false;
}

/*
 * Pops an activation whose end was not seen. C functions and collections are expected to end with
 * their callers, so they do not count as unmatched.
 */
static void pop_unseen(struct rebuild *rb, struct thread *th)
{
	const uint64_t frame = thread_top(th)->frame;

	rb->unmatched += frame == activation_of(frame);
	pop(rb, th, false);
}

/* Pops the activations above frame, if it is on the current stack. */
static void unwind_to(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	if (!stack_has(&th->cur, frame))
		return;
	while (thread_top(th)->frame != frame)
		pop_unseen(rb, th);
}

/* The same, but keeps a C function called by the frame, or a collection triggered by it (C3). */
static void unwind_to_caller(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	if (!stack_has(&th->cur, frame))
		return;
	while (activation_of(thread_top(th)->frame) != frame)
		pop_unseen(rb, th);
}

static void drop_oldest(struct rebuild *rb, struct thread *th)
{
	struct stack *s = &th->parked[th->oldest].stack;

	rb->unmatched += s->depth + s->overflow;
	greenlet_end(&rb->coros, s, activation_func(&s->acts[0]), s->clock, s->parked_at, false);
	thread_drop_parked(th, th->oldest);
}

/* Parks the current stack unless it is empty. An empty stack becomes current. */
static void park(struct rebuild *rb, struct thread *th)
{
	th->cur.parked_at = th->last_ts;
	if (!th->cur.depth || thread_park(th) == 0)
		return;
	/* Out of memory: the stack is lost. */
	while (th->cur.depth) {
		rb->unmatched++;
		pop(rb, th, false);
	}
}

void rebuild_park_for_new(struct rebuild *rb, struct thread *th)
{
	if (th->cur.depth && th->nparked >= THREAD_MAX_PARKED)
		drop_oldest(rb, th);
	park(rb, th);
}

void rebuild_switch_to(struct rebuild *rb, struct thread *th, uint32_t slot)
{
	park(rb, th);
	thread_unpark(th, slot);
	rb->stack_switches++;
	greenlet_resume(&rb->coros, th);
}

/* Makes the stack that contains the frame current. Returns false if no stack contains it. */
static bool switch_to_frame(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	uint32_t slot;

	switch (thread_find(th, frame, &slot)) {
	case PLACE_PARKED:
		rebuild_switch_to(rb, th, slot);
		return true;
	case PLACE_CURRENT:
		return true;
	case PLACE_NOWHERE:
		break;
	}
	return false;
}

/* The rules -------------------------------------------------------------------------------- */

/*
 * Handles an entry above the depth limit. Returns false if other rules apply. No activations are
 * stored there, so only the last frame can be matched. A program can stay above the limit, so the
 * search for each caller must be cheap.
 */
static bool enter_overflow(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e)
{
	uint32_t slot;

	if (!th->cur.overflow || !e->caller)
		return false;
	if (e->frame == th->cur.overflow_frame)
		return true;
	if (thread_find(th, e->caller, &slot) != PLACE_NOWHERE)
		return false;
	rb->calls++;
	push_overflow(rb, th, e->frame, true);
	return true;
}

/* Handles E6, E7 and G3. */
static void enter_from_nowhere(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e)
{
	if (thread_top(th) && activation_is_gc(thread_top(th)->frame))
		return;
	if (e->thrown || coro_is_suspended(&rb->coros, e->caller))
		return;
	rebuild_park_for_new(rb, th);
	rb->unseen++;
	push(rb, th, e->caller, FUNC_UNSEEN, 0, false);
}

/*
 * Handles all rules for ENTER except E2. Afterwards the frame can be pushed. Returns false if it is
 * already on the stack (E1).
 */
static bool enter_prepare(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e)
{
	const struct activation *top = thread_top(th);

	if (top && e->frame == top->frame) {
		if (e->func == activation_func(top))
			return false;
		rb->unmatched++;
		pop(rb, th, false);
	}
	if (!e->caller) {
		if (th->cur.depth)
			rb->stack_switches++;
		rebuild_park_for_new(rb, th);
		greenlet_begin(&rb->coros, th, e->func);
		return true;
	}
	if (switch_to_frame(rb, th, e->caller))
		unwind_to_caller(rb, th, e->caller);
	else
		enter_from_nowhere(rb, th, e);
	return true;
}

void rebuild_enter(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e)
{
	const struct activation *top = thread_top(th);
	uint32_t kind = unlikely(e->arg & PYP_ENTER_GENERATOR) ? ACTIVATION_SUSPENDS : 0;

	if (unlikely(!top || e->caller != activation_of(top->frame) || e->frame == e->caller)) {
		if (enter_overflow(rb, th, e) || !enter_prepare(rb, th, e))
			return;
	}
	rb->calls++;
	push(rb, th, e->frame, e->func, kind, true);
	if (unlikely(kind))
		coro_enter(&rb->coros, e->frame, e->func, th->last_ts, e->arg & PYP_ENTER_START);
}

static void leave_overflow(struct thread *th)
{
	th->cur.overflow_frame = 0;
	if (--th->cur.overflow == 0)
		thread_update_node(th);
}

static void leave_top(struct rebuild *rb, struct thread *th, bool suspended)
{
	if (suspended) {
		calltree_touch(&rb->tree, thread_top(th)->node);
		rb->tree.yields[thread_top(th)->node]++;
	}
	pop(rb, th, suspended);
}

static void leave_slow(struct rebuild *rb, struct thread *th, uint64_t frame, bool suspended)
{
	if (!switch_to_frame(rb, th, frame)) {
		if (th->cur.overflow)
			leave_overflow(th);
		else
			rb->unstarted++;
		return;
	}
	unwind_to(rb, th, frame);
	if (thread_top(th) && thread_top(th)->frame == frame)
		leave_top(rb, th, suspended);
}

void rebuild_leave(struct rebuild *rb, struct thread *th, uint64_t frame, bool suspended)
{
	const struct activation *top = thread_top(th);

	if (unlikely(!top || top->frame != frame)) {
		leave_slow(rb, th, frame, suspended);
		return;
	}
	leave_top(rb, th, suspended);
}

/* C functions ------------------------------------------------------------------------------ */

/*
 * Pops a C function that the frame has called, or a collection that it has triggered, from the top
 * (C1, G4).
 */
static void c_close(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	const struct activation *top = thread_top(th);

	if (top && activation_is_gc(top->frame) && activation_of(top->frame) == frame) {
		pop(rb, th, false);
		top = thread_top(th);
	}
	if (top && top->frame == activation_native(frame))
		pop(rb, th, false);
}

void rebuild_c_enter(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func)
{
	const struct activation *top = thread_top(th);
	const struct rebuild_entry e = {
		.frame = activation_native(frame),
		.caller = frame,
		.func = func,
	};

	/* The end of the previous call was not seen, or the caller is not on top. */
	if (unlikely(!top || top->frame != frame)) {
		c_close(rb, th, frame);
		if (enter_overflow(rb, th, &e) || !enter_prepare(rb, th, &e))
			return;
		c_close(rb, th, frame);
	}
	rb->calls++;
	push(rb, th, e.frame, func, 0, true);
}

static void c_leave_slow(struct rebuild *rb, struct thread *th, uint64_t native)
{
	uint64_t last = th->cur.overflow_frame;

	if (!switch_to_frame(rb, th, native)) {
		if (th->cur.overflow && (!last || last == native))
			leave_overflow(th);
		return;
	}
	unwind_to(rb, th, native);
	if (thread_top(th) && thread_top(th)->frame == native)
		pop(rb, th, false);
}

void rebuild_c_leave(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	const struct activation *top = thread_top(th);

	if (likely(top && top->frame == activation_native(frame)))
		pop(rb, th, false);
	else
		c_leave_slow(rb, th, activation_native(frame));
}

/* Collections ------------------------------------------------------------------------------ */

/* Pops the open collection, if any, and the activations above it. */
static void gc_close(struct rebuild *rb, struct thread *th)
{
	const uint64_t gc = th->gc;

	th->gc = 0;
	if (!gc || !switch_to_frame(rb, th, gc))
		return;
	unwind_to(rb, th, gc);
	if (thread_top(th) && thread_top(th)->frame == gc)
		pop(rb, th, false);
}

/*
 * Makes the frame that has triggered a collection, or the C function that it calls, the top (G2).
 */
static void gc_find(struct rebuild *rb, struct thread *th, uint64_t frame)
{
	const struct activation *top = thread_top(th);

	if (!frame || (top && activation_of(top->frame) == frame))
		return;
	if (switch_to_frame(rb, th, frame))
		unwind_to_caller(rb, th, frame);
}

void rebuild_gc_start(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func)
{
	const struct activation *top;

	gc_close(rb, th);
	/* Above the depth limit, a collection is not distinguished from its trigger. */
	if (th->cur.overflow)
		return;
	gc_find(rb, th, frame);
	top = thread_top(th);
	th->gc = (top ? top->frame : 0) | ACTIVATION_GC;
	push(rb, th, th->gc, func, 0, true);
}

void rebuild_gc_stop(struct rebuild *rb, struct thread *th)
{
	gc_close(rb, th);
}

/* Whole threads ---------------------------------------------------------------------------- */

static void finish_all(struct rebuild *rb, struct thread *th)
{
	for (uint32_t i = 0; i < th->nslots; i++) {
		const struct stack *s = &th->parked[i].stack;

		for (uint32_t k = 0; th->parked[i].parked && k < s->depth; k++)
			finish_parked(rb, th, s, &s->acts[k]);
	}
	for (uint32_t k = 0; k < th->cur.depth; k++)
		finish(rb, th, &th->cur.acts[k], thread_clock(th, SNAPSHOT_CPU),
		       thread_clock(th, SNAPSHOT_WALL), thread_probes(th), false);
}

void rebuild_drop_all(struct rebuild *rb, struct thread *th, bool complete)
{
	if (complete)
		finish_all(rb, th);
	for (uint32_t i = 0; i < th->nslots; i++) {
		struct stack *s = &th->parked[i].stack;

		if (th->parked[i].parked && s->depth)
			greenlet_end(&rb->coros, s, activation_func(&s->acts[0]), s->clock,
				     th->last_ts, complete);
	}
	if (th->cur.depth)
		greenlet_end_current(&rb->coros, th, activation_func(&th->cur.acts[0]), complete);
	thread_drop_stacks(th);
}

static void replant_stack(struct rebuild *rb, struct thread *th, struct stack *s)
{
	th->node = th->root;
	for (uint32_t i = 0; i < s->depth; i++) {
		struct activation *a = &s->acts[i];

		a->node = child_of(rb, th, activation_func(a));
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
		if (th->parked[i].parked) {
			replant_stack(rb, th, &th->parked[i].stack);
			greenlet_restart(&rb->coros, th, &th->parked[i].stack);
		}
	replant_stack(rb, th, &th->cur);
	greenlet_restart(&rb->coros, th, &th->cur);
	return true;
}
