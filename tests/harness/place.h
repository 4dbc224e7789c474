/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Containers for processes: pid and mount namespaces, and optionally a root directory with its own
 * libc and Python, and a user namespace. Their mounts are not visible to other processes and are
 * removed with the last process.
 */
#ifndef PYPROF_TESTS_HARNESS_PLACE_H
#define PYPROF_TESTS_HARNESS_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

struct place {
	const char *root;  /* root directory; NULL: the host's */
	const char *share; /* a directory below /tmp to mount at the same path inside */
	bool user;	   /* with a user namespace; the process is root in it */
};

/* Path of tests/targets in a place with its own root directory. */
#define PLACE_TARGETS "/tmp/targets"

/* The host's user id of root in a place with a user namespace. */
#define PLACE_USER 100000u

/* As fork(2); the child is process 1 of the place. p NULL: a normal fork. */
pid_t place_fork(const struct place *p);

/*
 * The root directory of a Debian release, fetched if missing (tests/fetch-interpreters.sh); to be
 * freed. Skips the test if it is not available.
 */
char *place_suite(const char *suite);

#endif
