/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The condition that ends a timeline of the recent past, evaluated for each event and for the time
 * in between. It is met once. Pure.
 *
 *	slow:[PATTERN:]DURATION	a call of a matching function takes at least this long; without a
 *				pattern: of the program's own code, outermost calls only
 *	raise:PATTERN		an exception leaves a call of a matching function; one that is thrown
 *				into a generator at a plain `yield` is not seen in all versions
 *	cpu:PERCENT[%]		one process uses at least this much CPU time over a second
 *
 * A call counts from its start, so only calls that begin during the recording are followed. A call
 * that matches while another one is followed on the same thread is part of that one. A coroutine or
 * generator is one call until its end, suspensions included (before CPython 3.11: each resumption).
 */
#ifndef PYPROF_TIMELINE_TRIGGER_H
#define PYPROF_TIMELINE_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "profile/profile.h"
#include "stack/watch.h"

struct trigger;

#define TRIGGER_TEXT	1024u	      /* of a condition, bytes with the NUL */
#define TRIGGER_CPU_NS	1000000000ull /* span over which CPU time is measured */
#define TRIGGER_PERCENT 100000u	      /* largest CPU usage */

/* *ret is owned by the caller. -EINVAL with exit code 2: invalid condition. */
int trigger_new(const char *condition, struct trigger **ret, struct diag *diag);
void trigger_free(struct trigger *tr);
DEFINE_FREEP(struct trigger, trigger_free)

const char *trigger_condition(const struct trigger *tr); /* as given */
bool trigger_needs_cpu(const struct trigger *tr);	 /* trigger_cpu() is to be called */
bool trigger_needs_raised(const struct trigger *tr);	 /* events are to have `raised` */

/* A process, by consecutive numbers; its profile is borrowed until trigger_end_source().
 * -ENOMEM. */
int trigger_add(struct trigger *tr, uint32_t source, uint32_t pid, const struct profile *p);
void trigger_end_source(struct trigger *tr, uint32_t source);

/*
 * Each returns whether the condition is met now, for the first time. event: before the event
 * counts. time: all events of the source before now_ns were passed. cpu: its CPU time so far.
 */
bool trigger_event(struct trigger *tr, uint32_t source, const struct watch_event *e);
bool trigger_time(struct trigger *tr, uint32_t source, uint64_t now_ns);
bool trigger_cpu(struct trigger *tr, uint32_t source, uint64_t now_ns, uint64_t cpu_ns);

/* How the condition was met. */
struct trigger_hit {
	uint32_t source, tid;
	uint32_t func; /* WATCH_NO_FUNC: none */
	uint64_t ts;   /* when; for a slow call when it passed the limit */
	char text[512];
};
const struct trigger_hit *trigger_hit(const struct trigger *tr); /* NULL: not yet */

/* Calls that were not followed because too many were at a time */
uint64_t trigger_refused(const struct trigger *tr);

#endif
