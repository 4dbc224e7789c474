/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending child processes without unbounded waits. A process that waits for a file system whose
 * server does not answer cannot be killed until that server ends. Such a child is kept in a list
 * and reaped later. Callers use the number of pending children to stop starting new ones.
 */
#ifndef PYPROF_BASE_REAPER_H
#define PYPROF_BASE_REAPER_H

#include <sys/types.h>

#include "base/diag.h"

/*
 * Wait up to ms milliseconds for child, which has been asked to end. Then kill it and wait ms
 * again; if it still exists, leave it to later calls. other: pidfd of another process that must
 * have ended, but is not a child of this process (-1: none). It is waited for and counted, never
 * killed. Takes ownership of it.
 */
void reaper_end(pid_t child, int other, int ms);

/* Wait up to ms for a child that ends by itself. If it still exists, leave it to later calls: it is
 * counted until it has ended, and not killed. */
void reaper_await(pid_t child, int ms);

/* Reap children that have ended meanwhile. Returns the number of those still pending. */
unsigned int reaper_pending(void);

/* -EBUSY, with a diagnosis: so many are pending that no more should be started. */
int reaper_check(unsigned int max, struct diag *diag);

#endif
