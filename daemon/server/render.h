/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a snapshot in a format, on a thread of its own: writing a large profile takes longer than a
 * ring takes to fill. A snapshot is a copy that nobody changes, so the thread shares nothing with the
 * rest of the daemon.
 */
#ifndef PYPROF_SERVER_RENDER_H
#define PYPROF_SERVER_RENDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "server/response.h"
#include "server/snapshot_query.h"
#include "snapshot/snapshot.h"

struct render;

/*
 * Begin to write s, which is taken over, also on failure; what q points to is copied. held and max:
 * bytes of the profiles that are being sent at this moment, and how many they may be with this one.
 * A negative errno if no thread can be started.
 */
int render_start(struct snapshot *s, const struct snapshot_query *q, size_t held, size_t max,
		 struct render **ret, struct diag *diag);

/* Is everything written, or has that failed? Does not block. */
bool render_done(struct render *r);

/*
 * Fill rs with what was written, as a file in memory. Waits until it is done; r stays to be freed.
 * -EFBIG: it is larger than max; -ENOBUFS: larger than what the other profiles leave.
 */
int render_take(struct render *r, struct response *rs, struct diag *diag);

/* Waits until it is done. */
void render_free(struct render *r);
DEFINE_FREEP(struct render, render_free)

#endif
