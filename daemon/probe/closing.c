// SPDX-License-Identifier: BSD-2-Clause
/* Closing beside the event loop: see closing.h. */
#include "probe/closing.h"

#include <signal.h>
#include <unistd.h>

static void *closing_main(void *arg)
{
	struct closing *c = arg;

	close(c->fd);
	atomic_store(&c->done, true);
	return NULL;
}

/* Signals are the event loop's. */
static int spawn(struct closing *c)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&c->thread, NULL, closing_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

void closing_start(struct closing *c, int fd)
{
	closing_wait(c);
	c->fd = fd;
	atomic_store(&c->done, false);
	c->running = spawn(c) == 0;
	if (!c->running)
		close(fd);
}

void closing_wait(struct closing *c)
{
	if (c->running)
		pthread_join(c->thread, NULL);
	c->running = false;
}

bool closing_busy(struct closing *c)
{
	if (!c->running)
		return false;
	if (!atomic_load(&c->done))
		return true;
	closing_wait(c);
	return false;
}
