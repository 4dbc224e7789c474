/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recorders of slow calls of the set's targets; the corresponding part of session.h is public.
 * Private to session/.
 */
#ifndef PYPROF_SESSION_SLOWS_H
#define PYPROF_SESSION_SLOWS_H

#include "session/session.h"
#include "session/tracee.h"

#define SLOWS_MAX 4u

struct slows {
	struct {
		struct slow *slow; /* NULL: free */
		uint32_t id;
		uint64_t read_ns; /* CLOCK_MONOTONIC of the last request */
	} v[SLOWS_MAX];
	uint32_t last_id;
};

/* Implemented in set.c */
struct slows *sessions_slows(struct sessions *ss);

/* forget drops recorders that no client has asked about for a while, close drops all. */
void slows_forget(struct sessions *ss);
void slows_close(struct sessions *ss);

#endif
