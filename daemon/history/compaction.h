/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one file of several: the intervals of each process (equal labels) become one. What was measured
 * in different modes stays apart. Step by step, so that the time it takes can be spread, and with the
 * snapshots of one process in memory at a time. Pure.
 */
#ifndef PYPROF_HISTORY_COMPACTION_H
#define PYPROF_HISTORY_COMPACTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct compaction;

struct compaction *compaction_new(void); /* NULL: out of memory */
void compaction_free(struct compaction *c);
DEFINE_FREEP(struct compaction, compaction_free)

/*
 * Add a file of intervals; name: as in an index (disk_index.h), copied. Takes data, which is malloc'ed,
 * also on failure. A file that is damaged or has something else in it is left out completely: -EBADMSG
 * or another negative errno.
 */
int compaction_add(struct compaction *c, const char *name, void *data, size_t size,
		   struct diag *diag);

/*
 * Merge the intervals of the next process. Returns 1, 0 if all are done, or a negative errno, after
 * which there is no result.
 */
int compaction_step(struct compaction *c, struct diag *diag);

/*
 * The new file: its index and the merged intervals. *ret belongs to the caller. Once, after the last
 * step. Returns 0 or a negative errno.
 */
int compaction_take(struct compaction *c, void **ret, size_t *ret_size, struct diag *diag);

/* The names of the i-th file that was added and is not left out; NULL: there are fewer. */
const char *compaction_file(const struct compaction *c, size_t i);

#endif
