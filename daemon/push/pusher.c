// SPDX-License-Identifier: BSD-2-Clause
/* Pushing intervals to receivers: see pusher.h. */
#include "push/pusher.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

struct pusher {
	struct sd_event *event; /* borrowed */
	struct transport_opts transport;
	char *token_file, *tenant, *ca_file; /* owned; the options refer to them */
	struct receiver *receivers[PUSHER_MAX];
	size_t n;
	struct encoder *encoder;
	struct sd_event_source *encoded; /* the encoder has results */
	struct sd_event_source *finish;	 /* the deadline */
	void (*done)(void *ctx);	 /* NULL: not finishing, or called */
	void *done_ctx;
};

/* ---- options ---- */

/* A token belongs to one server. */
static int check_one_origin(const struct push_url *first, const struct push_url *other,
			    struct diag *diag)
{
	if (strcmp(first->origin, other->origin) == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "start a daemon for each, or use a proxy",
			"--push-token-file with receivers on several servers");
}

/* Metrics could not tell them apart, and one would get everything twice. */
static int check_distinct(const struct push_url *urls, size_t n, struct diag *diag)
{
	char text[PUSH_URL_TEXT], other[PUSH_URL_TEXT];

	push_url_text(&urls[n], text);
	for (size_t i = 0; i < n; i++)
		if (strcmp(push_url_text(&urls[i], other), text) == 0)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "",
					"receiver '%s' is given twice", text);
	return 0;
}

static int check_files(const struct pusher_opts *opts, struct diag *diag)
{
	struct transport_secrets secrets;
	int r = opts->nurls ? transport_read_secrets(&opts->transport, &secrets, diag) : 0;

	if (opts->nurls && r == 0)
		transport_secrets_deinit(&secrets);
	return r;
}

int pusher_check(const struct pusher_opts *opts, struct diag *diag)
{
	struct push_url urls[PUSHER_MAX];

	if (opts->nurls > PUSHER_MAX)
		return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "", "more than %d receivers",
				PUSHER_MAX);
	for (size_t i = 0; i < opts->nurls; i++) {
		int r = 0;

		if (!receiver_check(opts->urls[i], &opts->transport, &urls[i], diag))
			return -EINVAL;
		if (opts->transport.token_file)
			r = check_one_origin(&urls[0], &urls[i], diag);
		if (r == 0)
			r = check_distinct(urls, i, diag);
		if (r < 0)
			return r;
	}
	return check_files(opts, diag);
}

static int copy_text(char **own, const char **ref)
{
	if (!*ref)
		return 0;
	*own = strdup(*ref);
	*ref = *own;
	return *own ? 0 : -ENOMEM;
}

