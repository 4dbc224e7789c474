// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tools, frame evaluators, sub-interpreters and the JIT, which may hide calls, on an interpreter of
 * each family (in turn), the JIT on each that has it. Status and every report mention them, and
 * counts are either exact or reported as lower bounds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "format/format.h"
#include "harness/counts.h"
#include "harness/python.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"
#include "python/layout.h"
#include "stats/view.h"

static const char library_text[] =
	"void *(*evaluator)();\n"
	"void *evaluate(void *a, void *b, long c) { return evaluator(a, b, c); }\n";

static char *dir;
static char library[300];

/* Builds a frame evaluator that passes every frame to CPython's own. */
static void make_library(void)
{
	char source[300];
	FILE *f;

	snprintf(source, sizeof(source), "%s/evaluate.c", dir);
	snprintf(library, sizeof(library), "%s/evaluate.so", dir);
	f = fopen(source, "we");
	cr_assert(f && fputs(library_text, f) >= 0 && fclose(f) == 0);
	free(tool_run((const char *const[]){"gcc", "-shared", "-fPIC", "-w", "-o", library, source,
					    NULL}));
}

static void setup(void)
{
	dir = temp_dir_new();
}

static void teardown(void)
{
	static const char *const names[] = {"HIDE",	   "HIDE_WHEN",	   "HIDE_LIBRARY",
					    "HIDE_OFFSET", "HIDE_PROGRAM", "PYTHON_JIT"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		(void)unsetenv(names[i]);
	temp_dir_remove(dir);
}

TestSuite(hidden, .init = setup, .fini = teardown);

/* ---- reports ----------------------------------------------------------------------------- */

static bool holds(const char *bytes, size_t size, const char *word)
{
	return memmem(bytes, size, word, strlen(word)) != NULL;
}

/*
 * Checks every report except CSV, which has no remarks; of compressed reports, only that they can
 * be written.
 */
static void expect_in_reports(const struct snapshot *s, const char *word, const char *label)
{
	for (const struct format *f = formats; f->name; f++) {
		struct format_opts o = {.clock = SNAPSHOT_WALL};
		struct diag diag = {0};
		char *bytes = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&bytes, &size);
		int r;

		cr_assert(out);
		r = format_write(f, s, &o, out, &diag);
		fclose(out);
		if (r == -ENODATA) { /* the format is for data that was not recorded */
			free(bytes);
			continue;
		}
		assert_diag_ok(r, &diag);
		if ((size < 2 || memcmp(bytes, "\x1f\x8b", 2) != 0) && !strstr(f->mime, "csv"))
			cr_expect(holds(bytes, size, word), "%s: %s does not say '%s'", label,
				  f->name, word);
		free(bytes);
	}
}

static void expect_reported(struct traced *t, const struct snapshot *s, const char *word,
			    const char *label)
{
	const struct session_status st = traced_status(t);

	cr_expect(strstr(st.warning, word), "%s: status: %s", label, st.warning);
	cr_expect(s->targets[0].warnings && strstr(s->targets[0].warnings, word),
		  "%s: snapshot: %s", label, s->targets[0].warnings);
	expect_in_reports(s, word, label);
}

/* ---- tools and evaluators ---------------------------------------------------------------- */

/*
 * Since some release of 3.13, CPython runs generators that are closed while suspended if unwinding
 * events are enabled. cProfile and all tools enable them; without a tool, compare with
 * sys.monitoring, which does not.
 */
static bool by_monitoring(const struct interpreter *py, bool tools)
{
	return py->minor >= 13 && !tools;
}

/* Counts the calls in a program in which nothing hides calls. */
static void reference(const struct interpreter *py, bool tools, const char *json)
{
	struct traced t;

	(void)unsetenv("HIDE");
	traced_start(&t, py->exe, "run.py", "hidden",
		     by_monitoring(py, tools) ? "--monitoring" : "--cprofile", json, NULL);
	traced_expect(&t, "ready");
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
}

struct way {
	const char *name, *when;
	const char *word; /* in the warning, if still enabled at the end */
	int since;	  /* first minor version that has it */
	bool misses;	  /* calls may be missed; false: it is a tool */
};

