/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The positions up to which a BPF ring buffer was written and read, mapped from the kernel. libbpf
 * reads a ring until it is empty, which may never happen; the positions show when to stop.
 */
#ifndef PYPROF_PROBE_RINGPOS_H
#define PYPROF_PROBE_RINGPOS_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed: not open. */
struct ringpos {
	const void *pages;
	size_t page;
};

/* map_fd: a BPF_MAP_TYPE_RINGBUF; borrowed for the call. Returns 0 or a negative errno. */
int ringpos_open(struct ringpos *rp, int map_fd);
void ringpos_close(struct ringpos *rp);

/* Return the bytes written and read since the ring was created, including record headers. */
uint64_t ringpos_written(const struct ringpos *rp);
uint64_t ringpos_read(const struct ringpos *rp);

/* Returns the bytes that a record of this size takes in the ring. */
static inline uint64_t ringpos_record(size_t size)
{
	return ((uint64_t)size + 8 + 7) & ~(uint64_t)7;
}

#endif
