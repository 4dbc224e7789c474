/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile consists of; for stack/profile*.c only. */
#ifndef PYPROF_STACK_PROFILE_PRIV_H
#define PYPROF_STACK_PROFILE_PRIV_H

#include "base/map.h"
#include "stack/codes.h"
#include "stack/ended.h"
#include "stack/estimate.h"
#include "stack/profile.h"
#include "stack/rebuild.h"
#include "stack/tally.h"
#include "stack/thread.h"
#include "stack/timing.h"
#include "stack/watch.h"

struct profile {
	struct rebuild rb;
	struct codes codes;
	struct timing timing;
	struct tally tally;
	struct profile_limits limits;
	struct stack_room room; /* of all threads' stacks */

	struct thread **threads; /* alive, ended and rows of ended ones; [0] is the overflow */
	uint32_t nthreads, threads_cap;
	struct ended ended;
	struct map by_tid;   /* alive ones: tid → index in threads */
	struct thread *last; /* the last event's, or NULL */

	uint64_t begin_ts;
	bool tracing;
	bool windows; /* some of the figures are in estimate */
	struct estimate estimate;
	uint64_t limit_ns, shown_ns,
		folded_ns; /* of the window at hand, in the program's own time */
	uint32_t cost[COST_KINDS];
	uint64_t window_events, window_taken, taken;
	uint64_t samples; /* between windows, those that could not be kept included */
	uint64_t events, resyncs;
	uint32_t metrics;    /* bits: which resource counters are kept */
	struct watch *watch; /* NULL: nobody watches */
};

/* threads[0] stands for all threads that do not fit: only their calls are counted. */
#define PROFILE_OVERFLOW_THREAD 0u

/* Room for n frames in the chain that the thread is being told. */
bool profile_chain_reserve(struct thread *th, uint32_t n);

/* A new thread, or row of threads, that is not found by its tid; NULL: out of memory. */
struct thread *profile_new_thread(struct profile *p, uint32_t tid);
/* Forget an ended thread; its contexts have gone elsewhere. */
void profile_remove_thread(struct profile *p, struct thread *th);

/* The living thread with this tid, made known if it is not; NULL: it does not fit. */
struct thread *profile_thread(struct profile *p, uint32_t tid, uint64_t ts);

#endif
