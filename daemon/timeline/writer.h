/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a timeline's records (timeline/wire.h), as they arrive, to a file: Chrome's trace format
 * (begin and end events, for Perfetto, chrome://tracing, speedscope) or rows (CSV). However the
 * records end, the file is whole: what is open is closed. Bounded by the size of the file.
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
	uint64_t max_bytes; /* of the file */
};

#define TIMELINE_SIZE_MIN (UINT64_C(256) << 10)

/* The format for a file's name, by its ending; NULL: none. And is there one of this name? */
const char *timeline_format_of_file(const char *path);
bool timeline_format_known(const char *name);

/* out is borrowed and is the writer's alone until it is finished. */
int timeline_writer_new(const struct timeline_writer_opts *opts, FILE *out,
			struct timeline_writer **ret, struct diag *diag);
void timeline_writer_free(struct timeline_writer *w);
DEFINE_FREEP(struct timeline_writer, timeline_writer_free)

/* The next bytes, cut anywhere. What does not look like a timeline is an error. */
int timeline_writer_feed(struct timeline_writer *w, const void *data, size_t n, struct diag *diag);

/* END has come; the file is as large as it may be. Both: nothing more is needed. */
bool timeline_writer_ended(const struct timeline_writer *w);
bool timeline_writer_full(const struct timeline_writer *w);

struct timeline_writer_counts {
	uint64_t calls, returns; /* written */
	uint64_t dropped;	 /* could not be fetched in time */
	uint64_t lost;		 /* gaps by losses of the ring */
	uint64_t truncated;	 /* calls on stacks that were too deep */
	uint64_t from_unix_ns, from_ns, until_ns;
};
struct timeline_writer_counts timeline_writer_counts(const struct timeline_writer *w);

/*
 * Close what is open and complete the file. provenance (taken; may be NULL): said in the file where
 * the format has a place for it, with what was dropped beside it.
 */
int timeline_writer_finish(struct timeline_writer *w, json_t *provenance, struct diag *diag);

#endif
