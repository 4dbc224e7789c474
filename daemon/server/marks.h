/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named moments of the profile: the last snapshot that was taken under each name, from which
 * GET /v1/snapshot?since=NAME counts. At most MARKS_MAX names and `max` bytes are kept: the one
 * that was used least recently is dropped for a new one, so that the next request of that name gets
 * everything.
 */
#ifndef PYPROF_SERVER_MARKS_H
#define PYPROF_SERVER_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

#define MARKS_MAX      8u
#define MARKS_NAME_MAX 64u /* bytes, including the terminator */
#define MARKS_BYTES    ((size_t)128 << 20)

struct mark {
	char name[MARKS_NAME_MAX];
	struct snapshot *snapshot; /* NULL: free */
	size_t bytes;
	uint64_t used; /* larger: more recently */
};

struct marks {
	struct mark v[MARKS_MAX];
	uint64_t clock;
	size_t max; /* 0: MARKS_BYTES */
};

/* Returns whether this can be a name: 1 to 63 letters, digits, '.', '-' and '_'. */
int marks_check(const char *name, struct diag *diag);

/*
 * Keeps a copy of s, as taken, under the name. *ret is the snapshot that the name had, which then
 * belongs to the caller; NULL: none. -EFBIG: it is larger than all marks together may be; the
 * name's former snapshot is kept.
 */
int marks_exchange(struct marks *m, const char *name, const struct snapshot *s,
		   struct snapshot **ret, struct diag *diag);

void marks_deinit(struct marks *m);

#endif
