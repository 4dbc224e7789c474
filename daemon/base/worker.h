/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that write profiles beside the event loop. */
#ifndef PYPROF_BASE_WORKER_H
#define PYPROF_BASE_WORKER_H

#include <pthread.h>

/*
 * Starts a thread without signals, which are the main thread's. Its stack has a main thread's usual
 * size, which the formats were written for. Returns 0 or a negative errno.
 */
int worker_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx);

#endif
