/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a timeline's records (timeline/wire.h) to a file as they arrive: Chrome's trace format
 * (begin and end events, for Perfetto, chrome://tracing, speedscope) or CSV rows. If the records
 * end early, open frames are closed, so the file is always valid. Limits the size of the file.
 */
#ifndef PYPROF_TIMELINE_WRITER_H
#define PYPROF_TIMELINE_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct timeline_writer;

struct timeline_writer_opts {
	const char *format; /* "chrome" or "csv" */
	uint64_t max_bytes; /* limit of the file's size */
};

#define TIMELINE_SIZE_MIN (UINT64_C(256) << 10)

/*
 * timeline_format_of_file: returns the format for a file name's extension; NULL: none.
 * timeline_format_known: returns whether a format of this name exists.
 */
const char *timeline_format_of_file(const char *path);
bool timeline_format_known(const char *name);

/* out is borrowed; only the writer may use it until timeline_writer_finish(). *ret is owned by the
 * caller. */
int timeline_writer_new(const struct timeline_writer_opts *opts, FILE *out,
			struct timeline_writer **ret, struct diag *diag);
void timeline_writer_free(struct timeline_writer *w);
DEFINE_FREEP(struct timeline_writer, timeline_writer_free)

/* Process the next bytes, split anywhere. Invalid data is an error. */
int timeline_writer_feed(struct timeline_writer *w, const void *data, size_t n, struct diag *diag);

/*
 * ended: returns whether END has arrived. full: whether the file has reached its size limit. In
 * both cases no more data is needed.
 */
bool timeline_writer_ended(const struct timeline_writer *w);
bool timeline_writer_full(const struct timeline_writer *w);

struct timeline_writer_counts {
	uint64_t calls, returns; /* written to the file */
	uint64_t dropped;	 /* not fetched in time */
	uint64_t lost;		 /* gaps because the ring lost events */
	uint64_t truncated;	 /* calls on stacks that were too deep */
	/* of the recent past: calls and returns that were discarded for their age, and earlier, for
	 * lack of memory; calls that the trigger could not follow */
	uint64_t older, beyond_size, refused;
	uint64_t from_unix_ns, from_ns, until_ns;
};
struct timeline_writer_counts timeline_writer_counts(const struct timeline_writer *w);
/* How the trigger's condition was met; NULL: it was not, or there is none. Borrowed. */
const char *timeline_writer_trigger(const struct timeline_writer *w);

/*
 * Close open frames and complete the file. provenance (takes the reference; may be NULL): written
 * to the file, with the counts of missing events.
 */
int timeline_writer_finish(struct timeline_writer *w, json_t *provenance, struct diag *diag);

#endif
