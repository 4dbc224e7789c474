/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that helpers are forked from (private to base/helper.c).
 *
 * Helpers that read what strangers control must not have the daemon's secrets in their memory, nor
 * its address layout, so they are not forked from the daemon. The zygote is this program's file,
 * executed anew with a clean environment before anything else happens in it. It has the daemon's
 * rights, reads nothing but the daemon's requests, and forks a child of the daemon for each. That
 * takes less time than executing the program for each helper (6 ms), or forking a large daemon.
 *
 * A process has one zygote, started on demand and again if it has died. All functions are for the
 * process's main thread only.
 */
#ifndef PYPROF_BASE_ZYGOTE_H
#define PYPROF_BASE_ZYGOTE_H

#include "base/helper_side.h"

/* Starts it if there is none. Does not wait for it. Returns 0 or a negative errno. */
int zygote_start(void);

/* Ends it; exit(3) does this, too. */
void zygote_end(void);

/*
 * Forks a helper that calls run. chan: its end of the channel; job: a file with its job; both are
 * borrowed. Returns the pid, which is that of a child of this process, or a negative errno.
 */
pid_t zygote_fork(const struct helper_opts *o, helper_fn run, int chan, int job, size_t size);

/*
 * Functions of this program as numbers that are the same in all its processes, wherever they are
 * mapped. 0: NULL.
 */
uintptr_t zygote_number_of(void (*function)(void));
void (*zygote_function_of(uintptr_t number))(void);

#endif
