/* SPDX-License-Identifier: BSD-2-Clause */
/* A helper process's own side (private to base/helper.c and base/zygote.c). */
#ifndef PYPROF_BASE_HELPER_SIDE_H
#define PYPROF_BASE_HELPER_SIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HELPER_FDS  6u
#define HELPER_NAME 16u

enum helper_flag {
	HELPER_PACKETS = 1, /* its channel keeps messages apart */
	HELPER_STAYS = 2,   /* it does not end with its parent */
	HELPER_SESSION = 4, /* it has a session of its own, and all signals are blocked */
	HELPER_STDIO = 8,   /* it has the daemon's standard streams; else /dev/null */
	/* It executes another program: no signal is blocked, and descriptors are open until then. */
	HELPER_EXECS = 16,
};

struct helper_opts {
	char name[HELPER_NAME]; /* in lists of processes; "": its parent's */
	unsigned int flags;	/* enum helper_flag */
	uint64_t limit_ns;	/* time to answer; 0: unlimited */
	/* Descriptors that it gets besides its channel, at most HELPER_FDS; negative ones are
	 * ignored. Borrowed. */
	int fds[HELPER_FDS];
	size_t nfds;
};

/* What a helper starts with. */
struct helper_side {
	int chan;	     /* to the daemon; readable when the daemon has ended */
	int fds[HELPER_FDS]; /* those of the options, in this process */
	pid_t parent;
	/* helper_start(): ctx, as the fork has copied it; helper_start_anew(): the job. */
	void *ctx;
	size_t size; /* of the job */
};

typedef void (*helper_fn)(struct helper_side *s);

/*
 * In the new process: sets up what the options say, calls run, and exits with status 0; with 1 if
 * the set-up fails.
 */
_Noreturn void helper_side_run(const struct helper_opts *o, struct helper_side *s, helper_fn run);

/*
 * Forks a process that does that; s->parent is set. No signal reaches it before its mask is set.
 * Returns its pid or a negative errno.
 */
pid_t helper_side_fork(const struct helper_opts *o, struct helper_side *s, helper_fn run);

#endif
