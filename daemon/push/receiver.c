// SPDX-License-Identifier: BSD-2-Clause
/* One receiver: see receiver.h. */
#include "push/receiver.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "push/kinds.h"
#include "push/sender.h"

#define GRACE_US     (10 * UINT64_C(1000000)) /* a sender's, after the timeout of its request */
#define LOG_EVERY_NS (UINT64_C(60) * 1000000000)
#define BATCH_BYTES  ((size_t)4 << 20)

struct receiver {
	struct sd_event *event; /* borrowed */
	struct receiver_opts opts;
	struct push_url url;
	const struct push_kind *kind;
	struct transport_secrets secrets;
	struct push_queue queue;
	struct push_backoff backoff;
	struct helper sender;
	struct sd_event_source *io;
	struct sd_event_source *timer; /* the next attempt, or the sender's deadline */
	struct sender_out out;
	struct sender_in in;
	size_t alone;	/* number of requests to be sent one by one: a batch of them was refused */
	bool waiting;	/* for the next attempt */
	bool announced; /* the log has a failure, and no success after it */
	uint64_t restarts, last_error_ns, last_sent_ns, logged_ns;
	uint64_t logged_dropped;
	char last_error[PUSH_MESSAGE_MAX];
};

static void kick(struct receiver *r);

/* ---- failures ---- */

static void set_timer(struct receiver *r, uint64_t us)
{
	(void)sd_event_source_set_time_relative(r->timer, us);
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

/* One line a minute at most, with what has happened since the last one. */
static void log_failure(struct receiver *r)
{
	uint64_t now = clock_monotonic_ns(), dropped = push_queue_dropped(&r->queue);
	char url[PUSH_URL_TEXT];

	if (r->logged_ns && now - r->logged_ns < LOG_EVERY_NS)
		return;
	r->logged_ns = now;
	r->announced = true;
	log_warning("push to %s: %s; %zu intervals wait, %llu dropped since the last message",
		    push_url_text(&r->url, url), r->last_error, r->queue.count,
		    (unsigned long long)(dropped - r->logged_dropped));
	r->logged_dropped = dropped;
}

static void note_error(struct receiver *r, const char *text)
{
	snprintf(r->last_error, sizeof(r->last_error), "%.*s", PUSH_MESSAGE_MAX - 1, text);
	r->last_error_ns = clock_unix_ns();
	log_failure(r);
}

static void note_success(struct receiver *r)
{
	char url[PUSH_URL_TEXT];

	r->last_sent_ns = clock_unix_ns();
	if (r->announced)
		log_warning("push to %s: works again; %zu intervals wait",
			    push_url_text(&r->url, url), r->queue.count);
	r->announced = false;
}

static void wait_and_retry(struct receiver *r, uint64_t retry_after_s)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_monotonic_ns();
	r->waiting = true;
	set_timer(r, 1000 * push_backoff_next(&r->backoff, random, retry_after_s));
}

/* ---- the sender ---- */

static void end_sender(struct receiver *r)
{
	r->io = sd_event_source_disable_unref(r->io);
	helper_end(&r->sender);
}

/* What it was sending may have arrived; it is sent again, with the same id. */
static void sender_failed(struct receiver *r, const char *why)
{
	end_sender(r);
	push_queue_return(&r->queue);
	r->restarts++;
	note_error(r, why);
	wait_and_retry(r, 0);
}

/* How it ended is a part of the message. */
static void sender_ended(struct receiver *r)
{
	char ending[HELPER_ENDING], why[HELPER_ENDING + 32];

	snprintf(why, sizeof(why), "the sending process %s", helper_ending(&r->sender, ending));
	sender_failed(r, why);
}

/* With a file that may have changed, the next sender reads it again. */
static bool is_unauthorised(const struct receiver *r, const struct push_verdict *v)
{
	return r->opts.transport->token_file && (v->status == 401 || v->status == 403);
}

static void take_verdict(struct receiver *r, const struct push_verdict *v)
{
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	if (is_unauthorised(r, v))
		end_sender(r);
	if (v->result == PUSH_RETRY) {
		push_queue_return(&r->queue);
		note_error(r, v->message);
		wait_and_retry(r, v->retry_after_s);
		return;
	}
	push_backoff_reset(&r->backoff);
	if (v->result == PUSH_REFUSE && r->queue.ntaken > 1) {
		r->alone = r->queue.ntaken;
		push_queue_return(&r->queue);
	} else if (v->result == PUSH_REFUSE) {
		push_queue_drop(&r->queue, PUSH_DROP_REFUSED);
		note_error(r, v->message);
	} else {
		push_queue_done(&r->queue);
		note_success(r);
	}
	kick(r);
}

static void go_on_writing(struct receiver *r)
{
	int err = sender_write(&r->out, r->sender.fd);

	if (err == 0)
		(void)sd_event_source_set_io_events(r->io, EPOLLIN);
	else if (err != -EAGAIN)
		sender_ended(r);
}

static int on_io(struct sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct receiver *r = userdata;
	int err = sender_read(&r->in, fd);

	(void)source;
	/* A verdict that nothing was sent for is as invalid as a wrong one. */
	if (err == 0 && r->queue.ntaken)
		take_verdict(r, &r->in.verdict);
	else if (err == -EPIPE)
		sender_ended(r);
	else if (err != -EAGAIN)
		sender_failed(r, "the sending process sent an invalid answer");
	else if (events & EPOLLOUT)
		go_on_writing(r);
	if (receiver_idle(r))
		r->opts.changed(r->opts.ctx);
	return 0;
}

