// SPDX-License-Identifier: BSD-2-Clause
/*
 * Snapshots for the browser's tests, written by the product's own writers: `gen_reports DIR` makes
 * NAME.html for each snapshot below, and for some NAME.json, which the tests compare the others
 * with, NAME.speedscope.json and NAME.trace.json. Needs neither a target nor root.
 */
#include <stdio.h>
#include <string.h>

#include "format/format.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"
#include "snapshot/lines.h"

#define LARGE_NODES   100000u
#define MANY_NODES    20000u
#define LARGE_THREADS 16u
#define LARGE_FUNCS   5000u
#define DEEP_NODES    20000u

static int failures;

static void save(const struct snapshot *s, const struct format_opts *o, const char *dir,
		 const char *name, const char *format)
{
	const struct format *f = format_find(format);
	struct diag diag = {0};
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, f->extension);
	out = fopen(path, "w");
	if (!out || format_write(f, s, o, out, &diag) < 0) {
		fprintf(stderr, "%s: %s\n", path, diag.msg);
		failures++;
	}
	if (out && fclose(out) != 0)
		failures++;
}

/* Saves the snapshot in these formats (ends with NULL), and frees it. */
static void save_all(struct snapshot *s, const char *dir, const char *name,
		     const char *const *formats_wanted)
{
	const struct format_opts o = {.clock = s->clock};

	for (; *formats_wanted; formats_wanted++)
		save(s, &o, dir, name, *formats_wanted);
	snapshot_free(s);
}

/* Saves the program's own code only, and frees the snapshot. */
static void save_folded(struct snapshot *s, const char *dir, const char *name)
{
	const struct format_opts o = {.only_my_code = true};

	save(s, &o, dir, name, "html");
	save(s, &o, dir, name, "json");
	snapshot_free(s);
}

/* ---- snapshots that are too large for the builder ---- */

static const char *text(struct snapshot *s, const char *before, unsigned int n, const char *after)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%s%u%s", before, n, after);
	return snapshot_str(s, buf);
}

static void large_target(struct snapshot *s)
{
	s->host = s->kernel = s->program = "test";
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->targets[s->ntargets++] = (struct snapshot_target){
		.pid = 42,
		.cmdline = "python large.py",
		.exe = "/usr/bin/python3",
		.python_file = "/usr/bin/python3",
		.python_version = "3.13.0",
		.build_id = "00",
		.alive = true,
		.tracing = true,
		.start_unix_ns = 1700000000000000000,
		.end_unix_ns = 1700000060000000000,
		.end_ns = 60000000000,
		.traced_ns = 60000000000,
		.events = 12345678,
	};
}

static void large_funcs(struct snapshot *s, uint32_t n)
{
	s->funcs = snapshot_alloc(s, n, sizeof(*s->funcs));
	for (; s->nfuncs < n; s->nfuncs++)
		s->funcs[s->nfuncs] = (struct snapshot_func){
			.filename = text(s, "/srv/app/module_", s->nfuncs / 40, ".py"),
			.name = text(s, "function_", s->nfuncs, ""),
			.qualname = text(s, "Class.function_", s->nfuncs, ""),
			.firstlineno = (int32_t)(s->nfuncs % 40 * 12 + 1),
		};
}

static void add_node(struct snapshot *s, uint32_t parent, uint32_t func, uint64_t cpu)
{
	s->nodes[s->nnodes++] = (struct snapshot_node){
		.parent = parent,
		.func = func,
		.thread = s->nthreads - 1,
		.calls = func == SNAPSHOT_NONE ? 0 : 1 + cpu / 1000,
		.self = {cpu, cpu + cpu / 3},
		.min = {cpu / 10, cpu / 9},
		.max = {cpu, cpu},
	};
}

static void add_thread(struct snapshot *s, uint32_t i, uint64_t cpu)
{
	s->threads[i] = (struct snapshot_thread){
		.pid = 42,
		.tid = 42 + i,
		.name = text(s, "worker-", i, ""),
		.alive = i % 3 != 0,
		.start_ns = i * UINT64_C(1000000000),
		.end_ns = 60000000000 - i * UINT64_C(700000000),
		.total = {cpu, cpu * 2},
		.root = s->nnodes,
	};
	s->nthreads = i + 1;
	add_node(s, SNAPSHOT_NONE, SNAPSHOT_NONE, 1000);
}

