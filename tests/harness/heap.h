/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Target memory that a test defines: CPython objects in a buffer, arranged according to a layout.
 * Addresses start at HEAP_BASE; running out of space fails the test.
 */
#ifndef PYPROF_TESTS_HARNESS_HEAP_H
#define PYPROF_TESTS_HARNESS_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "python/layout.h"
#include "target/memory.h"

#define HEAP_BASE 0x7f0000000000ull
#define HEAP_SIZE (1u << 20)

struct heap {
	const struct layout *layout;
	size_t used;
	uint8_t bytes[HEAP_SIZE];
};

struct heap *heap_new(const struct layout *l); /* free() it */
struct memory heap_memory(const struct heap *h);

/* Allocate n zeroed bytes. Returns the address, a multiple of 16. */
uint64_t heap_alloc(struct heap *h, size_t n);
void heap_put(struct heap *h, uint64_t addr, const void *data, size_t n);
void heap_u64(struct heap *h, uint64_t addr, uint64_t v);
void heap_u32(struct heap *h, uint64_t addr, uint32_t v);

/* A compact str of n characters; ASCII if kind is 0. */
uint64_t heap_str(struct heap *h, unsigned int kind, const void *units, size_t n);
uint64_t heap_ascii(struct heap *h, const char *s);
/* A code object; if the layout has qualnames, it is "Q." and the name. */
uint64_t heap_code(struct heap *h, const char *filename, const char *name, int line,
		   uint32_t flags);
/* A frame that runs code and was called by previous (0: none). */
uint64_t heap_frame(struct heap *h, uint64_t code, uint64_t previous, uint8_t owner);
/* A thread state with this innermost frame; next: the next thread state. */
uint64_t heap_tstate(struct heap *h, uint64_t frame, uint64_t native_id, uint64_t next);
/* _PyRuntime with one interpreter that has these threads. */
uint64_t heap_runtime(struct heap *h, uint64_t tstate);

#endif
