// SPDX-License-Identifier: BSD-2-Clause
/* top and watch: live statistics */
#include "cmd.h"

#include <errno.h>
#include <time.h>

#include "base/terminal.h"
#include "query.h"
#include "top.h"
#include "top_screen.h"

#define NS_PER_S      UINT64_C(1000000000)
#define ROWS_DEFAULT  20
#define TEXT_COLUMNS  79
#define WATCH_TIMEOUT 30

struct top_opts {
	uint64_t interval_ns, count, limit; /* 0: not given */
	pid_t pid;
	int clock, sort; /* enum value + 1; 0: not given */
	bool reverse, threads;
};

static const char *const sorts[] = {"",	       "self",	  "cum",  "rate", "calls",
				    "tottime", "cumtime", "name", NULL};

#define FIELD(f) .offset = offsetof(struct top_opts, f)

static const struct opt opts[] = {
	{"interval", 'i', OPT_DURATION, FIELD(interval_ns), "SECONDS",
	 "refresh interval (default: 1)"},
	{"count", 'n', OPT_U64, FIELD(count), "N", "as text: exit after N intervals", .min = 1,
	 .max = INT32_MAX},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "only this process"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall", "clock to report",
	 .choices = query_clocks},
	{"sort", 's', OPT_CHOICE, FIELD(sort), "KEY",
	 "self, cum, rate, calls, tottime, cumtime or name", .choices = sorts},
	{"reverse", 'r', OPT_FLAG, FIELD(reverse), NULL, "reverse the sort order"},
	{"threads", 0, OPT_FLAG, FIELD(threads), NULL, "threads instead of functions"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "as text: at most N rows (default: 20)",
	 .min = 1, .max = INT32_MAX},
	{NULL},
};

/* ---- text ---- */

static void print_once(const struct top *t, uint64_t limit, FILE *out)
{
	bool colour = query_colour(out);
	const struct top_row *rows;
	size_t n;

	top_print_status(t->status, TEXT_COLUMNS, out);
	fputs(colour ? "\n\033[1m" : "\n", out);
	top_print_heading(t->model, TEXT_COLUMNS, out);
	fputs(colour ? "\033[0m\n" : "\n", out);
	rows = top_model_rows(t->model, &n);
	for (size_t i = 0; i < n && i < limit; i++) {
		top_print_row(&rows[i], TEXT_COLUMNS, out);
		putc('\n', out);
	}
	putc('\n', out);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/* Print the differences between successive responses. */
static int print_deltas(struct top *t, const struct top_opts *o, FILE *out, struct diag *diag)
{
	int r = top_fetch(t, diag);

	for (uint64_t i = 0; r == 0 && (!o->count || i < o->count); i++) {
		sleep_ns(t->interval_ns);
		r = top_fetch(t, diag);
		if (r < 0)
			break;
		print_once(t, o->limit ? o->limit : ROWS_DEFAULT, out);
		if (fflush(out) != 0)
			break; /* main() reports the error */
	}
	return r;
}

/* ---- commands ---- */

static int set_up(struct top *t, const struct cmd_call *call, struct diag *diag)
{
	const struct top_opts *o = call->opts;
	int r = client_open(call->socket, &t->client, diag);

	if (r < 0)
		return r;
	client_set_timeout(t->client, WATCH_TIMEOUT);
	t->pid = o->pid;
	t->interval_ns = o->interval_ns ? o->interval_ns : NS_PER_S;
	t->model = top_model_new();
	if (!t->model)
		return diag_errno(diag, ENOMEM, "cannot show statistics");
	if (o->clock)
		top_model_set_clock(t->model, (enum snapshot_clock)(o->clock - 1));
	top_model_set_sort(t->model, o->sort ? (enum top_sort)(o->sort - 1) : TOP_BY_SELF,
			   o->reverse);
	top_model_set_view(t->model, o->threads ? TOP_THREADS : TOP_FUNCTIONS);
	return call->noperands ? top_model_set_filter(t->model, call->operands[0], diag) : 0;
}

static int run_watch(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(top_deinit) struct top t = {0};
	int r = set_up(&t, call, diag);

	return r < 0 ? r : print_deltas(&t, call->opts, call->out, diag);
}

static int run_top(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(top_deinit) struct top t = {0};
	int r;

	if (!terminal_is(call->out) || !isatty(STDIN_FILENO))
		return run_watch(call, diag);
	r = set_up(&t, call, diag);
	if (r == 0)
		r = top_fetch(&t, diag);
	return r < 0 ? r : top_screen_run(&t, diag);
}

const struct cmd cmd_top = {
	.name = "top",
	.operands = "[PATTERN]",
	.summary = "Show live statistics on the full screen",
	.opts = opts,
	.opts_size = sizeof(struct top_opts),
	.max_operands = 1,
	.run = run_top,
};

const struct cmd cmd_watch = {
	.name = "watch",
	.operands = "[PATTERN]",
	.summary = "Print live statistics periodically",
	.opts = opts,
	.opts_size = sizeof(struct top_opts),
	.max_operands = 1,
	.run = run_watch,
};
