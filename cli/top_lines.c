// SPDX-License-Identifier: BSD-2-Clause
/* Lines of a live view: see top_lines.h. */
#include "top_lines.h"

#include <inttypes.h>
#include <string.h>

#include "format/screen.h"
#include "render.h"
#include "snapshot/snapshot.h"

#define NS		    1e9
#define NAME_MIN	    24 /* columns; figures that leave less are left out */
#define SHARE_COLUMNS	    7  /* "  12.3 " before a bar */
#define WHY_COLUMNS	    10 /* " runnable " after it */
#define BAR_MIN		    8
#define SERVICE_MAX_COLUMNS 32

/* ---- figures ---- */

enum figure { RATE, SELF, CUM, CALLS, TOTTIME, CUMTIME, FIGURES };

static const size_t widths[FIGURES] = {7, 5, 5, 7, 8, 8};

/* The figures that are shown, as a bit mask. Those that matter least are left out first. */
static unsigned int figures_that_fit(bool uncounted, size_t columns)
{
	static const enum figure least[FIGURES] = {CUMTIME, TOTTIME, CALLS, RATE, CUM, SELF};
	unsigned int shown = (1u << FIGURES) - 1;
	size_t used = NAME_MIN;

	if (uncounted)
		shown &= ~(1u << RATE | 1u << CALLS);
	for (int f = 0; f < FIGURES; f++)
		used += shown & 1u << f ? widths[f] + 1 : 0;
	for (int i = 0; i < FIGURES && used > columns; i++) {
		if (!(shown & 1u << least[i]))
			continue;
		shown &= ~(1u << least[i]);
		used -= widths[least[i]] + 1;
	}
	return shown;
}

static void print_line(const char text[FIGURES][16], bool uncounted, const char *name,
		       size_t columns, FILE *out)
{
	unsigned int shown = figures_that_fit(uncounted, columns);

	for (int f = 0; f < FIGURES; f++)
		if (shown & 1u << f) {
			fprintf(out, "%*s ", (int)widths[f], text[f]);
			columns -= widths[f] + 1;
		}
	screen_fit(out, name, columns);
}

/* Of a process in an interval: CPU%, SAMPLES and PID, of which narrow terminals show less. */
static const size_t process_widths[] = {5, 7, 7};

static void print_process(const char *const text[3], const char *service, const char *name,
			  size_t columns, FILE *out)
{
	static const int most_useful[] = {0, 2, 1};
	size_t room = columns > NAME_MIN ? columns - NAME_MIN : 0;
	bool shown[3] = {false};

	for (size_t i = 0; i < 3 && room > process_widths[most_useful[i]]; i++) {
		shown[most_useful[i]] = true;
		room -= process_widths[most_useful[i]] + 1;
	}
	for (size_t i = 0; i < 3; i++)
		if (shown[i]) {
			fprintf(out, "%*s ", (int)process_widths[i], text[i]);
			columns -= process_widths[i] + 1;
		}
	room = columns > NAME_MIN ? columns * 2 / 5 : columns;
	if (room > SERVICE_MAX_COLUMNS)
		room = SERVICE_MAX_COLUMNS;
	columns -= room;
	room -= screen_fit(out, service, room);
	if (columns > 1) {
		fprintf(out, "%*s", (int)room + 1, "");
		screen_fit(out, name, columns - 1);
	}
}

static bool shows_usage(const struct top_model *m)
{
	return top_model_view(m) == TOP_THREADS || top_model_view(m) == TOP_PROCESSES;
}

static const char *name_heading(const struct top_model *m)
{
	static const char *const names[TOP_VIEWS] = {
		[TOP_FUNCTIONS] = "FUNCTION",
		[TOP_THREADS] = "PID/TID THREAD",
		[TOP_PROCESSES] = "PID COMMAND",
		[TOP_CALLERS] = "CALLED BY",
	};

	return names[top_model_view(m)];
}

void top_print_heading(const struct top_model *m, size_t columns, FILE *out)
{
	static const char functions[FIGURES][16] = {"CALLS/S", "SELF%",	  "CUM%",
						    "CALLS",   "TOTTIME", "CUMTIME"};
	static const char usage[FIGURES][16] = {"CALLS/S", "CPU%", "WALL%", "CALLS", "CPU", "WALL"};

	if (top_model_interval(m, NULL) && top_model_view(m) == TOP_PROCESSES)
		print_process((const char *const[]){"CPU%", "SAMPLES", "PID"}, "SERVICE",
			      "MOST TIME IN", columns, out);
	else
		print_line(shows_usage(m) ? usage : functions, top_model_uncounted(m),
			   name_heading(m), columns, out);
}

