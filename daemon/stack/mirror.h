/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of a thread's stack that were reported to the watcher: see watch.c. */
#ifndef PYPROF_STACK_MIRROR_H
#define PYPROF_STACK_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

struct mirror_frame {
	uint64_t frame;
	uint32_t func;
};

struct mirror {
	struct mirror_frame *v; /* outermost first */
	uint32_t n, cap;
	bool named;	  /* THREAD was reported */
	bool stale;	  /* some changes were not reported; the next event compares the stacks */
	uint64_t dropped; /* calls and returns neither reported nor counted in a DROPPED */
	uint64_t ts, cpu; /* of the last reported event */
};

void mirror_free(struct mirror *m); /* m may be NULL */
/* Makes room for one more frame. Returns false if out of memory. */
bool mirror_reserve(struct mirror *m);

#endif