/* All counters, of any magnitude; values grow with their index. */
static struct snapshot *with_counters(struct snapshot *s, unsigned int seed)
{
	s->measured = column_group("counters");
	if (snapshot_reserve_columns(s, s->measured, s->nnodes) < 0)
		exit(1);
	for (uint32_t i = 0; i < s->nnodes; i++)
		for (int k = 0; k < PYP_COUNTERS; k++)
			s->columns[COLUMN_vcsw + k][i] =
				random_below(&seed, 3) ? random_below(&seed, 10 << (4 * k)) : 0;
	return s;
}

/* Many contexts, as of a service: many branches, some 60 deep, few with a large share. */
static struct snapshot *large(uint32_t nodes)
{
	struct snapshot *s = snapshot_new();
	unsigned int seed = 1;

	large_target(s);
	large_funcs(s, LARGE_FUNCS);
	s->threads = snapshot_alloc(s, LARGE_THREADS, sizeof(*s->threads));
	s->nodes = snapshot_alloc(s, nodes, sizeof(*s->nodes));
	for (uint32_t t = 0; t < LARGE_THREADS; t++) {
		uint32_t end = nodes / LARGE_THREADS * (t + 1), root = s->nnodes;

		add_thread(s, t, 2000000000);
		while (s->nnodes < end) {
			uint32_t n = s->nnodes - root, back = random_below(&seed, 16) ? 8 : n;
			uint32_t parent = s->nnodes - 1 - random_below(&seed, back < n ? back : n);
			uint64_t scale = random_below(&seed, 100) ? 20000 : 20000000;

			add_node(s, parent, random_below(&seed, LARGE_FUNCS),
				 random_below(&seed, (unsigned int)scale));
		}
	}
	return s;
}

/* As many functions as contexts */
static struct snapshot *wide(void)
{
	struct snapshot *s = snapshot_new();

	large_target(s);
	large_funcs(s, LARGE_NODES);
	s->threads = snapshot_alloc(s, 1, sizeof(*s->threads));
	s->nodes = snapshot_alloc(s, LARGE_NODES, sizeof(*s->nodes));
	add_thread(s, 0, 2000000000);
	while (s->nnodes < LARGE_NODES)
		add_node(s, s->nnodes / 12, s->nnodes, 17 * (s->nnodes % 1000) + s->nnodes % 7);
	return s;
}

/* One function that calls itself */
static struct snapshot *deep(void)
{
	struct snapshot *s = snapshot_new();

	large_target(s);
	large_funcs(s, 1);
	s->threads = snapshot_alloc(s, 1, sizeof(*s->threads));
	s->nodes = snapshot_alloc(s, DEEP_NODES, sizeof(*s->nodes));
	add_thread(s, 0, 2000000000);
	while (s->nnodes < DEEP_NODES)
		add_node(s, s->nnodes - 1, 0, 100);
	return s;
}

/* Times beyond a double's precision, and lost events */
static struct snapshot *extreme(void)
{
	struct snapshot *s =
		snapshot_build("target 42\n"
			       "thread 42 43 worker\n"
			       "main app.py:1 1 9007199254740993 18446744073709551614\n"
			       "  f app.py:10 18014398509481985 5 6\n");

	s->targets[0].losses[PYP_LOSS_lost_events] = 12;
	s->clock = SNAPSHOT_WALL;
	return s;
}

/* Estimates with errors, some of which are unknown; one function has two code objects. */
static struct snapshot *estimate(void)
{
	struct snapshot *s = snapshot_random(9);

