/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pyprofd of one's own, for one command: started with a socket that has no name any more, ended
 * with the command. Neither of them leaves a file behind, however it ends. It is the pyprofd beside this program, else the one that PATH finds.
 */
#ifndef PYPROFCTL_PRIVATE_H
#define PYPROFCTL_PRIVATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

/* All zero: none. */
struct private_daemon {
	pid_t pid;     /* 0: none */
	char sock[40]; /* the socket, by sock_fd: in /proc/self/fd */
	int sock_fd;   /* O_PATH; 0: none, as below */
	int log_fd;    /* a memory file: what the daemon wrote to its stderr */
};

enum private_mode {
	PRIVATE_BACKGROUND, /* not reached by the terminal's signals; what it says is kept */
	PRIVATE_FOREGROUND, /* shares the terminal */
};

/* args: of pyprofd; ends with NULL. */
int private_start(struct private_daemon *d, enum private_mode mode, char *const *args,
		  struct diag *diag);

/* Wait until it answers. If it ends instead, its own words are the diagnosis. */
int private_ready(struct private_daemon *d, struct diag *diag);

/*
 * Wait for its end, however long that takes; its exit status. The terminal's SIGINT reaches it
 * directly and is ignored here; should this process be killed, it gets SIGTERM.
 */
int private_wait(struct private_daemon *d);

/* End it if it runs. */
void private_end(struct private_daemon *d);

#endif
