/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of sampling, one on each CPU (private to probe/), and what the BPF side is told. */
#ifndef PYPROF_PROBE_SAMPLER_H
#define PYPROF_PROBE_SAMPLER_H

#include "probe/opts.h"

/* CPU time between two samples. */
uint64_t sampler_period(uint32_t rate);
/* Where a version's threads are found. Pure. */
struct pyp_sampling sampler_layout(const struct layout *l, const struct probe_sampling *s);

/* Let the program run so often on every CPU. CPUs that come later are not seen. */
struct sampler;
int sampler_open(int prog_fd, uint64_t period_ns, struct sampler **ret);
void sampler_free(struct sampler *s);

#endif
