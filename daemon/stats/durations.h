/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long complete activations took, with what they called: a histogram for each function and clock.
 * Most activations take as long on both clocks, or fall into the same bucket: these are in one histogram
 * that belongs to both, which is half the memory and half the work. Memory is capped.
 */
#ifndef PYPROF_STATS_DURATIONS_H
#define PYPROF_STATS_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "snapshot/snapshot.h"

#define DURATIONS_MAX_BYTES (UINT64_C(64) << 20)

/* One cache line, which is fetched while the function runs. */
struct durations_func {
	struct histogram both, only[SNAPSHOT_CLOCKS];
	uint64_t max[SNAPSHOT_CLOCKS];
};

struct durations {
	struct durations_func *v; /* by function */
	uint32_t n;
	bool off;	  /* nothing is recorded */
	uint64_t bytes;	  /* of all that is allocated */
	uint64_t dropped; /* durations for which there was no room */
};

void durations_deinit(struct durations *d);
/* Forget all. */
void durations_clear(struct durations *d);

/* For durations_add(): the bucket, or the function, is new. */
void durations_add_slow(struct durations *d, struct histogram *h, uint32_t bucket);
bool durations_reserve(struct durations *d, uint32_t func);

static inline void durations_count(struct durations *d, struct histogram *h, uint32_t bucket)
{
	if (__builtin_expect(histogram_has(h, bucket), 1))
		h->n[bucket - h->first]++;
	else
		durations_add_slow(d, h, bucket);
}

/* One of the function's activations begins. */
static inline void durations_expect(const struct durations *d, uint32_t func)
{
	if (func < d->n)
		__builtin_prefetch(&d->v[func]);
}

/* An activation of the function took so long, ns. */
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

/* Add a function's to a snapshot's function. 0 or -ENOMEM. */
int durations_take(const struct durations *d, uint32_t func, struct snapshot *s,
		   struct snapshot_func *to);

#endif
