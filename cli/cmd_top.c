// SPDX-License-Identifier: BSD-2-Clause
/* top and watch: live statistics */
#include "cmd.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/terminal.h"
#include "format/format.h"
#include "query.h"
#include "top.h"
#include "top_lines.h"
#include "top_screen.h"

#define NS_PER_S      UINT64_C(1000000000)
#define ROWS_DEFAULT  20
#define TEXT_COLUMNS  79
#define WATCH_TIMEOUT 30

struct top_opts {
	uint64_t interval_ns, count, limit; /* 0: not given */
	pid_t pid;
	int clock; /* enum value + 1; 0: not given */
	const char *sort, *output;
	bool reverse, threads, processes, waits, all_cpus, full_paths;
};

/* For completion: the figures of an interval, then pstats' sort keys */
static const char *const sort_words[] = {"self",   "cum",     "rate",	    "wait",	"calls",
					 "ncalls", "cumtime", "cumulative", "filename", "line",
					 "module", "name",    "nfl",	    "pcalls",	"stdname",
					 "time",   "tottime", NULL};

#define FIELD(f) .offset = offsetof(struct top_opts, f)

static const struct opt opts[] = {
	{"interval", 'i', OPT_DURATION, FIELD(interval_ns), "SECONDS",
	 "refresh interval (default: 1, or the one of\ncontinuous mode)"},
	{"count", 'n', OPT_U64, FIELD(count), "N", "as text: exit after N intervals", .min = 1,
	 .max = INT32_MAX},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "only this process"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall", "clock to report",
	 .choices = query_clocks},
	{"sort", 's', OPT_STRING, FIELD(sort), "KEY[,KEY]",
	 "self, cum, rate or wait (of the last interval), or\nsort keys as in pstats",
	 .choices = sort_words},
	{"reverse", 'r', OPT_FLAG, FIELD(reverse), NULL, "reverse the sort order"},
	{"threads", 0, OPT_FLAG, FIELD(threads), NULL, "threads instead of functions"},
	{"processes", 0, OPT_FLAG, FIELD(processes), NULL, "processes instead of functions"},
	{"waits", 0, OPT_FLAG, FIELD(waits), NULL, "reasons for waiting instead of times"},
	{"all-cpus", 0, OPT_FLAG, FIELD(all_cpus), NULL, "percentages of all CPUs, not of one"},
	{"full-paths", 0, OPT_FLAG, FIELD(full_paths), NULL,
	 "paths with directories, whole command lines"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "as text: at most N rows (default: 20)",
	 .min = 1, .max = INT32_MAX},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE",
	 "on the full screen: file for recordings, which the\nkey r starts (default: a new HTML "
	 "file for each)"},
	{NULL},
};

/* ---- text ---- */

static void print_once(const struct top *t, uint64_t limit, FILE *out)
{
	bool colour = query_colour(out);
	double full = top_bar_full(t->model);
	const struct top_row *rows;
	char interval[24];
	size_t n;

	top_print_status(t->status, TEXT_COLUMNS, out);
	if (*top_interval_text(t, interval))
		fprintf(out, "\n%s", interval);
	fputs(colour ? "\n\033[1m" : "\n", out);
	if (t->waits)
		top_print_waits_heading(t->model, TEXT_COLUMNS, out);
	else
		top_print_heading(t->model, TEXT_COLUMNS, out);
	fputs(colour ? "\033[0m\n" : "\n", out);
	rows = top_model_rows(t->model, &n);
	for (size_t i = 0; i < n && i < limit; i++) {
		if (t->waits)
			top_print_waits_row(&rows[i], full, TEXT_COLUMNS, out);
		else
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

/* Print the differences between successive responses, or the intervals of continuous mode. */
static int print_deltas(struct top *t, const struct top_opts *o, FILE *out, struct diag *diag)
{
	int r = top_fetch(t, diag);

	for (uint64_t i = 0; r == 0 && (!o->count || i < o->count); i++) {
		if (i || !top_model_interval(t->model, NULL)) {
			sleep_ns(top_pause_ns(t));
			r = top_fetch(t, diag);
		}
		if (r < 0)
			break;
		print_once(t, o->limit ? o->limit : ROWS_DEFAULT, out);
		if (fflush(out) != 0)
			break; /* main() reports the error */
	}
	return r;
}

/* ---- commands ---- */

static unsigned int count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned int)n : 1;
}

/* Check options before a daemon is needed. */
static int check(const struct top_opts *o, struct top_order *order, struct diag *diag)
{
	const struct format *unused;
	int r = o->sort ? top_order_parse(o->sort, order, diag) : 0;

	if (r == 0 && o->threads && o->processes)
		r = diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use one of them",
			     "--threads and --processes exclude each other");
	if (r == 0 && o->output)
		r = format_choose(NULL, o->output, &unused, diag);
	return r;
}

static void set_view(struct top *t, const struct top_opts *o)
{
	if (o->clock)
		top_model_set_clock(t->model, (enum snapshot_clock)(o->clock - 1));
	if (o->all_cpus)
		top_model_set_cpus(t->model, count_cpus());
	top_model_set_full_names(t->model, o->full_paths);
	top_model_set_view(t->model, o->threads	    ? TOP_THREADS
				     : o->processes ? TOP_PROCESSES
						    : TOP_FUNCTIONS);
}

static int set_up(struct top *t, const struct cmd_call *call, struct diag *diag)
{
	const struct top_opts *o = call->opts;
	struct top_order order = {0};
	int r = check(o, &order, diag);

	if (r == 0)
		r = client_open(call->socket, &t->client, diag);
	if (r < 0)
		return r;
	client_set_timeout(t->client, WATCH_TIMEOUT);
	t->pid = o->pid;
	t->interval_ns = o->interval_ns;
	t->socket = call->socket;
	t->choose_view = !o->pid && !o->threads && !o->processes;
	t->output = o->output;
	t->colour = query_colour(call->out);
	t->model = top_model_new();
	if (!t->model)
		return diag_errno(diag, ENOMEM, "cannot show statistics");
	set_view(t, o);
	top_model_set_order(t->model, &order, o->reverse);
	top_set_waits(t, o->waits);
	return call->noperands ? top_model_set_filter(t->model, call->operands[0], diag) : 0;
}

static int run_watch(const struct cmd_call *call, struct diag *diag)
{
	const struct top_opts *o = call->opts;
	_cleanup_(top_deinit) struct top t = {0};
	int r = 0;

	if (o->output)
		return diag_set(diag, -ENOTTY, PYP_EXIT_USAGE, "use `pyprofctl record`",
				"-o needs the full screen, where a key starts the recording");
	r = set_up(&t, call, diag);
	return r < 0 ? r : print_deltas(&t, o, call->out, diag);
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
