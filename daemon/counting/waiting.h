/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting of threads that send no events, as in modes sample and count: every context switch is
 * known, but the stack of only some waits (PYP_SAMPLE_WAIT). Pure.
 *
 * The waiting of each thread by reason is exact. Waits whose stack was certain to be walked, in
 * general the long ones, are in the tree's columns as they are. The others with a stack stand for
 * more than themselves; their weights determine how the rest of the thread's waiting is distributed
 * over contexts. CPU time comes from samples, and a context's wall time is the sum of both.
 */
#ifndef PYPROF_COUNTING_WAITING_H
#define PYPROF_COUNTING_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "stack/thread.h"
#include "stack/threads.h"
#include "stack/timing.h"
#include "stats/calltree.h"

/* All zero: nothing is kept. */
struct waiting {
	bool kept;
	uint64_t walks;		  /* number of stacks */
	uint64_t *weights[WAITS]; /* per node, ns; NULL: none */
	double *variances;	  /* per node, of the sum of its weights; NULL: none */
	uint32_t room;		  /* nodes in each array */
	struct calltree *tree;	  /* borrowed */
	struct timing *timing;	  /* borrowed */
};

void waiting_init(struct waiting *w, struct calltree *tree, struct timing *timing);
void waiting_deinit(struct waiting *w);
/* Call it when the tree was cleared, then waiting_clear_thread() for each thread. */
void waiting_clear(struct waiting *w);
void waiting_clear_thread(struct waiting *w, struct thread *th, uint64_t ts);

/* The thread leaves its CPU at ts (ns), or gets one. */
void waiting_switch(struct waiting *w, struct thread *th, uint64_t ts,
		    const struct event_switch *sw, bool in);
/* The stack of the wait that has ended or, with PYP_SAMPLE_AHEAD, of the one that begins. */
void waiting_stack(struct waiting *w, struct thread *th, const struct event_sample *s,
		   uint32_t node);
/* It was already waiting when tracing began. node: on this stack; NODE_NONE: unknown. */
void waiting_initial(struct waiting *w, struct thread *th, uint64_t begin, uint32_t node);
/* Returns whether it has been waiting on an unknown stack since before `ts`. */
bool waiting_is_unplaced(const struct thread *th, uint64_t ts);
/* It is waiting at ts, for the reason in th->wait, on the stack of its node. */
void waiting_go_on(struct waiting *w, struct thread *th, uint64_t ts);
/* The thread ends, or tracing does. */
void waiting_stop(struct waiting *w, struct thread *th, uint64_t ts);
/* Two threads' contexts are merged: the figures of a node are moved, or of a thread. */
void waiting_move(struct waiting *w, uint32_t from, uint32_t to);
void waiting_fold(struct waiting *w, struct thread *row, const struct thread *th);

/* Waiting by context, as of a time. */
struct waiting_shares {
	uint64_t *of[COLUMNS]; /* per node, ns; columns of the group "waits" only; NULL: none */
	uint64_t *sum;	       /* per node, of all reasons; NULL: nothing is kept */
	uint64_t *total;       /* per index in the table of threads */
	double *estimated, *variance; /* per node: the part that is estimated, and its variance */
};

/* Waits that have not ended count until now_ns. Returns 0 or -ENOMEM. */
int waiting_share(const struct waiting *w, const struct threads *threads, uint64_t now_ns,
		  struct waiting_shares *ret);
void waiting_shares_deinit(struct waiting_shares *s);

#endif
