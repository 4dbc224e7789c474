/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread holds the GIL while others wait for it. Pure. No event reports that a thread takes
 * or releases the GIL, so gil.c deduces it from the other events.
 *
 * Per node: COLUMN_gil_held_ns, the time its thread held the GIL, on or off a CPU, while at least
 * one thread waited for it. Per pair of functions: the time that the holder kept the waiter
 * waiting; with several waiters, each counts.
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

/* Function indices of the tree; SNAPSHOT_NONE: outside Python. ns 0: unused entry. */
struct gil_pair {
	uint32_t holder, waiter;
	uint64_t ns;
};

/* Threads that wait in the same function. */
struct gil_group {
	uint32_t func;
	uint32_t n;	  /* number of waiting threads */
	uint64_t pending; /* their waiting, in ns, while the holder is unknown */
};

struct gil {
	struct thread *holder; /* NULL: unknown */
	uint32_t waiting;      /* number of threads */
	uint32_t awake;	       /* threads that have waited and run again, and may hold it */
	uint64_t ts;	       /* everything up to this time is charged or pending */
	uint64_t pending;      /* ns with waiters whose holder is not yet known */
	struct gil_group groups[GIL_GROUPS];
};

struct gils {
	struct gil of[PYP_GIL_RANGES];
	struct gil_pair *pairs; /* NULL: none yet */
	uint32_t npairs;
	uint64_t dropped; /* ns of pairs beyond the limit */
};

void gils_deinit(struct gils *g);
/* Resets all figures; keeps which thread holds which GIL. */
void gils_clear(struct gils *g);

void gil_proves(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts);

/*
 * Handles an event of the thread before it changes the stack. It proves that the thread holds the
 * GIL, because only the holder runs Python code.
 */
static inline void gil_event(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	const struct gil *of = &g->of[th->gil.of];

	if (__builtin_expect(of->holder != th || of->waiting || of->pending, 0))
		gil_proves(g, t, th, ts);
}

/* Handles a context switch of the thread at ts (ns). Call it after timing_switch(). */
void gil_switch(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		const struct event_switch *sw, bool in);

/* Removes a thread that has ended or is no longer traced. */
void gil_forget(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts);

#endif
