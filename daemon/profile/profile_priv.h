/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile consists of; for profile/ only. */
#ifndef PYPROF_PROFILE_PROFILE_PRIV_H
#define PYPROF_PROFILE_PROFILE_PRIV_H

#include "counting/counts.h"
#include "counting/samples.h"
#include "estimate/estimate.h"
#include "estimate/window.h"
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
	struct thread *last; /* the last event's, or NULL */
	bool tracing;
	bool windows;		      /* some of the figures are in estimate */
	uint64_t measured;	      /* columns that are measured: bits */
	uint32_t hit_ns[PYP_REC_MAX]; /* what events of a type cost, as known now; 0: not known */
	struct watch *watch;	      /* NULL: nobody watches */
	struct window window;	      /* begin_ts: also of what is not watched in windows */
	uint64_t events, resyncs;
	uint64_t samples; /* all, those that could not be kept included */
	struct samples_beside beside;
	struct counts counts;
	struct ended ended;
	struct estimate estimate;
};

/* The thread with this tid, if it was seen or seeded since tracing began. */
static inline struct thread *profile_live_thread(const struct profile *p, uint32_t tid)
{
	struct thread *th = threads_find(&p->threads, tid);

	return th && th->live ? th : NULL;
}

/* A thread ends: nothing of it runs any more. */
void profile_end_thread(struct profile *p, struct thread *th, uint64_t ts);

/* profile_ended.c */
/* This thread has ended: nothing is on its stacks, nobody finds it by its tid. */
void profile_add_ended(struct profile *p, struct thread *th);
/* Fold what can be folded now. O(contexts of the threads that are folded). */
void profile_fold_ended(struct profile *p);

#endif
