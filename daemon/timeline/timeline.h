/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timeline being recorded: the calls and returns of one or several processes during a period,
 * buffered until they are fetched. Bounded: records that the reader fetches too slowly are dropped,
 * counted, and marked at their place; the profile is unaffected. Pure.
 */
#ifndef PYPROF_TIMELINE_TIMELINE_H
#define PYPROF_TIMELINE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"

struct timeline;

#define TIMELINE_SOURCES_MAX 1024u
#define TIMELINE_BUFFER	     (UINT64_C(32) << 20) /* default, bytes */
#define TIMELINE_BUFFER_MIN  (UINT64_C(64) << 10)
#define TIMELINE_BUFFER_MAX  (UINT64_C(1) << 30)

struct timeline_opts {
	uint64_t buffer; /* 0: TIMELINE_BUFFER; may be exceeded by half, see timeline.c */
	uint64_t from_ns, until_ns, from_unix_ns;
};

struct timeline *timeline_new(const struct timeline_opts *opts); /* NULL: out of memory */
void timeline_free(struct timeline *t);				 /* all sources must have ended */
DEFINE_FREEP(struct timeline, timeline_free)

/* Record a process's profile, which must exist until timeline_end_source(). *ret: index of the
 * source. -EBUSY: it is being recorded already. */
int timeline_add(struct timeline *t, uint32_t pid, struct profile *p, uint32_t *ret);
/* End a source at time ts. Repeated calls are harmless. */
void timeline_end_source(struct timeline *t, uint32_t source, uint64_t ts);

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

uint64_t timeline_until(const struct timeline *t);
uint64_t timeline_waiting(const struct timeline *t); /* bytes */
uint64_t timeline_dropped(const struct timeline *t); /* calls and returns */

#endif
