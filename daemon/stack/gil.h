/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread holds the GIL while others wait for it. Pure. Nothing reports that a thread takes or
 * releases it, so it is deduced, from the same events as all else; the rules are in gil.c.
 *
 * Per node: COLUMN_gil_held_ns, the time in which its thread held the GIL, on a CPU or off, while one
 * thread or more waited for it. By pair of functions: for how long the one that held it kept the other one
 * waiting; of several waiters each counts.
 */
#ifndef PYPROF_STACK_GIL_H
#define PYPROF_STACK_GIL_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "stack/thread.h"
#include "stats/calltree.h"

#define GIL_PAIRS  2048u /* a power of two */
#define GIL_GROUPS 16u

/* Functions as in the tree; SNAPSHOT_NONE: outside of Python. ns 0: no pair. */
struct gil_pair {
	uint32_t holder, waiter;
	uint64_t ns;
};

/* Threads that wait in the same function. */
struct gil_group {
	uint32_t func;
	uint32_t n;	  /* how many wait now */
	uint64_t pending; /* what they waited since it is not known for whom */
};

struct gil {
	struct thread *holder; /* NULL: not known */
	uint32_t waiting;      /* threads */
	uint32_t awake;	       /* threads that have waited, run again, and may or may not hold it */
	uint64_t ts;	       /* all up to here is charged, or pending */
	uint64_t pending;      /* while somebody waited */
	struct gil_group groups[GIL_GROUPS];
};

struct gils {
	struct gil of[PYP_GIL_RANGES];
	struct gil_pair *pairs; /* NULL: none so far */
	uint32_t npairs;
	uint64_t dropped; /* ns of pairs that do not fit */
};

void gils_deinit(struct gils *g);
/* All figures become 0; who holds what stays. */
void gils_clear(struct gils *g);

void gil_proves(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts);

/* An event of the thread's own, before it changes the stack: only the holder runs Python code. */
static inline void gil_event(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	const struct gil *of = &g->of[th->gil.of];

	if (__builtin_expect(of->holder != th || of->waiting || of->pending, 0))
		gil_proves(g, t, th, ts);
}

/* The thread leaves or gets a CPU; after timing_switch(). */
void gil_switch(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		const struct event_switch *sw, bool in);

/* The thread has ended, or is not traced any more. */
void gil_forget(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts);

#endif
