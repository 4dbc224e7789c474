/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many small reads of a target's memory, by the page: a direct-mapped cache of pages. What is in it
 * may be older than the memory; pages_read_fresh reads a page again.
 */
#ifndef PYPROF_PYTHON_PAGES_H
#define PYPROF_PYTHON_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "target/memory.h"

struct pages;

/* mem: borrowed. max_reads: system calls, after which every read that needs another fails. NULL: no
 * memory. */
struct pages *pages_new(const struct memory *mem, uint64_t max_reads);
void pages_free(struct pages *p);
DEFINE_FREEP(struct pages, pages_free)

/* Exactly n bytes (at most 4096) at addr: 0, -E2BIG (max_reads is reached), or memory_read's errors. */
int pages_read(struct pages *p, uint64_t addr, void *out, size_t n);
int pages_read_fresh(struct pages *p, uint64_t addr, void *out, size_t n);

/* Forget all pages. */
void pages_clear(struct pages *p);

#endif
