/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times and spans as people write them. Pure: the present time and the zone are arguments.
 *
 * 	time: now · -5min, -90s, -2h, -1d (before now) · 14:00, 14:00:30 (the last one that has been) ·
 * 	      today 14:00 · yesterday 14:00 · 2026-11-26 · 2026-11-26T14:00[:30][Z|+01:00]
 * 	span: TIME..TIME · 14:00-14:05 · yesterday 14:00-14:05 · 5min, -5min (until now)
 */
#ifndef PYPROF_HISTORY_WHEN_H
#define PYPROF_HISTORY_WHEN_H

#include <stdint.h>

#include "base/diag.h"

struct when {
	uint64_t now_ns; /* since 1970 */
	/* Returns how many seconds local time is ahead of UTC at this time (s since 1970). */
	int64_t (*offset)(int64_t unix_s);
};

struct when_span {
	uint64_t from_ns, to_ns; /* since 1970; to_ns is not included */
};

/* The present time, in the zone of this process. Not pure. */
struct when when_local(void);

/* Return 0, or -EINVAL with exit code 2. */
int when_time(const struct when *w, const char *text, uint64_t *ret_ns, struct diag *diag);
int when_span(const struct when *w, const char *text, struct when_span *ret, struct diag *diag);

#endif
