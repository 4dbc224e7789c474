/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calling contexts as stacks, for formats that write whole stacks. Their size grows with the number
 * of contexts times their depth, so the middle of very deep stacks is left out: a recursion 100,000
 * deep would otherwise produce a file of 100 GB.
 */
#ifndef PYPROF_FORMAT_STACKS_H
#define PYPROF_FORMAT_STACKS_H

#include "stats/view.h"

#define STACKS_MAX_FRAMES 512
#define STACKS_LEFT_OUT	  "(frames left out)" /* the text for SNAPSHOT_NONE in funcs */

struct stack {
	uint32_t thread;
	uint32_t node;
	size_t n;			   /* at least 1 */
	uint32_t funcs[STACKS_MAX_FRAMES]; /* outermost first; SNAPSHOT_NONE: missing middle */
};

/*
 * Calls fn for every context of the selected threads, depth first, without the threads' roots,
 * which are outside Python. Stops at a negative value of fn and returns it. Otherwise returns 0 or
 * -ENOMEM.
 */
typedef int (*stacks_fn)(void *ctx, const struct stack *stack);
int stacks_each(const struct snapshot *s, const struct view_filter *filter, stacks_fn fn,
		void *ctx);

#endif
