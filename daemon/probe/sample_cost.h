/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time that one sample takes from the process that it interrupts, on this machine: between 10 us and more
 * than 40, as the interrupts of virtual machines differ.
 */
#ifndef PYPROF_PROBE_SAMPLE_COST_H
#define PYPROF_PROBE_SAMPLE_COST_H

#include <stdint.h>

/* Begins to measure it, on a thread, which takes 50 ms of CPU time. To be called once. */
void sample_cost_begin(void);
/* Returns ns: as measured; COST_SAMPLE_NS before that, or if it cannot be measured. */
uint32_t sample_cost_ns(void);
/* Measures it here. Returns 0 if that is not possible. */
uint32_t sample_cost_measure(void);

#endif
