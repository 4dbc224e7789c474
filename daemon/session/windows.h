/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to watch: the arithmetic of --max-overhead. Pure: it is told what time it is, how much CPU
 * time the target has used and what the probes took of it, and says when a window is to be opened or
 * closed. See windows.c for how windows are chosen so that they are a fair sample.
 */
#ifndef PYPROF_SESSION_WINDOWS_H
#define PYPROF_SESSION_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

struct windows {
	double bound;	 /* what probes may take, as a share of what the target uses itself */
	double link_ns;	 /* what opening and closing a window costs the target */
	uint64_t random; /* state of the generator; never 0 */

	double budget;	/* ns that probes may take now; negative: they have taken too much */
	double density; /* what they take per ns of the program's own time, smoothed */
	double peak;	/* the same, of the dearest window of late */
	double load;	/* what they take per ns that was earned meanwhile, smoothed */
	double cpus;	/* CPU time that the target uses itself per ns, smoothed */
	uint64_t seen_ns, cpu_ns, probe_ns; /* accounted up to here; 0: not yet */

	bool open;
	uint64_t opened_ns;
	uint64_t length_ns; /* of the window, in the program's own time; 0: no end is planned */
	double spent, earned;
	double need;	  /* what a window costs, about, by its length */
	double cost;	  /* what windows have cost, smoothed over many */
	uint64_t closed;  /* so many of a planned length */
	uint64_t next_ns; /* when the next one opens */
	uint64_t failed;  /* openings that failed */
	uint64_t wait_ns; /* after the last one; 0: it succeeded */
};

/* percent: 1 to 50. seed: any. */
void windows_init(struct windows *w, unsigned int percent, double link_ns, uint64_t seed);

/*
 * At now_ns, the target's CPU time is cpu_ns in all (its own and the probes'), of which events took
 * probe_ns. Both only ever grow; the first call says where they begin.
 */
void windows_account(struct windows *w, uint64_t now_ns, uint64_t cpu_ns, uint64_t probe_ns);

enum windows_act { WINDOWS_GO_ON, WINDOWS_OPEN, WINDOWS_CLOSE };
/* What is to be done now. Whoever does it says so: windows_opened, windows_closed. */
enum windows_act windows_decide(struct windows *w, uint64_t now_ns);
void windows_opened(struct windows *w, uint64_t now_ns);
/* It could not be opened: the next attempt is later each time, until one succeeds. */
void windows_failed(struct windows *w, uint64_t now_ns);
void windows_closed(struct windows *w, uint64_t now_ns);

/* What opening and closing a window takes of the target as it is now. */
double windows_link_ns(const struct windows *w);

/* In how many ns something is to be decided, at the latest. */
uint64_t windows_due(const struct windows *w, uint64_t now_ns);

#endif
