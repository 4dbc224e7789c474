/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last intervals in memory, compressed. Limited in bytes and in age; the oldest go first, and are
 * counted. Plain data, pure.
 */
#ifndef PYPROF_HISTORY_KEEP_H
#define PYPROF_HISTORY_KEEP_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "interval/interval.h"

/* An interval and what is known of it without reading it. */
struct kept {
	uint8_t id[INTERVAL_ID_BYTES];
	uint64_t start_unix_ns, end_unix_ns;
	uint32_t merged;	  /* see struct interval */
	uint64_t samples, cpu_ns; /* of all targets; CPU time of all functions */
	const struct interval_label *labels;
	uint32_t nlabels;
	const void *data; /* see gz.h */
	size_t size;
	size_t bytes; /* of memory, with everything */
};

/* Copies what is known of iv; takes data, which is malloc'ed, also on failure. NULL: out of memory. */
struct kept *kept_new(const struct interval *iv, void *data, size_t size);
void kept_free(struct kept *k);
DEFINE_FREEP(struct kept, kept_free)

/* For lists; new reference, NULL: out of memory. */
json_t *kept_json(const struct kept *k);

struct keep;

struct keep_counts {
	size_t n, bytes, max_bytes;
	uint64_t expired;	 /* too old */
	uint64_t dropped;	 /* removed for newer ones, because of max_bytes */
	uint64_t oldest_unix_ns; /* start of the oldest one; 0: none */
};

int keep_new(size_t max_bytes, uint64_t max_age_ns, struct keep **ret);
void keep_free(struct keep *k);
DEFINE_FREEP(struct keep, keep_free)

/* Takes the entry. It is dropped at once if it is larger than the limit. Returns 0 or -ENOMEM. */
int keep_add(struct keep *k, struct kept *entry);
/* Remove what ended longer ago than the limit. */
void keep_expire(struct keep *k, uint64_t now_unix_ns);

/* The i-th, in the order of adding; NULL: there are fewer. Valid until the next change. */
const struct kept *keep_get(const struct keep *k, size_t i);
struct keep_counts keep_counts(const struct keep *k);

/* Does an interval belong to a span: is its middle inside? */
static inline int kept_is_in(uint64_t start_unix_ns, uint64_t end_unix_ns, uint64_t from_ns,
			     uint64_t to_ns)
{
	uint64_t middle = start_unix_ns + (end_unix_ns - start_unix_ns) / 2;

	return middle >= from_ns && middle < to_ns;
}

#endif
