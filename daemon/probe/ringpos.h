/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a BPF ring buffer was written and read: its two positions, which the kernel shows in pages
 * to be mapped. libbpf reads a ring until it is empty, which may be never; these tell when to stop.
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

/* map_fd: a BPF_MAP_TYPE_RINGBUF; borrowed for the call. 0 or a negative errno. */
int ringpos_open(struct ringpos *rp, int map_fd);
void ringpos_close(struct ringpos *rp);

/* Bytes written and read since the ring was made, records' headers included. */
uint64_t ringpos_written(const struct ringpos *rp);
uint64_t ringpos_read(const struct ringpos *rp);

/* The bytes in the ring that a record of this size takes. */
static inline uint64_t ringpos_record(size_t size)
{
	return ((uint64_t)size + 8 + 7) & ~(uint64_t)7;
}

#endif
