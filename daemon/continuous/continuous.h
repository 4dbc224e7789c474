/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Continuous mode: finds the Python processes of the machine as they come and go, samples each at a low
 * rate, and cuts their profiles into intervals, which are kept for some time and given to others.
 *
 * The kernel reports processes (probe/arrivals.h); /proc is scanned at the start, after a loss of
 * reports and every ten minutes. A process is looked at when it has run for CONTINUOUS_AGE_NS.
 */
#ifndef PYPROF_CONTINUOUS_CONTINUOUS_H
#define PYPROF_CONTINUOUS_CONTINUOUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/opts.h"
#include "base/target_opts.h"
#include "history/keep.h"
#include "interval/sink.h"
#include "session/session.h"

#define CONTINUOUS_AGE_NS	   2000000000ull
#define CONTINUOUS_RATE		   19u
#define CONTINUOUS_RING_BYTES	   (128u << 10)
#define CONTINUOUS_INTERVAL_NS	   10000000000ull
#define CONTINUOUS_INTERVAL_MIN_NS 1000000000ull
#define CONTINUOUS_INTERVAL_MAX_NS 3600000000000ull
#define CONTINUOUS_MEMORY_BYTES	   (64u << 20)
#define CONTINUOUS_MEMORY_AGE_NS   3600000000000ull
#define CONTINUOUS_DISK_BYTES	   (1024ull << 20)
#define CONTINUOUS_PROCESSES_MAX   1000u
#define CONTINUOUS_MERGE_AFTER_NS  3600000000000ull
#define CONTINUOUS_MERGE_TO_NS	   300000000000ull
#define CONTINUOUS_MERGE_TO_MAX_NS 3600000000000ull

struct continuous_opts {
	const char *match; /* regular expression for the command line; NULL: any */
	const char *unit;  /* systemd unit, with or without ".service"; NULL: any */
	struct target_opts target;
	uint64_t interval_ns;
	const struct opt_words *labels; /* "name=value" */
	uint64_t memory_bytes, disk_bytes;
	const char *dir; /* NULL: in memory only */
	/* On disk, older intervals are merged to longer ones; 0: they are not. */
	uint64_t merge_after_ns, merge_to_ns;
};

struct continuous;
struct sd_event;

/* opts and what it refers to are borrowed, and so are the sessions, which outlive it. */
int continuous_new(struct sd_event *event, struct sessions *ss, const struct continuous_opts *opts,
		   struct continuous **ret, struct diag *diag);
/* Keeps and delivers the last intervals. NULL is accepted. */
void continuous_free(struct continuous *c);
DEFINE_FREEP(struct continuous, continuous_free)

/* Give each finished interval to this consumer as well; borrowed. */
void continuous_add_sink(struct continuous *c, struct interval_sink *sink);

/* To be called when a session has ended: its last interval is cut soon, and it is detached. */
void continuous_ended(struct continuous *c, pid_t pid);

/*
 * End the present interval of a process (pid), or of all (0), early, since its profile will be
 * cleared or dropped.
 */
void continuous_cut(struct continuous *c, pid_t pid);

/* The intervals in memory; valid until the event loop runs. */
const struct keep *continuous_kept(const struct continuous *c);

/* The state, for status. New reference; NULL: out of memory. */
json_t *continuous_status(struct continuous *c);

/* Check options: exit code 2. */
int continuous_check(const struct continuous_opts *opts, struct diag *diag);

#endif
