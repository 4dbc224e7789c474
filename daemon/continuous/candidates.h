/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that are too young to be looked at. Most processes of a machine end within moments:
 * only those that reach the age are inspected. Plain data, pure.
 */
#ifndef PYPROF_CONTINUOUS_CANDIDATES_H
#define PYPROF_CONTINUOUS_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pyprof/bpf_arrivals.h"

#define CANDIDATES_MAX	16384u
#define CANDIDATES_LAST UINT64_MAX

struct candidate {
	pid_t pid;
	uint64_t since_ns;	      /* its exec or fork, CLOCK_MONOTONIC; 0: found by a scan */
	struct pyp_arrival_file file; /* ino 0: unknown */
};

/* All zero: none */
struct candidates {
	struct candidate *v; /* by since_ns, oldest first */
	size_t n, room;
	uint64_t short_lived; /* ended before they were looked at */
	uint64_t overflow;    /* more than CANDIDATES_MAX, or no memory */
};

void candidates_deinit(struct candidates *c);

/* It begins again if it is there already. */
void candidates_add(struct candidates *c, const struct candidate *new);
/* Returns whether it was there. counted: as short-lived. */
bool candidates_remove(struct candidates *c, pid_t pid, bool counted);
/* One that was taken has ended before it could be looked at: short-lived, if its start was reported. */
void candidates_gone(struct candidates *c, const struct candidate *who);

/* Removes the oldest one if it has this age now. */
bool candidates_take(struct candidates *c, uint64_t now_ns, uint64_t age_ns, struct candidate *ret);
/* When the oldest one has this age; CANDIDATES_LAST: there is none. */
uint64_t candidates_due(const struct candidates *c, uint64_t age_ns);

/*
 * Files of programs that were found not to run Python, by their number of times. Plain data, pure.
 * When it is full, the oldest place is used again.
 */
#define FOREIGN_MAX   1024u
#define FOREIGN_TIMES 3u

struct foreign {
	struct {
		struct pyp_arrival_file file;
		unsigned int times;
	} v[FOREIGN_MAX];
	size_t next;
};

/* Counts it. Returns whether it is known well enough to be left out from now on: once. */
bool foreign_seen(struct foreign *f, const struct pyp_arrival_file *file);

#endif
