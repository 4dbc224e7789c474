/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses marks: opcodes that the target executes rarely enough to count each execution all the time, and
 * often enough to measure its progress (session/progress.h). Pure: the caller attaches the marks, waits and reads their counts.
 *
 * First all opcodes' marks are attached for a moment, which shows the frequent ones. The others are then
 * attached a little longer, several times if there are still frequent ones among them. This shows their
 * rates, and the most frequent ones that the budget allows are kept. A moment ends after some hits, each of
 * which costs the target a fraction of a microsecond.
 */
#ifndef PYPROF_SESSION_MARKS_H
#define PYPROF_SESSION_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "pyprof/bpf_abi.h"

/* The time that the kept marks may take from the target at most, as a part of its CPU time */
#define MARKS_MOST 0.006

struct marks_opts {
	uint32_t n;    /* of the marks that there are; 0: none are of use */
	double hit_ns; /* the time that a hit takes: cost_mark() */
	double bound;  /* of windows, as a part of CPU time; 0: beside a trace, which takes more */
};

enum marks_state {
	MARKS_NEW,  /* nothing is attached */
	MARKS_ALL,  /* v is attached for a moment */
	MARKS_RARE, /* the same, second step */
	MARKS_KEPT, /* v is attached to stay */
	MARKS_NONE, /* no marks are of use */
};

struct marks {
	enum marks_state state;
	uint8_t v[PYP_MARKS]; /* numbers of marks to attach */
	uint32_t n;
	uint64_t base[PYP_MARKS];  /* counts when v was attached */
	uint64_t begun_ns, cpu_ns; /* the time, and the target's CPU time, when v was attached */
	struct marks_opts of;
	double budget;				  /* as a part of the target's CPU time */
	uint64_t last_hits, last_cpu_ns, last_ns; /* KEPT: when they were found fit last */
	uint64_t wait_cpu_ns; /* NEW: attach when the target's CPU time has reached this */
	unsigned int repeats; /* of the second step */
	bool expected;	      /* v began as the rare ones of another process */
	bool alone;	      /* those are not to be used */
};

/* Begins; without any marks, the state is MARKS_NONE. */
void marks_begin(struct marks *m, const struct marks_opts *of);
/*
 * Begins with the second step, with these marks, which were rare in another process of the program. If
 * none of them is of use, it begins again, with all.
 */
void marks_expect(struct marks *m, const uint8_t *v, uint32_t n);
/* v was attached at now_ns (CLOCK_MONOTONIC), with these counts. cpu_ns: the target's CPU time so far */
void marks_attached(struct marks *m, uint64_t now_ns, uint64_t cpu_ns,
		    const uint64_t counts[PYP_MARKS]);
/* Returns whether enough was seen at now_ns; the caller then detaches v and calls marks_next. */
bool marks_enough(const struct marks *m, uint64_t now_ns, const uint64_t counts[PYP_MARKS]);
/*
 * Takes the counts after detaching; v is then to be attached, unless the state is MARKS_NONE, or MARKS_NEW
 * and the target was idle: then later.
 */
void marks_next(struct marks *m, uint64_t cpu_ns, const uint64_t counts[PYP_MARKS]);
/*
 * Returns whether kept marks take much more than the budget allows, or, for windows, are hardly passed: the
 * program does something else now. A trace makes marks rare, which does not matter.
 */
bool marks_unfit(struct marks *m, uint64_t now_ns, uint64_t cpu_ns,
		 const uint64_t counts[PYP_MARKS]);
/* The sum of v's counts since it was attached. */
uint64_t marks_hits(const struct marks *m, const uint64_t counts[PYP_MARKS]);

#endif
