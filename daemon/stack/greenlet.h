/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lifetimes of greenlets: stacks that were started while the thread had parked stacks. Added up by
 * the outermost function of the stack. Pure.
 */
#ifndef PYPROF_STACK_GREENLET_H
#define PYPROF_STACK_GREENLET_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/coro.h"
#include "stack/thread.h"

/* Starts an empty current stack with func. It is a greenlet if the thread has parked stacks. */
void greenlet_begin(struct coros *coros, struct thread *th, uint32_t func);
/* Resumes the current stack, which has just been unparked. */
void greenlet_resume(struct coros *coros, const struct thread *th);
/*
 * Adds to `sum` how long (ns) the greenlet on s has run and waited up to ts, since its start or
 * since it was first seen. clock: the stack's clocks.
 */
void greenlet_charge(struct coro_sum *sum, const struct stack *s,
		     const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts);
/*
 * Drops the stack s, whose outermost function is func, at ts. clock: the stack's clocks; ended: its
 * end was observed. Does nothing if s is not a greenlet.
 */
void greenlet_end(struct coros *coros, struct stack *s, uint32_t func,
		  const uint64_t clock[SNAPSHOT_CLOCKS], uint64_t ts, bool ended);
/* Like greenlet_end, for the thread's current stack at the current time. */
void greenlet_end_current(struct coros *coros, struct thread *th, uint32_t func, bool ended);
/* Counts the greenlet on s as first seen now. The caller resets the thread's totals next. */
void greenlet_restart(struct coros *coros, const struct thread *th, struct stack *s);

#endif
