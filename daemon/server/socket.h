/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket in the file system: private to its user (0600 from birth), held by one daemon
 * at a time. A daemon that holds it has a lock on PATH.lock, and may remove the socket that a killed
 * daemon left behind. Where other users can write to the socket's directory the lock is elsewhere:
 * for root in /run/pyprofd, else in $XDG_RUNTIME_DIR, if that is private to the user. Nothing that
 * is not a socket is ever removed.
 */
#ifndef PYPROF_SERVER_SOCKET_H
#define PYPROF_SERVER_SOCKET_H

#include "base/cleanup.h"
#include "base/diag.h"

struct control_socket;

/*
 * Exit codes: 2 the path is too long or a directory's, 4 it cannot be created there, 7 a daemon
 * holds it already.
 * A missing directory is created for its user only (0700), and removed again on failure; its parent
 * must exist.
 */
int control_socket_open(const char *path, struct control_socket **ret, struct diag *diag);

/*
 * A listening Unix socket that was inherited (sd_listen_fds(3)): it is taken over, and its file, if
 * it has one, is left alone. Exit code 2: it is something else.
 */
int control_socket_adopt(int fd, struct control_socket **ret, struct diag *diag);

/* The listening descriptor, non-blocking; stays the socket's own. */
int control_socket_fd(const struct control_socket *cs);
const char *control_socket_path(const struct control_socket *cs);

/* Removes the socket, unless somebody else has put another one there, and the lock. */
void control_socket_free(struct control_socket *cs);
DEFINE_FREEP(struct control_socket, control_socket_free)

#endif
