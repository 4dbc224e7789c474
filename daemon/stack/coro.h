/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutine lifetimes: objects that run in several steps, and the time between the steps. An
 * instance is a generator, a coroutine, an asynchronous generator or a greenlet (a stack of its own
 * in a thread that switches between several). Its frame's address identifies it from its first call
 * to its end, in whichever threads it runs.
 *
 * Ended instances are kept only as sums per function. Memory is limited; each event takes O(1). No
 * function here fails: instances beyond the limit are counted. This module depends neither on
 * threads nor on the tree.
 */
#ifndef PYPROF_STACK_CORO_H
#define PYPROF_STACK_CORO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "snapshot/snapshot.h"

#define CORO_NONE  UINT32_MAX
#define CORO_LIMIT (1u << 18) /* maximum number of live instances */

/* Sums over a function's instances. Times in ns. */
struct coro_sum {
	uint64_t started; /* first called while traced */
	uint64_t partial; /* had already run when first seen */
	uint64_t ended;
	uint64_t steps;
	uint64_t running[SNAPSHOT_CLOCKS]; /* from each entry to the next suspension or end */
	uint64_t suspended;		   /* between these; wall time */
	uint64_t lifetimes;		   /* number of ended instances in the following sums */
	uint64_t total, min, max;	   /* from first call to end; wall time */
};

struct coro {
	uint64_t frame;
	uint64_t first; /* time of its first call; 0: unknown */
	uint64_t since; /* suspended: since when; running: last suspension or first entry */
	uint32_t func;
	uint32_t older, newer; /* list of suspended instances, by since; CORO_NONE at the ends */
	bool suspended;
	bool used; /* false: free, linked by newer */
};

struct coro_sums {
	struct coro_sum *v; /* per function */
	uint32_t n;
};

struct coros {
	struct coro *list;
	uint32_t n, cap, free;
	uint32_t oldest, newest;
	struct map by_frame;
	struct coro_sums sums;	    /* of generators and coroutines */
	struct coro_sums greenlets; /* per function that a greenlet runs */
	bool ends_hidden;	    /* before 3.11: a suspension may have been an end */
	uint64_t forgotten;	    /* instances dropped because of the limit */
};

void coros_init(struct coros *cs);
void coros_deinit(struct coros *cs);
/* Resets all sums at time ts (ns). Live instances continue as if first seen now. */
void coros_clear(struct coros *cs, uint64_t ts);
/* Ends the observation of all instances at time ts (ns). */
void coros_stop(struct coros *cs, uint64_t ts);

/* An instance's frame is entered at ts (ns). start: for the first time. */
void coro_enter(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts, bool start);
/*
 * The frame is left at ts (ns) after running for running[] ns. suspended: it may be entered again.
 */
void coro_leave(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts,
		const uint64_t running[SNAPSHOT_CLOCKS], bool suspended);

/* Returns whether this is the frame of a suspended instance. */
bool coro_is_suspended(const struct coros *cs, uint64_t frame);

/*
 * Returns a function's sums, which are added as zeros if new; NULL: out of memory. Borrowed until
 * the next call.
 */
struct coro_sum *coro_sum(struct coro_sums *sums, uint32_t func);
/*
 * Records the end, at ts, of an instance that was first called at `first` (0: unknown). Both in ns.
 */
void coro_sum_end(struct coro_sum *sum, uint64_t first, uint64_t ts);

#endif
