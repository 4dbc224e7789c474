/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pace of a process: how much CPU time it uses per mark (session/progress.h) while there are no
 * probes at its calls. It is measured briefly before a trace, and again when that has stopped: the
 * speed of a machine that others use changes meanwhile. The marks are counted during the trace as
 * well, which then shows how much CPU time the same work takes undisturbed: see accuracy/solve.h.
 */
#ifndef PYPROF_SESSION_PACE_H
#define PYPROF_SESSION_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/progress.h"

struct snapshot_beside;

/* Sums over n readings: of their CPU times c in ns and their hits h. */
struct pace_readings {
	unsigned int n;
	double c, h, cc, ch, hh;
};

struct pace {
	struct progress progress;
	struct probe *probe; /* the one that counts, borrowed */
	pid_t pid;
	uint64_t cpu_ns;   /* of the process, as last read */
	uint64_t until_ns; /* of choosing, then of measuring */
	bool measuring, ending;
	bool again;			 /* it is measured after the trace */
	uint64_t last_cpu_ns, last_hits; /* at the last reading */
	uint64_t next_ns;		 /* `again`: when pace_turn is due */
	struct pace_readings before, after;
	bool known, counting;
	/* While counting, since the last clear: hits and CPU time. Now as well if these are added. */
	double hits, ns;
};

/*
 * begin: probe is loaded, and not attached; hit_ns: the time that a hit of a mark takes. Then call
 * turn, and again after as many ns as it returns, until that is 0; no marks are attached any more
 * then.
 */
void pace_begin(struct pace *p, struct probe *probe, pid_t pid, uint32_t nmarks, double hit_ns);
uint64_t pace_turn(struct pace *p);

/*
 * Measure it again, after pace_stop, when the probes are detached. turn: to be called every few
 * milliseconds until `again` is false; no marks are attached any more then. end: detach them at once.
 * discard: what was measured was another program.
 */
void pace_again_begin(struct pace *p);
void pace_again_turn(struct pace *p);
void pace_again_end(struct pace *p);
void pace_again_discard(struct pace *p);

/*
 * Tracing starts with this probe, stops, is cleared, goes on. stop: to be called while the probe
 * exists; the caller detaches it, with its marks. forget: another program is executed, or another
 * probe has taken over.
 */
void pace_start(struct pace *p, struct probe *probe);
void pace_stop(struct pace *p);
void pace_clear(struct pace *p);
void pace_check(struct pace *p);
void pace_forget(struct pace *p);
/* Sets the CPU time of the work since the start or the last clear, if it is known. */
void pace_report(const struct pace *p, struct snapshot_beside *ret);
/* Returns the time that its marks have taken since then, in ns. */
double pace_marks_ns(const struct pace *p);

/*
 * The arithmetic (pure). add: a reading of the process's CPU time and of the marks' hits so far, before
 * the trace or `again`. suffices: whether there were enough to be used. is_precise: whether more would
 * hardly help. undisturbed: the CPU time in ns of so many hits, and its relative standard error.
 */
void pace_add(struct pace *p, uint64_t cpu_ns, uint64_t hits);
bool pace_suffices(const struct pace_readings *r);
bool pace_is_precise(const struct pace_readings *r);
double pace_undisturbed(const struct pace *p, double hits, double *ret_error);

#endif
