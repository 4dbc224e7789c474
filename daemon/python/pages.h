/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A direct-mapped cache of a target's pages, for many small reads of its memory. Cached pages may
 * be older than the memory; pages_read_fresh reads a page again.
 */
#ifndef PYPROF_PYTHON_PAGES_H
#define PYPROF_PYTHON_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "target/memory.h"

struct pages;

/*
 * mem: borrowed. max_reads: the maximum number of reads from the target, after which reads of
 * uncached pages fail. NULL: out of memory.
 */
struct pages *pages_new(const struct memory *mem, uint64_t max_reads);
void pages_free(struct pages *p);
DEFINE_FREEP(struct pages, pages_free)

/*
 * Read exactly n bytes (at most 4096) at addr. Return 0, -E2BIG if max_reads is reached, or
 * memory_read's error.
 */
int pages_read(struct pages *p, uint64_t addr, void *out, size_t n);
int pages_read_fresh(struct pages *p, uint64_t addr, void *out, size_t n);

/* Empties the cache. */
void pages_clear(struct pages *p);

#endif
