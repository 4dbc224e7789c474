/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `pyprofd -- CMD ARG...`: start a command and attach as soon as its interpreter is mapped.
 *
 * Without ptrace, the daemon cannot be notified between the mapping of the interpreter and its
 * first instruction. So it tries to attach once a millisecond after the exec, until it succeeds or
 * a deadline passes. The child is stopped (SIGSTOP) during each attempt, while the event loop
 * continues. What the interpreter does in the last millisecond is missed: part of its own start-up,
 * before any code of the program. Only this child is ever stopped, never a process that existed
 * before.
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
	const sigset_t *sigmask;    /* for the child */
	const struct rlimit *files; /* RLIMIT_NOFILE for the child */
	struct sessions *sessions;
	bool start; /* attach the probes at once */
	/* Exactly one of these is called, from the event loop. failed: the child has been
	 * terminated. */
	void (*attached)(void *ctx);
	void (*failed)(void *ctx, int err, const struct diag *diag);
	void *ctx;
};

int launch_start(struct sd_event *event, const struct launch_opts *opts, struct launch **ret,
		 struct diag *diag);
pid_t launch_pid(const struct launch *l);

/* The daemon ends: make no more attempts. The child continues; no function is called. */
void launch_cancel(struct launch *l);

/* Send the child a signal if it runs. 0: only note that a signal was sent. */
void launch_signal(struct launch *l, int signo);

/*
 * The child's exit status as shells report it, 128 + N if signal N ended it. 0: it continues to
 * run; a child that was sent a signal has LAUNCH_END_MS to end.
 */
#define LAUNCH_END_MS 2000
int launch_status(const struct launch *l);

/* Log how the child ended or that it continues, and reap it. NULL is accepted. */
void launch_free(struct launch *l);
DEFINE_FREEP(struct launch, launch_free)

#endif
