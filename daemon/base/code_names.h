/* SPDX-License-Identifier: BSD-2-Clause */
/* The names and flags of a code object, as read from a target's memory. */
#ifndef PYPROF_BASE_CODE_NAMES_H
#define PYPROF_BASE_CODE_NAMES_H

#include <stdint.h>
#include <stdlib.h>

struct code_names {
	char *filename, *name, *qualname; /* malloc'd UTF-8; NULL: unknown or absent */
	int32_t firstlineno;
	uint32_t flags;
};

static inline void code_names_deinit(struct code_names *n)
{
	free(n->filename);
	free(n->name);
	free(n->qualname);
	*n = (struct code_names){0};
}

#endif
