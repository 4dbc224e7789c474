/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots from files: what the JSON format wrote, read back whole (see format/json.c). Figures
 * that are derived from others are not read, they are derived again.
 *
 * A file may come from anywhere. Whatever is in it, this ends with a sound snapshot or with an error
 * that says what is wrong: not such a file (exit code 2), damaged, cut off, or written by a later
 * version (exit code 1). What a later version of the same format adds is passed over.
 */
#ifndef PYPROF_SNAPSHOT_LOAD_H
#define PYPROF_SNAPSHOT_LOAD_H

#include <stdio.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

#define SNAPSHOT_FILE_FORMAT	"pyprofd-snapshot"
#define SNAPSHOT_FILE_VERSION	2
#define SNAPSHOT_FILE_MAX_BYTES ((size_t)1 << 30)

/* name is what errors call it. -EBADMSG: damaged; -EINVAL: no snapshot; -ENOTSUP: later version. */
int snapshot_parse(const char *data, size_t size, const char *name, struct snapshot **ret,
		   struct diag *diag);

/* The same from a file; besides: -EFBIG, what reading failed with. */
int snapshot_load(const char *path, struct snapshot **ret, struct diag *diag);

#endif
