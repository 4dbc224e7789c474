// SPDX-License-Identifier: BSD-2-Clause
/* Pushing in status and metrics: see pushes.h. */
#include "server/pushes.h"

#include <stddef.h>

/* ---- status ---- */

static json_t *dropped_json(const struct push_status *st)
{
	json_t *o = json_object();

	for (int i = 0; i < PUSH_DROPS; i++)
		json_object_set_new(o, push_drop_names[i],
				    json_integer((json_int_t)st->dropped[i]));
	return o;
}

static json_t *time_json(uint64_t unix_ns)
{
	return unix_ns ? json_integer((json_int_t)unix_ns) : json_null();
}

static json_t *json_of_push(const struct push_status *st)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:s, s:o, s:o}", "url", st->url,
			 "queued", (json_int_t)st->queued, "queued_bytes",
			 (json_int_t)st->queued_bytes, "sent", (json_int_t)st->sent, "retried",
			 (json_int_t)st->retried, "dropped", dropped_json(st), "sender_restarts",
			 (json_int_t)st->restarts, "last_error", st->last_error,
			 "last_error_unix_ns", time_json(st->last_error_unix_ns),
			 "last_sent_unix_ns", time_json(st->last_sent_unix_ns));
}

json_t *json_of_pushes(const struct pusher *p)
{
	json_t *list = json_array();
	struct push_status st;

	for (size_t i = 0; pusher_status(p, i, &st); i++)
		json_array_append_new(list, json_of_push(&st));
	return list;
}

/* ---- metrics ---- */

static const struct {
	struct exposition_family family;
	size_t offset; /* of a uint64_t */
} families[] = {
	{{"pyprofd_push_queued_intervals", "Intervals that wait to be sent.", NULL,
	  EXPOSITION_GAUGE},
	 offsetof(struct push_status, queued)},
	{{"pyprofd_push_queued_bytes", "Memory of the intervals that wait to be sent.", "bytes",
	  EXPOSITION_GAUGE},
	 offsetof(struct push_status, queued_bytes)},
	{{"pyprofd_push_sent", "Intervals that the receiver has accepted.", NULL,
	  EXPOSITION_COUNTER},
	 offsetof(struct push_status, sent)},
	{{"pyprofd_push_retries", "Attempts that have to be repeated.", NULL, EXPOSITION_COUNTER},
	 offsetof(struct push_status, retried)},
	{{"pyprofd_push_sender_restarts", "Sending processes that ended or did not answer.", NULL,
	  EXPOSITION_COUNTER},
	 offsetof(struct push_status, restarts)},
};
static const struct exposition_family dropped = {
	"pyprofd_push_dropped", "Intervals that were not sent.", NULL, EXPOSITION_COUNTER};

void pushes_get(const struct pusher *p, struct pushes *ret)
{
	ret->n = 0;
	while (ret->n < PUSHER_MAX && pusher_status(p, ret->n, &ret->v[ret->n]))
		ret->n++;
}

static void write_figure(const struct push_status *st, size_t offset, struct exposition *e)
{
	const struct exposition_labels labels = {{{"receiver", st->url}}, 1};

	exposition_count(e, &labels, *(const uint64_t *)((const char *)st + offset));
}

static void write_dropped(const struct push_status *st, struct exposition *e)
{
	for (int why = 0; why < PUSH_DROPS; why++) {
		const struct exposition_labels labels = {
			{{"receiver", st->url}, {"reason", push_drop_names[why]}}, 2};

		exposition_count(e, &labels, st->dropped[why]);
	}
}

void pushes_write_metrics(const struct pushes *p, struct exposition *e)
{
	if (!p->n)
		return;
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		exposition_begin(e, &families[f].family);
		for (size_t i = 0; i < p->n; i++)
			write_figure(&p->v[i], families[f].offset, e);
	}
	exposition_begin(e, &dropped);
	for (size_t i = 0; i < p->n; i++)
		write_dropped(&p->v[i], e);
}
