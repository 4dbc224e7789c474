/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may ask for what. Whoever can trace a process can read its secrets, so the only ones that are
 * let in are root and the user whom the daemon runs as; the socket's mode (0600) says the same,
 * this holds when an administrator has changed that.
 */
#ifndef PYPROF_SERVER_PEER_H
#define PYPROF_SERVER_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/diag.h"

enum privilege {
	PRIVILEGE_READ,	   /* sees what was measured */
	PRIVILEGE_CONTROL, /* attaches, starts, stops, shuts down */
};

/* The policy; pure. owner: the daemon's effective uid. */
bool peer_allowed(const struct ucred *peer, uid_t owner, enum privilege privilege);

/* The same in words. Exit code 4: not allowed. */
int peer_check(const struct ucred *peer, uid_t owner, enum privilege privilege, struct diag *diag);

/* Who is at the other end of fd: as it was when it connected. A negative errno on failure. */
int peer_get(int fd, struct ucred *ret);

#endif
