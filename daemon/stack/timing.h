/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of time: what a thread's nodes are charged, on both clocks. See timing.c for how
 * CPU time is known. In every node and thread CPU time never exceeds wall time by more than what
 * the scheduler itself reports. No stack's clock ever goes backwards; of a node's and a thread's CPU
 * time what a hypervisor had taken is taken back at the next switch.
 */
#ifndef PYPROF_STACK_TIMING_H
#define PYPROF_STACK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wait.h"
#include "event/event.h"
#include "stack/thread.h"
#include "stats/calltree.h"

/* Of the reason "other". */
struct timing_call {
	uint64_t ns, n;
};

struct timing {
	uint64_t missed; /* moves onto or off a CPU that were not told */
	/* By system call; the last one: none, not known, or numbers that have no place here. */
	struct timing_call other[WAIT_SYSCALLS + 1];
};

/* The thread is first seen, by an event of its own, at ts. */
void timing_first_seen(struct thread *th, uint64_t ts);

/* Charge what has passed up to ts to the thread's current node. */
void timing_charge(struct calltree *t, struct thread *th, uint64_t ts);
/* The same at an event of the thread, which therefore has a CPU. If no word came of its getting it:
 * when in that time it did is for the scheduler's next word to say. */
void timing_event(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts);
/* What has passed goes to "(lost)": nobody knows what was on the stack. Activations' clocks stand
 * still. */
void timing_charge_gap(struct calltree *t, struct thread *th, uint64_t ts);

/* The thread leaves or gets a CPU. */
void timing_switch(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts,
		   const struct event_switch *sw, bool in);

/* The thread ends; its run time may be a scheduler tick short. */
void timing_exit(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime);

/* Seeds: the thread was seen from outside, at ts, and traced since begin. */
void timing_seed(struct thread *th, uint64_t begin, uint64_t ts, bool running, uint64_t runtime);
/* The OS's word on a seeded thread that has had no event yet. */
void timing_os(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime);
/* A seeded thread's first event: from here on events tell. Charges up to ts. sure: what was runnable
 * has run; else that is decided later, by the scheduler's next word or by timing_settle_gap. */
void timing_take_over(struct calltree *t, struct thread *th, uint64_t ts, bool sure);
/* The seed's run time is as of the last tick, too old for a short window: where the thread could run,
 * what it has used is decided later. */
void timing_doubt(struct thread *th);
/* What is to be decided. */
uint64_t timing_gap(const struct thread *th);
/* So much of what was charged last may have been CPU time: decided later. */
void timing_defer(struct thread *th, uint64_t wall);
/* Decide it: it was, up to that much. Returns how much that is. */
uint64_t timing_settle_gap(struct calltree *t, struct thread *th, uint64_t most);

/* All totals become 0. */
void timing_clear(struct thread *th);

#endif
