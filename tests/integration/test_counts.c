// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every function's calls, recursive and primitive, equal cProfile's on the same interpreter and
 * program, on every interpreter that can be traced. One line per interpreter and program.
 */
#include <inttypes.h>

#include "harness/caps.h"
#include "harness/counts.h"
#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "python/layout.h"

/* Both at once: they do not disturb each other, and it takes half the time. */
static struct snapshot *run_both(const struct interpreter *py, const char *program,
				 const char *json)
{
	struct traced ours, theirs;
	struct snapshot *s;

	traced_start(&theirs, py->exe, "run.py", program, "--cprofile", json, NULL);
	traced_start(&ours, py->exe, "run.py", program, NULL);
	traced_expect(&ours, "ready");
	traced_attach(&ours);
	traced_go(&ours);
	traced_go(&theirs);
	traced_expect(&ours, "done");
	s = traced_snapshot(&ours);
	traced_finish(&ours);
	traced_expect(&theirs, "done");
	traced_finish(&theirs);
	return s;
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
	c = counts_compare(s, json, who);
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
	size_t n, failed = 0, traced = 0;
	char *dir;

	caps_require_bpf();
	n = interpreters_find(v);
	dir = temp_dir_new();
	for (size_t i = 0; i < n; i++) {
		const struct layout *l =
			layout_find((unsigned int)v[i].major, (unsigned int)v[i].minor);

		if (!l || !l->proven)
			continue;
		traced++;
		failed += !compare(&v[i], program, dir);
	}
	temp_dir_remove(dir);
	cr_assert(traced > 0, "no interpreter here can be traced");
	cr_assert(failed == 0, "%s: not equal on %zu of %zu interpreters", program, failed, traced);
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
