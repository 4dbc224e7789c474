// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of every function, total and primitive, equal cProfile's on the same interpreter and
 * program, on every interpreter that can be traced; in mode trace, and with some programs in mode
 * count as well, with the same callers as in a trace. Prints one line per interpreter, program and
 * mode.
 */
#include "harness/counts.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

typedef bool (*equal_fn)(const struct interpreter *py, const char *program, const char *dir);

static void everywhere(const char *program, equal_fn equal, int first_minor)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), failed = 0, tried = 0;
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

#define PROGRAM(name)                                                                              \
	Test(counts, name)                                                                         \
	{                                                                                          \
		everywhere(#name, counts_equal, 0);                                                \
	}

Test(counts, mixed)
{
	everywhere("mixed", counts_equal_in_modes, 0);
}

Test(counts, stdlib_asyncio)
{
	everywhere("stdlib_asyncio", counts_equal, 0);
}

/* An out-of-date code object executes its first instruction twice. */
Test(counts, monitored)
{
	everywhere("monitored", counts_equal_in_modes, 12);
}

PROGRAM(recursion_error)
PROGRAM(gen_close)
PROGRAM(stdlib)
