/* SPDX-License-Identifier: BSD-2-Clause */
/* Evidence of whole calls (struct snapshot_whole) for tests, window by window. */
#ifndef PYPROF_TESTS_HARNESS_WHOLES_H
#define PYPROF_TESTS_HARNESS_WHOLES_H

#include "snapshot/snapshot.h"

/* What a window has shown of a context: see struct snapshot_whole. */
struct whole_calls {
	uint32_t node;
	double x, y;
};

/* Adds a window of the target with what it has shown of n contexts, one element each. */
void wholes_add_window(struct snapshot *s, uint32_t target, const struct whole_calls *v, size_t n);

#define WHOLES_ADD_WINDOW(s, target, ...)                                                          \
	wholes_add_window(s, target, (const struct whole_calls[]){__VA_ARGS__},                    \
			  sizeof((const struct whole_calls[]){__VA_ARGS__}) /                      \
				  sizeof(struct whole_calls))

#endif
