// SPDX-License-Identifier: BSD-2-Clause
/* The API's JSON as text: see render.h. */
#include "render.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/terminal.h"
#include "base/utf8_clean.h"

#define COMMAND_COLUMN 67 /* columns of the table before COMMAND */
#define COMMAND_MIN    8
#define REMARK_COLUMN  8
#define REMARK_MIN     40

/* The columns that are left behind `used` ones; 0: no limit */
static int rest_of(int width, int used, int least)
{
	if (!width)
		return 0;
	return width - used > least ? width - used : least;
}

/* Where to print, and its columns; 0: no limit */
struct page {
	FILE *out;
	int width;
};

const char *render_count(uint64_t v, int width, char *out, size_t size)
{
	static const char units[] = "kMGTPE";
	double d = (double)v / 1000;
	int unit = 0;

	if (snprintf(out, size, "%" PRIu64, v) <= width)
		return out;
	/* at 999.95 the value would be rounded to 1000.0 */
	for (; d >= 999.95 && units[unit + 1]; unit++)
		d /= 1000;
	snprintf(out, size, "%.1f%c", d, units[unit]);
	return out;
}

const char *render_duration(uint64_t ns, char *out, size_t size)
{
	uint64_t tenths = ns / 100000000, s = tenths / 10;

	if (s < 100)
		snprintf(out, size, "%" PRIu64 ".%" PRIu64 "s", s, tenths % 10);
	else if (s < 6000)
		snprintf(out, size, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 360000)
		snprintf(out, size, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(out, size, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s / 3600 % 24);
	return out;
}

static const char *text_of(const json_t *target, const char *key)
{
	const char *s = json_string_value(json_object_get(target, key));

	return s ? s : "";
}

static uint64_t count_of(const json_t *target, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(target, key));

	return v < 0 ? 0 : (uint64_t)v;
}

