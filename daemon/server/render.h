/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes profiles and metrics in a separate thread, because formatting a large profile takes longer than
 * filling a ring. A snapshot is an immutable copy, so the thread shares nothing with the rest of
 * the daemon.
 */
#ifndef PYPROF_SERVER_RENDER_H
#define PYPROF_SERVER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "server/response.h"
#include "server/snapshot_query.h"
#include "snapshot/snapshot.h"

struct render;

/* What to write; `write` is called in the thread, and `free` once, also on failure. */
struct render_job {
	int (*write)(void *ctx, FILE *out, struct diag *diag); /* 0 or a negative errno */
	void (*free)(void *ctx);
	void *ctx;
	const char *name, *mime, *attachment; /* literals; attachment NULL: none */
};

/* Start writing. Takes ownership of ctx, even on failure; held, max and errors as below. */
int render_start_job(const struct render_job *job, size_t held, size_t max, struct render **ret,
		     struct diag *diag);

/*
 * Start formatting s, less the figures of `before` (NULL: all). Takes ownership of both, even on
 * failure; copies what q refers to. held: bytes
 * of profiles being sent; max: limit including this one. Returns 0 or a negative errno.
 */
int render_start(struct snapshot *s, struct snapshot *before, const struct snapshot_query *q,
		 size_t held, size_t max, struct render **ret, struct diag *diag);

/* Has the thread finished or failed? Does not block. */
bool render_done(struct render *r);

/*
 * Wait for the thread and fill rs with its output, as a memory file. r must still be freed. -EFBIG:
 * larger than max; -ENOBUFS: larger than the other profiles leave.
 */
int render_take(struct render *r, struct response *rs, struct diag *diag);

/* Waits for the thread. NULL is accepted. */
void render_free(struct render *r);
DEFINE_FREEP(struct render, render_free)

#endif
