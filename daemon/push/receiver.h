/* SPDX-License-Identifier: BSD-2-Clause */
/* One receiver: its queue, its sender and when to try again. Part of the pusher (pusher.h). */
#ifndef PYPROF_PUSH_RECEIVER_H
#define PYPROF_PUSH_RECEIVER_H

#include "push/queue.h"
#include "push/transport.h"

struct sd_event;
struct receiver;

struct receiver_opts {
	const char *url;			/* borrowed until receiver_new returns */
	const struct transport_opts *transport; /* borrowed, as long as the receiver exists */
	size_t queue_bytes, queue_count;
	void (*changed)(void *ctx); /* it may be idle now */
	void *ctx;
};

/* Parses and checks the address; starts the sender. *ret is owned by the caller. */
int receiver_new(struct sd_event *event, const struct receiver_opts *opts, struct receiver **ret,
		 struct diag *diag);
void receiver_free(struct receiver *r);

/* The kind of an address, checked with the options. NULL: *diag is set. */
const struct push_kind *receiver_check(const char *url, const struct transport_opts *opts,
				       struct push_url *ret, struct diag *diag);

const struct push_kind *receiver_kind(const struct receiver *r);
/* Queues the request and sends it as soon as possible. Takes it. */
void receiver_add(struct receiver *r, struct push_request *rq);
/* Counts an interval that has no request, and why. */
void receiver_add_failed(struct receiver *r, const char *why);
/* Try again now what waits for a later attempt. */
void receiver_hurry(struct receiver *r);
bool receiver_idle(const struct receiver *r);

struct push_status {
	char url[PUSH_URL_TEXT];
	uint64_t queued, queued_bytes; /* including the one being sent */
	uint64_t sent, retried;
	uint64_t dropped[PUSH_DROPS];
	uint64_t restarts;				/* of its sender */
	char last_error[PUSH_MESSAGE_MAX];		/* "": none yet */
	uint64_t last_error_unix_ns, last_sent_unix_ns; /* 0: never */
};

void receiver_status(const struct receiver *r, struct push_status *ret);

#endif
