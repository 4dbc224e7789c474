/* SPDX-License-Identifier: BSD-2-Clause */
/* Running third-party tools on files of a test */
#ifndef PYPROF_TESTS_HARNESS_TOOL_H
#define PYPROF_TESTS_HARNESS_TOOL_H

/*
 * Run argv (ends with NULL; argv[0] is looked up in PATH). Returns its output and errors, to be
 * freed. Fails the test and shows the output unless it exits with 0.
 */
char *tool_run(const char *const *argv);

/* As tool_run(), with any exit status: *ret_exit is the exit status, or 128 + the signal. */
char *tool_try(const char *const *argv, int *ret_exit);

/* Skip the test if the program is missing; fail it if PYPROF_TEST_REQUIRE has "tools". */
void tool_need(const char *program);

#endif
