/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One traced process: target, its Python, the plan, the probe and the profile, and the life they
 * share: attached → tracing ⇄ attached → ended. Owns everything below it. It has no event loop of
 * its own: the set of sessions calls tracee_drain and tells it of its end.
 */
#ifndef PYPROF_SESSION_TRACEE_H
#define PYPROF_SESSION_TRACEE_H

#include "plan/plan.h"
#include "probe/probe.h"
#include "python/python.h"
#include "session/session.h"
#include "stack/profile.h"
#include "target/target.h"
#include "timeline/timeline.h"
#include "verify/calibration.h"
#include "verify/verify.h"

struct tracee {
	struct target *target;
	struct python *python;
	struct plan plan;
	struct probe *probe;
	struct calibration *calibration; /* NULL: not possible, or not needed */
	struct cost cost;		 /* as far as known */
	struct profile *profile;
	struct memory memory;
	enum session_state state;
	char end_reason[64];
	char warning[256];	    /* see python_hidden */
	char self_test[256];	    /* see verify_text */
	uint64_t started_ns;	    /* CLOCK_MONOTONIC of the running window, while tracing */
	uint64_t first_ns, last_ns; /* first attached; ended */
	uint64_t first_unix_ns;
	uint64_t traced_ns; /* of the windows that are over */
	uint64_t decode_errors;
	uint64_t base[PYP_CNT_MAX]; /* the counters at the last clear */
	uint64_t events_seen;	    /* at the last rate sample */
	uint64_t rate_ns, events_per_s;
	uint64_t sweep_ns; /* when forked children are due to be swept; 0: none are */
	pid_t sweep_child;
	bool executed;		   /* the process has become another program */
	struct timeline *timeline; /* borrowed; NULL: none is taken */
	uint32_t timeline_source;
};

/* Everything up to loaded programs; nothing in the process is touched yet. */
int tracee_open(pid_t pid, const struct session_opts *opts, struct tracee **ret, struct diag *diag);
void tracee_free(struct tracee *t);
DEFINE_FREEP(struct tracee, tracee_free)

int tracee_start(struct tracee *t, struct diag *diag);
void tracee_stop(struct tracee *t);
void tracee_clear(struct tracee *t);
/* The process has gone (or is another program now): keep what there is. */
void tracee_end(struct tracee *t, const char *reason);

/* Handle what is in the ring, at most budget records (0: all); the number handled. */
int tracee_drain(struct tracee *t, size_t budget);

/* Counters since the last clear. */
void tracee_counters(const struct tracee *t, uint64_t out[PYP_CNT_MAX]);
void tracee_status(const struct tracee *t, struct session_status *ret);
/* What is to be done once a second or so: the events-per-second figure, ended helpers. */
void tracee_sample_rate(struct tracee *t, uint64_t now_ns);
/* Add everything to a snapshot: *slot is this target's row in s->targets. */
int tracee_snapshot(struct tracee *t, struct snapshot *s, struct snapshot_target *slot);

/* Let a timeline (borrowed) watch, until it is told to end. */
int tracee_timeline_begin(struct tracee *t, struct timeline *timeline, struct diag *diag);
void tracee_timeline_end(struct tracee *t);

uint64_t tracee_now(void); /* CLOCK_MONOTONIC, ns */

#endif
