/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending child processes without waiting for ever. A process that waits for a file system whose
 * server does not answer cannot be killed until that server ends. Such a child is kept in a list
 * and reaped later; its number tells when to start no more.
 */
#ifndef PYPROF_BASE_REAPER_H
#define PYPROF_BASE_REAPER_H

#include <sys/types.h>

/*
 * Wait up to `ms` for `child`, a child of ours that has been told to end; then kill it, wait as
 * long again, and leave it to later calls. `other`: the pidfd of a process that must have ended,
 * too, but is not our child (-1: none); it is waited for and counted, never killed. Takes it over.
 */
void reaper_end(pid_t child, int other, int ms);

/* Reap what has ended since; how many have not. */
unsigned int reaper_pending(void);

#endif
