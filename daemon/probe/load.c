// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loading BPF programs on a thread: see load.h. Each load has a thread, which waits for its turn. A
 * forked process has none of them, and the lock may have been taken when it was forked.
 */
#include "probe/load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/worker.h"

struct load {
	struct load_of of;
	uint64_t turn;
	pthread_t thread;
	int result;
	bool done, abandoned;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t last, next; /* turns: the last one that was given, the next one that loads */
	pid_t owner;
	int fd;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
	 .changed = PTHREAD_COND_INITIALIZER,
	 .next = 1,
	 .fd = -1};

static void load_free(struct load *l)
{
	l->of.free(l->of.ctx);
	free(l);
}

/* Returns whether it is still wanted. */
static bool await_turn(const struct load *l)
{
	bool wanted;

	pthread_mutex_lock(&all.lock);
	while (all.next != l->turn)
		pthread_cond_wait(&all.changed, &all.lock);
	wanted = !l->abandoned;
	pthread_mutex_unlock(&all.lock);
	return wanted;
}

/* Returns whether it was abandoned. */
static bool finish(struct load *l, int result)
{
	bool abandoned;

	pthread_mutex_lock(&all.lock);
	all.next++;
	l->result = result;
	l->done = true;
	abandoned = l->abandoned;
	pthread_cond_broadcast(&all.changed);
	(void)eventfd_write(all.fd, 1);
	pthread_mutex_unlock(&all.lock);
	return abandoned;
}

static void *load_main(void *arg)
{
	struct load *l = arg;
	int r = await_turn(l) ? l->of.load(l->of.ctx) : -ECANCELED;

	if (finish(l, r))
		load_free(l);
	return NULL;
}

int load_begin(const struct load_of *of, struct load **ret)
{
	struct load *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	if (!all.owner)
		all.owner = getpid();
	if (all.owner != getpid()) {
		free(l);
		return -EOPNOTSUPP;
	}
	l->of = *of;
	pthread_mutex_lock(&all.lock);
	l->turn = all.last + 1;
	r = worker_start(&l->thread, load_main, l);
	if (r == 0)
		all.last++;
	pthread_mutex_unlock(&all.lock);
	if (r < 0) {
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

bool load_done(struct load *l)
{
	bool done;

	pthread_mutex_lock(&all.lock);
	done = l->done;
	pthread_mutex_unlock(&all.lock);
	return done;
}

int load_end(struct load *l)
{
	int r;

	pthread_join(l->thread, NULL);
	r = l->result;
	free(l);
	return r;
}

void load_abandon(struct load *l)
{
	bool done;

	pthread_mutex_lock(&all.lock);
	done = l->done;
	l->abandoned = true;
	if (!done)
		pthread_detach(l->thread);
	pthread_mutex_unlock(&all.lock);
	if (!done)
		return;
	pthread_join(l->thread, NULL);
	load_free(l);
}

int loads_fd(void)
{
	int fd;

	pthread_mutex_lock(&all.lock);
	if (all.fd < 0)
		all.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = all.fd < 0 ? -1 : fcntl(all.fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&all.lock);
	return fd < 0 ? -errno : fd;
}
