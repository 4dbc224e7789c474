/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream into a file that refuses to write more than a given number of bytes. */
#ifndef PYPROF_BASE_BOUNDED_H
#define PYPROF_BASE_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct bounded_room {
	size_t left;   /* bytes that may still be written */
	bool exceeded; /* more was to be written: that write failed, and all after it */
};

/*
 * fd and room are borrowed and must outlive the stream. Writing more than the room fails with EFBIG,
 * and every later write fails, too. NULL: out of memory. Close it with fclose(), which leaves fd open.
 */
FILE *bounded_open(int fd, struct bounded_room *room);

#endif
