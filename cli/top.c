// SPDX-License-Identifier: BSD-2-Clause
/* A live view's data: see top.h. */
#include "top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "top_history.h"

#define NS UINT64_C(1000000000)

static char *path_of(const struct top *t, const char *format)
{
	char pid[24], tid[24];
	char *path = client_add_param(t->client, strdup("/v1/snapshot"), "format", format);

	snprintf(pid, sizeof(pid), "%d", t->pid);
	snprintf(tid, sizeof(tid), "%d", t->tid);
	if (t->pid)
		path = client_add_param(t->client, path, "pid", pid);
	return t->tid ? client_add_param(t->client, path, "tid", tid) : path;
}

/* pattern: of the function whose callers are shown, or NULL */
static int request_rows(struct top *t, const char *pattern, json_t **ret, struct diag *diag)
{
	_cleanup_free_ char *path = path_of(t, "rows");

	if (path && pattern)
		path = client_add_param(t->client, path, "restrict", pattern);
	if (!path)
		return diag_errno(diag, ENOMEM, "cannot request statistics");
	return client_request(t->client, "GET", path, NULL, ret, diag);
}

static int fetch_rows(struct top *t, json_t **ret, struct diag *diag)
{
	const char *callee = top_model_callers(t->model);
	_cleanup_free_ char *pattern = NULL;

	if (callee && asprintf(&pattern, "^\\Q%s\\E$", callee) < 0)
		return diag_errno(diag, ENOMEM, "cannot request statistics");
	if (!top_history_has(t->status, t->pid))
		return request_rows(t, pattern, ret, diag);
	return top_history_rows(
		&(const struct top_history_of){
			.socket = t->socket,
			.span = top_history_span(t->status, clock_unix_ns()),
			.pid = t->pid,
			.tid = t->tid,
			.callee = pattern,
		},
		ret, diag);
}

static void choose_view(struct top *t)
{
	if (t->choose_view && top_history_has(t->status, 0))
		top_model_set_view(t->model, t->home = TOP_PROCESSES);
	t->choose_view = false;
}

int top_fetch(struct top *t, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *rows = NULL, *status = NULL;
	int r = client_request(t->client, "GET", "/v1/status", NULL, &status, diag);

	if (r < 0)
		return r;
	json_decref(t->status);
	t->status = TAKE_PTR(status);
	choose_view(t);
	r = fetch_rows(t, &rows, diag);
	return r < 0 ? r : top_model_update(t->model, rows, diag);
}

uint64_t top_pause_ns(const struct top *t)
{
	if (t->interval_ns)
		return t->interval_ns;
	return top_history_has(t->status, t->pid) ? top_history_wait_ns(t->status, clock_unix_ns())
						  : NS;
}

static void clock_text(uint64_t unix_ns, char out[9])
{
	const time_t t = (time_t)(unix_ns / NS);
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, 9, "%H:%M:%S", &tm))
		out[0] = '\0';
}

const char *top_interval_text(const struct top *t, char out[24])
{
	char from[9], to[9];
	struct when_span span;

	out[0] = '\0';
	if (!top_model_interval(t->model, &span))
		return out;
	clock_text(span.from_ns, from);
	clock_text(span.to_ns, to);
	snprintf(out, 24, "%s-%s", from, to);
	return out;
}

int top_record(struct top *t, struct diag *diag)
{
	struct top_recording new = {.pid = t->pid, .tid = t->tid};

	if (top_history_has(t->status, t->pid)) {
		const uint64_t now = clock_unix_ns();
		const struct when_span span = top_history_span(t->status, now);

		new.socket = t->socket;
		new.first_unix_ns = now - (span.to_ns - span.from_ns) / 2;
	}
	return top_record_start(&t->recording, t->client, t->output, &new, diag);
}

int top_clear(struct top *t, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = json_object();

	if (top_history_has(t->status, t->pid))
		return diag_set(diag, -EPERM, PYP_EXIT_USAGE, "",
				"the history would lose the present interval");
	if (t->pid)
		json_object_set_new(body, "pid", json_integer(t->pid));
	return client_request(t->client, "POST", "/v1/clear", body, NULL, diag);
}

int top_select(struct top *t, struct diag *diag)
{
	size_t n, selected = top_model_selected(t->model);
	const struct top_row *rows = top_model_rows(t->model, &n);

	if (!n || !rows[selected].entry->pid)
		return diag_set(diag, -ENOENT, PYP_EXIT_USAGE, "",
				"no thread or process is selected");
	if (!t->selected)
		t->asked = t->pid;
	t->selected = true;
	t->pid = rows[selected].entry->pid;
	t->tid = rows[selected].entry->tid;
	top_model_forget(t->model);
	top_model_set_view(t->model, TOP_FUNCTIONS);
	return 0;
}

void top_select_all(struct top *t)
{
	if (!t->selected)
		return;
	t->pid = t->asked;
	t->tid = 0;
	t->selected = false;
	top_model_forget(t->model);
	if (t->home == TOP_PROCESSES)
		top_model_set_view(t->model, t->home);
}

int top_show_callers(struct top *t, struct diag *diag)
{
	size_t n, selected = top_model_selected(t->model);
	const struct top_row *rows = top_model_rows(t->model, &n);
	int r;

	if (!n || top_model_view(t->model) != TOP_FUNCTIONS)
		return diag_set(diag, -ENOENT, PYP_EXIT_USAGE, "", "no function is selected");
	r = top_model_set_callers(t->model, rows[selected].key);
	return r < 0 ? diag_errno(diag, -r, "cannot request callers") : 0;
}

void top_leave_callers(struct top *t)
{
	top_model_set_callers(t->model, NULL);
}

/* The order by own time of the interval is of use only where this time is shown. */
void top_set_waits(struct top *t, bool waits)
{
	const struct top_order by_self = {.live = TOP_BY_SELF};
	struct top_order order = *top_model_order(t->model);

	t->waits = waits;
	if (waits && order.live == TOP_BY_SELF)
		top_order_parse("wait", &order, NULL);
	else if (!waits && order.live == TOP_BY_WAIT)
		order = by_self;
	top_model_set_order(t->model, &order, top_model_reversed(t->model));
}

void top_deinit(struct top *t)
{
	top_model_free(t->model);
	client_free(t->client);
	json_decref(t->status);
}
