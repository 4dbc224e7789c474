/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of what records the calls of targets for clients: timelines, slow calls. Each recorder has a
 * number; those that no client has asked about for a while are dropped. Private to session/.
 */
#ifndef PYPROF_SESSION_RECORDERS_H
#define PYPROF_SESSION_RECORDERS_H

#include "session/session.h"
#include "session/tracee.h"

#define RECORDERS_MAX 16u

struct recorder_kind {
	unsigned int max; /* simultaneous ones, up to RECORDERS_MAX */
	uint64_t forgotten_ns;
	const char *impossible; /* in modes without a timeline: "it has no timeline" */
	int (*begin)(struct tracee *t, void *of, struct diag *diag);
	void (*end)(struct tracee *t, const void *of); /* does nothing if `of` does not record t */
	void (*free)(void *of);
};

struct recorder {
	void *of; /* NULL: a free place */
	uint32_t id;
	uint64_t read_ns; /* CLOCK_MONOTONIC of the last request */
};

struct recorders {
	const struct recorder_kind *kind;
	struct recorder v[RECORDERS_MAX];
	uint32_t last_id;
};

/* Implemented in set.c. sessions_tracee: the i-th target; NULL: i is out of range. */
struct tracee *sessions_tracee(const struct sessions *ss, size_t i);

/* Returns the recorder with this number, or NULL. */
struct recorder *recorders_find(struct recorders *rs, uint32_t id);

/*
 * Prepares to record from now on: reads what is still in the rings, which is from before. Returns a
 * free place, or NULL: there is none.
 */
struct recorder *recorders_prepare(struct sessions *ss, struct recorders *rs);
/*
 * Records one target, or all (pid 0), with `of`, whose ownership passes to the table even if this
 * fails. r is from recorders_prepare().
 */
int recorders_begin(struct sessions *ss, struct recorders *rs, struct recorder *r, void *of,
		    pid_t pid, struct diag *diag);

/* Detaches it from every target, then frees it. */
void recorders_close(struct sessions *ss, struct recorders *rs, struct recorder *r);
void recorders_close_all(struct sessions *ss, struct recorders *rs);
/* Closes those that no client has asked about for a while. */
void recorders_forget(struct sessions *ss, struct recorders *rs);

#endif
