/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cuts what the attached targets do into intervals of one length, for the pusher: each is the
 * difference of two snapshots. Snapshots are taken in the event loop, the rest is done by the
 * pusher's encoder thread.
 */
#ifndef PYPROF_RUN_CUTTER_H
#define PYPROF_RUN_CUTTER_H

#include "base/cleanup.h"
#include "push/pusher.h"
#include "session/session.h"

struct cutter;

struct cutter_opts {
	struct sessions *sessions; /* borrowed */
	struct pusher *pusher;	   /* borrowed; freed before the cutter, as its thread uses it */
	uint64_t every_ns;
	const char *service; /* borrowed; NULL: by the command line */
};

/* *ret is owned by the caller. */
int cutter_new(struct sd_event *event, const struct cutter_opts *opts, struct cutter **ret,
	       struct diag *diag);
/*
 * Cuts the present interval of a target (pid) or of all (0). last: it is their last one, as they will
 * be detached; also of those that are detached with it.
 */
void cutter_cut(struct cutter *c, pid_t pid, bool last);
/* Cuts the last intervals, up to now, and no more after them. */
void cutter_finish(struct cutter *c);
void cutter_free(struct cutter *c);
DEFINE_FREEP(struct cutter, cutter_free)

#endif
