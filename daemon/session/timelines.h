/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timelines being recorded of the set's targets; the corresponding part of session.h is public.
 * Private to session/.
 */
#ifndef PYPROF_SESSION_TIMELINES_H
#define PYPROF_SESSION_TIMELINES_H

#include "session/session.h"
#include "session/tracee.h"

#define TIMELINES_MAX 16u

struct timelines {
	struct {
		struct timeline *timeline; /* NULL: a free slot */
		uint32_t id;
		uint64_t read_ns; /* CLOCK_MONOTONIC of the last fetch */
	} v[TIMELINES_MAX];
	uint32_t last_id;
};

/* Implemented in set.c. sessions_tracee: the i-th target; NULL: i is out of range. */
struct tracee *sessions_tracee(const struct sessions *ss, size_t i);
struct timelines *sessions_timelines(struct sessions *ss);

/* forget drops timelines that no client has fetched for a while, close drops all. */
void timelines_forget(struct sessions *ss);
void timelines_close(struct sessions *ss);

#endif
