/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations of complete activations, including callees: a histogram per function and clock. Most
 * activations take the same time on both clocks or fall into the same bucket. These are in one
 * histogram shared by both clocks, which halves the memory and the work. Memory is limited.
 */
#ifndef PYPROF_STATS_DURATIONS_H
#define PYPROF_STATS_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "snapshot/snapshot.h"

#define DURATIONS_MAX_BYTES (UINT64_C(64) << 20)

/* One cache line, which is prefetched while the function runs. */
struct durations_func {
	struct histogram both, only[SNAPSHOT_CLOCKS];
	uint64_t max[SNAPSHOT_CLOCKS];
};

struct durations {
	struct durations_func *v; /* per function */
	uint32_t n;
	bool off;	  /* true: nothing is recorded */
	uint64_t bytes;	  /* total of all allocations */
	uint64_t dropped; /* durations dropped because the limit was reached */
};

void durations_deinit(struct durations *d);
/* Discards all durations. */
void durations_clear(struct durations *d);

/* The slow path of durations_add(), for a new bucket or function. */
void durations_add_slow(struct durations *d, struct histogram *h, uint32_t bucket);
bool durations_reserve(struct durations *d, uint32_t func);

static inline void durations_count(struct durations *d, struct histogram *h, uint32_t bucket)
{
	if (__builtin_expect(histogram_has(h, bucket), 1))
		h->n[bucket - h->first]++;
	else
		durations_add_slow(d, h, bucket);
}

/* Prefetches the function's entry when one of its activations begins. */
static inline void durations_expect(const struct durations *d, uint32_t func)
{
	if (func < d->n)
		__builtin_prefetch(&d->v[func]);
}

/* Records an activation of the function with these durations in ns. */
static inline void durations_add(struct durations *d, uint32_t func, uint64_t cpu, uint64_t wall)
{
	struct durations_func *f;
	uint32_t bucket = histogram_bucket(wall), of_cpu;

	if (__builtin_expect(func >= d->n, 0) && !durations_reserve(d, func))
		return;
	f = &d->v[func];
	of_cpu = cpu == wall ? bucket : histogram_bucket(cpu);
	if (cpu > f->max[SNAPSHOT_CPU])
		f->max[SNAPSHOT_CPU] = cpu;
	if (wall > f->max[SNAPSHOT_WALL])
		f->max[SNAPSHOT_WALL] = wall;
	if (__builtin_expect(bucket == of_cpu, 1)) {
		durations_count(d, &f->both, bucket);
		return;
	}
	durations_count(d, &f->only[SNAPSHOT_CPU], of_cpu);
	durations_count(d, &f->only[SNAPSHOT_WALL], bucket);
}

/* Adds a function's durations to a snapshot's function. Returns 0 or -ENOMEM. */
int durations_take(const struct durations *d, uint32_t func, struct snapshot *s,
		   struct snapshot_func *to);

#endif