	s->targets[0].windows = (struct snapshot_windows){.sampled = true,
							  .max_overhead = 5,
							  .n = 9,
							  .span_ns = 20000000000,
							  .seen_cpu_ns = 1,
							  .all_cpu_ns = 3};
	s->targets[0].overhead_ns = 31000000;
	s->targets[0].own_cpu_ns = 1000000000;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (uint32_t k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = (i + k) % 7 ? 1e6 * (i + 1) * (k + 1) : -1;
	s->funcs[1] = s->funcs[0];
	s->funcs[1].variant = 1;
	return s;
}

#define LONG_NAME "function_with_a_long_name_that_fits_in_no_narrow_window"
#define WORKER(tid)                                                                                \
	"thread 42 " tid " worker\n"                                                               \
	"load_all app.py:1 123456 30000000\n"                                                      \
	"  load_item app.py:9 4321765 90000000\n"                                                  \
	"    fib app.py:20 4321765 7000000\n"                                                      \
	"      fib app.py:20 1234567 3000000\n"                                                    \
	"  " LONG_NAME " app.py:30 98765 1000000\n"

/*
 * Calls per call of the caller from whole calls of two threads in windows, beside a process all of whose
 * calls were seen.
 */
static struct snapshot *windowed(void)
{
	struct snapshot *s = snapshot_build("target 42\n" WORKER("42")
						    WORKER("43") "target 7\nthread 7 7 MainThread\n"
								 "main app.py:50 3 1000000\n"
								 "  load_all app.py:1 12 2000000\n"
								 "  check app.py:60 10 3000000\n");

	/* contexts 1 to 5 and 7 to 11, behind the threads' roots */
	for (uint32_t i = 0; i < 9; i++)
		for (uint32_t at = 1; at <= 7; at += 6)
			WHOLES_ADD_WINDOW(s, 0, {at, 0, 1 + i % 3},
					  {at + 1, 35 + 5 * i - at, 34 + 5 * i},
					  {at + 2, 34 + 5 * i, 33}, {at + 3, 9 + i % 4, 9},
					  {at + 4, i % 2, i % 2});
	s->targets[0].windows.max_overhead = 10;
	s->targets[0].windows.n = 9;
	s->targets[0].windows.span_ns = 20000000000;
	s->targets[0].windows.seen_cpu_ns = 1;
	s->targets[0].windows.all_cpu_ns = 3;
	return s;
}

/* Samples: CPU time only */
static struct snapshot *sampled(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 42 MainThread\n"
					    "main app.py:1 0 20202020 0\n"
					    "  fib app.py:10 0 505050500 0\n"
					    "    fib app.py:10 0 303030300 0\n"
					    "  idle app.py:30 0 10101010 0\n");
	const double period = 10101010;
	const struct snapshot_line lines[] = {{0, 4, 40404040, 4 * period * period},
					      {11, 20, 202020200, 20 * period * period},
					      {12, 56, 565656560, 56 * period * period}};

	s->targets[0].mode = MODE_SAMPLE;
	s->targets[0].estimate =
		(struct snapshot_estimate){.rate = 99, .period_ns = 10101010, .samples = 83};
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].min[SNAPSHOT_CPU] = s->nodes[i].min[SNAPSHOT_WALL] = UINT64_MAX;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = k == SNAPSHOT_TOT_CPU ? period * 505050500 : -1;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, "fib") == 0)
			snapshot_add_lines(s, &s->funcs[i], lines, 3);
	s->threads[0].total[SNAPSHOT_CPU] = 838383830;
	s->threads[0].total[SNAPSHOT_WALL] = 0;
	return s;
}

/* Counts: contexts have a depth of two, and a caller's context has no calls of its own. */
static struct snapshot *counted(const char *text)
{
	struct snapshot *s = snapshot_build(text);

	for (uint32_t i = 0; i < s->ntargets; i++)
		s->targets[i].mode = s->targets[i].pid == 42 ? MODE_COUNT : MODE_TRACE;
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (s->threads[i].pid == 42)
			memset(s->threads[i].total, 0, sizeof(s->threads[i].total));
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->threads[s->nodes[i].thread].pid == 42)
			s->nodes[i].min[SNAPSHOT_CPU] = s->nodes[i].min[SNAPSHOT_WALL] = UINT64_MAX;
	return s;
}

#define COUNTED_TEXT                                                                               \
	"target 42\n"                                                                              \
	"thread 42 42 MainThread\n"                                                                \
	"main app.py:1 1 0\n"                                                                      \
	"  fib app.py:10 5 0\n"                                                                    \
	"  idle app.py:30 2 0\n"                                                                   \
	"fib app.py:10 0 0\n"                                                                      \
	"  fib app.py:10 1234567 0\n"                                                              \
	"  add lib/math.py:3 77 0\n"                                                               \
	"thread 42 43 worker\n"                                                                    \
	"run app.py:50 9 0\n"                                                                      \
	"fib app.py:10 3 0\n"                                                                      \
	"  add lib/math.py:3 8 0\n"

/*
 * For readers of Chrome's traces, which represent microseconds as doubles: all times are whole and
 * not 0, so that each slice ends exactly where the next one begins.
 */
