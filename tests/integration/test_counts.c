// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of every function, total and primitive, equal cProfile's on the same interpreter and
 * program: one program on every interpreter that can be traced, the others on one of each family,
 * in turn; in mode trace, and with some programs in mode count as well, with the same callers as in
 * a trace. Prints one line per interpreter, program and mode.
 */
#include "harness/counts.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

typedef bool (*equal_fn)(const struct interpreter *py, const char *program, const char *dir);

static void check(const struct interpreter *v, size_t n, const char *program, equal_fn equal,
		  int first_minor)
{
	size_t failed = 0, tried = 0;
	char *dir = temp_dir_new();

	for (size_t i = 0; i < n; i++) {
		if (v[i].minor < first_minor)
			continue;
		tried++;
		failed += !equal(&v[i], program, dir);
	}
	temp_dir_remove(dir);
	cr_assert(failed == 0, "%s: not equal on %zu of %zu interpreters", program, failed, tried);
	check_no_leaks();
}

static void in_turn(unsigned int turn, const char *program)
{
	struct interpreter v[INTERPRETERS_MAX];

	check(v, traced_in_turn(v, turn), program, counts_equal, 0);
}

Test(counts, mixed)
{
	struct interpreter v[INTERPRETERS_MAX];

	check(v, traced_interpreters(v), "mixed", counts_equal_in_modes, 0);
}

Test(counts, stdlib_asyncio)
{
	in_turn(0, "stdlib_asyncio");
}

/* An out-of-date code object executes its first instruction twice. */
Test(counts, monitored)
{
	struct interpreter v[INTERPRETERS_MAX];

	check(v, traced_interpreters(v), "monitored", counts_equal_in_modes, 12);
}

Test(counts, recursion_error)
{
	in_turn(1, "recursion_error");
}

Test(counts, gen_close)
{
	in_turn(2, "gen_close");
}

Test(counts, stdlib)
{
	in_turn(3, "stdlib");
}
