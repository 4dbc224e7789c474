/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader's side of a target's ring buffer (private to probe/, but for the type of the callback). */
#ifndef PYPROF_PROBE_RING_H
#define PYPROF_PROBE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

typedef void (*probe_record_fn)(void *ctx, const void *data, size_t size);

struct ring;

int ring_open(int map_fd, struct ring **ret, struct diag *diag);
void ring_free(struct ring *g); /* NULL is allowed */
DEFINE_FREEP(struct ring, ring_free)

/* Bytes written and read since it was made. */
uint64_t ring_written(const struct ring *g);
uint64_t ring_read(const struct ring *g);

/* Hand records to fn, up to those that are there now. */
struct ring_drain {
	probe_record_fn fn;
	void *ctx;
	size_t budget;	   /* at most so many; 0: no limit */
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: no deadline */
};
/* The number of records, or a negative errno. */
int ring_drain(struct ring *g, const struct ring_drain *how);

#endif
