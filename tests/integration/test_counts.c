// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of every function, total and primitive, equal cProfile's on the same interpreter and
 * program, on every interpreter that can be traced. Prints one line per interpreter and program.
 */
#include "harness/counts.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

static void everywhere(const char *program)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), failed = 0;
	char *dir = temp_dir_new();

	for (size_t i = 0; i < n; i++)
		failed += !counts_equal(&v[i], program, dir);
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
