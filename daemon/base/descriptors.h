/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing descriptors that a forked process inherited, and passing some to another process. */
#ifndef PYPROF_BASE_DESCRIPTORS_H
#define PYPROF_BASE_DESCRIPTORS_H

#include <stddef.h>

#define DESCRIPTORS_SENT 8u /* the maximum number in a message */
#define DESCRIPTORS_KEPT 8u /* the maximum number of kept descriptors */

/* Close all descriptors from number `from` on, except the n in keep (negative entries are ignored).
 * Returns 0, -E2BIG if n is above DESCRIPTORS_KEPT, or the error of close_range(2). */
int descriptors_close_others(unsigned int from, const int *keep, size_t n);

/* Send a message with n descriptors, at least one, through a socket that keeps messages apart. 0 or a negative errno. */
int descriptors_send(int sock, const void *data, size_t size, const int *fds, size_t n);
/*
 * Wait for such a message of this size. Returns the number of its descriptors, which are closed by execve(2); -1: the
 * other end has closed the socket, or sent something else.
 */
int descriptors_receive(int sock, void *data, size_t size, int fds[DESCRIPTORS_SENT]);

#endif
