// SPDX-License-Identifier: BSD-2-Clause
/* A temporary connection to a daemon: see visit.h. */
#include "visit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "forecast.h"

int visit_open_own(struct visit *v, struct diag *diag)
{
	char *const none[] = {NULL};
	int r;

	r = private_start(&v->daemon, PRIVATE_BACKGROUND, none, diag);
	if (r == 0)
		r = private_ready(&v->daemon, diag);
	return r < 0 ? r : client_open(v->daemon.sock, &v->client, diag);
}

int visit_open(struct visit *v, const char *socket, struct diag *diag)
{
	struct diag first = {0};
	int r;

	r = client_open(socket, &v->client, diag);
	if (r < 0)
		return r;
	r = client_request(v->client, "GET", "/v1/ping", NULL, NULL, &first);
	if (r == 0)
		return 0;
	if (first.exit != PYP_EXIT_NO_DAEMON) {
		*diag = first;
		return r;
	}
	client_free(TAKE_PTR(v->client));
	return visit_open_own(v, diag);
}

int visit_attach(struct visit *v, pid_t pid, const struct visit_how *how, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = json_pack("{s:i}", "pid", (int)pid);
	char late[FORECAST_LINE];
	int r;

	if (v->attached.n == OPT_PIDS_MAX)
		return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "record fewer processes at once",
				"more than %d processes", OPT_PIDS_MAX);
	r = forecast_confirm(v->client,
			     &(struct forecast_of){pid, how->target, how->picked, how->yes}, late,
			     diag);
	if (r < 0)
		return r;
	if (how->waiting)
		json_object_set_new(body, "start", json_false());
	target_args_add(how->target, body);
	r = client_request(v->client, "POST", "/v1/targets", body, NULL, diag);
	if (r < 0)
		return r;
	fputs(late, stderr);
	v->attached.pid[v->attached.n++] = pid;
	return 0;
}

/* Set a target option by its key. */
static void set_option(struct target_opts_given *g, const char *key, const char *value)
{
	for (const struct opt *row = target_opt_table; row->name; row++)
		if (strcmp(row->key, key) == 0)
			(void)target_opts_set(g, row, value, NULL);
}

int visit_recorded(struct visit *v, const char *socket, pid_t pid, bool yes, struct diag *diag)
{
	struct target_opts_given exact = {0};
	const struct visit_how how = {.yes = yes, .target = &exact};
	struct diag why = {0};
	int r;

	if (!pid)
		return client_open(socket, &v->client, diag);
	r = visit_open(v, socket, diag);
	if (r < 0)
		return r;
	set_option(&exact, "mode", "trace");
	set_option(&exact, "exact", "true");
	r = visit_attach(v, pid, &how, &why);
	if (r < 0 && why.exit == PYP_EXIT_BUSY && !v->daemon.pid)
		return 0; /* it is traced already */
	if (r < 0)
		*diag = why;
	return r;
}

int visit_check_traced(const json_t *targets, struct diag *diag)
{
	const json_t *target;
	size_t i;

	json_array_foreach(targets, i, target)
	{
		const char *state = json_string_value(json_object_get(target, "state"));

		if (state && strcmp(state, "tracing") == 0)
			return 0;
	}
	return diag_set(diag, -EINVAL, PYP_EXIT_FAILURE, "`pyprofctl start` attaches the probes",
			"nothing is being traced now");
}

json_t *visit_targets_now(const struct visit *v, const json_t *targets)
{
	json_t *list = json_array();
	const json_t *old;
	size_t i;

	json_array_foreach(targets, i, old)
	{
		json_t *target = NULL;
		char path[64];

		snprintf(path, sizeof(path), "/v1/targets/%" JSON_INTEGER_FORMAT,
			 json_integer_value(json_object_get(old, "pid")));
		if (client_request(v->client, "GET", path, NULL, &target, NULL) < 0)
			target = json_deep_copy(old);
		json_array_append_new(list, target);
	}
	return list;
}

int visit_start(struct visit *v, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = json_object();

	return client_request(v->client, "POST", "/v1/start", body, NULL, diag);
}

void visit_end(struct visit *v)
{
	/* A private daemon detaches when it ends. */
	for (size_t i = 0; i < v->attached.n && !v->daemon.pid; i++)
		client_detach(v->client, v->attached.pid[i], NULL);
	client_free(TAKE_PTR(v->client));
	private_end(&v->daemon);
}

static void end_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGHUP);
}

void visit_block_signals(void)
{
	sigset_t signals;

	end_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

bool visit_wait(uint64_t ns)
{
	const struct timespec ts = {.tv_sec = (time_t)(ns / CLOCK_NS_PER_S),
				    .tv_nsec = (long)(ns % CLOCK_NS_PER_S)};
	sigset_t signals;

	end_signals(&signals);
	return sigtimedwait(&signals, NULL, &ts) < 0;
}
