/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that merges old intervals on disk: it reads the files of a span and makes one of them, which
 * the writer then puts in their place. It computes for a small part of the time, one process after the
 * other. (Not at idle priority: the event loop would wait for memory that it is just allocating.)
 */
#ifndef PYPROF_CONTINUOUS_MERGER_H
#define PYPROF_CONTINUOUS_MERGER_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "history/disk.h"

/* The part of one core that it uses while there is something to merge. */
#define MERGER_SHARE 0.0025

struct merger;

struct merger_opts {
	uint64_t after_ns; /* intervals are merged when they are this old */
	uint32_t to_s;	   /* the length of the new ones */
};

struct merger_counts {
	uint64_t merged; /* files */
	uint64_t failed; /* spans */
	uint64_t cpu_ns; /* of the thread */
};

/* dir: the directory's descriptor, which outlives the merger. */
int merger_new(int dir, const struct merger_opts *opts, struct merger **ret, struct diag *diag);
/* Ends soon; what it has not finished is lost. NULL is accepted. */
void merger_free(struct merger *m);
DEFINE_FREEP(struct merger, merger_free)

/*
 * Puts what the thread has finished in place, and gives it the next span. To be called from time to
 * time, by the thread that uses the disk.
 */
void merger_turn(struct merger *m, struct disk *disk, uint64_t now_unix_ns);

struct merger_counts merger_counts(struct merger *m);

#endif
