/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of pyprofd that contain one instruction of each probed class, to measure the cost of a
 * hit (probe/calibrate.h). Each back end defines them.
 */
#ifndef PYPROF_PLAN_ARCH_SPECIMEN_H
#define PYPROF_PLAN_ARCH_SPECIMEN_H

#include <stdbool.h>
#include <stdint.h>

/* Specimens of each class, one for each kind of event that is measured */
#define SPECIMEN_SETS 3

struct specimen {
	void (*fn)(const void *arg); /* executes the instruction and nothing else */
	const char *insn;	     /* its instruction, executed once per call */
};

/* The register that holds arg at the instruction */
extern const uint8_t specimen_reg;

/*
 * The specimen whose probe costs the same as one on the instruction `code`. stepped: the kernel
 * single-steps that instruction. set: 0 to SPECIMEN_SETS - 1. Never NULL; static.
 */
const struct specimen *specimen_like(unsigned int set, const uint8_t *code, bool stepped);

#endif
