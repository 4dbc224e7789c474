// SPDX-License-Identifier: BSD-2-Clause
/* Predicted overhead: see forecast.h. */
#include "forecast.h"

#include <signal.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/consent.h"
#include "base/terminal.h"

static const char *text_of(const json_t *answer, const char *key)
{
	const char *text = json_string_value(json_object_get(answer, key));

	return text ? text : "";
}

static void set_line(pid_t pid, const json_t *answer, char ret[FORECAST_LINE])
{
	char name[128], text[512];

	snprintf(ret, FORECAST_LINE, "pyprofd: %d %s: %s\n", (int)pid,
		 terminal_clean(text_of(answer, "name"), name, sizeof(name)),
		 terminal_clean(text_of(answer, "text"), text, sizeof(text)));
}

static void warn(double cost, const json_t *answer)
{
	char advice[256];

	terminal_clean(text_of(answer, "advice"), advice, sizeof(advice));
	fprintf(stderr,
		"pyprofd: warning: expected overhead: about %.0f %% of its own CPU time%s%s\n",
		cost, *advice ? ": " : "", advice);
}

static bool is_picked(const struct pick *picked, json_int_t pid)
{
	for (size_t i = 0; picked && i < picked->n; i++)
		if (picked->v[i].pid == pid)
			return true;
	return false;
}

/* Warns if it has children that are left out. */
static void warn_children(const struct forecast_of *of, const json_t *children)
{
	json_t *pid;
	char text[256];
	size_t i;
	bool left_out = false;

	json_array_foreach(json_object_get(children, "pids"), i, pid)
		left_out |= !is_picked(of->picked, json_integer_value(pid));
	if (left_out)
		fprintf(stderr, "pyprofd: warning: process %d: %s\n", (int)of->pid,
			terminal_clean(text_of(children, "text"), text, sizeof(text)));
}

/* Signals that end the command may be blocked for visit_wait(), but must end it here. */
static bool user_agrees(const json_t *answer)
{
	char line[16];
	sigset_t signals, old;
	bool agrees;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	consent_ask(text_of(answer, "question"));
	sigprocmask(SIG_UNBLOCK, &signals, &old);
	agrees = fgets(line, sizeof(line), stdin) && consent_agrees(line);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return agrees;
}

/* Does it have an estimate, from counted calls or of the cost of samples? */
static bool is_forecast(const json_t *answer)
{
	return !json_is_null(json_object_get(answer, "forecast")) ||
	       json_number_value(json_object_get(answer, "cost")) > 0;
}

int forecast_confirm(struct client *c, const struct forecast_of *of, char ret_late[FORECAST_LINE],
		     struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = json_pack("{s:i}", "pid", (int)of->pid);
	_cleanup_(json_decrefp) json_t *answer = NULL;
	double cost;
	int r;

	ret_late[0] = '\0';
	if (of->given)
		target_args_add(of->given, body);
	r = client_request(c, "POST", "/v1/forecast", body, &answer, diag);
	if (r < 0)
		return r;
	/* If the process was not inspected, the attach request will report the reason. */
	if (!*text_of(answer, "name"))
		return 0;
	set_line(of->pid, answer, ret_late);
	if (is_forecast(answer)) {
		fputs(ret_late, stderr);
		ret_late[0] = '\0';
	}
	cost = json_number_value(json_object_get(answer, "cost"));
	if (cost > FORECAST_WARN)
		warn(cost, answer);
	warn_children(of, json_object_get(answer, "children"));
	switch (consent_for(cost, of->yes, consent_can_ask())) {
	case CONSENT_WANTED:
		return user_agrees(answer) ? 0 : consent_declined(of->pid, diag);
	case CONSENT_REFUSED:
		return consent_refused(of->pid, cost, diag);
	case CONSENT_GIVEN:
		break;
	}
	return 0;
}
