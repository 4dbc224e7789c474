/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling timers, one per CPU, and the parameters for the BPF program (private to probe/). */
#ifndef PYPROF_PROBE_SAMPLER_H
#define PYPROF_PROBE_SAMPLER_H

#include "probe/opts.h"

/* Returns the CPU time between two samples in ns. */
uint64_t sampler_period(uint32_t rate);
/* Returns the offsets and addresses for finding a Python version's threads. Pure. */
struct pyp_sampling sampler_layout(const struct layout *l, const struct probe_sampling *s);

/* Runs the program at the given rate on every CPU. CPUs that come online later are not included. */
struct sampler;
int sampler_open(int prog_fd, uint64_t period_ns, struct sampler **ret);
void sampler_free(struct sampler *s);

#endif
