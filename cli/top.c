// SPDX-License-Identifier: BSD-2-Clause
/* A live view's data: see top.h. */
#include "top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int top_fetch(struct top *t, struct diag *diag)
{
	_cleanup_free_ char *path = path_of(t, "rows"), *pattern = NULL;
	_cleanup_(json_decrefp) json_t *rows = NULL, *status = NULL;
	const char *callee = top_model_callers(t->model);
	int r;

	if (path && callee && asprintf(&pattern, "^\\Q%s\\E$", callee) < 0)
		pattern = NULL;
	if (path && pattern)
		path = client_add_param(t->client, path, "restrict", pattern);
	if (!path || (callee && !pattern))
		return diag_errno(diag, ENOMEM, "cannot request statistics");
	r = client_request(t->client, "GET", path, NULL, &rows, diag);
	if (r == 0)
		r = client_request(t->client, "GET", "/v1/status", NULL, &status, diag);
	if (r == 0)
		r = top_model_update(t->model, rows, diag);
	if (r < 0)
		return r;
	json_decref(t->status);
	t->status = TAKE_PTR(status);
	return 0;
}

int top_clear(struct top *t, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = json_object();

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
