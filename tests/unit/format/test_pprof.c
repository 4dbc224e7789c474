// SPDX-License-Identifier: BSD-2-Clause
/* The pprof format, read by Go's pprof. */
#include <inttypes.h>
#include <string.h>

#include "format/names.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "snapshot/lines.h"

enum value { CALLS, CPU, WALL, VALUES };

static const char *const value_names[VALUES] = {"calls", "cpu", "wall"};

struct sums {
	char name[1024];
	uint64_t flat, cum;
};

static char *pprof(const char *dir, const char *const *options)
{
	const char *argv[16] = {"go", "tool", "pprof"};
	char path[256];
	size_t n = 3;

	snprintf(path, sizeof(path), "%s/profile.pb.gz", dir);
	while (*options)
		argv[n++] = *options++;
	argv[n] = path;
	return tool_run(argv);
}

static uint64_t value_of(const struct snapshot_node *n, enum value value)
{
	return value == CALLS ? n->calls : n->self[value - CPU];
}

static void func_key(const struct snapshot *s, uint32_t func, char *key, size_t size)
{
	const struct snapshot_func *f = &s->funcs[func];

	/* pprof omits a missing line. */
	if (f->firstlineno)
		snprintf(key, size, "%s %s:%" PRId32, name_of_func(f), f->filename, f->firstlineno);
	else
		snprintf(key, size, "%s %s", name_of_func(f), f->filename);
}

static bool same_key(const struct snapshot *s, uint32_t a, uint32_t b)
{
	char left[1024], right[1024];

	func_key(s, a, left, sizeof(left));
	func_key(s, b, right, sizeof(right));
	return strcmp(left, right) == 0;
}

/* Counts each distinct function on the path to the root once. */
static void add_cum(const struct snapshot *s, uint32_t node, uint32_t func, uint64_t v,
		    struct sums *sums)
{
	for (uint32_t i = node; s->nodes[i].parent != SNAPSHOT_NONE; i = s->nodes[i].parent) {
		if (!same_key(s, s->nodes[i].func, func))
			continue;
		sums->cum += v;
		return;
	}
}

static struct sums expected(const struct snapshot *s, uint32_t func, enum value value, uint32_t tid)
{
	struct sums ret = {0};

	func_key(s, func, ret.name, sizeof(ret.name));
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		uint64_t v = value_of(n, value);

		if (n->parent == SNAPSHOT_NONE || (tid && s->threads[n->thread].tid != tid))
			continue;
		if (same_key(s, n->func, func))
			ret.flat += v;
		add_cum(s, i, func, v, &ret);
	}
	return ret;
}

/* "12ns" or "12" in lines of: flat flat% sum% cum cum% name */
static bool find_line(const char *top, const char *name, struct sums *ret)
{
	size_t n = strlen(name);

	for (const char *line = top; (line = strchr(line, '\n')); line++) {
		const char *end = strchr(line + 1, '\n');
		char flat[64], cum[64];

		if (!end || (size_t)(end - line) < n || memcmp(end - n, name, n) != 0 ||
		    sscanf(line, "%63s %*s %*s %63s %*s", flat, cum) != 2)
			continue;
		if (end[-(ptrdiff_t)n - 1] != ' ' || strchr("%", end[-(ptrdiff_t)n - 3]) == NULL)
			continue;
		ret->flat = strtoull(flat, NULL, 10);
		ret->cum = strtoull(cum, NULL, 10);
		return true;
	}
	return false;
}

static void check_value(const struct snapshot *s, const char *dir, enum value value, uint32_t tid)
{
	char index[64];
	const char *const options[] = {
		"-top", "-lines", "-nodecount=0", "-nodefraction=0", "-unit=ns", index, NULL};
	char *top;

	snprintf(index, sizeof(index), "-sample_index=%s", value_names[value]);
	top = pprof(dir, options);
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		struct sums want = expected(s, i, value, tid), have = {0};

		/* pprof omits functions without this value. */
		if (want.cum)
			cr_assert(find_line(top, want.name, &have), "'%s' is missing:\n%s",
				  want.name, top);
		cr_assert(have.flat == want.flat && have.cum == want.cum,
			  "%s, %s: %" PRIu64 " %" PRIu64 ", not %" PRIu64 " %" PRIu64 "\n%s",
			  want.name, value_names[value], have.flat, have.cum, want.flat, want.cum,
			  top);
	}
	free(top);
}

