/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a code object's instructions, as read from a target's memory. */
#ifndef PYPROF_BASE_CODE_LINES_H
#define PYPROF_BASE_CODE_LINES_H

#include <stdint.h>
#include <stdlib.h>

/* The largest number of runs; the largest function of the standard library has a few thousand. */
#define CODE_LINES_MAX 65536u
/* In `end`: all further instructions. */
#define CODE_LINES_NO_END UINT32_MAX

/* Instructions with the same line: those from the end of the run before to `end`, bytes. */
struct code_line_run {
	uint32_t end;
	int32_t line; /* 0: none */
};

struct code_lines {
	int32_t firstlineno;
	uint32_t n;
	struct code_line_run *v; /* malloc'd, sorted by end */
};

static inline void code_lines_deinit(struct code_lines *c)
{
	free(c->v);
	*c = (struct code_lines){0};
}

/* Returns the line of the instruction at this byte offset; negative: before the first one. */
static inline int32_t code_lines_find(const struct code_lines *c, int64_t offset)
{
	uint32_t low = 0, high = c->n;

	if (offset < 0)
		return c->firstlineno > 0 ? c->firstlineno : 0;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (offset < c->v[mid].end)
			high = mid;
		else
			low = mid + 1;
	}
	return low < c->n ? c->v[low].line : 0;
}

#endif
