/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real interpreters for tests: those of pyenv in the home directory and the system's, or only those
 * in PYPROF_INTERPRETERS, paths separated by blanks. Tests print which they used. If
 * PYPROF_TEST_REQUIRE contains "python", a missing 3.10, 3.11, 3.12 or 3.13 fails the test instead
 * of skipping it.
 */
#ifndef PYPROF_TESTS_HARNESS_INTERPRETERS_H
#define PYPROF_TESTS_HARNESS_INTERPRETERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/layout.h"

struct interpreter {
	int major, minor;
	unsigned int abi; /* LAYOUT_ABI_*, derived from the name: python3.13t */
	char exe[512];	  /* the program to run */
	char file[512];	  /* the file that contains the interpreter: exe itself or its libpython */
};

#define INTERPRETERS_MAX 32

/* Find all, sorted by version. Returns their number. Skips or fails the test (see above) if there
 * are none. */
size_t interpreters_find(struct interpreter v[INTERPRETERS_MAX]);
/* Find the newest of each frame model, of those that have a layout; the newest first. */
size_t interpreters_of_models(struct interpreter v[INTERPRETERS_MAX]);

/* The layout for it; NULL: the version is not supported. */
const struct layout *interpreter_layout(const struct interpreter *it);

/* The bytes of its file, to be freed. */
uint8_t *interpreter_read(const struct interpreter *it, size_t *size);

/* Run `exe -c script`. Returns its pid; *out reads its output. It is killed with the test. */
pid_t interpreter_start(const struct interpreter *it, const char *script, int *out);
/* Read a line from out, without the newline. Fails the test if there is none. */
void interpreter_line(int out, char *line, size_t size);
/* Kill it, wait for it, close out. */
void interpreter_end(pid_t pid, int out);

#endif
