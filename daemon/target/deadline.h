/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that may block in the kernel for as long as another process likes: reading about a process
 * that is in the middle of an exec, and cannot end it because a file system's server does not
 * answer. They run in a thread of their own; the caller waits for a limited time.
 */
#ifndef PYPROF_TARGET_DEADLINE_H
#define PYPROF_TARGET_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define DEADLINE_MS	  300	/* for a call that blocks */
#define DEADLINE_STUCK_MS 50	/* the same while another call is stuck */
#define DEADLINE_RUN_MS	  10000 /* for a call that does not block, but has much to do */
#define DEADLINE_MAX	  64	/* stuck calls */

/*
 * Run fn(*job), which reads about process pid (0: about no certain one), and return what it returns.
 * The job holds all that fn reads and writes, so that nothing else is touched by a call that ends
 * late. Then *job is NULL: it is released when the call ends.
 *
 * -ETIMEDOUT: not done in time, or an earlier call for this pid is still stuck; -EBUSY: DEADLINE_MAX
 * calls are stuck; -ENOMEM: no thread can be started. Any thread may call it; fn may, too, and so
 * may a forked child: there it runs fn itself, without a limit.
 */
int deadline_run(pid_t pid, int (*fn)(void *job), void **job, void (*release)(void *job));

/* In a forked child that is to have the limit as well; before its first call. */
void deadline_here(void);

/* Was it refused, or given up, for one of the reasons above? */
bool deadline_missed(int err);

/* Say so of process pid; err: what deadline_run returned. Returns err. */
int deadline_diag(struct diag *diag, int err, pid_t pid);

/* Calls given up so far, and those among them that are stuck now. */
struct deadline_counts {
	uint64_t late;
	unsigned int stuck;
};
struct deadline_counts deadline_counts(void);

#endif
