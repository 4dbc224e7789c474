// SPDX-License-Identifier: BSD-2-Clause
/* Threads beside the event loop: see worker.h. */
#include "base/worker.h"

#include <signal.h>

#define STACK_BYTES ((size_t)8 << 20)

int worker_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, &attr, main, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
