// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests of the control API: the input is "METHOD URI\nBODY", dispatched by the real routes to
 * sessions in memory. Each input must have an answer, and errors must be well formed.
 */
#include "server/routes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fakes/sessions.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int no_shutdown(void *ctx, struct diag *diag)
{
	(void)ctx, (void)diag;
	return 0;
}

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(const struct response *rs)
{
	json_t *error;

	require(rs->status >= 200 && rs->status < 600 && rs->mime);
	require(rs->fd < 0 || !rs->body);
	/* for_go: the error is a line of text */
	if (rs->status < 400 || rs->for_go)
		return;
	error = json_loadb(rs->body, rs->size, 0, NULL);
	require(json_is_integer(json_object_get(error, "code")));
	require(json_is_string(json_object_get(error, "message")));
	json_decref(error);
}

static void dispatch(struct routes_ctx *ctx, char *text, size_t size)
{
	char *body = memchr(text, '\n', size);
	char *uri;
	struct routes_input in = {.method = text, .body = "", .uri = "/"};
	struct routes_wait wait;
	struct response rs;

	if (body) {
		*body++ = '\0';
		in.body = body;
		in.nbody = size - (size_t)(body - text);
	}
	uri = strchr(text, ' ');
	if (uri) {
		*uri++ = '\0';
		in.uri = uri;
	}
	response_init(&rs);
	routes_dispatch(ctx, &in, &rs, &wait);
	routes_forget(ctx, &wait);
	if (wait.what == WAIT_NOT)
		check(&rs);
	response_deinit(&rs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct routes_ctx ctx = {.shutdown = no_shutdown, .metrics_functions = 20};
	char *text = malloc(size + 1);

	require(text && sessions_new(NULL, NULL, &ctx.sessions, NULL) == 0);
	require(sessions_attach(ctx.sessions, 42, true, NULL, NULL) == 0);
	memcpy(text, data, size);
	text[size] = '\0';
	dispatch(&ctx, text, size);
	totals_deinit(&ctx.totals);
	sessions_free(ctx.sessions);
	free(text);
	return 0;
}
