/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning of windows for --max-overhead. Pure: the caller passes in the time, the target's CPU
 * time and the part of it that the probes took; the functions decide when to open and close
 * windows. windows.c explains how windows are chosen to be a fair sample.
 */
#ifndef PYPROF_SESSION_WINDOWS_H
#define PYPROF_SESSION_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* The longest window with a planned end, in the program's own time. A call that takes longer is never
 * seen from its start to its end. */
#define WINDOWS_LONGEST_MS 75
#define WINDOWS_LONGEST	   "75 ms"
/* A whole window lasts until the calls that began in it have ended, but at most so many ns more. */
#define WINDOWS_TAIL_NS 500000000u

struct windows {
	double bound;	 /* the probes' share of the CPU time that the target itself uses */
	double link_ns;	 /* cost of opening and closing a window, ns */
	uint64_t random; /* generator state; never 0 */

	double budget;	       /* ns that probes may take now; negative: they took too much */
	double density;	       /* probe time per ns of the program's own time, smoothed */
	double peak, peak_own; /* cost of the most expensive recent window, and its own time, ns */
	bool learned;	       /* density has been measured */
	double load;	       /* probe time per ns earned meanwhile, smoothed */
	double cpus;	       /* the target's own CPU time per ns, smoothed */
	uint64_t seen_ns, cpu_ns, probe_ns; /* last accounted values; 0: none */

	bool open;
	uint64_t opened_ns;
	uint64_t length_ns; /* of the window, in the program's own time; 0: no planned end */
	bool whole;	    /* it is to show whole calls */
	double spent, earned;
	double need;	    /* estimated cost of a window of this length, ns */
	double cost;	    /* mean cost of windows, smoothed over many, ns */
	uint64_t closed;    /* closed windows that had a planned length */
	uint64_t closed_ns; /* when the last window was closed */
	double gap_drawn;   /* factor on the length of the gap since then; 0: next_ns is fixed */
	uint64_t next_ns;   /* when the next window opens */
	uint64_t whole_ns;  /* when the next whole window may open */
	uint64_t failed;    /* failed openings */
	uint64_t wait_ns;   /* delay after the last failure; 0: it succeeded */
};

/*
 * percent: the bound, 1 to 50. link_ns: cost of opening and closing a window, ns. cpus: the CPUs that
 * the target has used so far. seed: any value.
 */
void windows_init(struct windows *w, unsigned int percent, double link_ns, double cpus,
		  uint64_t seed);

/*
 * Updates the accounts at now_ns (CLOCK_MONOTONIC). cpu_ns: the target's total CPU time, its own
 * and the probes'; probe_ns: the part that events took. Both never decrease; the first call sets
 * their initial values.
 */
void windows_account(struct windows *w, uint64_t now_ns, uint64_t cpu_ns, uint64_t probe_ns);

/* CUT: the window is at its end, and goes on for the calls that began in it. */
enum windows_act { WINDOWS_GO_ON, WINDOWS_OPEN, WINDOWS_CUT, WINDOWS_CLOSE };
/*
 * Returns the action to take now. The caller takes it and then calls windows_opened, windows_failed
 * or windows_closed.
 */
struct windows_shown {
	bool all;   /* by its records, the open window has reached its planned length, or its end */
	bool lasts; /* calls that began in it have not ended */
};
enum windows_act windows_decide(struct windows *w, uint64_t now_ns, struct windows_shown shown);
void windows_opened(struct windows *w, uint64_t now_ns);
/* The window could not be opened. The delay until the next attempt doubles until one succeeds. */
void windows_failed(struct windows *w, uint64_t now_ns);
/*
 * own_ns: how much of the program's own time passed while it was open, by its records. tail_ns: for how long it
 * was open after its planned end.
 */
void windows_closed(struct windows *w, uint64_t now_ns, uint64_t own_ns, uint64_t tail_ns);

/* Returns whether what probes took is paid for, or nearly, so that something else may be spent. */
bool windows_affords(const struct windows *w);

/* Returns the cost of opening and closing a window, given the target's current CPU usage, in ns. */
double windows_link_ns(const struct windows *w);

/* Returns the maximum time until the next call of windows_decide, in ns. */
uint64_t windows_due(const struct windows *w, uint64_t now_ns);

#endif
