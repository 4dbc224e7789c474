/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports a profile's stack changes event by event, for timelines. Pure. The watcher receives every
 * frame that is pushed to and popped from a thread's stack, in order and balanced per thread:
 * frames are popped in reverse order, and all are popped when watching ends. See watch.c.
 */
#ifndef PYPROF_STACK_WATCH_H
#define PYPROF_STACK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/wait.h"
#include "event/event.h"

/* Kinds of events. X(name, text) */
#define WATCH_KINDS(X)                                                                             \
	/* A frame is pushed: by a call ... */                                                     \
	X(CALL, "call")                                                                            \
	X(RESUME, "resume") /* ... of a suspended generator */                                     \
	X(THROW, "throw")   /* ... by an exception thrown into it */                               \
	/* ... without a call: it was on the stack at the start, or after a gap */                 \
	X(OPEN, "open")                                                                            \
	X(SWITCH_IN, "switch-in") /* the thread switched back to the frame's greenlet */           \
	/* A frame is popped: */                                                                   \
	X(RETURN, "return") /* it has ended, possibly by an exception */                           \
	X(YIELD, "yield")   /* it is suspended; reported as a return before CPython 3.11 */        \
	X(UNWIND, "unwind") /* without an event of its own; deduced from later events */           \
	X(CLOSE, "close")   /* at an unknown time, or it still runs and watching ends */           \
	X(SWITCH_OUT, "switch-out")                                                                \
	/* No frame: */                                                                            \
	X(LOST, "lost")	      /* the ring lost events of the thread */                             \
	X(DROPPED, "dropped") /* `count` calls and returns could not be reported */                \
	X(THREAD, "thread")   /* the thread's name, before its first and after its last frame */   \
	X(WAIT, "wait")	      /* the thread is back on a CPU; only where reasons are measured */   \
	/* Memory, where it is measured; `count` bytes */                                          \
	X(MAP, "map")		/* a large block is mapped */                                      \
	X(UNMAP, "unmap")	/* one is unmapped */                                              \
	X(LARGE, "large")	/* in all large blocks mapped since tracing began */               \
	X(RESIDENT, "resident") /* resident, in all */

enum watch_kind {
#define WATCH_X(name, word) WATCH_##name,
	WATCH_KINDS(WATCH_X)
#undef WATCH_X
		WATCH_KIND_MAX
};

/* Returns a word, never NULL. */
const char *watch_kind_name(enum watch_kind kind);
/* Returns 1 if a frame is pushed, -1 if one is popped, otherwise 0. */
int watch_kind_step(enum watch_kind kind);
/* Returns whether the kind is a call as counted by ncalls. */
bool watch_kind_is_call(enum watch_kind kind);

#define WATCH_NO_FUNC UINT32_MAX

struct watch_event {
	enum watch_kind kind;
	uint32_t tid;
	uint32_t func;	 /* the profile's index; WATCH_NO_FUNC: none */
	uint32_t caller; /* function of the frame below; WATCH_NO_FUNC: none */
	uint64_t frame;	 /* address of the frame that is pushed or popped; 0: none */
	uint64_t ts;	 /* never before the thread's previous event, except for THREAD */
	uint64_t cpu;	 /* the thread's CPU time since it was first seen, ns */
	uint64_t count;	 /* for DROPPED, and kinds of memory */
	/* for RETURN: an exception leaves the frame; only if that is reported, see
	 * probe_report_raised() */
	bool raised;
	/* of the time since the thread's previous event that was not CPU time */
	enum wait_reason why;
	const char *name;   /* for THREAD */
	const char *thread; /* the thread's name as far as it is known; never NULL */
};

struct watcher {
	/*
	 * Receives an event. Returns false if it cannot take it now; unreported events become a
	 * DROPPED event later.
	 */
	bool (*fn)(void *ctx, const struct watch_event *e);
	/*
	 * Returns whether many events can be taken. Called before reporting resumes after a false.
	 */
	bool (*ready)(void *ctx);
	void *ctx;
	uint64_t from_ns,
		until_ns; /* earlier events are reported at from_ns, later ones not at all */
};

/* The interface for stack/ and profile/. */
struct thread;
struct watch;

struct watch *watch_new(const struct watcher *w); /* NULL: out of memory */
void watch_free(struct watch *w);
DEFINE_FREEP(struct watch, watch_free)

/* Adds a thread that exists when watching begins. */
void watch_begin_thread(struct watch *w, struct thread *th);
/*
 * A call or return was applied to the thread's stack. called: it was a call; switched: it switched
 * stacks.
 */
void watch_call(struct watch *w, struct thread *th, const struct event *e, bool called,
		bool switched);
/* The thread's stack was read from the target; lost: because events were lost. */
void watch_chain(struct watch *w, struct thread *th, uint64_t ts, bool lost);
/* The thread was switched in at ts, after waiting for this reason. */
void watch_wait(struct watch *w, struct thread *th, uint64_t ts, enum wait_reason why);
/* The thread has changed the process's memory: kind MAP, UNMAP, LARGE or RESIDENT. */
void watch_memory(struct watch *w, struct thread *th, uint64_t ts, enum watch_kind kind,
		  uint64_t bytes);
/* The thread's stacks are about to be dropped: it has ended or is no longer watched. */
void watch_end_thread(struct watch *w, struct thread *th, uint64_t ts);

struct watch_counts {
	uint64_t dropped;   /* calls and returns that could not be reported */
	uint64_t truncated; /* calls that were not reported because the stack was too deep */
};
struct watch_counts watch_counts(const struct watch *w);

#endif
