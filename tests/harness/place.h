/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places for processes that are not the host itself: pid and mount namespaces of their own, and if
 * so wished a root directory with its own libc and Python, and a user namespace, as containers
 * have them. Nothing that is mounted there is seen by others, or left behind.
 */
#ifndef PYPROF_TESTS_HARNESS_PLACE_H
#define PYPROF_TESTS_HARNESS_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

struct place {
	const char *root;  /* becomes the root directory; NULL: the host's */
	const char *share; /* a directory below /tmp that is to be at the same path in there */
	bool user;	   /* no user of the host: root of a user namespace of its own */
};

/* Where tests/targets is in a place with a root directory of its own. */
#define PLACE_TARGETS "/tmp/targets"

/* The host's user that a place with a user namespace calls root. */
#define PLACE_USER 100000u

/* As fork(2); the child is process 1 of the place. NULL: simply here. */
pid_t place_fork(const struct place *p);

/*
 * The root directory of a Debian release, fetched if it is not there (tests/fetch-interpreters.sh);
 * to be freed. Skips the test where it cannot be had.
 */
char *place_suite(const char *suite);

#endif
