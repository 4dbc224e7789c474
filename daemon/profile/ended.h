/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that have ended: the last ones are kept as they are, those before them are added up, one
 * row per entry function, so that a profile's memory follows the threads that are alive and the
 * contexts that are distinct. Rows are threads of the profile (thread.folded > 0).
 * profile_ended.c does that. For profile/ only.
 */
#ifndef PYPROF_PROFILE_ENDED_H
#define PYPROF_PROFILE_ENDED_H

#include <stdint.h>

#include "base/map.h"

#define ENDED_APART   16u   /* ended threads that are kept apart */
#define ENDED_ROWS    256u  /* further entry functions share a row without a function */
#define ENDED_WAITING 4096u /* ended threads that may wait for the end of a window */

struct thread;

struct ended {
	struct thread *first, *last; /* kept apart, in the order in which they ended */
	uint32_t napart;
	struct thread **rows; /* threads.nrows folded ones; room for ENDED_ROWS + 1 */
	struct map row_of;    /* entry function → index of its row */
	uint64_t folded;      /* threads in all rows */
};

void ended_deinit(struct ended *e);
/* All threads that have ended are about to be forgotten. */
void ended_clear(struct ended *e);

#endif
