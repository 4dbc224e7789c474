// SPDX-License-Identifier: BSD-2-Clause
/*
 * C functions have the same call counts and the same names as in cProfile, on an interpreter of
 * each family, in mode trace and in mode count. (verify_builtins has every interpreter.)
 */
#include "base/cleanup.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

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

static void in_turn(unsigned int turn, const char *how)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_in_turn(v, turn);

	for (size_t i = 0; i < n; i++)
		check_one(&v[i], "mixed_json", how);
}

Test(builtins, traced)
{
	in_turn(4, NULL);
}

/* The sites are those of a trace. */
Test(builtins, counted)
{
	in_turn(3, "--count");
}
