// SPDX-License-Identifier: BSD-2-Clause
/* Reading a ring's memory: see ringmem.h. */
#include "probe/ringmem.h"

#define HEADER 8u

size_t ringmem_chunks(uint64_t bytes)
{
	return bytes > PYP_RING_CHUNK ? (size_t)(bytes >> PYP_RING_SHIFT) : 1;
}

uint64_t ringmem_mask(uint64_t bytes)
{
	return (bytes < PYP_RING_CHUNK ? bytes : PYP_RING_CHUNK) - 1;
}

size_t ringmem_chunk_size(uint64_t bytes)
{
	return (size_t)ringmem_mask(bytes) + 1 + PYP_RING_SLACK;
}

size_t ringmem_size(uint64_t bytes)
{
	return ringmem_chunks(bytes) * ringmem_chunk_size(bytes);
}

uint64_t ringmem_written(const struct ringmem *m)
{
	return __atomic_load_n(&m->pos->written, __ATOMIC_ACQUIRE);
}

uint64_t ringmem_read(const struct ringmem *m)
{
	return __atomic_load_n(&m->pos->read, __ATOMIC_RELAXED);
}

static const uint8_t *place(const struct ringmem *m, uint64_t at)
{
	size_t chunk = (size_t)((at & (m->bytes - 1)) >> PYP_RING_SHIFT);

	return m->data + chunk * ringmem_chunk_size(m->bytes) + (at & ringmem_mask(m->bytes));
}

const void *ringmem_record(const struct ringmem *m, uint64_t at, uint64_t end, size_t *bytes)
{
	const uint8_t *here = place(m, at);
	uint64_t header, n;

	if (at >= end)
		return NULL;
	header = __atomic_load_n((const uint64_t *)(const void *)here, __ATOMIC_ACQUIRE) ^ m->key;
	n = header & 0xffff;
	if (header >> 16 != (at & (UINT64_MAX >> 16)) || n % 8 || n < HEADER || n > PYP_RING_SLACK)
		return NULL; /* busy, or not there yet */
	*bytes = (size_t)n;
	return here + HEADER;
}

void ringmem_release(const struct ringmem *m, uint64_t at)
{
	__atomic_store_n(&m->pos->read, at, __ATOMIC_RELEASE);
}
