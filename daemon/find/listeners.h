/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that listen on a TCP port, through the sockets' inode numbers. */
#ifndef PYPROF_FIND_LISTENERS_H
#define PYPROF_FIND_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sockets with SO_REUSEPORT: several for one port */
#define LISTENERS_MAX 256

/* All zero: none */
struct listeners {
	uint64_t inode[LISTENERS_MAX];
	size_t n;
	uint64_t netns; /* inode of the network namespace that they are in; 0: unknown */
};

/* The n-th field of a line of such a text, counted from 0; NULL: the line has fewer. Pure. */
const char *listeners_field(const char *line, unsigned int n);

/* Add the sockets that listen on port in a text of /proc/net/tcp or tcp6. Pure. */
void listeners_parse(const char *text, unsigned int port, struct listeners *to);

/* Is this link target ("socket:[4711]") one of them? Pure. */
bool listeners_have(const struct listeners *l, const char *link);

/*
 * Does process pid listen on port, in its own network namespace? Returns 1, 0 or a negative errno:
 * -EACCES if its files cannot be read, -ETIMEDOUT. known: all zero at the first call; keeps the
 * sockets of the last namespace for further calls with the same port, as the tables can be large.
 */
int listeners_check(pid_t pid, unsigned int port, struct listeners *known);

#endif
