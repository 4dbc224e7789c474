/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow calls: of the calls of the functions that match a pattern, those that took at least a given
 * time, and of these the slowest, each with the calls inside it as a tree of its own: their times,
 * and the reasons why they waited. Bounded: see slow_priv.h for the limits, what exceeds them is
 * counted. The profile is unaffected. Pure.
 *
 * A call that matches while another one is followed on the same thread is part of the other's tree.
 * A coroutine or generator is one call from its first start to its end; the time while it is
 * suspended is part of its wall time only. (Before CPython 3.11 a suspension is reported as a
 * return, so there every resumption is a call.)
 */
#ifndef PYPROF_SLOW_SLOW_H
#define PYPROF_SLOW_SLOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "snapshot/snapshot.h"

struct profile;
struct slow;

#define SLOW_KEPT     10u /* default */
#define SLOW_KEPT_MAX 200u

struct slow_opts {
	/* a regular expression, searched for in `file:line(name)`; NULL: the program's own code, of
	 * which only the outermost calls are followed */
	const char *match;
	uint64_t over_ns; /* 0: no limit */
	uint32_t n;	  /* 0: SLOW_KEPT; at most SLOW_KEPT_MAX */
	enum snapshot_clock clock;
	uint64_t from_ns;      /* CLOCK_MONOTONIC */
	uint64_t from_unix_ns; /* the same moment */
};

/* The opts are copied. *ret is owned by the caller. -EINVAL with exit code 2: invalid pattern. */
int slow_new(const struct slow_opts *opts, struct slow **ret, struct diag *diag);
void slow_free(struct slow *s); /* all sources must have ended */
DEFINE_FREEP(struct slow, slow_free)

/* Watch a process's profile, which must exist until slow_end_source(). *ret: index of the source.
 * -EBUSY: it is being watched already. */
int slow_add(struct slow *s, uint32_t pid, struct profile *p, uint32_t *ret);
/* End a source at time ts. Repeated calls are harmless. */
void slow_end_source(struct slow *s, uint32_t source, uint64_t ts);

/* The numbers of calls only, or also the kept calls with their trees, or also each of their steps */
enum slow_detail { SLOW_COUNTERS, SLOW_TREES, SLOW_STEPS };

/*
 * What was kept by now_ns, as described in packaging/doc/api.md. Calls that have not returned are
 * included if they have taken longer than the limit. The caller owns the result; NULL: out of memory.
 */
json_t *slow_json(struct slow *s, uint64_t now_ns, enum slow_detail detail);

#endif
