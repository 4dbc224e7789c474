/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timelines that are being taken of the set's targets: the part of session.h that is about
 * them. For session/ only.
 */
#ifndef PYPROF_SESSION_TIMELINES_H
#define PYPROF_SESSION_TIMELINES_H

#include "session/session.h"
#include "session/tracee.h"

#define TIMELINES_MAX 16u

struct timelines {
	struct {
		struct timeline *timeline; /* NULL: a free place */
		uint32_t id;
		uint64_t read_ns; /* when it was last fetched from */
	} v[TIMELINES_MAX];
	uint32_t last_id;
};

/* The set's, in set.c. The i-th target; NULL: there are not that many. */
struct tracee *sessions_tracee(const struct sessions *ss, size_t i);
struct timelines *sessions_timelines(struct sessions *ss);

/* Drop those that nobody fetches; all. */
void timelines_forget(struct sessions *ss);
void timelines_close(struct sessions *ss);

#endif
