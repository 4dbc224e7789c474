/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Temporary directories. The process that made one removes it at its end if the test did not, for
 * example after a failed assertion; not if it was killed, timed out, or failed in a suite's .init.
 */
#ifndef PYPROF_TESTS_HARNESS_TEMP_DIR_H
#define PYPROF_TESTS_HARNESS_TEMP_DIR_H

/* Makes a directory; temp_dir_remove() frees the path. */
char *temp_dir_new(void);
/* The same as mkdtemp(3): path ends with XXXXXX. */
void temp_dir_make(char *path);

/* Remove the directory and what is in it. */
void temp_dir_delete(const char *path);
/* The same, and free the path. */
void temp_dir_remove(char *dir);

#endif
