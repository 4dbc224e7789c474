// SPDX-License-Identifier: BSD-2-Clause
/*
 * slow: the slowest calls of matching functions, each with its own tree. The daemon keeps them; this
 * process waits, and fetches and shows them at the end.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/outfile.h"
#include "base/terminal.h"
#include "format/format.h"
#include "pyprof/version.h"
#include "render.h"
#include "saved.h"
#include "slow_chrome.h"
#include "slow_html.h"
#include "slow_text.h"
#include "visit.h"

/* The daemon drops a recording that nobody asks about. */
#define POLL_NS	    (CLOCK_NS_PER_S / 2)
#define CALLS_MAX   200
#define NUMBER_SIZE 32

struct slow_cmd {
	pid_t pid;
	uint64_t duration_ns, over_ns, count; /* 0: not given */
	int format, clock;		      /* index; 0: not given */
	const char *output;
	bool yes;
};

/* "" stands for "not given" */
static const char *const slow_formats[] = {"", "text", "json", "chrome", "html", NULL};
static const char *const slow_clocks[] = {"", "wall", "cpu", NULL};

#define FIELD(f) .offset = offsetof(struct slow_cmd, f)

static const struct opt slow_opts[] = {
	{"over", 0, OPT_DURATION, FIELD(over_ns), "DURATION",
	 "calls that took at least this long (200ms, 1.5);\ndefault: no limit"},
	{"count", 'n', OPT_U64, FIELD(count), "N", "keep the N slowest (default: 10)", .min = 1,
	 .max = CALLS_MAX},
	{"duration", 'd', OPT_DURATION, FIELD(duration_ns), "SECONDS",
	 "for this duration (also 250ms, 2m); without it until\nCtrl-C or until the program ends"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "wall|cpu",
	 "clock by which calls are slow (default: wall)", .choices = slow_clocks},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID",
	 "this process, attached temporarily if needed\n(default: all targets)"},
	{"format", 'f', OPT_CHOICE, FIELD(format), "text|json|chrome|html",
	 "output format; default: from the extension of FILE,\notherwise text",
	 .choices = slow_formats},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "output file (default: stdout)"},
	{"yes", 'y', OPT_FLAG, FIELD(yes), NULL, "consent to a high overhead: do not ask"},
	{NULL},
};

struct recording {
	const struct slow_cmd *o;
	const char *pattern; /* NULL: own code */
	struct visit visit;
	json_t *targets;
	json_t *result;
	char path[64]; /* of the daemon's recording; "": none */
	const struct format *format;
	bool quiet;
};

static void recording_deinit(struct recording *s)
{
	if (s->path[0])
		client_request(s->visit.client, "DELETE", s->path, NULL, NULL, NULL);
	json_decref(s->targets);
	json_decref(s->result);
	visit_end(&s->visit);
}

/* ---- options ---- */

/* By --format, or by the extension of the output file. */
static int choose_format(struct recording *s, struct diag *diag)
{
	const char *name = s->o->format ? slow_formats[s->o->format] : NULL;
	int r = format_choose(name, s->o->output, &s->format, diag);

	if (r < 0)
		return r;
	for (size_t i = 1; slow_formats[i]; i++)
		if (strcmp(s->format->name, slow_formats[i]) == 0)
			return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"use .txt, .json, .trace.json or .html, or -f",
			"slow has no %s format, which the extension of '%s' selects",
			s->format->name, s->o->output);
}

/* Before anything is attached. The daemon checks the pattern again. */
static int check(struct recording *s, struct diag *diag)
{
	const struct format_opts fo = {.restrict_ = &s->pattern, .nrestrict = s->pattern ? 1 : 0};
	int r = choose_format(s, diag);

	if (r == 0)
		r = format_opts_check(&fo, diag);
	return r == 0 && s->o->output ? outfile_check(s->o->output, diag) : r;
}

/* ---- the beginning ---- */

static json_t *request_body(const struct recording *s)
{
	const struct slow_cmd *o = s->o;
	json_t *body = s->pattern ? json_pack("{s:s}", "match", s->pattern) : json_object();
	char over[NUMBER_SIZE];

	if (o->pid)
		json_object_set_new(body, "pid", json_integer(o->pid));
	if (o->over_ns) {
		snprintf(over, sizeof(over), "%" PRIu64 ".%09" PRIu64, o->over_ns / CLOCK_NS_PER_S,
			 o->over_ns % CLOCK_NS_PER_S);
		json_object_set_new(body, "over", json_string(over));
	}
	if (o->count)
		json_object_set_new(body, "n", json_integer((json_int_t)o->count));
	if (o->clock)
		json_object_set_new(body, "clock", json_string(slow_clocks[o->clock]));
	return body;
}

