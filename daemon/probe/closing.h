/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A descriptor that is closed beside the event loop. Closing a link takes the breakpoints out at
 * once, but then the kernel waits, for 25 to 50 ms, until nobody can be in the programs any more.
 * Who opens and closes windows several times a second cannot wait with it: rings would not be
 * drained and clients not be answered for a quarter of the time. There is no asynchronous close, so
 * a thread does it; it does nothing else and touches nothing else.
 */
#ifndef PYPROF_PROBE_CLOSING_H
#define PYPROF_PROBE_CLOSING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed: nothing is being closed. */
struct closing {
	pthread_t thread;
	bool running; /* there is a thread to be joined */
	atomic_bool done;
	int fd;
};

/* Takes fd. Nothing else may be being closed. Without a thread it is closed here and now. */
void closing_start(struct closing *c, int fd);
/* Is it still being closed? Never waits. */
bool closing_busy(struct closing *c);
/* Wait until it is closed. */
void closing_wait(struct closing *c);

#endif
