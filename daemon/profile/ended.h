/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ended threads. The last few keep their own contexts; earlier ones are merged into one row per
 * entry function, so that a profile's memory depends on the number of live threads and distinct
 * contexts. Rows are threads of the profile with thread.folded > 0. profile_ended.c merges them.
 * For profile/ only.
 */
#ifndef PYPROF_PROFILE_ENDED_H
#define PYPROF_PROFILE_ENDED_H

#include <stdint.h>

#include "base/map.h"

#define ENDED_APART 16u	 /* ended threads that are kept separately */
#define ENDED_ROWS  256u /* additional entry functions share a row without a function */

struct thread;

struct ended {
	struct thread *first, *last; /* kept separately, in the order of their ends */
	uint32_t napart;
	struct thread **rows; /* threads.nrows rows; room for ENDED_ROWS + 1 */
	struct map row_of;    /* entry function → index of its row */
	uint64_t folded;      /* number of threads in all rows */
};

void ended_deinit(struct ended *e);
/* Resets the state when all ended threads are about to be freed. */
void ended_clear(struct ended *e);

#endif
