/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorded evidence: what a recording of a real program had measured before any correction, and
 * the truth beside it. bench/bench_freeze.c records it, unit/accuracy/test_replay.c makes figures
 * of it.
 *
 * It has what accuracy/ reads and nothing else: CPU times, calls, samples, costs; no wall times,
 * extremes or reasons of waiting. Of windows, it has their sums. It is text, one value after the
 * other, so that zcat and diff can show it. Doubles have nine digits.
 */
#ifndef PYPROF_TESTS_HARNESS_FROZEN_H
#define PYPROF_TESTS_HARNESS_FROZEN_H

#include <stdio.h>

#include "accuracy/rest.h"
#include "base/cleanup.h"
#include "snapshot/snapshot.h"

#define FROZEN_NAME 32u

/* Of a function of the snapshot */
struct frozen_func {
	uint64_t samples[2]; /* in mode sample, before and after the recording */
	double calls;	     /* in the rounds below; negative: unknown */
};

struct frozen_truth {
	double rounds;	    /* number of repetitions of the program's work while it was observed */
	double round_ns[2]; /* CPU time of an undisturbed one, before and after */
	uint64_t other[2];  /* samples of Python functions that the snapshot does not have */
	struct frozen_func *funcs;
};

struct frozen {
	char python[FROZEN_NAME], program[FROZEN_NAME], way[FROZEN_NAME]; /* no blanks */
	struct snapshot *s; /* of one target, before snapshot_finish(); owns all arrays */
	struct frozen_truth truth;
	/*
	 * A limited target: what was observed outside of light stretches, numbered like the
	 * snapshot's nodes and functions. Of the tree, only functions and parents.
	 */
	bool limited;
	struct evidence e;
	struct calltree tree;
	struct rest_given given;
};

/* Reads a recording from *at, which moves behind it. Returns NULL if the text is invalid. */
struct frozen *frozen_read(const char **at, const char *end);
void frozen_write(const struct frozen *f, FILE *out);
void frozen_free(struct frozen *f);
DEFINE_FREEP(struct frozen, frozen_free)

/* Makes figures, as profile/ and server/ do. Returns 0 or -ENOMEM. */
int frozen_finish(struct frozen *f);

#endif
