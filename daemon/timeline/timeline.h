/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timeline being recorded: the calls and returns of one or several processes during a period,
 * buffered until they are fetched. Bounded: records that the reader fetches too slowly are dropped,
 * counted, and marked at their place; the profile is unaffected. Or, with keep_ns, of the recent past:
 * then older records are discarded and counted, and the rest is available at the end. Pure.
 */
#ifndef PYPROF_TIMELINE_TIMELINE_H
#define PYPROF_TIMELINE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"
#include "timeline/trigger.h"

struct timeline;

#define TIMELINE_SOURCES_MAX   1024u
#define TIMELINE_BUFFER	       (UINT64_C(32) << 20)	   /* default, bytes */
#define TIMELINE_BUFFER_RECENT (UINT64_C(64) << 20)	   /* default with keep_ns */
#define TIMELINE_KEEP	       (UINT64_C(10) * 1000000000) /* default of keep_ns with a trigger */
#define TIMELINE_BUFFER_MIN    (UINT64_C(64) << 10)
#define TIMELINE_BUFFER_MAX    (UINT64_C(1) << 30)

struct timeline_opts {
	/* 0: the default; may be exceeded by half, see timeline.c, but not with keep_ns */
	uint64_t buffer;
	uint64_t keep_ns;	 /* age of the oldest records; 0: all until they are fetched */
	struct trigger *trigger; /* only with keep_ns; NULL: none */
	uint64_t from_ns, until_ns, from_unix_ns;
};

/* Takes the trigger. NULL: out of memory, and the trigger is still the caller's. */
struct timeline *timeline_new(const struct timeline_opts *opts);
void timeline_free(struct timeline *t); /* all sources must have ended */
DEFINE_FREEP(struct timeline, timeline_free)

/* Record a process's profile, which must exist until timeline_end_source(). *ret: index of the
 * source. -EBUSY: it is being recorded already. */
int timeline_add(struct timeline *t, uint32_t pid, struct profile *p, uint32_t *ret);
/* End a source at time ts. Repeated calls are harmless. */
void timeline_end_source(struct timeline *t, uint32_t source, uint64_t ts);

/*
 * To be called now and then while there is a trigger. current_ns: all events of the source before
 * were reported; cpu_ns: its CPU time at now_ns, 0: not read, which timeline_needs_cpu() asks for.
 * is_met: nothing more is recorded, the recording is to be ended.
 */
struct timeline_moment {
	uint64_t current_ns, now_ns, cpu_ns;
};
void timeline_check(struct timeline *t, uint32_t source, const struct timeline_moment *now);
bool timeline_is_met(const struct timeline *t);
bool timeline_needs_cpu(const struct timeline *t);
bool timeline_needs_raised(const struct timeline *t); /* from the beginning */

/* End the recording, at now_ns at the latest: ends all sources and appends END. */
void timeline_finish(struct timeline *t, uint64_t now_ns);
bool timeline_finished(const struct timeline *t);
/* Returns whether all sources have ended. */
bool timeline_idle(const struct timeline *t);

/*
 * Fetch the next piece; *ret_data is owned by the caller, NULL if there is none at present.
 * timeline_drained(): the timeline is finished and completely fetched.
 */
void timeline_take(struct timeline *t, char **ret_data, size_t *ret_n);
bool timeline_drained(const struct timeline *t);

bool timeline_is_recent(const struct timeline *t); /* with keep_ns */
uint64_t timeline_until(const struct timeline *t);
uint64_t timeline_waiting(const struct timeline *t); /* bytes */
uint64_t timeline_dropped(const struct timeline *t); /* calls and returns */

#endif
