/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of our own that contain one instruction of each class that probes are put on, for
 * measuring what a hit costs (probe/calibrate.h). Each back end brings them.
 */
#ifndef PYPROF_PLAN_ARCH_SPECIMEN_H
#define PYPROF_PLAN_ARCH_SPECIMEN_H

#include <stdbool.h>
#include <stdint.h>

/* How many specimens there are of each class: one for each kind of event that is measured. */
#define SPECIMEN_SETS 3

struct specimen {
	void (*fn)(const void *arg); /* does nothing else */
	const char *insn;	     /* its instruction, executed once by each call */
};

/* The register that holds arg at the instruction. */
extern const uint8_t specimen_reg;

/*
 * The specimen that costs what a probe on the instruction `code` does; stepped: the kernel does not
 * emulate that one. set: 0 to SPECIMEN_SETS - 1. Never NULL; static.
 */
const struct specimen *specimen_like(unsigned int set, const uint8_t *code, bool stepped);

#endif
