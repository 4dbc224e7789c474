/* SPDX-License-Identifier: BSD-2-Clause */
/* Running Python scripts on files of a test */
#ifndef PYPROF_TESTS_HARNESS_PYTHON_H
#define PYPROF_TESTS_HARNESS_PYTHON_H

/*
 * Run `exe -c script arg`. Returns its output, to be freed. Fails the test and shows the output
 * unless it exits with 0.
 */
char *python_run(const char *exe, const char *script, const char *arg);

#endif
