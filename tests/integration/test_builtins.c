// SPDX-License-Identifier: BSD-2-Clause
/*
 * C functions have the same call counts and the same names as in cProfile, on every interpreter of
 * this machine, in modes trace and count.
 */
#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/interpreters.h"
#include "harness/test.h"
#include "harness/tool.h"

static void check_one(const struct interpreter *it, const char *program, const char *how)
{
	/*
	 * cProfile of 3.13 and later changes how generators run, so compare the C functions only;
	 * test_counts.c compares the Python functions.
	 */
	const char *rows = it->minor >= 13 ? "--only-native" : "--builtins";
	const char *const argv[] = {"python3",	"tests/targets/exact.py",
				    program,	"--builtins",
				    "--python", it->exe,
				    rows,	how,
				    NULL};
	int status;
	_cleanup_free_ char *out = tool_try(argv, &status);

	fprintf(stderr, "%s", out);
	cr_expect_eq(status, 0, "%s: %s %s", it->exe, program, how ? how : "");
}

static void check_all(const char *program, const char *how)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n, checked = 0;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		if (v[i].major != 3)
			continue;
		check_one(&v[i], program, how);
		checked++;
	}
	cr_assert_gt(checked, 0u);
}

Test(builtins, mixed, .timeout = 300)
{
	check_all("mixed", NULL);
}

Test(builtins, json, .timeout = 300)
{
	check_all("stdlib_json", NULL);
}

Test(builtins, counted, .timeout = 300)
{
	check_all("mixed", "--count");
}