static int copy_opts(struct pusher *p, const struct transport_opts *opts)
{
	p->transport = *opts;
	if (copy_text(&p->token_file, &p->transport.token_file) < 0 ||
	    copy_text(&p->tenant, &p->transport.tenant) < 0 ||
	    copy_text(&p->ca_file, &p->transport.ca_file) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- the end ---- */

static bool all_idle(const struct pusher *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!receiver_idle(p->receivers[i]))
			return false;
	return encoder_pending(p->encoder) == 0;
}

static void call_done(struct pusher *p)
{
	void (*done)(void *ctx) = p->done;

	p->done = NULL;
	p->finish = sd_event_source_disable_unref(p->finish);
	if (done)
		done(p->done_ctx);
}

static void on_changed(void *ctx)
{
	struct pusher *p = ctx;

	if (p->done && all_idle(p))
		call_done(p);
}

static int on_deadline(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source, (void)usec;
	call_done(userdata);
	return 0;
}

int pusher_finish(struct pusher *p, unsigned int ms, void (*done)(void *ctx), void *ctx)
{
	/* If nothing is left, the timer calls it, too: from the event loop. */
	uint64_t us = all_idle(p) ? 0 : (uint64_t)ms * 1000;
	int r = sd_event_add_time_relative(p->event, &p->finish, CLOCK_MONOTONIC, us, 1000,
					   on_deadline, p);

	if (r < 0)
		return r;
	p->done = done;
	p->done_ctx = ctx;
	for (size_t i = 0; i < p->n; i++)
		receiver_hurry(p->receivers[i]);
	return 0;
}

/* ---- intervals ---- */

static void add_result(struct pusher *p, struct encoder_result *result)
{
	for (size_t i = 0; i < p->n && i < result->n; i++) {
		if (result->requests[i])
			receiver_add(p->receivers[i], TAKE_PTR(result->requests[i]));
		else
			receiver_add_failed(p->receivers[i], result->diag.msg);
	}
	encoder_result_free(result);
}

static int on_encoded(struct sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct pusher *p = userdata;
	struct encoder_result *result;

	(void)source, (void)fd, (void)events;
	while ((result = encoder_take(p->encoder)))
		add_result(p, result);
	on_changed(p);
	return 0;
}

void pusher_add_job(struct pusher *p, const struct encoder_job *job)
{
	if (encoder_add(p->encoder, job))
		return;
	for (size_t i = 0; i < p->n; i++)
		receiver_add_failed(p->receivers[i], "intervals come faster than they are encoded");
}

static int make_given(void *ctx, struct interval **ret, struct diag *diag)
{
	(void)diag;
	*ret = ctx;
	return 0;
}

static void cancel_given(void *ctx)
{
	interval_free(ctx);
}

void pusher_add(struct pusher *p, struct interval *iv)
{
	pusher_add_job(
		p, &(struct encoder_job){.make = make_given, .cancel = cancel_given, .ctx = iv});
}

/* ---- beginning ---- */

static int add_receivers(struct pusher *p, const struct pusher_opts *opts, struct diag *diag)
{
	const struct receiver_opts all = {
		.transport = &p->transport,
		.queue_bytes = opts->queue_bytes ? opts->queue_bytes : PUSHER_QUEUE_BYTES,
		.queue_count = PUSHER_QUEUE_COUNT,
		.changed = on_changed,
		.ctx = p,
	};

	for (size_t i = 0; i < opts->nurls; i++) {
		struct receiver_opts ro = all;
		int r;

		ro.url = opts->urls[i];
		r = receiver_new(p->event, &ro, &p->receivers[i], diag);
		if (r < 0)
			return r;
		p->n++;
	}
	return 0;
}

static int add_encoder(struct pusher *p)
{
	const struct push_kind *kinds[PUSHER_MAX];
	int r;

	for (size_t i = 0; i < p->n; i++)
		kinds[i] = receiver_kind(p->receivers[i]);
	r = encoder_new(kinds, p->n, &p->encoder);
	return r < 0 ? r
		     : sd_event_add_io(p->event, &p->encoded, encoder_fd(p->encoder), EPOLLIN,
				       on_encoded, p);
}

int pusher_new(struct sd_event *event, const struct pusher_opts *opts, struct pusher **ret,
	       struct diag *diag)
{
	_cleanup_(pusher_freep) struct pusher *p = NULL;
	int r = pusher_check(opts, diag);

	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p || copy_opts(p, &opts->transport) < 0)
		return diag_errno(diag, ENOMEM, "cannot push");
	p->event = event;
	r = add_receivers(p, opts, diag);
	if (r == 0)
		r = add_encoder(p);
	if (r < 0)
		return diag_errno(diag, -r, "cannot push");
	*ret = TAKE_PTR(p);
	return 0;
}

void pusher_free(struct pusher *p)
{
	if (!p)
		return;
	sd_event_source_disable_unref(p->encoded);
	sd_event_source_disable_unref(p->finish);
	encoder_free(p->encoder);
	for (size_t i = 0; i < p->n; i++)
		receiver_free(p->receivers[i]);
	free(p->token_file);
	free(p->tenant);
	free(p->ca_file);
	free(p);
}

bool pusher_status(const struct pusher *p, size_t i, struct push_status *ret)
{
	if (!p || i >= p->n)
		return false;
	receiver_status(p->receivers[i], ret);
	return true;
}
