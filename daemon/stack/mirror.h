/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of one thread's stack that a watcher has been sent: see watch.c. */
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
	bool named;	  /* THREAD was told */
	bool stale;	  /* the watcher could not be told all: find out by comparing */
	uint64_t dropped; /* calls and returns that it was not told of, nor that it was not */
	uint64_t ts, cpu; /* of the last thing told */
};

void mirror_free(struct mirror *m); /* NULL is allowed */
/* Make room for one more frame; false: out of memory. */
bool mirror_reserve(struct mirror *m);

#endif
