/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collector defines how a target is observed: it holds everything that differs between trace,
 * trace in windows, count and sample. A target keeps its collector from attach to end. The rest of
 * session/ uses the collector and does not test the mode.
 *
 * Functions may be NULL if there is nothing to do, unless their comment states otherwise; so may
 * strings.
 */
#ifndef PYPROF_SESSION_COLLECTOR_H
#define PYPROF_SESSION_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "event/event.h"
#include "session/session.h"
#include "snapshot/snapshot.h"

struct tracee;

struct collector {
	/*
	 * What the collector needs and supports. probes: it places probes, so it needs a plan, a
	 * self-test, and a live thread through which the probes are attached. stacks: it maintains
	 * stacks; probe costs are measured and subtracted. windows: its probes are attached only during
	 * windows, and timers sample in between. moves: another probe can take over while tracing
	 * continues.
	 */
	bool probes, stacks, windows, moves;
	uint8_t sampling;      /* when samples are taken if there is a rate: PYP_SAMPLING_* */
	bool samples_top;      /* only the innermost frame of each sampled stack is needed */
	const char *mechanism; /* how it observes, human-readable; NULL: the probe's mechanism */
	/* Why the target has no timeline ("process 7 ...: it has no timeline"), and the hint. */
	const char *no_timeline, *timeline_hint;

	/*
	 * Checks whether this build of Python supports the mode. Returns 0, or an error with exit
	 * code 5.
	 */
	int (*check)(struct tracee *t, struct diag *diag);
	/* Attaches the probes and starts recording at *ret_ts (CLOCK_MONOTONIC). Never NULL. */
	int (*start)(struct tracee *t, uint64_t *ret_ts, struct diag *diag);
	/* Called when tracing stops, on request or because the target has ended. */
	void (*stop)(struct tracee *t);
	/* Called after all records from before the stop have been processed. Never NULL. */
	void (*finish)(struct tracee *t);
	/* Called after that if the target lives; see also tracee_settle(). */
	void (*stopped)(struct tracee *t);
	/* Called when an exec at ts (CLOCK_MONOTONIC) has interrupted the recording. Never NULL. */
	void (*interrupt)(struct tracee *t, uint64_t ts);
	/* Discards everything recorded so far. */
	void (*clear)(struct tracee *t);
	/*
	 * Offers a record. Returns true if the collector took it, so that the profile does not get
	 * it.
	 */
	bool (*record)(struct tracee *t, const struct event *e);
	/* While tracing: copies data that is kept outside the profile (such as counts) into it. */
	void (*sync)(struct tracee *t);
	/* Called before a snapshot. */
	void (*reconcile)(struct tracee *t);
	/*
	 * While tracing: does the collector's periodic work besides draining. due_us returns the
	 * maximum delay until the next call, in us.
	 */
	void (*turn)(struct tracee *t);
	uint64_t (*due_us)(const struct tracee *t);
	/* Returns the time that hits of marks have taken so far, in ns. */
	uint64_t (*marks_ns)(const struct tracee *t);
	/* Updates overhead_ns. NULL: it is computed from the number of events. */
	void (*account)(struct tracee *t);
	/*
	 * Called when the calibration has finished: costs are `times` the previously assumed ones.
	 */
	void (*costs_change)(struct tracee *t, double times);
	/* Describes how much was observed until now (CLOCK_MONOTONIC). */
	void (*describe)(const struct tracee *t, uint64_t now, struct snapshot_windows *ret);
	/* Fills the collector's own fields of a snapshot's target. */
	void (*report)(const struct tracee *t, struct snapshot_target *slot);
};

/* Implement check and report of collectors that sample, always or optionally. */
int collector_can_sample(struct tracee *t, struct diag *diag);
void collector_report_samples(const struct tracee *t, struct snapshot_target *slot);

/*
 * Implement stop, stopped, clear, turn and a part of start and report of collectors that measure the
 * pace of the target (session/pace.h).
 */
void collector_pace_start(struct tracee *t);
void collector_pace_stop(struct tracee *t);
void collector_pace_stopped(struct tracee *t);
void collector_pace_clear(struct tracee *t);
void collector_pace_check(struct tracee *t);
void collector_pace_report(const struct tracee *t, struct snapshot_target *slot);
/* Returns the time that these marks have taken since the start or the last clear, ns. */
uint64_t collector_pace_marks_ns(const struct tracee *t);

extern const struct collector collector_trace, collector_windowed, collector_count,
	collector_sample;

/* Returns the collector for these options, static, never NULL. */
const struct collector *collector_of(const struct target_opts *opts);

/* Implement start and finish of collectors that record continuously from start to stop. */
int collector_attach(struct tracee *t, uint64_t *ret_ts, struct diag *diag);
void collector_finish(struct tracee *t);

#endif