static void read_secrets_again(struct receiver *r)
{
	struct transport_secrets fresh;
	struct diag diag = {0};

	if (transport_read_secrets(r->opts.transport, &fresh, &diag) < 0) {
		note_error(r, diag.msg);
		return;
	}
	transport_secrets_deinit(&r->secrets);
	r->secrets = fresh;
}

static int start_sender(struct receiver *r)
{
	const struct sender_opts so = {
		.url = &r->url,
		.kind = r->kind,
		.transport = r->opts.transport,
		.secrets = &r->secrets,
		.max_bytes = r->queue.max_bytes,
	};
	int err = sender_start(&so, &r->sender);

	if (err < 0)
		return err;
	r->in.have = 0;
	return sd_event_add_io(r->event, &r->io, r->sender.fd, EPOLLIN, on_io, r);
}

/* The next request, or all that wait, if they can be sent together. */
static size_t take_next(struct receiver *r)
{
	size_t max = r->kind->batches && !r->alone ? PUSH_BATCH_MAX : 1;

	if (r->alone)
		r->alone--;
	return push_queue_take_batch(&r->queue, max, BATCH_BYTES);
}

/* Gives the next requests to the sender, if both are there. */
static void kick(struct receiver *r)
{
	unsigned int posts = r->kind->posts ? r->kind->posts : 1;
	size_t n;
	uint64_t timeout = r->opts.transport->timeout_ns ? r->opts.transport->timeout_ns
							 : TRANSPORT_TIMEOUT_NS;

	if (r->waiting || r->queue.ntaken || !r->queue.first)
		return;
	if (r->sender.fd < 0) {
		read_secrets_again(r);
		if (start_sender(r) < 0) {
			sender_failed(r, "cannot start a sending process");
			return;
		}
	}
	n = take_next(r);
	sender_begin(&r->out, r->queue.taken, n);
	set_timer(r, posts * (timeout / 1000) + GRACE_US);
	(void)sd_event_source_set_io_events(r->io, EPOLLIN | EPOLLOUT);
}

static int on_timer(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct receiver *r = userdata;

	(void)source, (void)usec;
	if (r->waiting) {
		r->waiting = false;
		kick(r);
	} else if (r->queue.ntaken) {
		sender_failed(r, "the sending process did not answer");
	}
	return 0;
}

/* ---- the interface ---- */

const struct push_kind *receiver_check(const char *url, const struct transport_opts *opts,
				       struct push_url *ret, struct diag *diag)
{
	const struct push_kind *kind;

	if (push_url_parse(url, ret, diag) < 0)
		return NULL;
	kind = push_kind_find(ret->kind, diag);
	return kind && transport_check(ret, opts, diag) == 0 ? kind : NULL;
}

int receiver_new(struct sd_event *event, const struct receiver_opts *opts, struct receiver **ret,
		 struct diag *diag)
{
	struct receiver *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return diag_errno(diag, ENOMEM, "cannot push");
	r->event = event;
	r->opts = *opts;
	r->opts.url = NULL;
	r->sender = HELPER_NONE;
	push_queue_init(&r->queue, opts->queue_bytes, opts->queue_count);
	r->kind = receiver_check(opts->url, opts->transport, &r->url, diag);
	if (!r->kind)
		err = -EINVAL;
	if (!err)
		err = transport_read_secrets(opts->transport, &r->secrets, diag);
	if (!err)
		err = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, 0, 1000,
						 on_timer, r);
	if (err >= 0)
		err = start_sender(r);
	if (err < 0) {
		receiver_free(r);
		return diag_errno(diag, -err, "cannot push");
	}
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	*ret = r;
	return 0;
}

void receiver_free(struct receiver *r)
{
	char url[PUSH_URL_TEXT];

	if (!r)
		return;
	if (r->queue.count)
		log_warning("push to %s: %zu intervals were not sent", push_url_text(&r->url, url),
			    r->queue.count);
	end_sender(r);
	sd_event_source_disable_unref(r->timer);
	push_queue_deinit(&r->queue);
	transport_secrets_deinit(&r->secrets);
	free(r);
}

const struct push_kind *receiver_kind(const struct receiver *r)
{
	return r->kind;
}

/* Drops are logged with the failure that causes them; alone, they would be many lines. */
void receiver_add(struct receiver *r, struct push_request *rq)
{
	push_queue_add(&r->queue, rq);
	kick(r);
}

void receiver_add_failed(struct receiver *r, const char *why)
{
	r->queue.dropped[PUSH_DROP_FAILED]++;
	note_error(r, why);
}

void receiver_hurry(struct receiver *r)
{
	if (!r->waiting)
		return;
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	r->waiting = false;
	kick(r);
}

bool receiver_idle(const struct receiver *r)
{
	return r->queue.count == 0;
}

void receiver_status(const struct receiver *r, struct push_status *ret)
{
	const struct push_queue *q = &r->queue;

	*ret = (struct push_status){
		.queued = q->count,
		.queued_bytes = q->bytes,
		.sent = q->sent,
		.retried = q->retried,
		.restarts = r->restarts,
		.last_error_unix_ns = r->last_error_ns,
		.last_sent_unix_ns = r->last_sent_ns,
	};
	memcpy(ret->dropped, q->dropped, sizeof(ret->dropped));
	memcpy(ret->last_error, r->last_error, sizeof(ret->last_error));
	push_url_text(&r->url, ret->url);
}
