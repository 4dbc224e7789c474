/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording from within the live view: what happens between its start and its end, as a report in
 * a file. The daemon keeps the snapshot of the start under a name (`since` of /v1/snapshot). In
 * continuous mode it is the intervals that end meanwhile, and the daemon keeps nothing for it.
 */
#ifndef PYPROFCTL_TOP_RECORD_H
#define PYPROFCTL_TOP_RECORD_H

#include <stdint.h>
#include <sys/types.h>

#include "client.h"

/* All zero: not recording */
struct top_recording {
	char path[4096];   /* the file; "": not recording */
	uint64_t start_ns; /* monotonic */
	pid_t pid, tid;	   /* 0: all */
	/* Of intervals: */
	const char *socket;	/* NULL: not of intervals */
	uint64_t first_unix_ns; /* the middle of the first interval is not before this time */
};

/*
 * Start. new: pid, tid, and what is needed for intervals. output NULL: a new file "top-DATE-TIME.html" in the working directory. Fails if the file
 * cannot be written.
 */
int top_record_start(struct top_recording *r, struct client *c, const char *output,
		     const struct top_recording *new, struct diag *diag);

/* End, and write the file, in the format of its extension. Ends the recording even if it fails. */
int top_record_stop(struct top_recording *r, struct client *c, struct diag *diag);

#endif
