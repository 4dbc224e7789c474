/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical stacks: what runs in pieces, and the time between the pieces. An instance is a generator,
 * a coroutine, an asynchronous generator, or a greenlet (any stack of its own in a thread that
 * switches between several): known by its frame's address from its first call to its end, whichever
 * threads it runs in meanwhile.
 *
 * Only sums per function are kept of those that have ended. Capped; O(1) per event; nothing here
 * fails: what does not fit is counted. Knows neither threads nor the tree.
 */
#ifndef PYPROF_STACK_CORO_H
#define PYPROF_STACK_CORO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "snapshot/snapshot.h"

#define CORO_NONE  UINT32_MAX
#define CORO_LIMIT (1u << 18) /* instances at a time */

/* Sums over a function's instances. */
struct coro_sum {
	uint64_t started; /* first called while we watched */
	uint64_t partial; /* first seen when they had run already */
	uint64_t ended;
	uint64_t steps;
	uint64_t running[SNAPSHOT_CLOCKS]; /* from each entry to its suspension or end */
	uint64_t suspended;		   /* between those; wall time */
	uint64_t lifetimes;		   /* how many ended ones are in what follows: */
	uint64_t total, min, max;	   /* from first call to end; wall time */
};

struct coro {
	uint64_t frame;
	uint64_t first; /* when it was called first; 0: not known */
	uint64_t since; /* suspended: since when; running: when it was suspended last, or first */
	uint32_t func;
	uint32_t older, newer; /* the suspended ones, by since; CORO_NONE at the ends */
	bool suspended;
	bool used; /* else free, linked by newer */
};

struct coro_sums {
	struct coro_sum *v; /* by function */
	uint32_t n;
};

struct coros {
	struct coro *list;
	uint32_t n, cap, free;
	uint32_t oldest, newest;
	struct map by_frame;
	struct coro_sums sums;	    /* of generators and coroutines */
	struct coro_sums greenlets; /* by the function that each runs */
	bool ends_hidden;	    /* before 3.11: a suspension may be an end as well */
	uint64_t forgotten;	    /* instances that did not fit */
};

void coros_init(struct coros *cs);
void coros_deinit(struct coros *cs);
/* Everything becomes 0; instances go on, as if they were first seen now. */
void coros_clear(struct coros *cs, uint64_t ts);
/* Nobody watches any more. */
void coros_stop(struct coros *cs, uint64_t ts);

/* The frame of an instance is entered at ts; start: for the first time. */
void coro_enter(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts, bool start);
/* It is left after running for so long. suspended: to be entered again, perhaps. */
void coro_leave(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts,
		const uint64_t running[SNAPSHOT_CLOCKS], bool suspended);

/* Is this the frame of an instance that is suspended? */
bool coro_is_suspended(const struct coros *cs, uint64_t frame);

/* A function's sums, zeroed when it is new; NULL: out of memory. */
struct coro_sum *coro_sum(struct coro_sums *sums, uint32_t func);
/* An instance that was first called at first (0: not known) has ended at ts. */
void coro_sum_end(struct coro_sum *sum, uint64_t first, uint64_t ts);

#endif
