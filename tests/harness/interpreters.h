/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real interpreters to test with: those that pyenv built in the home directory and the system's.
 * Or those of PYPROF_INTERPRETERS, paths with blanks between them, and no others. Tests print which
 * they used. Where PYPROF_TEST_REQUIRE contains "python", not finding 3.10, 3.11,
 * 3.12 and 3.13 is a failure instead of a skipped test.
 */
#ifndef PYPROF_TESTS_HARNESS_INTERPRETERS_H
#define PYPROF_TESTS_HARNESS_INTERPRETERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/layout.h"

struct interpreter {
	int major, minor;
	unsigned int abi; /* LAYOUT_ABI_*, as its name says: python3.13t */
	char exe[512];	  /* the program to run */
	char file[512];	  /* where the interpreter is: exe itself or its libpython */
};

#define INTERPRETERS_MAX 32

/* All that are there, in order of version; returns how many. Skips or fails the test (see above)
 * when there is none. */
size_t interpreters_find(struct interpreter v[INTERPRETERS_MAX]);

/* The table for it; NULL: it is refused. */
const struct layout *interpreter_layout(const struct interpreter *it);

/* The bytes of its file, to be freed. */
uint8_t *interpreter_read(const struct interpreter *it, size_t *size);

/* Run `exe -c script`: its pid; *out reads what it prints. It dies with the test. */
pid_t interpreter_start(const struct interpreter *it, const char *script, int *out);
/* Read a line from out, without its end. Fails the test when there is none. */
void interpreter_line(int out, char *line, size_t size);
/* Kill it, wait for it, close out. */
void interpreter_end(pid_t pid, int out);

#endif
