/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon to work with for a while: the one that runs, or one of our own if none does; and targets
 * that are attached to it for so long. What was there before goes on as it was.
 */
#ifndef PYPROFCTL_VISIT_H
#define PYPROFCTL_VISIT_H

#include <stdbool.h>

#include "base/opts.h"
#include "client.h"
#include "private.h"
#include "target_args.h"

struct visit {
	struct private_daemon daemon; /* pid 0: it is somebody else's */
	struct client *client;
	struct opt_pids attached; /* by us */
};

/* A zeroed visit; one that was not opened can be ended as well. */
int visit_open(struct visit *v, const char *socket, struct diag *diag);
/* The same with a daemon of our own, whether another one runs or not. */
int visit_open_own(struct visit *v, struct diag *diag);
void visit_end(struct visit *v);

/* Attach and start. how: NULL, as the daemon was told. Exit code 7: it is attached already. */
struct visit_how {
	bool waiting; /* attach only: visit_start begins */
	bool yes;     /* do not ask, whatever it costs the process */
	const struct target_opts_given *target;
};
int visit_attach(struct visit *v, pid_t pid, const struct visit_how *how, struct diag *diag);
/* Those that wait, and all others of the daemon: for one of our own. */
int visit_start(struct visit *v, struct diag *diag);

/* Signals that ask for the end are blocked from now on: visit_wait looks for them. */
void visit_block_signals(void);
/* Wait a moment, at most so long. False: somebody asks for the end. */
bool visit_wait(uint64_t ns);

#endif
