/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `pyprofd -- CMD ARG...`: start a command and attach to it as soon as its interpreter is there.
 *
 * Without ptrace there is no way to be called between the mapping of the interpreter and its first
 * instruction. So we try: from the exec on, once a millisecond, with the child stopped (SIGSTOP)
 * during each try and running in between, until attaching works or the time is up. What the
 * interpreter does in the last of those milliseconds is missed: part of its own start-up, before
 * any of the program's code. Only our own child is ever stopped, never a process that was there
 * before us.
 */
#ifndef PYPROF_RUN_LAUNCH_H
#define PYPROF_RUN_LAUNCH_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "session/session.h"

struct launch;

struct launch_opts {
	char **argv;
	const sigset_t *sigmask;    /* the child's */
	const struct rlimit *files; /* RLIMIT_NOFILE of the child */
	struct sessions *sessions;
	bool start; /* put the probes on */
	/* Exactly one of these is called, from the event loop. failed: the child was terminated. */
	void (*attached)(void *ctx);
	void (*failed)(void *ctx, int err, const struct diag *diag);
	void *ctx;
};

int launch_start(struct sd_event *event, const struct launch_opts *opts, struct launch **ret,
		 struct diag *diag);
pid_t launch_pid(const struct launch *l);

/* Send the child a signal if it still runs. 0: it has got one already. */
void launch_signal(struct launch *l, int signo);

/* Says on stderr how the child ended, or that it goes on. Reaps it. */
void launch_free(struct launch *l);
DEFINE_FREEP(struct launch, launch_free)

#endif
