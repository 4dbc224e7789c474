/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time that one sample takes from the process that it interrupts, on this machine: between 10 us and more
 * than 40, as the interrupts of virtual machines differ.
 */
#ifndef PYPROF_PROBE_SAMPLE_COST_H
#define PYPROF_PROBE_SAMPLE_COST_H

#include <stdint.h>
#include <sys/types.h>

/* Begins to measure it, on a thread, which takes 50 ms of CPU time. To be called once. */
void sample_cost_begin(void);
/* Returns ns: as measured; COST_SAMPLE_NS before that, or if it cannot be measured. */
uint32_t sample_cost_ns(void);

/*
 * Opens a clock that counts the time in which a task (0: the caller; -1: any) runs on a CPU (-1: any), and
 * interrupts it after each period; disabled. It does not interrupt idle CPUs. Returns a descriptor or a negative errno.
 */
int sample_clock_open(pid_t pid, int cpu, uint64_t period_ns);

#endif
