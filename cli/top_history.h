/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live view's source in continuous mode: the intervals of the last cut, which the daemon has in
 * memory. Nothing is measured for it, and no profile is copied. Light targets are shown in this way
 * only, because each cut clears their profiles.
 */
#ifndef PYPROFCTL_TOP_HISTORY_H
#define PYPROFCTL_TOP_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "history/when.h"

/* Are the figures of this process (0: all) in intervals, by the daemon's status? */
bool top_history_has(const json_t *status, pid_t pid);

/* The last interval that is complete at this time, since 1970. */
struct when_span top_history_span(const json_t *status, uint64_t now_ns);
/* The time until the next one is. */
uint64_t top_history_wait_ns(const json_t *status, uint64_t now_ns);

/* Which figures */
struct top_history_of {
	const char *socket;
	struct when_span span;
	pid_t pid, tid;	    /* 0: all */
	const char *callee; /* include the callers of functions that match; NULL: none */
};

/*
 * The intervals' sum as format "rows" has it, with three more members: "interval": [from, to],
 * "uncounted": there are no numbers of calls, and "processes": [[pid, service, samples, CPU time,
 * file, line, name of the function with the most CPU time], ...]. New reference.
 */
int top_history_rows(const struct top_history_of *of, json_t **ret, struct diag *diag);

#endif
