/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reaping child processes without waiting for them. A process that waits for a file system whose
 * server does not answer cannot be killed until that server ends. Children are kept in a list and
 * reaped when they have ended. Callers use the number of those that do not end to stop starting new
 * ones.
 */
#ifndef PYPROF_BASE_REAPER_H
#define PYPROF_BASE_REAPER_H

#include <sys/types.h>

#include "base/diag.h"

/* A child that is about to end has this time before reaper_check() counts it, ms. */
#define REAPER_GRACE_MS 100

/* Leave a child that was killed, or ends by itself, to later calls. Does not wait. */
void reaper_keep(pid_t child);

/*
 * Wait up to ms milliseconds for child, which has been asked to end. Then kill it and wait ms
 * again; if it still exists, leave it to later calls. other: pidfd of another process that must
 * have ended, but is not a child of this process (-1: none). It is waited for and counted, never
 * killed. Takes ownership of it.
 */
void reaper_end(pid_t child, int other, int ms);

/* Reap children that have ended meanwhile. Returns the number of those still pending. */
unsigned int reaper_pending(void);

/*
 * A descriptor that is readable when reaper_pending() would reap a child; owned by this module.
 * Returns a negative errno if there is none.
 */
int reaper_fd(void);

/* -EBUSY, with a diagnosis: so many are pending that no more should be started. */
int reaper_check(unsigned int max, struct diag *diag);

#endif
