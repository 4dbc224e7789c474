// SPDX-License-Identifier: BSD-2-Clause
/* python/implementation: the implementation that the name of a file stands for. */
#include "python/implementation.h"

#include "harness/test.h"

Test(implementation, of_file)
{
	static const struct {
		const char *path, *version;
		enum implementation want;
	} cases[] = {
		{"/usr/bin/python3.11", "3.11", IMPLEMENTATION_CPYTHON},
		{"python", "", IMPLEMENTATION_CPYTHON},
		{"/opt/python3.13t", "3.13", IMPLEMENTATION_CPYTHON},
		{"/usr/bin/python3.11-dbg", "3.11", IMPLEMENTATION_CPYTHON},
		{"/usr/bin/python3.12 (deleted)", "3.12", IMPLEMENTATION_CPYTHON},
		{"/usr/lib/libpython3.13t.so.1.0", "3.13", IMPLEMENTATION_CPYTHON},
		{"/usr/lib/libpython3.6m.so.1.0", "3.6", IMPLEMENTATION_CPYTHON},
		{"_json.cpython-312-x86_64-linux-gnu.so", "3.12", IMPLEMENTATION_CPYTHON},
		{"_json.cpython-36m-x86_64-linux-gnu.so", "3.6", IMPLEMENTATION_CPYTHON},
		{"/usr/bin/pypy3", "", IMPLEMENTATION_PYPY},
		{"/opt/pypy3.10-c", "3.10", IMPLEMENTATION_PYPY},
		{"/opt/lib/libpypy3.10-c.so", "3.10", IMPLEMENTATION_PYPY},
		{"/opt/bin/graalpy", "", IMPLEMENTATION_GRAALPY},
		{"/opt/lib/libpythonvm.so", "", IMPLEMENTATION_GRAALPY},
		{"/usr/bin/python3.11-config", "", IMPLEMENTATION_NONE},
		{"/usr/bin/pythonista", "", IMPLEMENTATION_NONE},
		{"/usr/lib/libpython-extras.so", "", IMPLEMENTATION_NONE},
		{"/srv/python3.11/bin/nginx", "", IMPLEMENTATION_NONE},
		{"x.cpython-.so", "", IMPLEMENTATION_CPYTHON},
		{"x.cpython-99999999.so", "", IMPLEMENTATION_CPYTHON},
		{"/", "", IMPLEMENTATION_NONE},
		{"", "", IMPLEMENTATION_NONE},
		{" (deleted)", "", IMPLEMENTATION_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char version[IMPLEMENTATION_VERSION] = "x";

		cr_assert_eq(implementation_of_file(cases[i].path, version), cases[i].want, "%s",
			     cases[i].path);
		cr_assert_str_eq(version, cases[i].version, "%s: %s", cases[i].path, version);
	}
	cr_assert_eq(implementation_of_file("pypy3", NULL), IMPLEMENTATION_PYPY);
}

Test(implementation, long_names)
{
	char path[600];

	memset(path, '3', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "/python", 7);
	cr_assert_eq(implementation_of_file(path, NULL), IMPLEMENTATION_NONE);
	path[200] = '\0';
	cr_assert_eq(implementation_of_file(path, NULL), IMPLEMENTATION_NONE);
}
