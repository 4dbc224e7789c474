/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading saved snapshots and writing reports, for report and diff. */
#ifndef PYPROFCTL_SAVED_H
#define PYPROFCTL_SAVED_H

#include <stdio.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

/* For OPT_CHOICE: "" (not given), cpu, wall, NULL */
extern const char *const saved_clocks[];

/* Load and merge files. clock: index into saved_clocks; if 0, all files must have the same
 * clock. */
int saved_load(char *const *files, size_t n, int clock, struct snapshot **ret, struct diag *diag);

/* Write to the file `path`, completely or not at all; to out if path is NULL. */
typedef int (*saved_write_fn)(void *ctx, FILE *out, struct diag *diag);
int saved_write(const char *path, FILE *out, saved_write_fn fn, void *ctx, struct diag *diag);

#endif
