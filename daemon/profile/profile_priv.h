/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of a profile; for profile/ only. */
#ifndef PYPROF_PROFILE_PROFILE_PRIV_H
#define PYPROF_PROFILE_PROFILE_PRIV_H

#include "accuracy/evidence.h"
#include "accuracy/wholes.h"
#include "accuracy/window.h"
#include "counting/counts.h"
#include "counting/line_counts.h"
#include "counting/samples.h"
#include "counting/waiting.h"
#include "profile/blocks.h"
#include "profile/ended.h"
#include "profile/profile.h"
#include "stack/codes.h"
#include "stack/gil.h"
#include "stack/rebuild.h"
#include "stack/threads.h"
#include "stack/timing.h"
#include "stack/watch.h"

struct profile {
	struct rebuild rb;
	struct codes codes;
	struct timing timing;
	struct gils gils;
	struct threads threads;
	struct thread *last; /* of the last event, or NULL */
	bool tracing;
	/*
	 * The target's probes are limited: some of the figures are in `evidence`. tracing: a window is open, or
	 * a stretch, in which calls, times and waits are traced, not sampled. observed_ns: samples and waits
	 * count from then on (CLOCK_MONOTONIC); 0: they do not.
	 */
	bool windows, stretch;
	uint64_t observed_ns;
	uint64_t measured;	      /* bit mask of measured columns */
	uint32_t hit_ns[PYP_REC_MAX]; /* current cost of an event by type; 0: unknown */
	struct watch *watch;	      /* NULL: no watcher */
	uint64_t shown;		      /* all threads' calls and returns in windows */
	struct window window;	      /* begin_ts is also valid without windows */
	uint64_t events, resyncs;
	uint64_t samples; /* total, including those that could not be stored */
	struct samples_beside beside;
	struct waiting waiting; /* of threads that send no events */
	struct line_counts lines;
	struct counts counts;
	struct ended ended;
	struct blocks blocks;
	bool traces_calls; /* false: modes count and sample */
	bool blocks_old;   /* blocks may have been unmapped while tracing was off */
	struct evidence evidence;
	struct wholes wholes;
	/*
	 * A window goes on after its end, at end_ns, until calls have ended; 0: it does not. What its nodes showed
	 * until then, in the order in which they were touched.
	 */
	struct {
		uint64_t end_ns;
		struct evidence_exact *shown;
		uint32_t n, cap;
	} tail;
	struct {
		bool light;
		double times, error;
		uint64_t stretches_cpu_ns;
	} accuracy; /* see profile_set_accuracy(), profile_set_stretches() */
};

/* Returns the thread with this tid, if it had an event or an initial stack since tracing began. */
static inline struct thread *profile_live_thread(const struct profile *p, uint32_t tid)
{
	struct thread *th = threads_find(&p->threads, tid);

	return th && th->live ? th : NULL;
}

/* Ends a thread with everything on its stacks. */
void profile_end_thread(struct profile *p, struct thread *th, uint64_t ts);

/*
 * Returns the thread of an initial stack, added as of begin (ns) if it is missing, and names it. NULL:
 * limit reached or out of memory.
 */
struct thread *profile_initial_thread(struct profile *p, uint64_t begin,
				      const struct initial_stack *initial);

/* profile_samples.c */
void profile_on_sample(struct profile *p, const struct event *e);

/* Whether the times and waits of threads follow from their events, not from samples. */
static inline bool profile_is_timed(const struct profile *p)
{
	return p->windows ? p->tracing && p->stretch : !p->waiting.kept;
}

/* The window has reached its end at ts. Returns whether it goes on. */
bool profile_tail_begin(struct profile *p, uint64_t ts);

/* profile_waiting.c: switches, and the stack of a wait; initial stacks; the end of tracing. */
void profile_on_wait(struct profile *p, const struct event *e);
void profile_on_wait_stack(struct profile *p, const struct event *e);
void profile_wait_initial(struct profile *p, uint64_t ts, const struct initial_stack *initial);
void profile_wait_stop(struct profile *p, struct thread *th, uint64_t ts);
/*
 * A stretch begins or ends at ts, in which a thread's waits are booked by its events. give: its wait goes on
 * there; take: it goes on here.
 */
void profile_wait_give(struct profile *p, struct thread *th, uint64_t ts);
void profile_wait_take(struct profile *p, struct thread *th, uint64_t ts);
/*
 * Sets the errors of samples, and of waiting as far as it is an estimate: see samples_errors().
 * node_map: the snapshot's node by node of the profile; SNAPSHOT_NONE: left out.
 */
int profile_wait_errors(const struct profile *p, const struct waiting_shares *shares,
			const uint32_t *node_map, struct snapshot *s, uint32_t first_thread,
			const struct samples_cpu *cpu);

/* profile_ended.c */
/* Adds a thread that has ended, has no stacks, and is no longer in the index by tid. */
void profile_add_ended(struct profile *p, struct thread *th);
/* Merges the ended threads that can be merged now. O(contexts of these threads). */
void profile_fold_ended(struct profile *p);

/* Books COUNTERS events to the function that runs: profile_resources.c. */
void profile_count_counters(struct profile *p, const struct event *e);

/* profile_memory.c */
void profile_count_memory(struct profile *p, const struct event *e);
void profile_count_block(struct profile *p, const struct event *e);
/* The stack of the thread's last MEMORY or BLOCK event ends with this node. */
void profile_memory_stack(struct profile *p, struct thread *th, uint32_t node);
/* The node `from` is about to be merged into `to`. */
void profile_move_blocks(struct profile *p, uint32_t from, uint32_t to);
/* Whether a node has figures of memory. */
bool profile_has_memory(const struct profile *p, uint32_t node);
/* Blocks are no longer followed; nothing is live. */
void profile_forget_blocks(struct profile *p);

#endif
