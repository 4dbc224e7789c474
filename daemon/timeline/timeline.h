/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timeline being taken: what happened on the stacks of one or several processes in a window of
 * time, waiting to be fetched. Bounded: what its reader is too slow for is dropped here, counted,
 * and marked where it is missing; what is measured does not suffer. Pure.
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
#define TIMELINE_BUFFER	     (UINT64_C(32) << 20) /* bytes, if nothing is said */
#define TIMELINE_BUFFER_MIN  (UINT64_C(64) << 10)
#define TIMELINE_BUFFER_MAX  (UINT64_C(1) << 30)

struct timeline_opts {
	uint64_t buffer; /* 0: TIMELINE_BUFFER; what waits may be half as much more, see timeline.c */
	uint64_t from_ns, until_ns, from_unix_ns;
};

struct timeline *timeline_new(const struct timeline_opts *opts); /* NULL: no memory */
void timeline_free(struct timeline *t);				 /* all sources must have ended */
DEFINE_FREEP(struct timeline, timeline_free)

/* Watch a process's profile, which must live until timeline_end_source. *ret: which source it is.
 * -EBUSY: somebody does so already. */
int timeline_add(struct timeline *t, uint32_t pid, struct profile *p, uint32_t *ret);
/* Everything of this source comes to an end at this time. Twice does no harm. */
void timeline_end_source(struct timeline *t, uint32_t source, uint64_t ts);

/* The window is over, at this time at the latest: all sources end, and END is written. */
void timeline_finish(struct timeline *t, uint64_t now_ns);
bool timeline_finished(const struct timeline *t);
/* Nothing is being watched any more. */
bool timeline_idle(const struct timeline *t);

/*
 * The next piece: *ret_data is the caller's, NULL if there is nothing now. After the last piece of a
 * finished timeline, timeline_drained.
 */
void timeline_take(struct timeline *t, char **ret_data, size_t *ret_n);
bool timeline_drained(const struct timeline *t);

uint64_t timeline_until(const struct timeline *t);
uint64_t timeline_waiting(const struct timeline *t); /* bytes */
uint64_t timeline_dropped(const struct timeline *t); /* calls and returns */

#endif
