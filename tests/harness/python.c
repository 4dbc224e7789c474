// SPDX-License-Identifier: BSD-2-Clause
/* Running a Python script: see python.h. */
#include "harness/python.h"

#include "harness/test.h"
#include "harness/tool.h"

char *python_run(const char *exe, const char *script, const char *arg)
{
	const char *const argv[] = {exe, "-E", "-c", script, arg, NULL};

	return tool_run(argv);
}
