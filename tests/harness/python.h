/* SPDX-License-Identifier: BSD-2-Clause */
/* Running a Python script on files that a test made. */
#ifndef PYPROF_TESTS_HARNESS_PYTHON_H
#define PYPROF_TESTS_HARNESS_PYTHON_H

/*
 * Run `exe -c script arg` and return what it printed, to be freed. The test fails, showing that,
 * unless it ends with status 0.
 */
char *python_run(const char *exe, const char *script, const char *arg);

/* A new empty directory, and its removal with the files in it. */
char *temp_dir_new(void);
void temp_dir_remove(char *dir);

#endif
