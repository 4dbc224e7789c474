/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The most recent part of a timeline: records are added for any length of time, and the oldest ones
 * are discarded, by age and by size. What is left is a timeline of its own: it begins with the
 * frames that are open at its start. Pure. Private to timeline/.
 */
#ifndef PYPROF_TIMELINE_RECENT_H
#define PYPROF_TIMELINE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "timeline/pieces.h"

struct recent;

#define RECENT_NAME_MAX 1024u /* bytes of each of a function's names */

struct recent_opts {
	uint64_t from_ns;   /* CLOCK_MONOTONIC: there is nothing before */
	uint64_t keep_ns;   /* age of the oldest records that are kept; 0: no limit */
	uint64_t max_bytes; /* of records and names; at least TIMELINE_BUFFER_MIN */
};

struct recent *recent_new(const struct recent_opts *opts); /* NULL: out of memory */
void recent_free(struct recent *rc);
DEFINE_FREEP(struct recent, recent_free)

/*
 * add: an event. name: a FUNC, which is kept to the end; beyond half of the memory it is left out.
 * false: out of memory, or a record that cannot be kept.
 */
bool recent_add(struct recent *rc, struct timeline_rec *r, const char *text, size_t ntext);
bool recent_name(struct recent *rc, struct timeline_rec *r, const char *text, size_t ntext);

struct recent_counts {
	uint64_t from_ns;     /* of what is kept */
	uint64_t older;	      /* calls and returns that were discarded for their age ... */
	uint64_t beyond_size; /* ... and that were discarded earlier, for lack of memory */
};
struct recent_counts recent_counts(const struct recent *rc);

/* Discard what is too old at end_ns. Then recent_counts() are final. */
void recent_end(struct recent *rc, uint64_t end_ns);
/* After recent_end(): append names, threads, open frames and events to `to`. -ENOMEM: it is
 * incomplete. */
int recent_take(struct recent *rc, struct pieces *to);

#endif
