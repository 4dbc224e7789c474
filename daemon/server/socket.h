/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket's file: created with mode 0600, or 0660 for a group, and used by one daemon at
 * a time. A daemon holds a lock on PATH.lock, and may then remove the socket of a killed daemon. If other users can write to
 * the socket's directory, the lock is elsewhere: for root in /run/pyprofd, else in
 * $XDG_RUNTIME_DIR, if that is private to the user. Only sockets are ever removed.
 */
#ifndef PYPROF_SERVER_SOCKET_H
#define PYPROF_SERVER_SOCKET_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct control_socket;

/*
 * Create the socket; *ret is owned by the caller. group: its group, which may connect; -1: only the
 * owner may. Exit codes: 2 (path too long or a directory), 4 (no permission), 7 (another daemon uses
 * it). A missing directory is created with mode 0700 (with a group: 0750, of that group), and removed
 * on failure; its parent must exist.
 */
int control_socket_open(const char *path, gid_t group, struct control_socket **ret,
			struct diag *diag);

/*
 * Use an inherited listening Unix socket (sd_listen_fds(3)). Takes ownership of fd; does not touch
 * its file. Exit code 2: not such a socket.
 */
int control_socket_adopt(int fd, struct control_socket **ret, struct diag *diag);

/* The non-blocking listening descriptor; borrowed. */
int control_socket_fd(const struct control_socket *cs);
const char *control_socket_path(const struct control_socket *cs);

/* Removes the lock, and the socket unless another process has replaced it. NULL is accepted. */
void control_socket_free(struct control_socket *cs);
DEFINE_FREEP(struct control_socket, control_socket_free)

#endif
