// SPDX-License-Identifier: BSD-2-Clause
/* The answers of the live page's server: see ui_answers.h. */
#include "ui_answers.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/target_opts.h"
#include "base/utf8_clean.h"
#include "client.h"
#include "format/pages.h"
#include "ui_processes.h"

#define MIME_JSON "application/json"

static unsigned int status_of(enum pyp_exit exit)
{
	switch (exit) {
	case PYP_EXIT_USAGE:
		return 400;
	case PYP_EXIT_PERMISSION:
		return 403;
	case PYP_EXIT_NO_DAEMON:
		return 502;
	default:
		return 500;
	}
}

static void set_json(struct ui_response *ret, unsigned int status, json_t *root)
{
	ret->body = root ? json_dumps(root, JSON_COMPACT) : NULL;
	ret->n = ret->body ? strlen(ret->body) : 0;
	ret->status = ret->body ? status : 500;
	ret->mime = MIME_JSON;
	json_decref(root);
}

void ui_answer_error(struct ui_response *ret, unsigned int status, const struct diag *diag)
{
	char msg[sizeof(diag->msg)], hint[sizeof(diag->hint)];

	set_json(ret, status ? status : status_of(diag->exit),
		 json_pack("{s:i, s:s, s:s, s:s}", "code", (int)diag->exit, "error",
			   diag_exit_name(diag->exit), "message",
			   utf8_clean(diag->msg, msg, sizeof(msg)), "hint",
			   utf8_clean(diag->hint, hint, sizeof(hint))));
}

static json_t *choices_json(const struct opt *row)
{
	json_t *list = json_array();

	for (const char *const *c = row->choices; c && *c; c++)
		if (**c)
			json_array_append_new(list, json_string(*c));
	return list;
}

/* What a form for target options consists of */
static void answer_options(struct ui_response *ret)
{
	json_t *list = json_array();

	for (const struct opt *row = target_opt_table; row->name; row++)
		if (row->key)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:s, s:s, s:o, s:b}", "key", row->key,
						"name", row->name, "help", row->help, "arg",
						row->arg ? row->arg : "", "choices",
						choices_json(row), "off", row->type == OPT_OFF));
	set_json(ret, 200, json_pack("{s:o}", "options", list));
}

static void answer_processes(struct ui_response *ret)
{
	struct diag diag = {0};
	int r;

	r = ui_processes(&ret->body, &ret->n, &diag);
	ret->status = 200;
	ret->mime = MIME_JSON;
	if (r < 0)
		ui_answer_error(ret, 0, &diag);
}

static void answer_forward(const struct ui_wanted *q, struct ui_response *ret)
{
	_cleanup_(client_freep) struct client *c = NULL;
	struct client_answer a = {0};
	struct diag diag = {0};
	int r;

	r = client_open(q->socket, &c, &diag);
	if (r == 0)
		client_set_cancel(c, q->cancel);
	if (r == 0)
		r = client_forward(c, q->route->method, q->uri,
				   strcmp(q->route->method, "POST") == 0 ? q->body : NULL, &a,
				   &diag);
	if (r < 0) {
		ui_answer_error(ret, diag.exit == PYP_EXIT_PERMISSION ? 502 : 0, &diag);
		return;
	}
	ret->status = (unsigned int)a.status;
	ret->mime = MIME_JSON;
	ret->body = a.body;
	ret->n = a.n;
}

void ui_answer(const struct ui_wanted *q, struct ui_response *ret)
{
	switch (q->route->answer) {
	case UI_PAGE:
		*ret = (struct ui_response){.status = 200,
					    .mime = "text/html; charset=utf-8",
					    .policy = live_policy,
					    .npolicy = live_policy_size,
					    .page = live_page,
					    .n = live_page_size};
		break;
	case UI_PROCESSES:
		answer_processes(ret);
		break;
	case UI_OPTIONS:
		answer_options(ret);
		break;
	case UI_FORWARD:
		answer_forward(q, ret);
		break;
	}
}
