/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching a profile's stacks change, event by event: what a timeline is made of. Pure. The watcher
 * is told of every frame that comes on a thread's stack and of every one that goes, in order and
 * balanced per thread: what was told to come goes before what came before it, and everything has
 * gone when the watching ends. See watch.c.
 */
#ifndef PYPROF_STACK_WATCH_H
#define PYPROF_STACK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "event/event.h"

/* What happened. X(name, the word for it) */
#define WATCH_KINDS(X)                                                                             \
	/* A frame comes on the stack: a call ... */                                               \
	X(CALL, "call")                                                                            \
	X(RESUME, "resume") /* ... of a generator seen to be suspended */                          \
	X(THROW, "throw")   /* ... by an exception thrown into it */                               \
	/* ... or no call: it was there when we first looked, or looked again; */                  \
	X(OPEN, "open")                                                                            \
	X(SWITCH_IN, "switch-in") /* the thread went back to the greenlet it is of. */             \
	/* A frame goes: */                                                                        \
	X(RETURN, "return") /* it has ended, by an exception perhaps */                            \
	X(YIELD, "yield")   /* it is suspended; before CPython 3.11 that is a return */            \
	X(UNWIND, "unwind") /* gone without a word of its own: what follows shows that it has */   \
	X(CLOSE, "close")   /* nobody knows when, or it still runs: we look no longer */           \
	X(SWITCH_OUT, "switch-out")                                                                \
	/* No frame: */                                                                            \
	X(LOST, "lost")	      /* events of the thread were lost by the ring */                     \
	X(DROPPED, "dropped") /* `count` calls and returns could not be told to the watcher */     \
	X(THREAD, "thread")   /* the thread's name, before its first frame and behind its last */

enum watch_kind {
#define WATCH_X(name, word) WATCH_##name,
	WATCH_KINDS(WATCH_X)
#undef WATCH_X
		WATCH_KIND_MAX
};

/* A word, never NULL. */
const char *watch_kind_name(enum watch_kind kind);
/* Does a frame come (1), go (-1) or neither? */
int watch_kind_step(enum watch_kind kind);
/* Is it a call, as ncalls counts them? */
bool watch_kind_is_call(enum watch_kind kind);

#define WATCH_NO_FUNC UINT32_MAX

struct watch_event {
	enum watch_kind kind;
	uint32_t tid;
	uint32_t func;	  /* the profile's number for it; WATCH_NO_FUNC */
	uint32_t caller;  /* whom it lies upon; WATCH_NO_FUNC: nobody */
	uint64_t ts;	  /* never earlier than the thread's event before, THREAD excepted */
	uint64_t cpu;	  /* the thread's CPU time since it was first seen */
	uint64_t count;	  /* DROPPED */
	const char *name; /* THREAD */
};

struct watcher {
	/* False: it cannot take it now. What it was not told makes a DROPPED, once it can again. */
	bool (*fn)(void *ctx, const struct watch_event *e);
	/* Could it take many? Asked before telling goes on after a false. */
	bool (*ready)(void *ctx);
	void *ctx;
	uint64_t from_ns, until_ns; /* events earlier are told as of from, later ones are not */
};

/* The stack's side; for profile/. */
struct thread;
struct watch;

struct watch *watch_new(const struct watcher *w); /* NULL: no memory */
void watch_free(struct watch *w);
DEFINE_FREEP(struct watch, watch_free)

/* A thread that is there when the watching begins. */
void watch_begin_thread(struct watch *w, struct thread *th);
/* A call or return has been applied to the thread's stack: was it a call, has it switched stacks? */
void watch_call(struct watch *w, struct thread *th, const struct event *e, bool called,
		bool switched);
/* The thread's stack was read from the target; lost: because events were. */
void watch_chain(struct watch *w, struct thread *th, uint64_t ts, bool lost);
/* The thread's stacks are about to be dropped: it has ended, or is watched no longer. */
void watch_end_thread(struct watch *w, struct thread *th, uint64_t ts);

struct watch_counts {
	uint64_t dropped;   /* calls and returns that could not be told */
	uint64_t truncated; /* calls that were not, because the stack was too deep */
};
struct watch_counts watch_counts(const struct watch *w);

#endif
