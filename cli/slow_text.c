// SPDX-License-Identifier: BSD-2-Clause
/* Slow calls as text: see slow_text.h. */
#include "slow_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/wait.h"
#include "render.h"
#include "slow_tree.h"

#define FIXED_WIDTH 34	/* columns of a row besides the waits and the function */
#define NARROW	    120 /* below, rows have one reason for waiting, and indents of one column */
#define NAME_MIN    18	/* columns that indents leave to the function's name */
#define INDENT_MAX  48
#define REASONS	    3	  /* in a call's heading */
#define REASON_MIN  50000 /* ns; less would be shown as 0.0 ms */
#define REASONS_MAX 128
#define TIME_MAX    32
#define MS_LIMIT    (10 * CLOCK_NS_PER_S) /* longer times are in seconds */

/* Where to print. Lines are cut to the width. */
struct page {
	FILE *out;
	int width; /* 0: no limit */
	int used;
};

static void put(struct page *p, const char *s)
{
	if (!p->width || p->used < p->width)
		p->used += render_clipped(s, p->width ? p->width - p->used : 0, p->out);
}

static void putf(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For texts of limited length; names are put() as they are. */
static void putf(struct page *p, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put(p, text);
}

static void end_line(struct page *p)
{
	putc('\n', p->out);
	p->used = 0;
}

/* ---- values ---- */

static uint64_t count_of(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v < 0 ? 0 : (uint64_t)v;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static bool is_set(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* "312.40 ms", "12.34 s". Returns out. */
static const char *time_text(uint64_t ns, int decimals, char out[TIME_MAX])
{
	if (ns < MS_LIMIT)
		snprintf(out, TIME_MAX, "%.*f ms", decimals, (double)ns / 1e6);
	else
		snprintf(out, TIME_MAX, "%.*f s", decimals, (double)ns / 1e9);
	return out;
}

/* A limit as users give it: "200 ms", "1.5 ms", "12 s". Returns out. */
static const char *limit_text(uint64_t ns, char out[TIME_MAX])
{
	if (ns < MS_LIMIT && ns % CLOCK_NS_PER_S)
		snprintf(out, TIME_MAX, "%.9g ms", (double)ns / 1e6);
	else
		snprintf(out, TIME_MAX, "%.9g s", (double)ns / 1e9);
	return out;
}

/* The longest reasons, at most `most`, that are at least 1 % of the time: "lock 300.1 ms, gil 8.2 ms" */
static const char *reasons_text(const struct slow_figures *f, int most, char out[REASONS_MAX])
{
	uint64_t rest[WAITS];
	char time[TIME_MAX];
	size_t n = 0;

	memcpy(rest, f->waits, sizeof(rest));
	out[0] = '\0';
	for (int i = 0; i < most && n < REASONS_MAX; i++) {
		int w = 0;

		for (int k = 1; k < WAITS; k++)
			w = rest[k] > rest[w] ? k : w;
		if (rest[w] < REASON_MIN || rest[w] < f->wall / 100)
			break;
		n += (size_t)snprintf(out + n, REASONS_MAX - n, "%s%s %s", n ? ", " : "",
				      slow_reasons[w], time_text(rest[w], 1, time));
		rest[w] = 0;
	}
	return out;
}

/* ---- functions ---- */

/* The last two components of a path */
static const char *short_file(const char *file)
{
	const char *start = file + strlen(file);

	for (int slashes = 0; start > file; start--)
		if (start[-1] == '/' && ++slashes == 2)
			break;
	return start;
}

static const json_t *function_of(const json_t *slow, uint32_t index)
{
	return json_array_get(json_object_get(slow, "functions"), index);
}

static void put_name(struct page *p, const json_t *function)
{
	const char *name = text_of(function, "name");

	put(p, *name ? name : "?");
}

/* C functions and pseudo functions have no place. */
static bool has_place(const json_t *function)
{
	const char *file = text_of(function, "file");

	return *file && strcmp(file, "~") != 0;
}

static void put_place(struct page *p, const json_t *function)
{
	put(p, short_file(text_of(function, "file")));
	if (count_of(function, "line"))
		putf(p, ":%" PRIu64, count_of(function, "line"));
}

/* ---- a call ---- */

/* A call to print: its JSON, and its tree */
struct shown {
	const json_t *slow, *call;
	const struct slow_tree *tree;
	size_t number;
};

static void put_times(struct page *p, const struct shown *s)
{
	const uint64_t wall = count_of(s->call, "wall_ns"), cpu = count_of(s->call, "cpu_ns");
	const uint64_t suspended = count_of(s->call, "suspended_ns");
	const uint64_t busy = cpu + suspended;
	char reasons[REASONS_MAX], time[TIME_MAX];

	putf(p, "#%zu  %s wall", s->number, time_text(wall, 1, time));
	if (is_set(s->call, "running"))
		put(p, " (still running)");
	putf(p, ", %s CPU", time_text(cpu, 1, time));
	if (suspended)
		putf(p, ", suspended %s", time_text(suspended, 1, time));
	putf(p, ", waiting %s", time_text(wall > busy ? wall - busy : 0, 1, time));
	if (s->tree->n)
		reasons_text(&s->tree->nodes[0].all, REASONS, reasons);
	if (s->tree->n && *reasons)
		putf(p, ": %s", reasons);
	end_line(p);
}

/* Local time: "14:03:22.123" */
static void put_moment(struct page *p, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / CLOCK_NS_PER_S);
	struct tm tm;

	if (unix_ns && localtime_r(&seconds, &tm))
		putf(p, ", at %02d:%02d:%02d.%03u", tm.tm_hour, tm.tm_min, tm.tm_sec,
		     (unsigned int)(unix_ns % CLOCK_NS_PER_S / 1000000));
}

static void put_origin(struct page *p, const struct shown *s)
{
	const json_t *function = s->tree->n ? function_of(s->slow, s->tree->nodes[0].function)
					    : NULL;
	const char *thread = text_of(s->call, "thread");

	put(p, "    ");
	put_name(p, function);
	if (has_place(function)) {
		put(p, " (");
		put_place(p, function);
		put(p, ")");
	}
	putf(p, ", process %" PRIu64 ", thread %" PRIu64, count_of(s->call, "pid"),
	     count_of(s->call, "tid"));
	if (*thread) {
		put(p, " \"");
		put(p, thread);
		put(p, "\"");
	}
	put_moment(p, count_of(s->call, "start_unix_ns"));
	putf(p, ", %" PRIu64 " events", count_of(s->call, "events"));
	if (is_set(s->call, "gap"))
		put(p, ", some lost");
	end_line(p);
}

/* How the rows of a tree are laid out */
struct layout {
	int reasons, waits; /* number of reasons in a row, and the column's width */
	int step, indent;   /* columns per level, and the largest indent */
};

static struct layout choose_layout(const struct slow_tree *t, int width)
{
	const int columns = width && width < NARROW ? 1 : 2;
	struct layout l = {.reasons = columns,
			   .step = columns,
			   .waits = (int)strlen("waits"),
			   .indent = INDENT_MAX};
	char text[REASONS_MAX];
	int left;

	for (size_t i = 0; i < t->nrows; i++) {
		struct slow_figures f;
		int n;

		slow_tree_figures(t, &t->rows[i], &f);
		n = (int)strlen(reasons_text(&f, l.reasons, text));
		l.waits = n > l.waits ? n : l.waits;
	}
	left = width - FIXED_WIDTH - l.waits - NAME_MIN;
	if (width && left < l.indent)
		l.indent = left > 0 ? left : 0;
	return l;
}

/* The level is indented, or a number if it is too deep for that: "[57] ". */
static void put_level(struct page *p, const struct layout *l, uint32_t depth)
{
	if (depth <= (uint32_t)(l->indent / l->step))
		putf(p, "%*s", (int)depth * l->step, "");
	else
		putf(p, "%*s[%" PRIu32 "] ", l->indent, "", depth);
}

static void put_row(struct page *p, const struct shown *s, const struct layout *l,
		    const struct slow_row *row)
{
	char wall[TIME_MAX], cpu[TIME_MAX], reasons[REASONS_MAX], calls[TIME_MAX];
	struct slow_figures f;
	const json_t *function;

	slow_tree_figures(s->tree, row, &f);
	reasons_text(&f, l->reasons, reasons);
	putf(p, "  %10s %10s  ", time_text(f.wall, 2, wall), time_text(f.cpu, 2, cpu));
	putf(p, "%-*s %6s  ", l->waits, s->tree->measured ? reasons : "-",
	     render_count(f.calls, 6, calls, sizeof(calls)));
	put_level(p, l, row->depth);
	if (row->nothers) {
		putf(p, "(%" PRIu32 " other%s)", row->nothers, row->nothers > 1 ? "s" : "");
		end_line(p);
		return;
	}
	function = function_of(s->slow, s->tree->nodes[row->node].function);
	put_name(p, function);
	if (has_place(function)) {
		put(p, " ");
		put_place(p, function);
	}
	end_line(p);
}

static void put_tree(struct page *p, const struct shown *s)
{
	const struct layout l = choose_layout(s->tree, p->width);

	putf(p, "  %10s %10s  %-*s %6s  %s", "wall  ", "cpu  ", l.waits, "waits", "calls",
	     "function");
	end_line(p);
	for (size_t i = 0; i < s->tree->nrows; i++)
		put_row(p, s, &l, &s->tree->rows[i]);
}

static void put_call(struct page *p, const struct shown *s)
{
	put_times(p, s);
	put_origin(p, s);
	if (s->tree->n)
		put_tree(p, s);
	end_line(p);
}

/* ---- the notes ---- */

/* Of the calls that are shown */
struct totals {
	size_t shown, running, gaps;
	uint64_t truncated, least_events, most_events;
};

static void add_up(struct totals *t, const json_t *call)
{
	uint64_t events = count_of(call, "events");

	t->running += is_set(call, "running");
	t->gaps += is_set(call, "gap");
	t->truncated += count_of(call, "truncated");
	if (!t->shown || events < t->least_events)
		t->least_events = events;
	if (events > t->most_events)
		t->most_events = events;
	t->shown++;
}

static const char *clock_text(const json_t *slow)
{
	return strcmp(text_of(slow, "clock"), "cpu") == 0 ? " of CPU time" : "";
}

static void put_match(struct page *p, const json_t *slow)
{
	const json_t *match = json_object_get(slow, "match");

	if (!match || json_is_null(match)) {
		put(p, "the program's own functions");
		return;
	}
	put(p, "'");
	put(p, text_of(slow, "match"));
	put(p, "'");
}

/* "calls of 'handle': 2000 ended in 12.3s, 20 took 200 ms or more; shown: 10" */
static void put_counts(struct page *p, const json_t *slow, const struct totals *t)
{
	const uint64_t limit = count_of(slow, "over_ns");
	char time[TIME_MAX];

	put(p, "calls of ");
	put_match(p, slow);
	putf(p, ": %" PRIu64 " ended in %s", count_of(slow, "seen"),
	     render_duration(count_of(slow, "elapsed_ns"), time, sizeof(time)));
	if (limit && !t->shown)
		putf(p, ", none took %s%s or more", limit_text(limit, time), clock_text(slow));
	else if (limit)
		putf(p, ", %" PRIu64 " took %s%s or more", count_of(slow, "over"),
		     limit_text(limit, time), clock_text(slow));
	if (t->shown)
		putf(p, "; shown: %zu", t->shown);
	if (t->running)
		putf(p, ", %zu still running", t->running);
	end_line(p);
}

/* Calls of matching functions whose duration is unknown, and functions that may match or not */
static void put_unknown(struct page *p, const json_t *slow)
{
	static const struct {
		const char *key, *text;
	} reasons[] = {
		{"unknown_start", "had begun before"},
		{"refused", "were too many at a time"},
		{"interrupted", "ended unseen"},
	};
	const uint64_t unsearched = count_of(slow, "unsearched");
	const char *comma = "not timed: ";

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		uint64_t n = count_of(slow, reasons[i].key);

		if (!n)
			continue;
		putf(p, "%s%" PRIu64 " that %s", comma, n, reasons[i].text);
		comma = ", ";
	}
	if (unsearched)
		putf(p, "%spattern too slow for the names of %" PRIu64 " functions",
		     p->used ? "; " : "", unsearched);
	if (p->used)
		end_line(p);
}

static void put_incomplete(struct page *p, const struct totals *t)
{
	if (!t->gaps && !t->truncated)
		return;
	put(p, "incomplete: ");
	if (t->gaps)
		putf(p, "events were lost inside %zu of these calls%s", t->gaps,
		     t->truncated ? "; " : "");
	if (t->truncated)
		putf(p, "%" PRIu64 " calls inside have no row, their time is their caller's",
		     t->truncated);
	end_line(p);
}

static void put_notes(struct page *p, const json_t *slow, const struct totals *t)
{
	put_counts(p, slow, t);
	put_unknown(p, slow);
	put_incomplete(p, t);
	if (!t->shown)
		return;
	putf(p, "times include the probes' own cost for each event (call or return) inside: ");
	if (t->least_events != t->most_events)
		putf(p, "%" PRIu64 " to ", t->least_events);
	putf(p, "%" PRIu64 " events", t->most_events);
	end_line(p);
}

int slow_text(const json_t *slow, int width, FILE *out)
{
	const bool cpu = strcmp(text_of(slow, "clock"), "cpu") == 0;
	struct page page = {.out = out, .width = width};
	struct page notes = {.out = out}; /* a terminal wraps them */
	struct totals totals = {0};
	const json_t *call;
	size_t i;

	json_array_foreach(json_object_get(slow, "calls"), i, call)
	{
		_cleanup_(slow_tree_deinit) struct slow_tree tree = {0};
		int r = slow_tree_build(json_object_get(call, "nodes"), cpu, &tree);

		if (r < 0)
			return r;
		put_call(&page, &(struct shown){slow, call, &tree, i + 1});
		add_up(&totals, call);
	}
	put_notes(&notes, slow, &totals);
	return 0;
}

void slow_text_progress(const json_t *counters, FILE *out)
{
	const uint64_t limit = count_of(counters, "over_ns");
	char time[TIME_MAX], calls[TIME_MAX], over[TIME_MAX];

	fprintf(out, "%s, %s calls",
		render_duration(count_of(counters, "elapsed_ns"), time, sizeof(time)),
		render_count(count_of(counters, "seen"), 9, calls, sizeof(calls)));
	if (limit)
		fprintf(out, ", %s over %s",
			render_count(count_of(counters, "over"), 9, over, sizeof(over)),
			limit_text(limit, time));
}
