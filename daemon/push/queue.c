// SPDX-License-Identifier: BSD-2-Clause
/* Waiting requests: see queue.h. */
#include "push/queue.h"

#include <string.h>

struct push_queue_node {
	struct push_request *rq;
	struct push_queue_node *next;
};

const char *const push_drop_names[PUSH_DROPS] = {
	[PUSH_DROP_FULL] = "full",	 [PUSH_DROP_TOO_LARGE] = "too_large",
	[PUSH_DROP_REFUSED] = "refused", [PUSH_DROP_FAILED] = "failed",
	[PUSH_DROP_ENDED] = "ended",
};

void push_queue_init(struct push_queue *q, size_t max_bytes, size_t max_count)
{
	*q = (struct push_queue){.max_bytes = max_bytes, .max_count = max_count};
}

void push_queue_deinit(struct push_queue *q)
{
	push_queue_clear(q, PUSH_DROP_ENDED);
}

static void forget(struct push_queue *q, struct push_request *rq)
{
	q->count--;
	q->bytes -= push_request_bytes(rq);
	push_request_free(rq);
}

static struct push_request *unlink_first(struct push_queue *q)
{
	struct push_queue_node *n = q->first;
	struct push_request *rq = n->rq;

	q->first = n->next;
	if (!q->first)
		q->last = NULL;
	free(n);
	return rq;
}

static bool fits(const struct push_queue *q, size_t more)
{
	return q->count < q->max_count && q->bytes + more <= q->max_bytes;
}

/* Those taken out cannot be dropped now: they may have been received. */
static void make_room(struct push_queue *q, size_t more)
{
	while (q->first && !fits(q, more)) {
		forget(q, unlink_first(q));
		q->dropped[PUSH_DROP_FULL]++;
	}
}

static bool append(struct push_queue *q, struct push_request *rq)
{
	struct push_queue_node *n = calloc(1, sizeof(*n));

	if (!n)
		return false;
	n->rq = rq;
	if (q->last)
		q->last->next = n;
	else
		q->first = n;
	q->last = n;
	q->count++;
	q->bytes += push_request_bytes(rq);
	return true;
}

void push_queue_add(struct push_queue *q, struct push_request *rq)
{
	size_t bytes = push_request_bytes(rq);
	enum push_drop why = PUSH_DROP_FULL;

	if (bytes <= q->max_bytes) {
		make_room(q, bytes);
		/* else those taken out leave no room */
		if (fits(q, bytes) && append(q, rq))
			return;
	} else {
		why = PUSH_DROP_TOO_LARGE;
	}
	push_request_free(rq);
	q->dropped[why]++;
}

size_t push_queue_take_batch(struct push_queue *q, size_t max, size_t max_bytes)
{
	size_t bytes = 0;

	if (q->ntaken)
		return 0;
	while (q->first && q->ntaken < max && q->ntaken < PUSH_BATCH_MAX) {
		bytes += push_request_bytes(q->first->rq);
		if (q->ntaken && bytes > max_bytes)
			break;
		q->taken[q->ntaken++] = unlink_first(q);
	}
	return q->ntaken;
}

const struct push_request *push_queue_take(struct push_queue *q)
{
	return push_queue_take_batch(q, 1, 0) ? q->taken[0] : NULL;
}

void push_queue_done(struct push_queue *q)
{
	q->sent += q->ntaken;
	while (q->ntaken)
		forget(q, q->taken[--q->ntaken]);
}

void push_queue_drop(struct push_queue *q, enum push_drop why)
{
	q->dropped[why] += q->ntaken;
	while (q->ntaken)
		forget(q, q->taken[--q->ntaken]);
}

void push_queue_return(struct push_queue *q)
{
	while (q->ntaken) {
		struct push_queue_node *n = calloc(1, sizeof(*n));

		if (!n) {
			push_queue_drop(q, PUSH_DROP_FULL);
			return;
		}
		n->rq = q->taken[--q->ntaken];
		n->next = q->first;
		q->first = n;
		if (!q->last)
			q->last = n;
		q->retried++;
	}
}

void push_queue_clear(struct push_queue *q, enum push_drop why)
{
	push_queue_drop(q, why);
	while (q->first) {
		forget(q, unlink_first(q));
		q->dropped[why]++;
	}
}

uint64_t push_queue_dropped(const struct push_queue *q)
{
	uint64_t sum = 0;

	for (int i = 0; i < PUSH_DROPS; i++)
		sum += q->dropped[i];
	return sum;
}

/* ---- backoff ---- */

uint64_t push_backoff_next(struct push_backoff *b, uint32_t random, uint64_t retry_after_s)
{
	uint64_t ms = PUSH_BACKOFF_FIRST_MS;

	for (unsigned int i = 0; i < b->failures && ms < PUSH_BACKOFF_MAX_MS; i++)
		ms *= 2;
	ms = ms < PUSH_BACKOFF_MAX_MS ? ms : PUSH_BACKOFF_MAX_MS;
	ms = ms / 2 + random % (ms / 2 + 1);
	if (b->failures < 32)
		b->failures++;
	if (retry_after_s > PUSH_RETRY_AFTER_MAX)
		retry_after_s = PUSH_RETRY_AFTER_MAX;
	/* Not all senders at the very moment that the receiver names. */
	return ms > retry_after_s * 1000 ? ms : retry_after_s * 1000 + random % 1000;
}

void push_backoff_reset(struct push_backoff *b)
{
	b->failures = 0;
}
