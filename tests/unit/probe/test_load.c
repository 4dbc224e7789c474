// SPDX-License-Identifier: BSD-2-Clause
/* probe/load: one load at a time, in order, and abandoned ones. */
#include "probe/load.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/patience.h"
#include "harness/test.h"

/* What is loaded: it waits until it may end. */
struct job {
	unsigned int order; /* when it began; 0: not yet */
	int result;
	bool free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int begun, at_once, allowed, freed;

static int job_load(void *ctx)
{
	struct job *j = ctx;

	pthread_mutex_lock(&lock);
	j->order = ++begun;
	at_once++;
	cr_assert_eq(at_once, 1);
	pthread_cond_broadcast(&changed);
	while (allowed < j->order)
		pthread_cond_wait(&changed, &lock);
	at_once--;
	pthread_mutex_unlock(&lock);
	return j->result;
}

static void job_free(void *ctx)
{
	struct job *j = ctx;

	pthread_mutex_lock(&lock);
	j->free = true;
	freed++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static struct load *start(struct job *j)
{
	struct load *l = NULL;

	assert_ok(load_begin(&(struct load_of){.load = job_load, .free = job_free, .ctx = j}, &l));
	return l;
}

static void await(const unsigned int *what, unsigned int n)
{
	pthread_mutex_lock(&lock);
	while (*what < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void allow(unsigned int n)
{
	pthread_mutex_lock(&lock);
	allowed = n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Nobody else watches in this process, so it may be read. */
static bool is_signalled(int ms)
{
	_cleanup_close_ int fd = loads_fd();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	eventfd_t n;

	cr_assert(fd >= 0);
	return poll(&p, 1, ms) > 0 && eventfd_read(fd, &n) == 0;
}

Test(load, one_at_a_time)
{
	struct job jobs[3] = {{.result = -7}, {.result = 0}, {.result = -9}};
	struct load *l[3];

	cr_assert(!is_signalled(0));
	for (int i = 0; i < 3; i++)
		l[i] = start(&jobs[i]);
	await(&begun, 1);
	cr_assert(!load_done(l[0]) && !load_done(l[1]) && !is_signalled(PATIENCE_MOMENT_MS));
	allow(1);
	cr_assert(is_signalled(patience_left_ms()));
	cr_assert(load_done(l[0]) && !load_done(l[2]));
	assert_err(load_end(l[0]), -7);
	cr_assert(!is_signalled(0));
	allow(3);
	assert_err(load_end(l[2]), -9);
	assert_ok(load_end(l[1]));
	cr_assert(jobs[0].order == 1 && jobs[1].order == 2 && jobs[2].order == 3);
	cr_assert(freed == 0 && is_signalled(0));
	check_no_leaks();
}

/* Nobody waits for the end of one that is not wanted; one that has not begun never does. */
Test(load, abandoned)
{
	struct job running = {0}, waiting = {0}, ended = {0};
	struct load *l = start(&running), *next = start(&waiting), *last = start(&ended);

	await(&begun, 1);
	load_abandon(l);
	load_abandon(next);
	cr_assert(freed == 0 && !running.free && !waiting.free);
	allow(2);
	await(&freed, 2);
	cr_assert(running.free && waiting.free && waiting.order == 0);
	await(&begun, 2);
	for (int i = 0; i < 3 && !load_done(last); i++)
		cr_assert(is_signalled(patience_left_ms()));
	cr_assert(load_done(last));
	load_abandon(last);
	cr_assert(ended.free && freed == 3);
	check_no_leaks();
}

/* A forked process has no threads, and loads by itself. */
Test(load, not_in_a_forked_process)
{
	struct job first = {0}, second = {0};
	struct load *l = start(&first);
	int status = 0;
	pid_t pid;

	await(&begun, 1);
	pid = fork();
	if (pid == 0)
		_exit(load_begin(
			      &(struct load_of){.load = job_load, .free = job_free, .ctx = &second},
			      &l) == -EOPNOTSUPP
			      ? 0
			      : 1);
	cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	allow(1);
	assert_ok(load_end(l));
}

/* Each of several watchers sees each load. */
Test(load, is_an_edge_for_each)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	struct job jobs[2] = {0};
	int watchers[2];

	for (int i = 0; i < 2; i++) {
		watchers[i] = epoll_create1(EPOLL_CLOEXEC);
		e.data.fd = loads_fd();
		assert_ok(epoll_ctl(watchers[i], EPOLL_CTL_ADD, e.data.fd, &e));
	}
	allow(2);
	for (int k = 0; k < 2; k++) {
		struct load *l = start(&jobs[k]);

		assert_ok(load_end(l));
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(epoll_wait(watchers[i], &e, 1, 0), 1);
			cr_assert_eq(epoll_wait(watchers[i], &e, 1, 0), 0);
		}
	}
}