int render_clipped(const char *s, int width, FILE *out)
{
	int printed = 0;

	for (; *s && (!width || printed < width); printed++) {
		size_t n = utf8_len(s);

		if (n == 0 || terminal_harmful(utf8_decode(s, n)))
			putc('?', out);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	return printed;
}

static void print_count(const json_t *target, const char *key, int width, FILE *out)
{
	char s[32];

	fprintf(out, " %*s", width, render_count(count_of(target, key), width, s, sizeof(s)));
}

static void print_padded(const char *s, int width, FILE *out)
{
	int n;

	putc(' ', out);
	n = render_clipped(s, width, out);
	if (n < width)
		fprintf(out, "%*s", width - n, "");
}

const char *render_command(const char *cmdline)
{
	const char *end = cmdline + strcspn(cmdline, " ");
	const char *start = end;

	while (start > cmdline && start[-1] != '/')
		start--;
	return start;
}

/* Show the mode in the state: tracing, counting or sampling. */
static void print_state(const json_t *t, FILE *out)
{
	const char *state = text_of(t, "state"), *mode = text_of(t, "mode");

	if (strcmp(state, "tracing") == 0 && strcmp(mode, "count") == 0)
		state = "counting";
	if (strcmp(state, "tracing") == 0 && strcmp(mode, "sample") == 0)
		state = "sampling";
	print_padded(state, 8, out);
}

static void print_target(const json_t *t, int width, FILE *out)
{
	char s[32];

	fprintf(out, "%7" PRIu64, count_of(t, "pid"));
	print_state(t, out);
	print_padded(text_of(t, "python_version"), 7, out);
	fprintf(out, " %6s", render_duration(count_of(t, "traced_ns"), s, sizeof(s)));
	print_count(t, "events", 9, out);
	print_count(t, "events_per_s", 6, out);
	print_count(t, "lost", 6, out);
	print_count(t, "threads", 3, out);
	print_count(t, "functions", 5, out);
	putc(' ', out);
	render_clipped(render_command(text_of(t, "cmdline")),
		       rest_of(width, COMMAND_COLUMN, COMMAND_MIN), out);
	putc('\n', out);
}

static void print_remark(const json_t *t, const char *prefix, const char *text,
			 const struct page *page)
{
	int used = REMARK_COLUMN + (int)strlen(prefix);

	if (!*text)
		return;
	fprintf(page->out, "%7" PRIu64 " %s", count_of(t, "pid"), prefix);
	render_clipped(text, rest_of(page->width, used, REMARK_MIN), page->out);
	putc('\n', page->out);
}

/* Only unusual mechanisms get a line. */
static void print_mechanism(const json_t *t, const struct page *page)
{
	const char *name = text_of(t, "mechanism");

	if (strcmp(name, "tracefs") == 0)
		print_remark(t, "", "attached through tracefs: stopping takes longer", page);
	else if (strcmp(name, "multi-all") == 0)
		print_remark(t, "warning: ", "probes slow all processes of this interpreter", page);
}

/* Lately and in all. With windows, show which part of the CPU time they cover. */
static void print_overhead(const json_t *t, const struct page *page)
{
	const json_t *w = json_object_get(t, "windows"),
		     *in_all = json_object_get(t, "overhead_in_all");
	const bool traced = strcmp(text_of(t, "state"), "tracing") == 0;
	double overhead = json_real_value(json_object_get(t, "overhead"));
	char s[160];
	int n = 0;

	if (!traced && !json_is_real(in_all))
		return;
	if (traced)
		n = snprintf(s, sizeof(s), "overhead %.1f%%", overhead * 100);
	if (json_is_real(in_all))
		n += snprintf(s + n, sizeof(s) - (size_t)n, "%s%.1f%% in all",
			      traced ? ", " : "overhead ", json_real_value(in_all) * 100);
	if (w)
		n += snprintf(s + n, sizeof(s) - (size_t)n, " (limit %" PRIu64 "%%); ",
			      count_of(w, "max_overhead_percent"));
	if (w && json_is_false(json_object_get(w, "sampled")))
		snprintf(s + n, sizeof(s) - (size_t)n, "every call is traced");
	else if (w)
		snprintf(s + n, sizeof(s) - (size_t)n,
			 "%" PRIu64 " windows cover %.1f%% of its CPU time", count_of(w, "count"),
			 json_real_value(json_object_get(w, "cpu_share")) * 100);
	print_remark(t, "", s, page);
}

static void print_remarks(const json_t *t, const struct page *page)
{
	print_remark(t, "ended: ", text_of(t, "end_reason"), page);
	print_mechanism(t, page);
	if (strncmp(text_of(t, "self_test"), "not verified: ", 14) == 0)
		print_remark(t, "", text_of(t, "self_test"), page);
	print_remark(t, "warning: ", text_of(t, "warning"), page);
	print_overhead(t, page);
	if (count_of(t, "lost"))
		print_remark(t, "", "events were lost: counts are lower bounds", page);
}

static void print_attaching(const json_t *a, const struct page *page)
{
	print_remark(a, "attaching: ", text_of(a, "step"), page);
}

static void print_listener(const json_t *status, FILE *out)
{
	const json_t *http = json_object_get(status, "http"), *n;
	const json_t *refused = json_object_get(status, "refused_requests");
	json_int_t all = 0;
	const char *reason;

	if (!json_is_object(http))
		return;
	json_object_foreach((json_t *)refused, reason, n) all += json_integer_value(n);
	fprintf(out, "listening on http%s://",
		json_is_true(json_object_get(http, "tls")) ? "s" : "");
	render_clipped(text_of(http, "address"), 0, out);
	fprintf(out, "/, %s token; requests refused: %" JSON_INTEGER_FORMAT "\n",
		json_is_true(json_object_get(http, "token")) ? "with a" : "without a", all);
}

static uint64_t dropped_of(const json_t *push)
{
	const char *reason;
	const json_t *n;
	uint64_t sum = 0;

	json_object_foreach(json_object_get(push, "dropped"), reason, n)
		sum += (uint64_t)json_integer_value(n);
	return sum;
}

/* A receiver of intervals, and what failed last unless something was sent after it */
static void print_push(const json_t *push, const struct page *page)
{
	fputs("push to ", page->out);
	render_clipped(text_of(push, "url"), 0, page->out);
	fprintf(page->out,
		": %" PRIu64 " sent, %" PRIu64 " queued, %" PRIu64 " retries, %" PRIu64
		" dropped\n",
		count_of(push, "sent"), count_of(push, "queued"), count_of(push, "retried"),
		dropped_of(push));
	if (!*text_of(push, "last_error") ||
	    count_of(push, "last_sent_unix_ns") > count_of(push, "last_error_unix_ns"))
		return;
	fputs("        last error: ", page->out);
	render_clipped(text_of(push, "last_error"), rest_of(page->width, 20, REMARK_MIN),
		       page->out);
	putc('\n', page->out);
}

static void print_pushes(const json_t *status, const struct page *page)
{
	size_t i;
	json_t *push;

	json_array_foreach(json_object_get(status, "pushes"), i, push) print_push(push, page);
}

void render_status(const json_t *status, int width, FILE *out)
{
	const json_t *targets = json_object_get(status, "targets");
	const json_t *attaching = json_object_get(status, "attaching");
	const struct page page = {out, width};
	size_t i;
	json_t *t;

	print_listener(status, out);
	render_continuous(json_object_get(status, "continuous"), out);
	if (json_array_size(targets) == 0 && json_array_size(attaching) == 0) {
		if (json_is_object(json_object_get(status, "continuous")))
			return;
		fputs("no targets; `pyprofctl attach PID` attaches one\n", out);
		print_pushes(status, &page);
		return;
	}
	json_array_foreach(attaching, i, t) print_attaching(t, &page);
	if (json_array_size(targets) == 0)
		return;
	fputs("    PID STATE    PYTHON  TRACED    EVENTS   EV/S   LOST THR FUNCS COMMAND\n", out);
	json_array_foreach(targets, i, t) print_target(t, width, out);
	json_array_foreach(targets, i, t) print_remarks(t, &page);
	print_pushes(status, &page);
}
