/* SPDX-License-Identifier: BSD-2-Clause */
/* Intervals of continuous mode: from the daemon, or from a directory. */
#ifndef PYPROFCTL_HISTORY_H
#define PYPROFCTL_HISTORY_H

#include <jansson.h>
#include <stddef.h>

#include "base/diag.h"
#include "history/gz.h"
#include "history/when.h"
#include "snapshot/snapshot.h"

/* Which intervals, and where they are */
struct history_of {
	const char *socket, *dir; /* dir NULL: the daemon's */
	struct when_span span;
	const char *const *where; /* conditions, see history/where.h */
	size_t nwhere;
};

/* A list as GET /v1/history gives it. New reference. */
int history_list(const struct history_of *of, json_t **ret, struct diag *diag);

/* Passes each one to fn, as gz_unpack() does. */
int history_each(const struct history_of *of, gz_unpack_fn fn, void *ctx, struct diag *diag);

/*
 * All of them added up; *ret belongs to the caller. text: the span as given, for messages. -ENOENT,
 * exit code 3: there is none.
 */
int history_sum(const struct history_of *of, const char *text, struct snapshot **ret,
		struct diag *diag);

#endif
