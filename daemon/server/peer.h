/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access control. Tracing a process gives access to its secrets, so only root and the daemon's user
 * are allowed, and to read, the members of one group if the administrator has named it. The
 * socket's mode (0600, or 0660 with that group) enforces the same, unless an administrator has
 * changed it.
 */
#ifndef PYPROF_SERVER_PEER_H
#define PYPROF_SERVER_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

enum privilege {
	PRIVILEGE_READ,	   /* read measurements */
	PRIVILEGE_CONTROL, /* attach, start, stop, shut down */
};

#define PEER_NO_GROUP ((gid_t)-1)

/* A client, as the kernel knew it when it connected */
struct peer {
	uid_t uid;   /* effective; -1: unknown */
	bool member; /* of the group that may read */
};

/* Is the peer allowed? Pure. owner: the daemon's effective uid. */
bool peer_allowed(const struct peer *peer, uid_t owner, enum privilege privilege);

/* May this peer only read? Pure. */
bool peer_only_reads(const struct peer *peer, uid_t owner);

/* The same with a diagnosis. Exit code 4: not allowed. */
int peer_check(const struct peer *peer, uid_t owner, enum privilege privilege, struct diag *diag);

/* readers: the group that may read, or PEER_NO_GROUP. Returns 0 or a negative errno; then the peer
 * has no permissions. */
int peer_get(int fd, gid_t readers, struct peer *ret);

/* The group of this name. name == NULL: PEER_NO_GROUP. Exit code 2: there is no such group. */
int peer_find_group(const char *name, gid_t *ret, struct diag *diag);

#endif
