/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of a target's ring buffer (private to probe/, except for the callback type). */
#ifndef PYPROF_PROBE_RING_H
#define PYPROF_PROBE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "pyprof/bpf_ring.h"

typedef void (*probe_record_fn)(void *ctx, const void *data, size_t size);

struct ring;

/* The maps of bpf/maps.bpf.h; descriptors are borrowed for the call, pos until ring_free(). */
struct ring_opts {
	int records_fd, wakes_fd;
	struct pyp_ring_pos *pos;
	uint64_t bytes; /* the ring's size, a power of two */
	uint64_t key;
};

int ring_open(const struct ring_opts *opts, struct ring **ret, struct diag *diag);
void ring_free(struct ring *g); /* g may be NULL */
DEFINE_FREEP(struct ring, ring_free)

/* Return the bytes written and read since the ring was created. */
uint64_t ring_written(const struct ring *g);
uint64_t ring_read(const struct ring *g);

/* Passes the records that are present at the call to fn. */
struct ring_drain {
	probe_record_fn fn;
	void *ctx;
	size_t budget;	   /* maximum number of records; 0: no limit */
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: no deadline */
};
/* Returns the number of records or a negative errno. */
int ring_drain(struct ring *g, const struct ring_drain *how);

#endif
