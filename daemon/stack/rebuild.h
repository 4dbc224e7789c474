/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules that match events to stacks: see the essay in rebuild.c. Works on a thread and the
 * tree; time is charged before (the caller's business), so nothing here knows what time it is.
 * Nothing here fails: what does not fit is counted. Frames are addresses of user space (as decode
 * gives them): the others stand for C functions.
 */
#ifndef PYPROF_STACK_REBUILD_H
#define PYPROF_STACK_REBUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/coro.h"
#include "stack/thread.h"
#include "stats/calltree.h"
#include "stats/durations.h"

struct rebuild {
	struct calltree tree;
	struct coros coros;
	struct durations durations;
	/* From the probe time before an activation's entry to that before its end: what less of the former
	 * and more of the latter is in it. By whether it is suspended; modulo 2^32. */
	uint32_t own_ns[2];
	uint32_t max_depth;
	uint64_t calls;		 /* activations entered, as cProfile counts them */
	uint64_t unmatched;	 /* activations that ended, or began, where they should not have */
	uint64_t unseen;	 /* frames that were parked before we looked, and made calls */
	uint64_t unstarted;	 /* leaves of frames that were on no stack */
	uint64_t stack_switches; /* changes of the current stack */
	uint64_t truncated;	 /* activations summed in "(truncated)" */
};

/* A frame starts or resumes running. */
struct rebuild_entry {
	uint64_t frame, caller;
	uint32_t func;
	bool thrown;  /* because an exception is thrown into it */
	uint16_t arg; /* PYP_ENTER_* */
};
void rebuild_enter(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e);
/* A frame stops running. */
void rebuild_leave(struct rebuild *rb, struct thread *th, uint64_t frame, bool suspended);
/* The frame calls a function written in C, and that returns. */
void rebuild_c_enter(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func);
void rebuild_c_leave(struct rebuild *rb, struct thread *th, uint64_t frame);
/* A collection of the garbage collector starts, with this frame innermost (0: not known), and stops. */
void rebuild_gc_start(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func);
void rebuild_gc_stop(struct rebuild *rb, struct thread *th);
/* The thread's stack as it really is, innermost first; truncated: outermost frames are missing. */
void rebuild_chain(struct rebuild *rb, struct thread *th, const struct chain_frame *frames,
		   uint32_t n, bool truncated);
/* Everything on the thread's stacks ends now (complete), or is not watched any more. */
void rebuild_drop_all(struct rebuild *rb, struct thread *th, bool complete);
/* The tree has been emptied: give the thread a root, its activations nodes, and start anew. */
bool rebuild_replant(struct rebuild *rb, struct thread *th);

#endif
