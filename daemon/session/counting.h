/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target that is counted: brings the sums that the BPF side keeps into the profile. Sums of
 * threads that have ended are taken out of there, for others take their places.
 */
#ifndef PYPROF_SESSION_COUNTING_H
#define PYPROF_SESSION_COUNTING_H

#include <stdbool.h>
#include <stddef.h>

#include "event/event.h"
#include "probe/probe.h"
#include "profile/profile.h"

struct counting {
	struct event *exits; /* THREAD_EXITs, of which the profile knows nothing yet */
	size_t nexits, cap;
};

void counting_deinit(struct counting *c);

/* A thread has ended. */
void counting_exit(struct counting *c, const struct event *e);

/*
 * The profile is as of now. drain: hands the ring's records over, as always; it is called when the
 * sums have been read, so that what names their functions has come. final: the probes are off, and
 * all sums are taken out.
 */
struct counting_sync {
	struct probe *probe;
	struct profile *profile;
	void (*drain)(void *ctx);
	void *ctx;
	bool final;
};
void counting_sync(struct counting *c, const struct counting_sync *how);
/* From now on all sums begin at 0; the profile is the caller's to clear. */
void counting_clear(struct counting *c, struct probe *probe, struct profile *profile);

#endif