static void print_process_row(const struct top_row *r, size_t columns, FILE *out)
{
	char cpu[16], samples[16], pid[16];

	snprintf(cpu, sizeof(cpu), "%.1f", r->self);
	render_count(r->entry->samples, 7, samples, sizeof(samples));
	snprintf(pid, sizeof(pid), "%d", (int)r->entry->pid);
	print_process((const char *const[]){cpu, samples, pid}, r->entry->service, r->name, columns,
		      out);
}

void top_print_row(const struct top_row *r, size_t columns, FILE *out)
{
	char text[FIGURES][16];

	if (r->entry && r->entry->service) {
		print_process_row(r, columns, out);
		return;
	}
	render_count((uint64_t)(r->rate + .5), 7, text[RATE], sizeof(text[RATE]));
	snprintf(text[SELF], sizeof(text[SELF]), "%.1f", r->self);
	snprintf(text[CUM], sizeof(text[CUM]), "%.1f", r->cum);
	render_count(r->calls, 7, text[CALLS], sizeof(text[CALLS]));
	snprintf(text[TOTTIME], sizeof(text[TOTTIME]), "%.2f", (double)r->tottime / NS);
	snprintf(text[CUMTIME], sizeof(text[CUMTIME]), "%.2f", (double)r->cumtime / NS);
	print_line(text, r->uncounted, r->name, columns, out);
}

/* ---- bars ---- */

const char top_wait_letters[TOP_WAITS + 1] = "GLRISFPO";

struct top_bar_place top_bar_place(size_t columns)
{
	const size_t other = SHARE_COLUMNS + WHY_COLUMNS + NAME_MIN;
	size_t room = columns > other ? (columns - other) / 2 + BAR_MIN : 0;

	if (columns < other + BAR_MIN)
		return (struct top_bar_place){0};
	if (room > columns - other)
		room = columns - other;
	return (struct top_bar_place){.column = SHARE_COLUMNS,
				      .width = room < TOP_BAR_MAX ? room : TOP_BAR_MAX};
}

double top_bar_full(const struct top_model *m)
{
	double full = 100;
	size_t n;
	const struct top_row *rows = top_model_rows(m, &n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].waiting > full)
			full = rows[i].waiting;
	return full;
}

/*
 * Each reason ends where its sum with those before it does, so that the rounding of one does not
 * move the end of the bar.
 */
size_t top_bar(const struct top_row *r, double full, size_t width, char bar[TOP_BAR_MAX + 1])
{
	double sum = 0;
	size_t n = 0;

	if (width > TOP_BAR_MAX)
		width = TOP_BAR_MAX;
	for (int i = 0; i < TOP_WAITS; i++) {
		double end = (sum += r->wait[i]) / full * (double)width + .5;

		while (n < width && (double)(n + 1) <= end)
			bar[n++] = top_wait_letters[i];
	}
	bar[n] = '\0';
	return n;
}

void top_print_waits_heading(const struct top_model *m, size_t columns, FILE *out)
{
	struct top_bar_place p = top_bar_place(columns);

	if (p.width) {
		fprintf(out, " WAIT%% %-*s MAINLY   ", (int)p.width, "REASONS");
		columns -= SHARE_COLUMNS + p.width + WHY_COLUMNS;
	}
	screen_fit(out, name_heading(m), columns);
}

static const char *main_reason(const struct top_row *r)
{
	int most = 0;

	for (int i = 1; i < TOP_WAITS; i++)
		if (r->wait[i] > r->wait[most])
			most = i;
	return r->wait[most] > 0 ? column_table[COLUMN_WAITS_FIRST + most].name : "";
}

void top_print_waits_row(const struct top_row *r, double full, size_t columns, FILE *out)
{
	struct top_bar_place p = top_bar_place(columns);
	char bar[TOP_BAR_MAX + 1];

	if (p.width) {
		top_bar(r, full, p.width, bar);
		fprintf(out, "%6.1f %-*s %-8s ", r->waiting, (int)p.width, bar, main_reason(r));
		columns -= SHARE_COLUMNS + p.width + WHY_COLUMNS;
	}
	screen_fit(out, r->name, columns);
}

