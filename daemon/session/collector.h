/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a target is observed: what trace, trace in windows, count and sample do differently. A target
 * has one collector from its attach to its end; the rest of session/ asks it, not for its mode.
 *
 * Of each function NULL means that there is nothing to do; so it does for the texts.
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
	/* What it needs and offers. probes: it places probes, and needs a plan, a proof, and a
	 * thread to hold them by. stacks: it keeps stacks; descendants are followed, an exec of the
	 * same program is survived, costs of probes are measured and subtracted. windows: its
	 * probes are attached at times only, and clocks sample in between. moves: another probe can
	 * take over while it goes on. */
	bool probes, stacks, windows, moves;
	uint8_t sampling;      /* when samples are taken, if there is a rate: PYP_SAMPLING_* */
	bool samples_top;      /* of their stacks the first frame is enough */
	const char *mechanism; /* how it observes, for people; NULL: by the probe's mechanism */
	/* Why there is no timeline of it ("process 7 ...: it has no timeline"), and what to do. */
	const char *no_timeline, *timeline_hint;

	/* Exit code 5 if this build of Python cannot be observed in this way. */
	int (*check)(struct tracee *t, struct diag *diag);
	/* Attach the probes and begin, at *ret_ts (CLOCK_MONOTONIC). Never NULL. */
	int (*start)(struct tracee *t, uint64_t *ret_ts, struct diag *diag);
	/* A stop was asked for, or the target has ended. */
	void (*stop)(struct tracee *t);
	/* All that was recorded before that has been handled. Never NULL. */
	void (*finish)(struct tracee *t);
	/* An exec at ts has ended what was recorded. Never NULL. */
	void (*interrupt)(struct tracee *t, uint64_t ts);
	/* What was recorded so far is dropped. */
	void (*clear)(struct tracee *t);
	/* A record; true: it is not the profile's. */
	bool (*record)(struct tracee *t, const struct event *e);
	/* While tracing: bring into the profile what is kept elsewhere. */
	void (*sync)(struct tracee *t);
	/* Before a snapshot. */
	void (*settle)(struct tracee *t);
	/* While tracing: what is to be done besides draining; and in how many us, at the latest. */
	void (*turn)(struct tracee *t);
	uint64_t (*due_us)(const struct tracee *t);
	/* Update overhead_ns; NULL: by the number of events. */
	void (*account)(struct tracee *t);
	/* The costs of probes have been measured: so many times those before. */
	void (*costs_change)(struct tracee *t, double times);
	/* How much was seen, as of now. */
	void (*describe)(const struct tracee *t, uint64_t now, struct snapshot_windows *ret);
	/* Its own facts in a snapshot's row. */
	void (*report)(const struct tracee *t, struct snapshot_target *slot);
};

/* check and report of collectors that take samples, or may. */
int collector_can_sample(struct tracee *t, struct diag *diag);
void collector_report_samples(const struct tracee *t, struct snapshot_target *slot);

extern const struct collector collector_trace, collector_windowed, collector_count,
	collector_sample;

/* Never NULL. */
const struct collector *collector_of(const struct target_opts *opts);

/* start and finish of collectors that record from start to stop. */
int collector_attach(struct tracee *t, uint64_t *ret_ts, struct diag *diag);
void collector_finish(struct tracee *t);

#endif
