/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions that probes go on, in a process's memory: is a breakpoint there or not? */
#ifndef PYPROF_TESTS_HARNESS_SITES_H
#define PYPROF_TESTS_HARNESS_SITES_H

#include <stdint.h>
#include <sys/types.h>

#include "plan/plan.h"

struct sites {
	struct plan plan;
	uint64_t bias;
};

/* What there is to probe in a Python process. */
void sites_find(struct sites *sites, pid_t pid);

/* At how many sites the process's bytes are not the file's. A child that was forked has its sites
 * where its parent has them. -1: the process has gone. */
int sites_changed(const struct sites *sites, pid_t pid);

#endif
