/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counting calls: copies the counts that the BPF programs keep into the profile. The counts of
 * threads that have ended are removed from the BPF map to make room for others.
 */
#ifndef PYPROF_SESSION_COUNTING_H
#define PYPROF_SESSION_COUNTING_H

#include <stdbool.h>
#include <stddef.h>

#include "event/event.h"
#include "probe/probe.h"
#include "profile/profile.h"

struct counting {
	struct event *exits; /* THREAD_EXIT records that the profile has not received yet */
	size_t nexits, cap;
};

void counting_deinit(struct counting *c);

/* Stores the exit of a thread until the next counting_sync. */
void counting_exit(struct counting *c, const struct event *e);

/*
 * Brings the profile up to date. drain: processes the records in the ring as usual; it is called
 * after the counts were read, so that the records which name their functions have arrived. final:
 * the probes are detached, so all counts are removed from the map.
 */
struct counting_sync {
	struct probe *probe;
	struct profile *profile;
	void (*drain)(void *ctx);
	void *ctx;
	bool final;
};
void counting_sync(struct counting *c, const struct counting_sync *how);
/* Resets all counts to 0. The caller clears the profile. */
void counting_clear(struct counting *c, struct probe *probe, struct profile *profile);

#endif