static int begin(struct recording *s, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = request_body(s), *answer = NULL;
	int r;

	if (!body)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "the pattern is not UTF-8");
	r = client_request(s->visit.client, "POST", "/v1/slow", body, &answer, diag);
	if (r < 0)
		return r;
	snprintf(s->path, sizeof(s->path), "/v1/slow/%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(answer, "id")));
	s->targets = json_incref(json_object_get(answer, "targets"));
	return visit_check_traced(s->targets, diag);
}

/* ---- waiting ---- */

static void show_progress(const struct recording *s, const json_t *counters)
{
	char all[NUMBER_SIZE];

	if (s->quiet)
		return;
	fputs("\rslow: ", stderr);
	if (s->o->duration_ns)
		fprintf(stderr, "%s: ", render_duration(s->o->duration_ns, all, sizeof(all)));
	slow_text_progress(counters, stderr);
	fputs("; Ctrl-C ends it \033[K", stderr);
	fflush(stderr);
}

/* Ask for the counters. *ret_active: a target still runs. */
static int poll_counters(const struct recording *s, bool *ret_active, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *counters = NULL;
	char path[sizeof(s->path) + 16];
	int r;

	snprintf(path, sizeof(path), "%s?trees=0", s->path);
	r = client_request(s->visit.client, "GET", path, NULL, &counters, diag);
	if (r < 0)
		return r;
	*ret_active = !json_is_false(json_object_get(counters, "active"));
	show_progress(s, counters);
	return 0;
}

/* Until the time is over, a signal arrives, or all targets have ended. */
static int wait_for_end(const struct recording *s, struct diag *diag)
{
	const uint64_t start = clock_monotonic_ns();
	bool active = true;
	int r = 0;

	while (r == 0 && active) {
		uint64_t wait = POLL_NS, passed = clock_monotonic_ns() - start;

		if (s->o->duration_ns && passed >= s->o->duration_ns)
			break;
		if (s->o->duration_ns && s->o->duration_ns - passed < wait)
			wait = s->o->duration_ns - passed;
		if (!visit_wait(wait))
			break;
		r = poll_counters(s, &active, diag);
	}
	if (!s->quiet)
		fputs("\r\033[K", stderr);
	return r;
}

/* ---- the end ---- */

static int fetch_result(struct recording *s, struct diag *diag)
{
	const bool steps = strcmp(s->format->name, "chrome") == 0 ||
			   strcmp(s->format->name, "html") == 0;
	char path[sizeof(s->path) + 16];
	struct utsname u = {0};
	int r;

	snprintf(path, sizeof(path), "%s%s", s->path, steps ? "?steps=1" : "");
	r = client_request(s->visit.client, "GET", path, NULL, &s->result, diag);
	if (r < 0)
		return r;
	uname(&u);
	json_object_set_new(s->result, "program", json_string("pyprofctl " PYPROF_VERSION));
	json_object_set_new(s->result, "host", json_string(u.nodename));
	json_object_set_new(s->result, "kernel", json_string(u.release));
	json_object_set_new(s->result, "targets", visit_targets_now(&s->visit, s->targets));
	return 0;
}

static int write_result(void *ctx, FILE *out, struct diag *diag)
{
	const struct recording *s = ctx;
	int r = 0;

	if (strcmp(s->format->name, "chrome") == 0)
		r = slow_chrome(s->result, out);
	else if (strcmp(s->format->name, "html") == 0)
		r = slow_html(s->result, out, diag);
	else if (strcmp(s->format->name, "text") == 0)
		r = slow_text(s->result, terminal_columns(out), out);
	else if (json_dumpf(s->result, out, JSON_COMPACT) < 0)
		r = -EIO;
	else
		putc('\n', out);
	return r < 0 ? diag_errno(diag, -r, "cannot write the calls") : 0;
}

static int run_slow(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(recording_deinit) struct recording s = {
		.o = call->opts, .pattern = call->operands[0], .quiet = !isatty(STDERR_FILENO)};
	int r = check(&s, diag);

	if (r < 0)
		return r;
	visit_block_signals();
	r = visit_recorded(&s.visit, call->socket, s.o->pid, s.o->yes, diag);
	if (r == 0)
		r = begin(&s, diag);
	if (r == 0)
		r = wait_for_end(&s, diag);
	if (r == 0)
		r = fetch_result(&s, diag);
	return r < 0 ? r : saved_write(s.o->output, call->out, write_result, &s, diag);
}

const struct cmd cmd_slow = {
	.name = "slow",
	.operands = "[PATTERN]",
	.summary = "Show the slowest calls, each with its own tree",
	.opts = slow_opts,
	.opts_size = sizeof(struct slow_cmd),
	.max_operands = 1,
	.run = run_slow,
};
