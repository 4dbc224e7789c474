/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line tables of code objects: which source line an instruction belongs to. Three formats: co_lnotab
 * (3.6 to 3.9), co_linetable of 3.10 (PEP 626), location tables (3.11+, Objects/locations.md).
 * Pure, but for lines_read(), which reads a target's memory. Tables are the target's: any bytes give a
 * line or LINE_UNKNOWN.
 */
#ifndef PYPROF_PYTHON_LINES_H
#define PYPROF_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

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

/* The format of a version's tables. */
enum line_format lines_format(const struct layout *l);

/* The line of the instruction at this byte offset in the code; < 0: before the first instruction.
 * LINE_UNKNOWN: the table does not say, or the instruction has no line. */
int32_t lines_find(const struct lines *lines, int64_t offset);

/*
 * Read the table of the code object at this address. 0; -EINVAL, -E2BIG: no line table can be like
 * this; else memory_read's error. *ret is filled only if 0 is returned; lines_deinit() frees it.
 */
int lines_read(const struct layout *l, const struct memory *mem, uint64_t code, struct lines *ret);
void lines_deinit(struct lines *lines);

/*
 * The byte offset of a frame's current instruction. instr: the word in the frame at
 * layout.bpf.frame_instr: from 3.11 on the instruction's address, before f_lasti.
 */
int64_t lines_offset(const struct layout *l, uint64_t code, uint64_t instr);

#endif
