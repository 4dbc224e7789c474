/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Self time by source line: the samples whose innermost frame is Python code, by function and line.
 * The line tables of code objects come from a callback, which reads them from the target, once for
 * each code object. Memory is bounded; what exceeds it is counted.
 */
#ifndef PYPROF_COUNTING_LINE_COUNTS_H
#define PYPROF_COUNTING_LINE_COUNTS_H

#include <stdint.h>

#include "base/code_lines.h"
#include "base/map.h"
#include "event/event.h"

struct codes;
struct snapshot;

/* Returns 0 or a negative errno. *ret is set only on success and then owned by the caller. */
typedef int (*line_counts_read_fn)(void *ctx, uint64_t code, struct code_lines *ret);

/* The largest number of lines of all functions, and of bytes of line tables. */
#define LINE_COUNTS_MAX	      (1u << 18)
#define LINE_COUNTS_BYTES_MAX ((size_t)16 << 20)

struct line_count {
	uint32_t func;
	int32_t line; /* 0: unknown */
	uint64_t samples;
	uint64_t ns;
};

struct line_table {
	uint64_t code;
	struct code_lines lines; /* without runs: could not be read */
	uint32_t wait;		 /* could not be read: samples until the next attempt */
	uint32_t failed;
};

/* All zero, except for read and ctx: no samples. */
struct line_counts {
	line_counts_read_fn read; /* NULL: lines are not counted */
	void *ctx;
	struct map table_at; /* code object → index in tables */
	struct line_table *tables;
	uint32_t ntables, tables_room;
	size_t bytes;  /* of line tables */
	struct map at; /* function and line → index in v */
	struct line_count *v;
	uint32_t n, room;
	uint64_t dropped; /* samples beyond LINE_COUNTS_MAX */
};

void line_counts_deinit(struct line_counts *c);
/* Counts the sample; only its first record has a line. C functions have none. */
void line_counts_add(struct line_counts *c, struct codes *codes, const struct event_sample *s);
/* Forgets the counts. */
void line_counts_clear(struct line_counts *c);
/* Another code object may be at this address; or at all addresses. */
void line_counts_forget(struct line_counts *c, uint64_t code);
void line_counts_forget_all(struct line_counts *c);

/*
 * Copies the counts to the functions of a snapshot. func_map: their indices in it, by function;
 * SNAPSHOT_NONE: not in it. Adds the samples that are left out to *ret_dropped. Returns 0 or
 * -ENOMEM.
 */
int line_counts_take(const struct line_counts *c, const uint32_t *func_map, struct snapshot *s,
		     uint64_t *ret_dropped);

#endif
