/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spans of time that clients wait for: the profile of a span is the difference of a snapshot at its end
 * and one at its start, which is kept here. Their number and size are limited. Pure.
 */
#ifndef PYPROF_SERVER_SPANS_H
#define PYPROF_SERVER_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

#define SPANS_MAX   8u
#define SPANS_BYTES ((size_t)128 << 20)

struct span {
	uint32_t id; /* 0: free */
	struct snapshot *before;
	size_t bytes;
	uint64_t end_ns; /* CLOCK_MONOTONIC */
};

struct spans {
	struct span v[SPANS_MAX];
	uint32_t last; /* id */
	size_t max;    /* 0: SPANS_BYTES */
};

/* Takes ownership of `before`, even on failure. -EBUSY (exit code 6): there are too many spans, or they
 * are too large. */
int spans_begin(struct spans *s, struct snapshot *before, uint64_t end_ns, uint32_t *ret_id,
		struct diag *diag);
/* NULL: it has ended. */
struct span *spans_find(struct spans *s, uint32_t id);
/* Nothing happens if it has ended. */
void spans_end(struct spans *s, uint32_t id);
void spans_deinit(struct spans *s);

#endif
