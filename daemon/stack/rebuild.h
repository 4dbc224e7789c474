/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules that match events to stacks, described in rebuild.c. They operate on a thread and the
 * tree. The caller charges time before each call, so this module needs no timestamps. No function
 * here fails: activations beyond a limit are counted. Frames are user-space addresses, as checked
 * by decode; other values denote C functions.
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
	/*
	 * Correction, in ns, from the probe time before an activation's entry to that before its
	 * end: the former costs less and the latter more than the activation includes. Indexed by
	 * whether it is suspended; modulo 2^32.
	 */
	uint32_t own_ns[2];
	uint32_t max_depth;
	uint64_t calls;		 /* activations entered, by cProfile's definition */
	uint64_t unmatched;	 /* activations whose begin or end did not match the stack */
	uint64_t unseen;	 /* frames parked before tracing began that made calls */
	uint64_t unstarted;	 /* ends of frames that were on no stack */
	uint64_t stack_switches; /* changes of the current stack */
	uint64_t truncated;	 /* activations added up in "(truncated)" */
};

/* A frame starts or resumes. */
struct rebuild_entry {
	uint64_t frame, caller;
	uint32_t func;
	bool thrown;  /* by an exception that is thrown into it */
	uint16_t arg; /* PYP_ENTER_* */
};
void rebuild_enter(struct rebuild *rb, struct thread *th, const struct rebuild_entry *e);
/* A frame ends or, with suspended, is suspended. */
void rebuild_leave(struct rebuild *rb, struct thread *th, uint64_t frame, bool suspended);
/* The frame calls a C function; the C function returns. */
void rebuild_c_enter(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func);
void rebuild_c_leave(struct rebuild *rb, struct thread *th, uint64_t frame);
/* A garbage collection starts with this innermost frame (0: unknown); it stops. */
void rebuild_gc_start(struct rebuild *rb, struct thread *th, uint64_t frame, uint32_t func);
void rebuild_gc_stop(struct rebuild *rb, struct thread *th);
/*
 * Replaces the thread's stack by the stack read from the target, innermost first. truncated:
 * outermost frames are missing.
 */
void rebuild_chain(struct rebuild *rb, struct thread *th, const struct chain_frame *frames,
		   uint32_t n, bool truncated);
/* Ends everything on the thread's stacks (complete), or the observation of it. */
void rebuild_drop_all(struct rebuild *rb, struct thread *th, bool complete);
/*
 * After the tree has been cleared: gives the thread a new root and its activations new nodes, and
 * restarts their times. Returns false if out of memory.
 */
bool rebuild_replant(struct rebuild *rb, struct thread *th);

#endif