Test(pprof, top_has_the_snapshots_figures)
{
	tool_need("go");
	for (unsigned int seed = 1; seed <= 3; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.filter.tid = seed == 3 ? 42 : 0};
		char *dir = temp_dir_new();

		report_save("pprof", s, &o, dir, "profile.pb.gz");
		for (enum value v = 0; v < VALUES; v++)
			check_value(s, dir, v, o.filter.tid);
		temp_dir_remove(dir);
	}
	check_no_leaks();
}

Test(pprof, raw_has_everything)
{
	static const char *const options[] = {"-raw", NULL};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\n"
			       "main app.py:1 0 1000\n"
			       "  f app.py:10 3 2000 12345678901234\n"
			       "    <lambda> b.py:7 2 500\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	char *dir = temp_dir_new(), *raw;

	tool_need("go");
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	raw = pprof(dir, options);
	cr_assert_not_null(strstr(raw, "calls/count cpu/nanoseconds wall/nanoseconds[dflt]"), "%s",
			   raw);
	cr_assert_not_null(strstr(raw, "3       2000 12345678901234: 2 1 \n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "2        500        500: 3 2 1 \n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "thread:[worker]\n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "pid:[42] tid:[43]\n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "M=1 <lambda> b.py:7 s=7(b.py:7(<lambda>))\n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "libpython.so 0123456789abcdef [FN][FL][LN]\n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "Comment: result: exact counts: 1234 calls and returns"),
			   "%s", raw);
	cr_assert_not_null(strstr(raw, "Duration: 10s\n"), "%s", raw);
	free(raw);
	temp_dir_remove(dir);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Locations and labels are those of each thread and its process, of which one has no target. */
Test(pprof, several_processes)
{
	static const char *const options[] = {"-raw", NULL};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 a\nf a.py:1 1 10\n"
			       "target 7\nthread 7 7 b\nf a.py:1 2 20\n  g a.py:5 3 30\n"
			       "thread 9 9 c\ng a.py:5 4 0\nh a.py:6 0 0\n");
	struct format_opts o = {0};
	char *dir = temp_dir_new(), *raw;

	s->targets[0].traced_ns = 3000000000;
	s->targets[1].start_unix_ns -= 1000000000;
	s->targets[1].python_file = "";
	s->targets[1].build_id = "fedc";
	s->threads[2].pid = 8;
	s->threads[1].name = "";
	s->ntargets = 2;
	tool_need("go");
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	raw = pprof(dir, options);
	cr_assert_not_null(strstr(raw, "cpu/nanoseconds[dflt] wall/nanoseconds\n"), "%s", raw);
	cr_assert_not_null(strstr(raw, "          1         10         10: 1 \n"
				       "                thread:[a]\n"
				       "                pid:[42] tid:[42]\n"
				       "          2         20         20: 2 \n"
				       "                thread:[thread]\n"
				       "                pid:[7] tid:[7]\n"
				       "          3         30         30: 3 2 \n"
				       "                thread:[thread]\n"
				       "                pid:[7] tid:[7]\n"
				       "          4          0          0: 4 \n"
				       "                thread:[c]\n"
				       "                pid:[8] tid:[9]\n"
				       "Locations\n"),
			   "%s", raw);
	cr_assert_not_null(strstr(raw, "     1: 0x0 M=1 f a.py:1 s=1(a.py:1(f))\n"
				       "     2: 0x0 M=2 f a.py:1 s=1(a.py:1(f))\n"
				       "     3: 0x0 M=2 g a.py:5 s=5(a.py:5(g))\n"
				       "     4: 0x0 g a.py:5 s=5(a.py:5(g))\n"),
			   "%s", raw);
	cr_assert_not_null(strstr(raw, "libpython.so 0123456789abcdef [FN]"), "%s", raw);
	cr_assert_not_null(strstr(raw, "2: 0x0/0x0/0x0 /opt/python/bin/python fedc [FN]"), "%s",
			   raw);
	cr_assert_not_null(strstr(raw, "Time: 2023-11-14 22:13:19 "), "%s", raw);
	cr_assert_not_null(strstr(raw, "Duration: 10s\n"), "%s", raw);
	free(raw);
	o.filter.pid = 42;
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	raw = pprof(dir, options);
	cr_assert_not_null(strstr(raw, "Time: 2023-11-14 22:13:20 "), "%s", raw);
	cr_assert_not_null(strstr(raw, "Duration: 3s\n"), "%s", raw);
	free(raw);
	temp_dir_remove(dir);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* The context's CPU time is divided among the lines of its function; the rest is at its first line. */
Test(pprof, lines_are_locations)
{
	static const struct snapshot_line v[] = {{0, 1, 10, 0}, {3, 3, 30, 0}, {4, 6, 60, 0}};
	static const char *const lines[] = {
		"-top", "-lines", "-nodefraction=0", "-unit=ns", "-sample_index=cpu", NULL};
	static const char *const raw_of[] = {"-raw", NULL};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(
		"target 42\nthread 42 43 worker\n"
		"main a.py:1 1 5 7\n  f a.py:2 2 7000 8000\n  f a.py:2 2 3000 9000\n");
	struct format_opts o = {0};
	char *dir = temp_dir_new(), *text;
	struct sums have;

	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, "f") == 0)
			assert_ok(snapshot_add_lines(s, &s->funcs[i], v, 3));
	tool_need("go");
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	text = pprof(dir, lines);
	cr_assert(find_line(text, "f a.py:3", &have) && have.flat == 3000, "%s", text);
	cr_assert(find_line(text, "f a.py:4", &have) && have.flat == 6000, "%s", text);
	cr_assert(find_line(text, "f a.py:2", &have) && have.flat == 1000, "%s", text);
	cr_assert(find_line(text, "main a.py:1", &have) && have.cum == 10005, "%s", text);
	free(text);
	text = pprof(dir, raw_of);
	cr_assert(strstr(text, "          0       6000          0: 3 1 \n"), "%s", text);
	cr_assert(strstr(text, "          4       1000      17000: 4 1 \n"), "%s", text);
	free(text);
	temp_dir_remove(dir);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Durations are numeric labels of samples, by the innermost function. */
