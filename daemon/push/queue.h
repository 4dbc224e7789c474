/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that wait to be sent to one receiver, oldest first, bounded in number and bytes: if
 * one more does not fit, the oldest are dropped and counted. And when to try again. Pure.
 *
 * The requests being sent, one or a batch, are taken out of the queue, but their bytes still count.
 * They go back to the front if they have to be sent again; if there is no memory, they are dropped.
 */
#ifndef PYPROF_PUSH_QUEUE_H
#define PYPROF_PUSH_QUEUE_H

#include "push/sink.h"

enum push_drop {
	PUSH_DROP_FULL,	     /* the queue was full */
	PUSH_DROP_TOO_LARGE, /* larger than the whole queue */
	PUSH_DROP_REFUSED,   /* the receiver does not take it */
	PUSH_DROP_FAILED,    /* it could not be encoded */
	PUSH_DROP_ENDED,     /* the daemon ended first */
	PUSH_DROPS
};

/* "full", "too_large", …; used in status and metrics. */
extern const char *const push_drop_names[PUSH_DROPS];

struct push_queue_node;

#define PUSH_BATCH_MAX 256u /* requests sent together */

struct push_queue {
	size_t max_bytes, max_count;
	size_t bytes, count; /* including those taken out */
	struct push_queue_node *first, *last;
	struct push_request *taken[PUSH_BATCH_MAX]; /* out, oldest first */
	size_t ntaken;
	uint64_t sent, retried;
	uint64_t dropped[PUSH_DROPS];
};

/* Both limits above 0. */
void push_queue_init(struct push_queue *q, size_t max_bytes, size_t max_count);
void push_queue_deinit(struct push_queue *q);

/* Takes the request, also if it is dropped or memory is short. */
void push_queue_add(struct push_queue *q, struct push_request *rq);
/* Takes the oldest one out; it still belongs to the queue. NULL: empty, or one is out already. */
const struct push_request *push_queue_take(struct push_queue *q);
/*
 * The same for up to max of the oldest ones, at most PUSH_BATCH_MAX and max_bytes, but at least one.
 * Returns their number; they are in q->taken.
 */
size_t push_queue_take_batch(struct push_queue *q, size_t max, size_t max_bytes);
/* What has become of those taken out: sent or dropped; or they return to the front. */
void push_queue_done(struct push_queue *q);
void push_queue_drop(struct push_queue *q, enum push_drop why);
void push_queue_return(struct push_queue *q);
/* Drops all, those taken out included. */
void push_queue_clear(struct push_queue *q, enum push_drop why);

uint64_t push_queue_dropped(const struct push_queue *q);

/*
 * Waits between attempts: twice as long after each failure, with a random part, so that many
 * senders do not return at the same time.
 */
#define PUSH_BACKOFF_FIRST_MS 1000u
#define PUSH_BACKOFF_MAX_MS   (5u * 60 * 1000)
#define PUSH_RETRY_AFTER_MAX  3600u /* s; a receiver can demand no longer wait */

struct push_backoff {
	unsigned int failures; /* in a row */
};

/*
 * Returns the milliseconds to wait after one more failure. random: any number. retry_after_s: what
 * the receiver demands at least; 0: nothing.
 */
uint64_t push_backoff_next(struct push_backoff *b, uint32_t random, uint64_t retry_after_s);
void push_backoff_reset(struct push_backoff *b);

#endif
