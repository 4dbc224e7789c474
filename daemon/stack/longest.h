/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest waits of a profile, some for each reason. Pure. */
#ifndef PYPROF_STACK_LONGEST_H
#define PYPROF_STACK_LONGEST_H

#include <stdint.h>

#include "base/wait.h"

struct long_wait {
	uint64_t ns, end_ts; /* end_ts: CLOCK_MONOTONIC */
	uint32_t tid;
	uint32_t func;	 /* the function that waited; SNAPSHOT_NONE: none */
	int32_t syscall; /* number; -1: none, or unknown */
	int32_t fd;	 /* the descriptor that it waited for; -1: none, or unknown */
};

/* All zero: empty. The waits of a reason have no order. */
struct longest {
	struct {
		struct long_wait v[WAIT_LONGEST];
		uint32_t n, least; /* least: index of the shortest one, if all are used */
	} of[WAITS];
};

/* Keeps the wait if it is among the longest of its reason. */
void longest_add(struct longest *l, enum wait_reason why, const struct long_wait *w);

#endif
