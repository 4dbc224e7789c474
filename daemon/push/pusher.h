/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushing: intervals go to each receiver, with a bounded queue and a process of its own for each.
 *
 *  - An encoder thread makes requests of intervals (encoder.h).
 *  - The queue of a receiver is in the daemon (queue.h), so that nothing is lost with a sender.
 *  - The sender (sender.h), a process without privileges, gets one request at a time, sends it and
 *    returns the verdict. One that ends is started again, after a wait that grows.
 *
 * A request that was being sent when its sender ended is sent again; the receiver recognises it by
 * the interval's id.
 */
#ifndef PYPROF_PUSH_PUSHER_H
#define PYPROF_PUSH_PUSHER_H

#include "push/encoder.h"
#include "push/receiver.h"

struct sd_event;
struct pusher;

#define PUSHER_MAX	   8 /* receivers */
#define PUSHER_QUEUE_BYTES ((size_t)64 << 20)
#define PUSHER_QUEUE_COUNT 20000u

struct pusher_opts {
	const char *const *urls; /* all borrowed */
	size_t nurls;
	struct transport_opts transport; /* of all receivers */
	size_t queue_bytes;		 /* of each; 0: PUSHER_QUEUE_BYTES */
};

/* Checks the options and reads their files. Exit codes 1, 2. */
int pusher_check(const struct pusher_opts *opts, struct diag *diag);

/* Copies what it needs of opts. *ret is owned by the caller. Exit codes 1, 2. */
int pusher_new(struct sd_event *event, const struct pusher_opts *opts, struct pusher **ret,
	       struct diag *diag);
/* Ends the senders. What is still queued is lost and logged. */
void pusher_free(struct pusher *p);
DEFINE_FREEP(struct pusher, pusher_free)

/* Sends the interval to all receivers. Takes it. */
void pusher_add(struct pusher *p, struct interval *iv);
/* The same for an interval that has to be computed first, in the encoder's thread. */
void pusher_add_job(struct pusher *p, const struct encoder_job *job);

/* Calls done once, from the event loop, when everything is sent or after ms milliseconds. */
int pusher_finish(struct pusher *p, unsigned int ms, void (*done)(void *ctx), void *ctx);

/* The i-th receiver's; false: there are fewer. p NULL: there are none. */
bool pusher_status(const struct pusher *p, size_t i, struct push_status *ret);

#endif
