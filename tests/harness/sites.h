/* SPDX-License-Identifier: BSD-2-Clause */
/* Probed instructions in a process's memory: is there a breakpoint? */
#ifndef PYPROF_TESTS_HARNESS_SITES_H
#define PYPROF_TESTS_HARNESS_SITES_H

#include <stdint.h>
#include <sys/types.h>

#include "plan/plan.h"

struct sites {
	struct plan_site at[PYP_ALL_SITES];
	unsigned int n;
	uint64_t bias;
};

/* Find the sites in a Python process that a trace without C functions has: those of Python functions and
 * of the collector. */
void sites_find(struct sites *sites, pid_t pid);

/* The number of sites whose bytes in the process differ from the file. A forked child has the same
 * addresses as its parent. -1: the process has ended. */
int sites_changed(const struct sites *sites, pid_t pid);

#endif
