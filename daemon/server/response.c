// SPDX-License-Identifier: BSD-2-Clause
/* Responses: see response.h. */
#include "server/response.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8_clean.h"

#define MIME_JSON "application/json"

void response_init(struct response *rs)
{
	memset(rs, 0, sizeof(*rs));
	rs->fd = -1;
}

void response_deinit(struct response *rs)
{
	free(rs->body);
	closep(&rs->fd);
	response_init(rs);
}

int response_set_json(struct response *rs, unsigned int status, json_t *root)
{
	char *text, *body;
	size_t n;

	if (!root)
		return -ENOMEM;
	text = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	if (!text)
		return -ENOMEM;
	n = strlen(text);
	body = realloc(text, n + 2);
	if (!body) {
		free(text);
		return -ENOMEM;
	}
	memcpy(body + n, "\n", 2);
	free(rs->body);
	rs->body = body;
	rs->size = n + 1;
	rs->mime = MIME_JSON;
	rs->status = status;
	return 0;
}

unsigned int response_status(enum pyp_exit exit)
{
	switch (exit) {
	case PYP_EXIT_OK:
		return 200;
	case PYP_EXIT_USAGE:
		return 400;
	case PYP_EXIT_NO_PROCESS:
		return 404;
	case PYP_EXIT_PERMISSION:
		return 403;
	case PYP_EXIT_UNTRACEABLE:
		return 422;
	case PYP_EXIT_NO_DAEMON:
		return 503;
	case PYP_EXIT_BUSY:
		return 409;
	case PYP_EXIT_FAILURE:
		break;
	}
	return 500;
}

static enum pyp_exit exit_of(const struct diag *diag)
{
	return diag->err && diag->exit ? diag->exit : PYP_EXIT_FAILURE;
}

json_t *response_error_json(const struct diag *diag, int err)
{
	char m[sizeof(diag->msg)], h[sizeof(diag->hint)];
	const char *msg = diag->err ? diag->msg : strerror(-err);
	enum pyp_exit exit = exit_of(diag);

	return json_pack("{s:i, s:s, s:s, s:s}", "code", (int)exit, "error", diag_exit_name(exit),
			 "message", utf8_clean(msg, m, sizeof(m)), "hint",
			 utf8_clean(diag->hint, h, sizeof(h)));
}

void response_set_error(struct response *rs, unsigned int status, const struct diag *diag, int err)
{
	closep(&rs->fd);
	rs->fd = -1;
	if (!status) /* what was asked for does not exist, which is no failure of the daemon */
		status = diag->err == -ENODATA ? 400 : response_status(exit_of(diag));
	rs->status = status;
	if (response_set_json(rs, rs->status, response_error_json(diag, err)) == 0)
		return;
	free(TAKE_PTR(rs->body)); /* out of memory: send only the status */
	rs->size = 0;
	rs->mime = MIME_JSON;
}

void response_set_text_error(struct response *rs, const struct diag *diag)
{
	char line[sizeof(diag->msg) + sizeof(diag->hint)], *text = NULL;

	if (!diag->err || asprintf(&text, "%s\n", diag_format(diag, line, sizeof(line))) < 0)
		return;
	free(rs->body);
	rs->body = text;
	rs->size = strlen(text);
	rs->mime = "text/plain; charset=utf-8";
	rs->for_go = true;
}
