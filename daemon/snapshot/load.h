/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads snapshots from files in the JSON format (see format/json.c). Skips figures that are derived
 * from others, and derives them again.
 *
 * Files are untrusted. The result is either a consistent snapshot or an error that names the cause:
 * not a snapshot (exit code 2); damaged, truncated or written by a later format version (exit code
 * 1). Additions by later minor versions are ignored.
 */
#ifndef PYPROF_SNAPSHOT_LOAD_H
#define PYPROF_SNAPSHOT_LOAD_H

#include <stdio.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

#define SNAPSHOT_FILE_FORMAT	"pyprofd-snapshot"
#define SNAPSHOT_FILE_VERSION	2
#define SNAPSHOT_FILE_MAX_BYTES ((size_t)1 << 30)

/*
 * data: `size` bytes, borrowed; name: used in error messages. *ret belongs to the caller. Returns
 * 0, -EBADMSG (damaged), -EINVAL (not a snapshot), -ENOTSUP (later version) or -ENOMEM.
 */
int snapshot_parse(const char *data, size_t size, const char *name, struct snapshot **ret,
		   struct diag *diag);

/* Like snapshot_parse, for a file. Also returns -EFBIG or the error of reading the file. */
int snapshot_load(const char *path, struct snapshot **ret, struct diag *diag);

#endif
