/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access control. Tracing a process gives access to its secrets, so only root and the daemon's user
 * are allowed. The socket's mode (0600) enforces the same, unless an administrator has changed it.
 */
#ifndef PYPROF_SERVER_PEER_H
#define PYPROF_SERVER_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/diag.h"

enum privilege {
	PRIVILEGE_READ,	   /* read measurements */
	PRIVILEGE_CONTROL, /* attach, start, stop, shut down */
};

/* Is the peer allowed? Pure. owner: the daemon's effective uid. */
bool peer_allowed(const struct ucred *peer, uid_t owner, enum privilege privilege);

/* The same with a diagnosis. Exit code 4: not allowed. */
int peer_check(const struct ucred *peer, uid_t owner, enum privilege privilege, struct diag *diag);

/* The credentials of the peer when it connected. Returns 0 or a negative errno. */
int peer_get(int fd, struct ucred *ret);

#endif
