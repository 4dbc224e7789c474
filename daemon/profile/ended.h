/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that have ended: the last ones are kept as they are, those before them are added up, one
 * row per entry function, so that a profile's memory follows the threads that are alive and the
 * contexts that are distinct. Rows are threads of the profile (thread.folded > 0). For
 * profile/ only.
 */
#ifndef PYPROF_PROFILE_ENDED_H
#define PYPROF_PROFILE_ENDED_H

#include <stdint.h>

#include "base/map.h"

#define ENDED_APART   16u   /* ended threads that are kept apart */
#define ENDED_ROWS    256u  /* further entry functions share a row without a function */
#define ENDED_WAITING 4096u /* ended threads that may wait for the end of a window */

struct profile;
struct thread;

struct ended {
	struct thread *first, *last; /* kept apart, in the order in which they ended */
	uint32_t napart;
	struct thread **rows; /* threads.nrows folded ones; room for ENDED_ROWS + 1 */
	struct map row_of;    /* entry function → index of its row */
	uint64_t folded;      /* threads in all rows */
};

void ended_deinit(struct ended *e);
/* This thread has ended: nothing is on its stacks, nobody finds it by its tid. */
void ended_add(struct profile *p, struct thread *th);
/* Fold what can be folded now. O(contexts of the threads that are folded). */
void ended_fold(struct profile *p);
/* All threads that have ended are about to be forgotten. */
void ended_clear(struct ended *e);

#endif
