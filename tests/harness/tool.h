/* SPDX-License-Identifier: BSD-2-Clause */
/* Running other people's tools on files that a test made. */
#ifndef PYPROF_TESTS_HARNESS_TOOL_H
#define PYPROF_TESTS_HARNESS_TOOL_H

/*
 * Run argv (ends with NULL; argv[0] is looked up in PATH) and return what it printed, errors
 * included, to be freed. The test fails, showing that, unless it ends with status 0.
 */
char *tool_run(const char *const *argv);

/* The same, whatever it ends with: *ret_exit is its exit status, or 128 + the signal. */
char *tool_try(const char *const *argv, int *ret_exit);

/* Skip the test when there is no such program; where PYPROF_TEST_REQUIRE has "tools", fail it. */
void tool_need(const char *program);

#endif
