/* SPDX-License-Identifier: BSD-2-Clause */
/* Saved snapshots and where a report about them goes: what report and diff have in common. */
#ifndef PYPROFCTL_SAVED_H
#define PYPROFCTL_SAVED_H

#include <stdio.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

/* "", cpu, wall, NULL: for OPT_CHOICE; the empty name is what there is when nothing was given. */
extern const char *const saved_clocks[];

/* Load files and merge them. clock: index into saved_clocks; with 0 all must agree on theirs. */
int saved_load(char *const *files, size_t n, int clock, struct snapshot **ret, struct diag *diag);

/* Write to the file `path`, which is complete or not there at all; NULL: to out. */
typedef int (*saved_write_fn)(void *ctx, FILE *out, struct diag *diag);
int saved_write(const char *path, FILE *out, saved_write_fn fn, void *ctx, struct diag *diag);

#endif
