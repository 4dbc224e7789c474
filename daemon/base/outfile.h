/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output files that are written completely or not at all: the data goes to an unnamed (or
 * temporary) file in the same directory, which gets its name at commit. A new file has mode 0600; a
 * file that replaces a regular file of the same user keeps that file's mode.
 *
 * Other users may be able to write to the directory. Symbolic links are followed only if they
 * belong to root or the effective user (safepath.h). An existing regular file is replaced, never
 * opened. Terminals, /dev/null, /dev/full and the process's own descriptors ("-", /dev/stdout,
 * /dev/stderr, /dev/fd/N) are written directly. FIFOs, sockets and other devices are refused.
 */
#ifndef PYPROF_BASE_OUTFILE_H
#define PYPROF_BASE_OUTFILE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct outfile;

/* Check that path can be written, without creating anything. A full disk is found only later. */
int outfile_check(const char *path, struct diag *diag);

int outfile_open(const char *path, struct outfile **ret, struct diag *diag);

/* Open a new file "STEM.*" with mode 0600 in $TMPDIR or /tmp, for data that cannot be written
 * elsewhere. */
int outfile_open_fallback(const char *stem, struct outfile **ret, struct diag *diag);

FILE *outfile_stream(struct outfile *of);
const char *outfile_path(const struct outfile *of);

/* Flush, and give the file its name. On failure the file at path is unchanged. */
int outfile_commit(struct outfile *of, struct diag *diag);

/* An uncommitted file is discarded. */
void outfile_free(struct outfile *of);
DEFINE_FREEP(struct outfile, outfile_free)

#endif
