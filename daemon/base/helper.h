/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper processes: the only place of the daemon that forks.
 *
 * A helper has a channel to the daemon (a pair of sockets), the descriptors that it was given and
 * no others, and ends with the daemon. The daemon reads from the channel without blocking, with a
 * deadline, and does not wait for the end of a helper (reaper.h).
 *
 *	struct helper h;
 *
 *	helper_start(&(struct helper_opts){.limit_ns = SECOND}, measure, opts, &h);
 *	...when h.fd is readable, or at h.deadline_ns:
 *	r = helper_read(&h, &answer, sizeof(answer));
 *	if (r == -EINPROGRESS)
 *		return;
 *	helper_end(&h);
 */
#ifndef PYPROF_BASE_HELPER_H
#define PYPROF_BASE_HELPER_H

#include "base/helper_side.h"

struct helper {
	pid_t pid;	      /* 0: there is none */
	int fd;		      /* our end of its channel, non-blocking; -1: there is none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
	uint64_t limit_ns;
	size_t have; /* bytes of the present message that have been received */
};

#define HELPER_NONE ((struct helper){.fd = -1, .deadline_ns = UINT64_MAX})

/*
 * Forks a process that calls run, with ctx as it is now. On failure *ret is HELPER_NONE. Returns 0
 * or a negative errno.
 */
int helper_start(const struct helper_opts *o, helper_fn run, void *ctx, struct helper *ret);

/*
 * The same for a helper that reads what strangers control: its memory has nothing of the daemon's
 * but a copy of the job (size bytes), and is mapped elsewhere; see zygote.h. For the main thread
 * only. run must be a function of this program.
 */
int helper_start_anew(const struct helper_opts *o, helper_fn run, const void *job, size_t size,
		      struct helper *ret);

/* Makes the first helper_start_anew() faster. It is best called while the process is small. */
void helper_prepare(void);

/* A function as a number that can be part of a job, and back. */
uintptr_t helper_number_of(void (*function)(void));
void (*helper_function_of(uintptr_t number))(void);

/*
 * Receives a message of this size, whose beginning has been received by earlier calls with the same
 * arguments. Returns 0, and the next call begins the next message; -EINPROGRESS: not yet; -EPIPE:
 * the helper has ended before; -ETIMEDOUT: the deadline has passed.
 */
int helper_read(struct helper *h, void *message, size_t size);

/* Kills the helper, if there is one, and closes the channel. */
void helper_end(struct helper *h);
/* The same for a helper that ends by itself, such as one that has answered: it is not killed. */
void helper_leave(struct helper *h);

/*
 * How the helper ended, for a message: "was killed by SIGKILL", "ended with status 1", or, if it
 * has not ended, that its time is over. Waits a moment for its end; call it after an error of
 * helper_read() and before helper_end(). Returns out.
 */
#define HELPER_ENDING 96u
const char *helper_ending(const struct helper *h, char out[HELPER_ENDING]);
/* The signal that killed it; 0: none. To be called likewise. */
int helper_killed_by(const struct helper *h);

#endif
