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

/*
 * A program that repeats itself at a multiple of the sampling period would be sampled at the same few
 * places each time. To be called often: changes the periods at random, of some CPUs at a time,
 * as each change interrupts its CPU. The mean rate stays. NULL is accepted.
 */
void sampler_jitter(struct sampler *s, uint64_t now_ns);
/*
 * The deviation of the rate that follows this one (0: the first), in parts per million; random: any
 * number. sampler_block_period: the period of a block of time with this rate, whose begin restarts the
 * timer; over all blocks, the mean rate is the given one. Pure.
 */
int sampler_next_rate(int ppm, uint32_t random);
uint64_t sampler_block_period(uint64_t period_ns, uint64_t block_ns, int ppm);

#endif