static void check_way(const struct interpreter *py, const struct way *w, const char *json)
{
	struct snapshot *s;
	struct counts c;
	struct traced t;
	char label[700];

	snprintf(label, sizeof(label), "%s %s %s", py->exe, w->name, w->when);
	cr_assert(setenv("HIDE", w->name, 1) == 0 && setenv("HIDE_WHEN", w->when, 1) == 0);
	traced_start(&t, py->exe, "run.py", "hidden", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	c = by_monitoring(py, !w->misses) ? counts_compare_calls(s, json, label)
					  : counts_compare(s, json, label);
	fprintf(stderr,
		"3.%-2d %-10s %-6s %4" PRIu32 " functions %6" PRIu64 " calls %" PRIu32
		" differ, unmatched %" PRIu64 ": %s\n",
		py->minor, w->name, w->when, c.functions, c.calls, c.differing,
		s->targets[0].unmatched, s->targets[0].warnings);
	cr_expect(c.functions > 10 && c.differing == 0, "%s: %" PRIu32 " differ", label,
		  c.differing);
	cr_expect_eq(s->targets[0].unmatched, 0, "%s", label);
	cr_expect_eq(s->targets[0].losses[PYP_LOSS_lost_events], 0);
	if (strcmp(w->when, "before") == 0) {
		expect_reported(&t, s, w->word, label);
		cr_expect_eq(snapshot_exact(s), !w->misses, "%s", label);
	}
	snapshot_free(s);
	traced_finish(&t);
}

static void check_ways(unsigned int turn, const char *program, const struct way *ways)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_in_turn(v, turn);
	char json[300], offset[16];

	make_library();
	cr_assert(setenv("HIDE_PROGRAM", program, 1) == 0);
	snprintf(json, sizeof(json), "%s/counts.json", dir);
	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&v[i]);

		reference(&v[i], !ways->misses, json);
		snprintf(offset, sizeof(offset), "%u", l->interp_eval_frame);
		cr_assert(setenv("HIDE_LIBRARY", library, 1) == 0 &&
			  setenv("HIDE_OFFSET", offset, 1) == 0);
		for (const struct way *w = ways; w->name; w++)
			/*
			 * The free-threaded builds of this machine may lack ctypes, which
			 * evaluators need.
			 */
			if (v[i].minor >= w->since && !(w->misses && v[i].abi))
				check_way(&v[i], w, json);
	}
}

/*
 * With a tool, the evaluator uses other opcodes and paths. These are probed too, so no call is
 * missed.
 */
Test(hidden, tools)
{
	/*
	 * Not mixed.py: up to 3.12 a tool keeps locals alive, which delays __del__. The self-test
	 * covers what mixed.py does, and enables and disables these tools meanwhile.
	 */
	check_ways(0, "stdlib_statistics",
		   (const struct way[]){
			   {"setprofile", "before", "sys.setprofile", 0, false},
			   {"settrace", "before", "sys.settrace", 0, false},
			   {"monitoring", "before", "sys.monitoring", 12, false},
			   {NULL, NULL, NULL, 0, false},
		   });
	check_no_leaks();
}

/*
 * This evaluator passes all frames on and hides none; others may hide some, so counts are reported
 * as lower bounds.
 */
Test(hidden, frame_evaluator)
{
	check_ways(1, "mixed",
		   (const struct way[]){
			   {"evaluator", "before", "PEP 523", 0, true},
			   {"evaluator", "during", NULL, 0, true},
			   {NULL, NULL, NULL, 0, false},
		   });
	check_no_leaks();
}

/* ---- sub-interpreters -------------------------------------------------------------------- */

static void expect_calls(const struct view *v, const char *name, uint64_t ncalls, uint64_t pcalls,
			 const char *label)
{
	const struct view_row r = counts_named(v, name);

	cr_expect(r.ncalls == ncalls && r.pcalls == pcalls,
		  "%s: %s: %" PRIu64 "/%" PRIu64 ", not %" PRIu64 "/%" PRIu64, label, name,
		  r.ncalls, r.pcalls, ncalls, pcalls);
}

