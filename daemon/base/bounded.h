/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream to a file that limits the number of bytes written. */
#ifndef PYPROF_BASE_BOUNDED_H
#define PYPROF_BASE_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct bounded_room {
	size_t left;   /* bytes that may still be written */
	bool exceeded; /* a write did not fit; it and all later ones failed */
};

/*
 * fd and room are borrowed and must outlive the stream. A write beyond the limit fails with EFBIG,
 * as do all later writes. Returns NULL if out of memory. Close with fclose(), which leaves fd open.
 */
FILE *bounded_open(int fd, struct bounded_room *room);

#endif