void top_print_legend(size_t columns, FILE *out)
{
	char text[TOP_WAITS][16];
	const char *parts[TOP_WAITS + 1] = {0};

	for (int i = 0; i < TOP_WAITS; i++) {
		snprintf(text[i], sizeof(text[i]), "%c %s", top_wait_letters[i],
			 column_table[COLUMN_WAITS_FIRST + i].name);
		parts[i] = text[i];
	}
	top_print_parts(parts, columns > 70 ? "  " : " ", columns, out);
}

/* ---- the first lines ---- */

void top_print_parts(const char *const *parts, const char *separator, size_t columns, FILE *out)
{
	size_t used = 0;

	for (; *parts; parts++) {
		size_t between = used ? strlen(separator) : 0;

		if (!**parts)
			continue;
		if (used && used + between + screen_width(*parts) > columns)
			return;
		fputs(used ? separator : "", out);
		used += between;
		used += screen_fit(out, *parts, columns - used);
	}
}

/* Sums over all targets */
struct totals {
	uint64_t events, rate, lost, tracing, ended, overhead_ns, own_cpu_ns;
	double lately, own_traced; /* of those that are traced: weighted by own CPU time; its sum */
};

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v < 0 ? 0 : (uint64_t)v;
}

static struct totals add_up(const json_t *status)
{
	struct totals ret = {0};
	size_t i;
	json_t *t;

	json_array_foreach(json_object_get(status, "targets"), i, t)
	{
		const char *state = json_string_value(json_object_get(t, "state"));
		const uint64_t own = number_of(t, "own_cpu_ns");

		ret.events += number_of(t, "events");
		ret.rate += number_of(t, "events_per_s");
		ret.lost += number_of(t, "lost");
		ret.overhead_ns += number_of(t, "overhead_ns");
		ret.own_cpu_ns += own;
		if (state && strcmp(state, "tracing") == 0) {
			ret.lately += json_real_value(json_object_get(t, "overhead")) * (double)own;
			ret.own_traced += (double)own;
		}
		ret.tracing += state && strcmp(state, "tracing") == 0;
		ret.ended += state && strcmp(state, "ended") == 0;
	}
	return ret;
}

/* Continuous mode: parts that fit. */
static void print_continuous(const json_t *c, size_t columns, FILE *out)
{
	const json_t *p = json_object_get(c, "processes");
	const uint64_t later = number_of(p, "waiting") + number_of(p, "attaching");
	char sampled[48], waiting[48] = "", rate[32], cost[48];

	snprintf(sampled, sizeof(sampled), "%" PRIu64 " processes sampled",
		 number_of(p, "sampled"));
	if (later)
		snprintf(waiting, sizeof(waiting), "%" PRIu64 " to be attached", later);
	snprintf(rate, sizeof(rate), "%.1f samples/s each",
		 json_number_value(json_object_get(c, "rate_hz")));
	snprintf(cost, sizeof(cost), "%.2f%% of a core used",
		 json_number_value(json_object_get(c, "cpu_percent")));
	top_print_parts((const char *const[]){sampled, waiting, rate, cost, NULL}, " | ", columns,
			out);
}

void top_print_status(const json_t *status, size_t columns, FILE *out)
{
	const json_t *continuous = json_object_get(status, "continuous");
	struct totals t = add_up(status);
	const double lately = t.own_traced > 0 ? t.lately / t.own_traced * 100 : 0;
	const double ratio = snapshot_overhead(t.overhead_ns, t.own_cpu_ns);
	char all[32], per_s[32], in_all[32] = "", line[256];

	if (json_is_object(continuous)) {
		print_continuous(continuous, columns, out);
		return;
	}
	render_count(t.events, 9, all, sizeof(all));
	render_count(t.rate, 6, per_s, sizeof(per_s));
	if (ratio >= 0)
		snprintf(in_all, sizeof(in_all), ", %.1f%% in all", 100 * ratio);
	snprintf(line, sizeof(line),
		 "%" PRIu64 " traced, %" PRIu64 " ended | %s events, %s/s, %" PRIu64
		 " lost | overhead %.1f%%%s",
		 t.tracing, t.ended, all, per_s, t.lost, lately, in_all);
	if (strlen(line) > columns)
		snprintf(line, sizeof(line),
			 "%" PRIu64 " traced | %s/s, %" PRIu64 " lost | overhead %.1f%%", t.tracing,
			 per_s, t.lost, lately);
	screen_fit(out, line, columns);
}
