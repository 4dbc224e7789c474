/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interpreters' plans a test damages: in `make check` few, in `make check-plans` all. */
#ifndef PYPROF_TESTS_HARNESS_PLANS_H
#define PYPROF_TESTS_HARNESS_PLANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "harness/interpreters.h"

static inline bool plans_every(void)
{
	return getenv("PYPROF_TEST_EVERY");
}

/* The newest of each frame model, or all that have a layout. Returns their number. */
static inline size_t plans_few(struct interpreter v[INTERPRETERS_MAX])
{
	size_t n, kept = 0;

	if (!plans_every())
		return interpreters_of_models(v);
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++)
		if (interpreter_layout(&v[i]))
			v[kept++] = v[i];
	return kept;
}

#endif