Test(pprof, durations_are_labels)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("main a.py:1 1 5 5\n  f a.py:2 2 70000 70000\n");
	static const char *const tags[] = {"-tags", NULL};
	struct format_opts o = {0};
	struct snapshot_durations own[SNAPSHOT_CLOCKS]; /* a sanitizer knows its end */
	struct histogram_sum sum = {.count = 2};
	char *dir = temp_dir_new(), *text;

	sum.n[histogram_bucket(35000)] = 2;
	assert_ok(snapshot_add_durations(s, &s->funcs[1], SNAPSHOT_WALL, &sum, 35000));
	memcpy(own, s->funcs[1].durations, sizeof(own));
	s->funcs[1].durations = own;
	tool_need("go");
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	text = pprof(dir, tags);
	cr_assert(strstr(text, "wall_p50") && strstr(text, "wall_max") && !strstr(text, "cpu_p50"),
		  "%s", text);
	cr_assert(strstr(text, "35us"), "%s", text);
	free(text);
	temp_dir_remove(dir);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(pprof, hostile_names_do_no_harm)
{
	static const char *const options[] = {"-top", "-nodefraction=0", NULL};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	char *dir = temp_dir_new(), *top;

	tool_need("go");
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	top = pprof(dir, options);
	cr_assert(report_harmless(top, strlen(top)), "%s", top);
	cr_assert_not_null(strstr(top, " two\\x0alines\n"), "%s", top);
	cr_assert_not_null(strstr(top, " semi;colon, comma = ( ) { } [ ] < > & % $\n"), "%s", top);
	free(top);
	temp_dir_remove(dir);
}

/* If a recursion is too deep to be written completely, the middle is left out. */
Test(pprof, deep_stacks_lose_their_middle)
{
	static const char *const options[] = {"-traces", NULL};
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct format_opts o = {0};
	char *dir = temp_dir_new(), *traces;
	uint32_t node;

	tool_need("go");
	snapshot_builder_target(b, 42);
	node = snapshot_builder_thread(b, 42, 42, "main");
	node = snapshot_builder_node(b, node, snapshot_builder_func(b, "a.py", 1, "top", NULL), 1,
				     0, 0, 0);
	for (int i = 0; i < 3000; i++)
		node = snapshot_builder_node(
			b, node, snapshot_builder_func(b, "a.py", 9, "deep", NULL), 0, 0, 0, 0);
	snapshot_builder_node(b, node, snapshot_builder_func(b, "a.py", 20, "leaf", NULL), 1, 7, 7,
			      0);
	s = snapshot_builder_finish(b);
	report_save("pprof", s, &o, dir, "profile.pb.gz");
	traces = pprof(dir, options);
	cr_assert_not_null(strstr(traces, "7ns   leaf\n"), "%s", traces);
	cr_assert_not_null(strstr(traces, "(frames left out)\n"), "%s", traces);
	cr_assert_not_null(strstr(traces, " top\n"), "%s", traces);
	cr_assert(strlen(traces) < 100000);
	free(traces);
	temp_dir_remove(dir);
}
