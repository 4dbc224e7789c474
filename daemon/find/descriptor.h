/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file descriptor of a process is now: a path, a pipe, a socket and its peer. */
#ifndef PYPROF_FIND_DESCRIPTOR_H
#define PYPROF_FIND_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DESCRIPTOR_MAX 256 /* size of a description */

/*
 * Finds the socket with this inode in a text of /proc/net/tcp, tcp6, udp or udp6, and writes its
 * addresses: "127.0.0.1:4000 -> 127.0.0.1:5432", or only its own one if it has no peer. Pure.
 */
bool descriptor_find_inet(const char *text, uint64_t inode, char *out, size_t size);

/* The same for /proc/net/unix: its path, or "unnamed". Pure. */
bool descriptor_find_unix(const char *text, uint64_t inode, char *out, size_t size);

/*
 * Describes the descriptor as it is now; it may have been closed, or used for another file, since.
 * Returns false if the process has no such descriptor, or may not be read. The text is whatever the
 * process has named its files.
 */
bool descriptor_describe(pid_t pid, uint32_t fd, char *out, size_t size);

#endif
