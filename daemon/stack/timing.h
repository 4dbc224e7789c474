/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of time: what a thread's nodes are charged on both clocks. timing.c describes how
 * CPU time is derived. In every node and thread, CPU time exceeds wall time at most by what the
 * scheduler itself reports. A stack's clocks never go backwards; CPU time of nodes and threads that
 * a hypervisor had stolen is subtracted again at the next switch.
 */
#ifndef PYPROF_STACK_TIMING_H
#define PYPROF_STACK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wait.h"
#include "event/event.h"
#include "stack/longest.h"
#include "stack/thread.h"
#include "stats/calltree.h"

/* Waits with the reason "other". */
struct timing_call {
	uint64_t ns, n;
};

struct timing {
	uint64_t missed;  /* context switches that were not reported */
	uint64_t unsplit; /* waits of which the part in a run queue is not known */
	/* By system call number; the last element: none, unknown, or a number above the range. */
	struct timing_call other[WAIT_SYSCALLS + 1];
	struct longest longest;
};

/* The thread is first seen at ts (ns), by its own event. */
void timing_first_seen(struct thread *th, uint64_t ts);

/* Charges the time up to ts (ns) to the thread's current node. */
void timing_charge(struct calltree *t, struct thread *th, uint64_t ts);
/*
 * ns of the thread's time from ts on are not the program's: they are charged to no node, and its
 * activations' clocks stand still.
 */
void timing_skip(struct thread *th, uint64_t ts, uint64_t ns);
/*
 * Like timing_charge, at an event of the thread, which proves that it is on a CPU. If its switch-in
 * was not reported, the scheduler's next run time decides when it happened. Returns whether a wait
 * has ended by that, for the reason in wait.last_why.
 */
bool timing_event(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts);
/*
 * Charges the time up to ts to "(lost)", because the stack is unknown. The activations' clocks
 * stand still.
 */
void timing_charge_gap(struct calltree *t, struct thread *th, uint64_t ts);

/*
 * Handles a context switch of the thread at ts (ns). Returns whether a wait has ended, for the reason
 * in wait.last_why: at a switch-in, and at a switch-out whose switch-in was not reported.
 */
bool timing_switch(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts,
		   const struct event_switch *sw, bool in);

/* A wait of a thread: its length, and the function in which it waited. */
struct timing_waited {
	uint64_t ns;
	uint32_t func;
};
/* Keeps the thread's last wait if it is one of the longest of this reason. */
void timing_keep_longest(struct timing *tm, const struct thread *th, enum wait_reason why,
			 const struct timing_waited *waited);
/* Counts the thread's last wait, whose reason is WAIT_other, by system call. */
void timing_count_other(struct timing *tm, const struct thread *th, uint64_t ns);

/* The kernel will report the wait that has begun as time in run queues (DELAY). */
void timing_delay_wrong(struct thread *th, struct timing *tm);

/* The thread ends; its run time (ns) may be up to one scheduler tick too low. */
void timing_exit(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime);

/* Initial stacks: the thread's state was read at ts (ns); it has been traced since `begin`. */
void timing_initial(struct thread *th, uint64_t begin, uint64_t ts, bool running, uint64_t runtime);
/* Updates a thread with an initial stack and no event yet from the OS's run time (ns). */
void timing_os(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime);
/*
 * Handles the first event of a thread with an initial stack: charges up to ts; events determine its
 * state from now on. Whether a thread that was not running has got a CPU since then, the next switch decides.
 */
void timing_take_over(struct calltree *t, struct thread *th, uint64_t ts);

/*
 * In windows, only durations of activations are measured: waiting and its reasons are somebody else's
 * (counting/waiting.h). first_pass: the thread is first seen. pass: charges the time up to ts; since then it
 * has a CPU or not.
 */
void timing_first_pass(struct thread *th, uint64_t ts, bool on_cpu);
void timing_pass(struct calltree *t, struct thread *th, uint64_t ts, bool on_cpu);

/* Resets all totals. */
void timing_clear(struct thread *th);

#endif