static struct snapshot *whole(void)
{
	return snapshot_build("target 42\n"
			      "thread 42 42 MainThread\n"
			      "main app.py:1 1 3000 5000 1\n"
			      "  fib app.py:10 4 40000 41000\n"
			      "    fib app.py:10 8 80000 83000\n"
			      "      add lib/math.py:3 16 7000 7000\n"
			      "  sleep app.py:30 2 1000 900000000\n"
			      "thread 42 43 worker\n"
			      "run app.py:50 1 2000 700000\n"
			      "  fib app.py:10 1 5000 6000\n");
}

/* ---- reasons for waiting ---- */

#define WAITERS 40u /* functions that sleep: more than a table shows at first */

struct wait {
	const char *func;
	int column;
	uint64_t ns;
};

/* In each context of the function, beside its CPU time; "I/O" in its kinds. */
static const struct wait waits[] = {
	{"compute", COLUMN_gil, 600000000},
	{"compute", COLUMN_runnable, 200000000},
	{"fetch", COLUMN_io, 700000000},
	{"fetch", COLUMN_io_socket, 500000000},
	{"fetch", COLUMN_io_poll, 200000000},
	{"fetch", COLUMN_fault, 100000000},
	{"locked", COLUMN_lock, 300000000},
	{"locked", COLUMN_other, 50000000},
	{"fork", COLUMN_process, 150000000},
	{"function_with_a_long_name_that_fits_in_no_narrow_window", COLUMN_gil, 20000000},
};

/* Its name, wall time less CPU time, and the reasons above add up. */
#define WAITING_TEXT                                                                               \
	"target 42\n"                                                                              \
	"thread 42 42 MainThread\n"                                                                \
	"main app.py:1 1 1000000 1000000\n"                                                        \
	"  compute app.py:10 9 400000000 1200000000\n"                                             \
	"    collect app.py:15 3 90000000 90000000\n"                                              \
	"  fetch lib/net.py:7 5 40000000 840000000\n"                                              \
	"  locked app.py:30 2 10000000 360000000\n"                                                \
	"    locked app.py:30 2 10000000 360000000\n"                                              \
	"  fork app.py:40 1 20000000 170000000\n"                                                  \
	"    function_with_a_long_name_that_fits_in_no_narrow_window "                             \
	"lib/python3.13/site-packages/framework/middleware.py:1234 1 2000000 22000000\n"           \
	"  busy app.py:50 7 500000000 560000000\n"                                                 \
	"thread 42 43 worker\n"                                                                    \
	"run app.py:60 1 1000000 1000000\n"                                                        \
	"  compute app.py:10 4 400000000 1200000000\n"

static uint32_t find_func(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return i;
	return SNAPSHOT_NONE;
}

static void add_wait(struct snapshot *s, const struct wait *w)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func == find_func(s, w->func))
			s->columns[w->column][i] += w->ns;
}

static char *waiting_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		exit(1);
	fputs(WAITING_TEXT, out);
	for (unsigned int i = 0; i < WAITERS; i++)
		fprintf(out, "  sleeper_%u app.py:%u 1 1000 %u\n", i, 100 + i, 1001000 + i * 1000);
	fclose(out);
	return text;
}

static void add_pairs(struct snapshot *s)
{
	const struct snapshot_gil_pair pairs[] = {
		{42, find_func(s, "compute"), find_func(s, "compute"), 900000000},
		{42, SNAPSHOT_NONE, find_func(s, "compute"), 300000000},
		{42, find_func(s, "busy"), find_func(s, waits[9].func), 20000000},
	};

	s->gil_pairs = snapshot_alloc(s, 3, sizeof(pairs[0]));
	memcpy(s->gil_pairs, pairs, sizeof(pairs));
	s->ngil_pairs = 3;
}

/* Known reasons for waiting; a garbage collection; one call whose reason is not known. */
static struct snapshot *waiting(void)
{
	char *built = waiting_text();
	struct snapshot *s = snapshot_build(built);
	struct snapshot_call *other = snapshot_alloc(s, 1, sizeof(*other));

