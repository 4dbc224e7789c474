/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the instructions at the probe sites from a process's memory, to detect breakpoints. */
#ifndef PYPROF_TESTS_HARNESS_SITES_H
#define PYPROF_TESTS_HARNESS_SITES_H

#include <stdint.h>
#include <sys/types.h>

#include "plan/plan.h"

struct sites {
	struct plan_site at[PYP_ALL_SITES];
	unsigned int n;
	struct {
		uint64_t vaddr;
		uint8_t byte;
	} marks[PYP_MARKS];
	unsigned int nmarks;
	uint64_t bias;
};

/*
 * Find the sites that a trace without C functions uses in a Python process: the sites of Python
 * functions and of the garbage collector.
 */
void sites_find(struct sites *sites, pid_t pid);

/*
 * Returns the number of sites whose bytes in the process differ from the file; -1: the process has
 * ended. A forked child has the same addresses as its parent.
 */
int sites_changed(const struct sites *sites, pid_t pid);
/* The same of the marks, which windows use. */
int sites_marked(const struct sites *sites, pid_t pid);

#endif
