/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calling contexts as stacks, for formats that write out whole stacks. Such a file grows with the
 * number of contexts times their depth, so a stack that is too deep loses its middle: a recursion
 * 100,000 deep must not become a file of 100 GB.
 */
#ifndef PYPROF_FORMAT_STACKS_H
#define PYPROF_FORMAT_STACKS_H

#include "stats/view.h"

#define STACKS_MAX_FRAMES 512
#define STACKS_LEFT_OUT	  "(frames left out)" /* what stands for SNAPSHOT_NONE in funcs */

struct stack {
	uint32_t thread;
	uint32_t node;
	size_t n;			   /* at least 1 */
	uint32_t funcs[STACKS_MAX_FRAMES]; /* outermost first; SNAPSHOT_NONE: the missing middle */
};

/*
 * Call fn for every context of the selected threads, depth first; a thread's root, which is outside
 * Python, is none. A negative value of fn ends it and is returned. -ENOMEM.
 */
typedef int (*stacks_fn)(void *ctx, const struct stack *stack);
int stacks_each(const struct snapshot *s, const struct view_filter *filter, stacks_fn fn,
		void *ctx);

#endif