	free(built);
	s->measured = COLUMN_WAITS | COLUMN_BIT(COLUMN_gil_held_ns);
	if (snapshot_reserve_columns(s, s->measured, s->nnodes) < 0)
		exit(1);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		add_wait(s, &waits[i]);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strncmp(s->funcs[s->nodes[i].func].name, "sleeper_", 8) == 0)
			s->columns[COLUMN_sleep][i] =
				s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU];
	s->funcs[find_func(s, "collect")].pseudo = true;
	s->funcs[find_func(s, "collect")].name = "<gc generation 2>";
	s->funcs[find_func(s, "<gc generation 2>")].qualname = NULL;
	add_pairs(s);
	*other = (struct snapshot_call){.name = "ioctl", .ns = 100000000, .n = 4};
	s->targets[0].waits = (struct snapshot_waits){
		.measured = true, .gil_known = true, .other = other, .nother = 1};
	s->clock = SNAPSHOT_WALL;
	return s;
}

/* All waiting has a reason, of any kind. */
static struct snapshot *with_waits(struct snapshot *s, unsigned int seed)
{
	s->measured = COLUMN_WAITS | COLUMN_BIT(COLUMN_gil_held_ns);
	if (snapshot_reserve_columns(s, s->measured, s->nnodes) < 0)
		exit(1);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		uint32_t n = COLUMN_WAITS_END - COLUMN_WAITS_FIRST;
		uint64_t left = s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU];

		s->columns[COLUMN_WAITS_FIRST + random_below(&seed, n)][i] += left / 3;
		s->columns[COLUMN_WAITS_FIRST + random_below(&seed, n)][i] += left - left / 3;
	}
	s->targets[0].waits.measured = true;
	return s;
}

/* Each function except the first has durations. */
static struct snapshot *with_durations(struct snapshot *s, unsigned int seed)
{
	for (uint32_t f = 1; f < s->nfuncs; f++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			struct histogram_sum sum = {.count = 0};
			uint64_t ns = 0, max = 0;

			for (uint32_t i = random_below(&seed, 50) + 1; i; i--) {
				ns = random_below(&seed, 1000) ? random_below(&seed, 100000) : 0;
				max = ns > max ? ns : max;
				sum.n[histogram_bucket(ns)]++;
				sum.count++;
			}
			if (snapshot_add_durations(s, &s->funcs[f], c, &sum, max) < 0)
				exit(1);
		}
	return s;
}

int main(int argc, char **argv)
{
	static const char *const page[] = {"html", NULL}, *const compared[] = {"html", "json",
									       NULL};
	static const char *const all[] = {"html", "json", "speedscope", "chrome", NULL};

	if (argc != 2) {
		fprintf(stderr, "usage: gen_reports DIR\n");
		return 2;
	}
	save_all(snapshot_random(7), argv[1], "random", all);
	save_all(snapshot_hostile(), argv[1], "hostile", all);
	save_all(whole(), argv[1], "whole", all);
	save_all(snapshot_build("target 42\n"), argv[1], "empty", all);
	save_all(large(MANY_NODES), argv[1], "many", compared);
	save_all(large(LARGE_NODES), argv[1], "large", compared);
	save_all(with_counters(large(LARGE_NODES), 3), argv[1], "large_counters", page);
	save_all(with_waits(large(LARGE_NODES), 4), argv[1], "large_waits", page);
	save_all(wide(), argv[1], "wide", page);
	save_all(deep(), argv[1], "deep", page);
	save_all(extreme(), argv[1], "extreme", page);
	save_all(with_counters(snapshot_random(11), 11), argv[1], "counters", compared);
	save_all(with_durations(whole(), 5), argv[1], "durations", compared);
	save_all(waiting(), argv[1], "waits", compared);
	save_all(estimate(), argv[1], "estimate", compared);
	save_all(windowed(), argv[1], "windowed", compared);
	save_all(sampled(), argv[1], "sampled", compared);
	save_all(counted(COUNTED_TEXT), argv[1], "counted", compared);
	save_all(counted(COUNTED_TEXT "target 7\n"
				      "thread 7 7 MainThread\n"
				      "main app.py:1 1 5000 6000\n"
				      "  fib app.py:10 2 3000 3000\n"),
		 argv[1], "mixed", compared);
	save_folded(estimate(), argv[1], "folded");
	save_all(snapshot_build("target 42\n"
				"main app.py:1 5 0\n"
				"  f app.py:10 50 0\n"),
		 argv[1], "counts", page);
	return failures != 0;
}
