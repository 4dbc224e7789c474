/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that is there either whole or not at all: written under a temporary name in the same
 * directory and renamed into place at the end. An existing file keeps its permissions; a symbolic
 * link is followed. What is not a regular file (a terminal, a FIFO, /dev/null) is written directly.
 */
#ifndef PYPROF_BASE_OUTFILE_H
#define PYPROF_BASE_OUTFILE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct outfile;

/* Could path be written? Nothing is created. What this cannot see (a full disk) comes later. */
int outfile_check(const char *path, struct diag *diag);

int outfile_open(const char *path, struct outfile **ret, struct diag *diag);

/* Under $TMPDIR or /tmp, name made from `stem`, mode 0600: where data goes as a last resort. */
int outfile_open_fallback(const char *stem, struct outfile **ret, struct diag *diag);

FILE *outfile_stream(struct outfile *of);
const char *outfile_path(const struct outfile *of);

/* Flush and rename into place. On failure the file at path is as it was. */
int outfile_commit(struct outfile *of, struct diag *diag);

/* Without a commit nothing is left behind. */
void outfile_free(struct outfile *of);
DEFINE_FREEP(struct outfile, outfile_free)

#endif
