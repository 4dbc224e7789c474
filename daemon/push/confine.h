/* SPDX-License-Identifier: BSD-2-Clause */
/* Dropping the privileges of a sender (private to push/ and its tests) */
#ifndef PYPROF_PUSH_CONFINE_H
#define PYPROF_PUSH_CONFINE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * From now on this process runs as a user of its own, without capabilities. It can read files that
 * everybody can, use IPv4 and IPv6, and start threads; it can write no file, start no program, and
 * reach no Unix socket and no other process. It ends with its parent. Returns 0 or a negative errno.
 */
int confine_sender(pid_t parent, size_t memory);

#endif
