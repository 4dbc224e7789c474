/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that completes intervals: adds rows for the time outside Python, compresses, and writes the
 * file of a cut. The event loop only hands over, and gets them back. The queue is bounded.
 */
#ifndef PYPROF_CONTINUOUS_WRITER_H
#define PYPROF_CONTINUOUS_WRITER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "continuous/merger.h"
#include "history/disk.h"
#include "history/keep.h"

#define WRITER_QUEUE_MAX 4096u

struct writer;
struct sd_event;

/* A completed interval, in the event loop. Both are owned by the callee; kept NULL: out of memory. */
typedef void (*writer_done_fn)(void *ctx, struct interval *iv, struct kept *kept);

struct writer_counts {
	uint64_t dropped; /* the queue was full */
	uint64_t failed;  /* could not be completed */
	uint64_t cpu_ns;  /* that the thread has used */
	struct disk_counts disk;
	struct merger_counts merger;
	char error[256]; /* of the last file that could not be written; "": none since */
};

/*
 * Takes disk (NULL: intervals are not written), also on failure. merging: of old ones in it; NULL: they
 * are not merged.
 */
int writer_new(struct sd_event *event, struct disk *disk, const struct merger_opts *merging,
	       writer_done_fn done, void *ctx, struct writer **ret, struct diag *diag);
/* Completes what is in the queue, which may take some seconds, and delivers it. NULL is accepted. */
void writer_free(struct writer *w);
DEFINE_FREEP(struct writer, writer_free)

/* Takes iv. */
void writer_put(struct writer *w, struct interval *iv);
/* The cut at this time is complete: its file can be written. */
void writer_end_cut(struct writer *w, uint64_t unix_ns);

struct writer_counts writer_counts(struct writer *w);

#endif
