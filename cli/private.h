/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private pyprofd for one command, ended with it. Its socket has no name in the file system, so
 * no file remains even if both are killed. The program is the pyprofd in this program's directory,
 * else the one in PATH.
 */
#ifndef PYPROFCTL_PRIVATE_H
#define PYPROFCTL_PRIVATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

/* All zero: no daemon */
struct private_daemon {
	pid_t pid;     /* 0: no daemon */
	char sock[40]; /* path of the socket: sock_fd in /proc/self/fd */
	int sock_fd;   /* O_PATH; 0: none */
	int log_fd;    /* memory file with the daemon's stderr; 0: none */
};

enum private_mode {
	PRIVATE_BACKGROUND, /* in a session of its own, without the terminal's signals; its
			     * stderr goes to log_fd */
	PRIVATE_FOREGROUND, /* shares the terminal */
};

/* Start pyprofd with args, which ends with NULL. */
int private_start(struct private_daemon *d, enum private_mode mode, char *const *args,
		  struct diag *diag);

/* Wait until the daemon responds. If it exits, the diagnosis is the last line of its log. */
int private_ready(struct private_daemon *d, struct diag *diag);

/*
 * Wait until the daemon exits; returns its exit status. The terminal sends SIGINT to the daemon
 * directly, so it is ignored here. If this process is killed, the daemon gets SIGTERM.
 */
int private_wait(struct private_daemon *d);

/* Terminate the daemon, if any, and wait for it. */
void private_end(struct private_daemon *d);

#endif
