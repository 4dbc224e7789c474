/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intervals on disk: DIR/2026-11-26T14/143010-1f2e3d4c.gz, in UTC, a file for each cut. A file is
 * complete when it has its name. Directories have mode 0700, files 0600.
 *
 * Those of a span can be merged to one, DIR/2026-11-26T14/143500-1f2e3d4c-0300.gz, whose index has
 * their names (disk_index.h). From the moment at which it has its name, these do not count, also if the
 * daemon is killed before it has removed them.
 *
 * The directory must belong to the user and be writable to nobody else. Links in it are not followed,
 * and files with other names are left alone.
 */
#ifndef PYPROF_HISTORY_DISK_H
#define PYPROF_HISTORY_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "history/disk_tree.h"
#include "history/gz.h"
#include "history/when.h"

struct disk;

struct disk_counts {
	size_t files;
	uint64_t bytes, max_bytes; /* as allocated, in blocks */
	uint64_t removed;	   /* files, for newer ones */
	uint64_t merged;	   /* spans */
	uint64_t failed;	   /* writes */
};

/*
 * Creates the directory if it is missing, and removes incomplete files. Exit code 7: another daemon
 * uses it.
 */
int disk_open(const char *path, uint64_t max_bytes, struct disk **ret, struct diag *diag);
void disk_free(struct disk *d);
DEFINE_FREEP(struct disk, disk_free)

/*
 * Writes a file, after removing the oldest ones that have no place beside it. Returns 0, or a
 * negative errno with nothing written.
 */
int disk_write(struct disk *d, uint64_t unix_ns, const void *data, size_t size, struct diag *diag);
#define DISK_DUE_MAX 3600u

/* Files of cuts of one span, to be merged */
struct disk_due {
	int64_t end_s; /* the cuts are in the span_s seconds up to this time, since 1970 */
	uint32_t span_s;
	size_t n;
	char names[DISK_DUE_MAX][DISK_NAME_TEXT];
};

/* Returns whether there are several files of a span that ended before this time. Each span is returned once. */
bool disk_due(struct disk *d, int64_t before_s, uint32_t span_s, struct disk_due *ret);

/*
 * Replaces these files by a merged one. Returns 0; -EAGAIN: a reader uses the directory; or another
 * negative errno. Unless 0, nothing has changed.
 */
int disk_merge(struct disk *d, const struct disk_due *due, const char *const *names, size_t n,
	       const void *data, size_t size, struct diag *diag);

/* Of the directory, for reading. */
int disk_descriptor(const struct disk *d);

struct disk_counts disk_counts(const struct disk *d);

/*
 * Passes the intervals of a span in a directory to fn, as gz_unpack() does, oldest first. *ret_bad:
 * number of files that are damaged or cannot be read, and are left out.
 */
int disk_read(const char *path, const struct when_span *span, gz_unpack_fn fn, void *ctx,
	      size_t *ret_bad, struct diag *diag);

#endif
