/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lifetimes of greenlets: stacks that began while others of their thread were parked. They are added
 * up by the function at the bottom of the stack. Pure.
 */
#ifndef PYPROF_STACK_GREENLET_H
#define PYPROF_STACK_GREENLET_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/coro.h"
#include "stack/thread.h"

/* func begins an empty current stack: a greenlet, if the thread has parked stacks. */
void greenlet_begin(struct coros *coros, struct thread *th, uint32_t func);
/* The current stack, just unparked, runs again. */
void greenlet_resume(struct coros *coros, const struct thread *th);
/* Add to sum for how long (ns) the greenlet on s has run and waited up to ts, since it began or was
 * first seen. clock: the stack's clocks. */
void greenlet_charge(struct coro_sum *sum, const struct stack *s,
		     const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts);
/* The stack s, on which func ran first, is dropped at ts; clock: its clocks; ended: it has been seen
 * to end. Nothing happens if it is no greenlet. */
void greenlet_end(struct coros *coros, struct stack *s, uint32_t func,
		  const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts, bool ended);
/* The same for the thread's current stack, now. */
void greenlet_end_current(struct coros *coros, struct thread *th, uint32_t func, bool ended);
/* Count the greenlet on s as first seen now. The thread's totals are about to become 0. */
void greenlet_restart(struct coros *coros, const struct thread *th, struct stack *s);

#endif
