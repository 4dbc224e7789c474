/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that is there either whole or not at all: written without a name (or under a temporary one)
 * in its directory, and put into place at the end. A new file has mode 0600; one that replaces a
 * regular file of the same user keeps that file's mode.
 *
 * The path may lie in a directory that other users can write to. Symbolic links are followed only if
 * they belong to root or to the effective user (safepath.h); what is there is never opened, only
 * replaced. Apart from regular files only terminals, /dev/null, /dev/full and the process's own
 * descriptors ("-" and /dev/stdout, /dev/stderr, /dev/fd/N) are written, directly; FIFOs, sockets and
 * other devices are refused.
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

/* Flush and put into place. On failure the file at path is as it was. */
int outfile_commit(struct outfile *of, struct diag *diag);

/* Without a commit nothing is left behind. */
void outfile_free(struct outfile *of);
DEFINE_FREEP(struct outfile, outfile_free)

#endif
