/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interval: the profile of one target over a span of time, with the labels by which it is found
 * again. History, files and receivers on other machines get nothing else. Plain data, pure.
 *
 * The id is unique over all machines and times, so that a receiver recognises an interval that it
 * already has. The snapshot's figures are those of the span only, with all corrections applied.
 *
 * In a file it is a saved snapshot (format/json.c) whose last member is
 *
 * 	"interval": {"id": "32 hex digits", "start_unix_ns": n, "end_unix_ns": n, "labels": {…}}
 *
 * and "merged": n if it is the sum of several. Its id is then the exclusive or of theirs.
 *
 * so everything that reads snapshots also reads intervals.
 */
#ifndef PYPROF_INTERVAL_INTERVAL_H
#define PYPROF_INTERVAL_INTERVAL_H

#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "snapshot/snapshot.h"

#define INTERVAL_ID_BYTES	 16
#define INTERVAL_ID_TEXT	 33 /* as hex digits, NUL-terminated */
#define INTERVAL_LABELS_MAX	 32
#define INTERVAL_LABEL_NAME_MAX	 64  /* bytes without NUL */
#define INTERVAL_LABEL_VALUE_MAX 256 /* bytes without NUL; longer values are cut */

/* Labels that every interval has if their values are known. */
#define INTERVAL_HOST	 "host"
#define INTERVAL_SERVICE "service"
#define INTERVAL_PID	 "pid"
#define INTERVAL_PYTHON	 "python" /* its version: "3.11.2" */

/* name: [a-z_][a-z0-9_]*; value: valid UTF-8, not "". */
struct interval_label {
	const char *name, *value;
};

struct interval {
	uint8_t id[INTERVAL_ID_BYTES];
	uint64_t start_unix_ns, end_unix_ns; /* start <= end */
	struct interval_label labels[INTERVAL_LABELS_MAX];
	uint32_t nlabels;	   /* sorted by name, each name once */
	uint32_t merged;	   /* the number of intervals that it was made of; 0: of none */
	struct snapshot *snapshot; /* owned; owns the labels' strings */
};

/*
 * Creates an interval without labels. Takes the snapshot, whose span must already be that of the
 * interval, also if it fails. NULL: out of memory.
 */
struct interval *interval_new(const uint8_t id[INTERVAL_ID_BYTES], uint64_t start_unix_ns,
			      uint64_t end_unix_ns, struct snapshot *snapshot);
/* Returns a copy that borrows nothing, with the same id. NULL: out of memory. */
struct interval *interval_copy(const struct interval *iv);
void interval_free(struct interval *iv);
DEFINE_FREEP(struct interval, interval_free)

/*
 * Sets a label, also one that exists; NULL or "" removes it. Invalid UTF-8 is replaced, long values
 * are cut. Returns 0, -EINVAL (the name), -E2BIG (too many labels) or -ENOMEM.
 */
int interval_set_label(struct interval *iv, const char *name, const char *value);
/* Returns a label's value; NULL: it has none. */
const char *interval_label(const struct interval *iv, const char *name);

/* Writes the id as text to buf and returns it. */
const char *interval_id_text(const uint8_t id[INTERVAL_ID_BYTES], char buf[INTERVAL_ID_TEXT]);
/* Reads an id. Returns 0 or -EINVAL. */
int interval_id_parse(const char *text, uint8_t id[INTERVAL_ID_BYTES]);

/*
 * Returns the labels of a file as one text: equal for the intervals of one process. NULL: it is no
 * interval, or out of memory. The caller frees it.
 */
char *interval_labels_text(const char *data, size_t size);
/* Sets the labels of such a text. Returns 0, -EBADMSG or -ENOMEM. */
int interval_set_labels_text(struct interval *iv, const char *text);

/* Writes the file. Returns 0 or a negative errno, with *diag set. */
int interval_write(const struct interval *iv, FILE *out, struct diag *diag);

/*
 * Reads a file, which is untrusted. data: `size` bytes, borrowed; name: used in error messages.
 * *ret belongs to the caller. Returns the errors of snapshot_parse(); -EINVAL also if the file is a
 * snapshot but no interval.
 */
int interval_parse(const char *data, size_t size, const char *name, struct interval **ret,
		   struct diag *diag);

#endif
