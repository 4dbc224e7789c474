// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every function's calls, recursive and primitive, equal cProfile's on the same interpreter and
 * program, on every interpreter that can be traced. One line per interpreter and program.
 */
#include <inttypes.h>

#include "harness/counts.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/traced.h"

#define CPROFILE_AGAIN 3

static void start_cprofile(struct traced *t, const struct interpreter *py, const char *program,
			   const char *json)
{
	traced_start(t, py->exe, "run.py", program, "--cprofile", json, NULL);
	traced_expect(t, "ready");
	traced_go(t);
}

static void finish_cprofile(struct traced *t)
{
	traced_expect(t, "done");
	traced_finish(t);
}

/* Both at once: they do not disturb each other, and it takes half the time. */
static struct snapshot *run_both(const struct interpreter *py, const char *program,
				 const char *json)
{
	struct traced ours, theirs;
	struct snapshot *s;

	traced_start(&ours, py->exe, "run.py", program, NULL);
	start_cprofile(&theirs, py, program, json);
	traced_expect(&ours, "ready");
	traced_attach(&ours);
	traced_go(&ours);
	traced_expect(&ours, "done");
	s = traced_snapshot(&ours);
	traced_finish(&ours);
	finish_cprofile(&theirs);
	return s;
}

/*
 * On a busy machine 3.13's cProfile sometimes misses a call that is made right after enable(), in
 * one run of ten. So it may count again; we may not.
 */
static struct counts compare_again(const struct interpreter *py, const char *program,
				   const struct snapshot *s, const char *json, const char *who)
{
	struct counts c = counts_compare(s, json, who);

	for (int i = 0; i < CPROFILE_AGAIN && c.differing; i++) {
		struct traced theirs;

		fprintf(stderr, "  %s: cProfile once more\n", who);
		start_cprofile(&theirs, py, program, json);
		finish_cprofile(&theirs);
		c = counts_compare(s, json, who);
	}
	return c;
}

/* True: nothing differs, nothing was lost, everything matched. */
static bool compare(const struct interpreter *py, const char *program, const char *dir)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	char json[256], who[700];
	struct counts c;
	bool exact;

	snprintf(json, sizeof(json), "%s/%s.json", dir, program);
	snprintf(who, sizeof(who), "%s %s", py->exe, program);
	s = run_both(py, program, json);
	c = compare_again(py, program, s, json, who);
	exact = traced_is_exact(s, who);
	fprintf(stderr,
		"%d.%d  %-20s %5" PRIu32 " functions %8" PRIu64 " calls %3" PRIu32
		" differ, unmatched %" PRIu64 ", unstarted %" PRIu64 "  %s\n",
		py->major, py->minor, program, c.functions, c.calls, c.differing,
		s->targets[0].unmatched, s->targets[0].unstarted, py->exe);
	return c.functions > 0 && c.differing == 0 && exact;
}

static void everywhere(const char *program)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), failed = 0;
	char *dir = temp_dir_new();

	for (size_t i = 0; i < n; i++)
		failed += !compare(&v[i], program, dir);
	temp_dir_remove(dir);
	cr_assert(failed == 0, "%s: not equal on %zu of %zu interpreters", program, failed, n);
	check_no_leaks();
}

#define PROGRAM(name)                                                                              \
	Test(counts, name, .timeout = 300)                                                         \
	{                                                                                          \
		everywhere(#name);                                                                 \
	}

PROGRAM(mixed)
PROGRAM(recursion_error)
PROGRAM(gen_close)
PROGRAM(stdlib_ast)
PROGRAM(stdlib_asyncio)
PROGRAM(stdlib_configparser)
PROGRAM(stdlib_email)
PROGRAM(stdlib_fractions)
PROGRAM(stdlib_html)
PROGRAM(stdlib_json)
PROGRAM(stdlib_pydecimal)
PROGRAM(stdlib_statistics)
PROGRAM(stdlib_tokenize)
