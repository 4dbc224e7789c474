/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream into a file that keeps the daemon's other work going: writing a large profile takes as
 * long as a ring needs to overflow, and there is one thread. Every few milliseconds of writing, the
 * pump is called.
 */
#ifndef PYPROF_SERVER_PUMPED_H
#define PYPROF_SERVER_PUMPED_H

#include <stdio.h>

/* fd is borrowed and must outlive the stream. NULL: out of memory. fclose() as usual. */
FILE *pumped_open(int fd, void (*pump)(void *ctx), void *ctx);

#endif
