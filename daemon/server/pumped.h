/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream into a file that keeps the daemon's other work going: writing a large profile takes as
 * long as a ring needs to overflow, and there is one thread. Every few milliseconds of writing, the
 * pump is called.
 */
#ifndef PYPROF_SERVER_PUMPED_H
#define PYPROF_SERVER_PUMPED_H

#include <stdbool.h>
#include <stdio.h>

/* How much may be written. */
struct pumped_room {
	size_t left; /* bytes */
	bool exceeded;
};

/*
 * fd and room are borrowed and must outlive the stream. Writing more than room has fails with EFBIG,
 * and from then on everything. NULL: out of memory. fclose() as usual.
 */
FILE *pumped_open(int fd, struct pumped_room *room, void (*pump)(void *ctx), void *ctx);

#endif
