/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that another process can block in the kernel for an unlimited time: reading about a process
 * in the middle of an exec that cannot complete because a file system's server does not answer.
 * They run in a worker thread, and the caller waits for a limited time.
 */
#ifndef PYPROF_TARGET_DEADLINE_H
#define PYPROF_TARGET_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define DEADLINE_MS	  300	/* for a blocked call */
#define DEADLINE_STUCK_MS 50	/* for a blocked call while another one is stuck */
#define DEADLINE_RUN_MS	  10000 /* for a call that runs but has much to do */
#define DEADLINE_MAX	  64	/* maximum number of stuck calls */

/*
 * Call fn(*job), which reads about process pid (0: no specific one), and return its result. The job
 * must contain all data that fn uses, because fn may return late. In that case *job is set to NULL,
 * and `release` is called for the job when fn returns.
 *
 * -ETIMEDOUT: the deadline passed, or an earlier call for this pid is still stuck; -EBUSY:
 * DEADLINE_MAX calls are stuck; -ENOMEM: cannot start a thread. Callable from any thread, from fn,
 * and from a forked child; in the latter two it calls fn directly, without a limit.
 */
int deadline_run(pid_t pid, int (*fn)(void *job), void **job, void (*release)(void *job));

/* Make all later calls in this process call fn directly, without a limit: it is a helper that
 * others wait for with a deadline. */
void deadline_off(void);

/* Enable deadlines in a forked child. Call it there before any other function. */
void deadline_here(void);

/* Returns whether err is deadline_run()'s -ETIMEDOUT or -EBUSY. */
bool deadline_missed(int err);

/* Set diag for such an error. Returns err. */
int deadline_diag(struct diag *diag, int err, pid_t pid);

/* Numbers of calls that missed their deadline, in total and still blocked */
struct deadline_counts {
	uint64_t late;
	unsigned int stuck;
};
struct deadline_counts deadline_counts(void);

#endif
