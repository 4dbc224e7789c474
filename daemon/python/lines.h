/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line tables of code objects: map instructions to source lines. There are three formats: co_lnotab
 * (3.6 to 3.9), co_linetable of 3.10 (PEP 626), location tables (3.11+, Objects/locations.md).
 * Pure, except for lines_read(), which reads a target's memory. The target controls the tables: any
 * bytes result in a line or LINE_UNKNOWN.
 */
#ifndef PYPROF_PYTHON_LINES_H
#define PYPROF_PYTHON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/code_lines.h"
#include "python/layout.h"
#include "target/memory.h"

#define LINE_UNKNOWN 0

enum line_format { LINE_LNOTAB, LINE_PEP626, LINE_LOCATIONS };

struct lines {
	enum line_format format;
	int32_t firstlineno;
	uint8_t *table; /* owned */
	size_t size;
};

/* Returns the format of a version's tables. */
enum line_format lines_format(const struct layout *l);

/* A run of instructions with the same line: those from the end of the run before to `end`, bytes. */
struct lines_run {
	int64_t end;
	int32_t line; /* LINE_UNKNOWN: none */
	/* private */
	int64_t at_line;
	size_t at;
};

/* Iterates: before the first run, and to the next one. Returns false if there is none. */
struct lines_run lines_first(const struct lines *lines);
bool lines_next(const struct lines *lines, struct lines_run *run);

/* Makes a list of the runs. Returns 0, -ENOMEM, or -E2BIG. *ret is set only on success. */
int lines_expand(const struct lines *lines, struct code_lines *ret);

/*
 * Returns the line of the instruction at this byte offset in the code; offset < 0: before the first
 * instruction. LINE_UNKNOWN: the table has no entry, or the instruction has no line.
 */
int32_t lines_find(const struct lines *lines, int64_t offset);

/*
 * Reads the table of the code object at this address. Returns 0, -E2BIG if it is implausibly large,
 * -ENOMEM, or memory_read's error. *ret is set only on success; free it with lines_deinit().
 */
int lines_read(const struct layout *l, const struct memory *mem, uint64_t code, struct lines *ret);
void lines_deinit(struct lines *lines);

/*
 * Returns the byte offset of a frame's current instruction. instr: the word in the frame at
 * layout.bpf.frame_instr: from 3.11 on the instruction's address, before that f_lasti.
 */
int64_t lines_offset(const struct layout *l, uint64_t code, uint64_t instr);

#endif
