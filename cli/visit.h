/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A temporary connection to a daemon: the running one, or a private one if there is none. Targets
 * that were attached through it are detached at its end; all others are left unchanged.
 */
#ifndef PYPROFCTL_VISIT_H
#define PYPROFCTL_VISIT_H

#include <stdbool.h>

#include "base/opts.h"
#include "client.h"
#include "private.h"
#include "target_args.h"

struct visit {
	struct private_daemon daemon; /* pid 0: using a daemon that ran before */
	struct client *client;
	struct opt_pids attached; /* through this visit */
};

/* v must be zeroed. visit_end() may be called even if this fails. */
int visit_open(struct visit *v, const char *socket, struct diag *diag);
/* The same, always with a private daemon. */
int visit_open_own(struct visit *v, struct diag *diag);
void visit_end(struct visit *v);

struct pick;

/* Attach and start. Exit code 7: already attached. */
struct visit_how {
	bool waiting; /* only attach; visit_start() starts recording */
	bool yes;     /* consent to a high overhead is given */
	const struct target_opts_given *target;
	const struct pick *picked; /* see forecast.h */
};
int visit_attach(struct visit *v, pid_t pid, const struct visit_how *how, struct diag *diag);
/*
 * For what is recorded of each call: connects to the running daemon, or, if there is a pid, attaches
 * to that process without a limit unless the running daemon has already attached to it. yes: as in
 * struct visit_how
 */
int visit_recorded(struct visit *v, const char *socket, pid_t pid, bool yes, struct diag *diag);
/* Returns 0 if one of these targets ("targets" of the answer) is being traced. */
int visit_check_traced(const json_t *targets, struct diag *diag);
/* These targets as they are now; those that have been detached since, as they were. The caller owns
 * the result. */
json_t *visit_targets_now(const struct visit *v, const json_t *targets);
/* Start all targets of the daemon; for private daemons. */
int visit_start(struct visit *v, struct diag *diag);

/* Block the signals that end the command; visit_wait() receives them. */
void visit_block_signals(void);
/* Wait up to ns nanoseconds. False: a signal that ends the command has arrived. */
bool visit_wait(uint64_t ns);

#endif
