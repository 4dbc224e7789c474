/* SPDX-License-Identifier: BSD-2-Clause */
/* What a code object says of itself, on its way from a target's memory to the functions. */
#ifndef PYPROF_BASE_CODE_NAMES_H
#define PYPROF_BASE_CODE_NAMES_H

#include <stdint.h>
#include <stdlib.h>

struct code_names {
	char *filename, *name, *qualname; /* malloc'd UTF-8; NULL: not known, or there is none */
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
