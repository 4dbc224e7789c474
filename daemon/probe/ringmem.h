/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring's memory, as described in pyprof/bpf_ring.h (private to probe/). Pure: works on memory that
 * the caller maps.
 */
#ifndef PYPROF_PROBE_RINGMEM_H
#define PYPROF_PROBE_RINGMEM_H

#include <stddef.h>
#include <stdint.h>

#include "pyprof/bpf_ring.h"

struct ringmem {
	const uint8_t *data;	  /* borrowed; ringmem_size() bytes */
	struct pyp_ring_pos *pos; /* borrowed; shared with the writers */
	uint64_t bytes;		  /* the ring's size, a power of two, at least 8 */
	uint64_t key;
};

/* Number of chunks, and bytes of each including its slack, of a ring of this size */
size_t ringmem_chunks(uint64_t bytes);
size_t ringmem_chunk_size(uint64_t bytes);
/* Mask of an offset in a chunk */
uint64_t ringmem_mask(uint64_t bytes);
/* Bytes of all chunks */
size_t ringmem_size(uint64_t bytes);

/* Return the bytes written and read since the ring was created, including record headers. */
uint64_t ringmem_written(const struct ringmem *m);
uint64_t ringmem_read(const struct ringmem *m);

/*
 * Returns the record at position `at`, with the bytes that it takes in the ring (the record's size
 * plus 8) in *bytes; NULL if there is none yet. end: a position that was written.
 */
const void *ringmem_record(const struct ringmem *m, uint64_t at, uint64_t end, size_t *bytes);

/* Frees the space before position `at`. */
void ringmem_release(const struct ringmem *m, uint64_t at);

#endif