static void check_interpreters(const struct interpreter *py)
{
	const uint64_t threads = 4, calls = 500;
	struct snapshot *s;
	struct view *v;
	struct traced t;

	traced_start(&t, py->exe, "run.py", "interpreters", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	assert_ok(view_build(s, NULL, &v));
	fprintf(stderr, "3.%-2d %s  %s\n", py->minor, s->targets[0].warnings, py->exe);
	cr_expect(traced_is_exact(s, py->exe));
	expect_calls(v, "sub_work", threads, threads, py->exe);
	expect_calls(v, "sub_leaf", threads * calls, threads * calls, py->exe);
	expect_calls(v, "sub_rec", threads * 10, threads, py->exe);
	expect_calls(v, "sub_gen", threads * 10, threads * 10, py->exe);
	expect_calls(v, "main_leaf", calls, calls, py->exe);
	if (py->minor >= 8) /* earlier versions have deleted the sub-interpreters by now */
		expect_reported(&t, s, "3 interpreters", py->exe);
	view_free(v);
	snapshot_free(s);
	traced_finish(&t);
}

Test(hidden, sub_interpreters)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_in_turn(v, 2);

	for (size_t i = 0; i < n; i++)
		check_interpreters(&v[i]);
	check_no_leaks();
}

/* ---- the JIT ----------------------------------------------------------------------------- */

static bool has_jit(const struct interpreter *py)
{
	char *out;
	bool ret;

	if (py->minor < 13)
		return false;
	out = python_run(py->exe,
			 "import sys; j = getattr(sys, '_jit', None); "
			 "print(bool(j and j.is_available()))",
			 "");
	ret = strncmp(out, "True", 4) == 0;
	free(out);
	return ret;
}

/*
 * The function is called often enough to be compiled. Calls in compiled code are not traced, and
 * the report states it, whether or not calls were missed in this run.
 */
static void check_jit(const struct interpreter *py)
{
	const uint64_t calls = 30000;
	struct snapshot *s;
	struct view_row r;
	struct view *v;
	struct traced t;

	cr_assert(setenv("PYTHON_JIT", "1", 1) == 0);
	traced_start(&t, py->exe, "run.py", "jit", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	assert_ok(view_build(s, NULL, &v));
	r = counts_named(v, "hot");
	fprintf(stderr, "3.%-2d %" PRIu64 " of %" PRIu64 " calls seen, %s: %s\n", py->minor,
		r.ncalls, calls, snapshot_exact(s) ? "exact" : "lower bounds",
		s->targets[0].warnings);
	expect_reported(&t, s, "JIT", py->exe);
	cr_expect_leq(r.ncalls, calls);
	if (r.ncalls != calls)
		cr_expect(!snapshot_exact(s), "%s: counts are silently wrong", py->exe);
	view_free(v);
	snapshot_free(s);
	traced_finish(&t);
	cr_assert(unsetenv("PYTHON_JIT") == 0);
}

Test(hidden, jit)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!has_jit(&v[i]))
			continue;
		check_jit(&v[i]);
		found++;
	}
	if (!found)
		fprintf(stderr, "none of these interpreters has a JIT: see `make check-suites`\n");
	check_no_leaks();
}

static bool is_warned(struct traced *t, void *ctx)
{
	(void)ctx;
	return strstr(traced_status(t).warning, "no call was seen") != NULL;
}

/* The target uses CPU time, but no probe is hit: status and report state it. */
Test(hidden, no_calls_at_all)
{
	struct interpreter py = traced_newest();
	struct snapshot *s;
	struct traced t;

	traced_start(&t, py.exe, "shares.py", "loop", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_until(&t, is_warned, NULL, "the warning");
	s = traced_snapshot(&t);
	cr_assert_eq(s->targets[0].events, 0);
	cr_assert(strstr(s->targets[0].warnings, "no call was seen"), "%s", s->targets[0].warnings);
	snapshot_free(s);
	traced_stop(&t);
	check_no_leaks();
}
