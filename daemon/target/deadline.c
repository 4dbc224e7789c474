// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls with a deadline: see deadline.h.
 *
 * A worker thread executes one call at a time. If a call misses its deadline, its worker is
 * abandoned and the next call gets a new one. An abandoned worker releases the job and ends when
 * its call returns.
 */
#include "target/deadline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stall_timeout.h"
#include "target/proc.h"

#define STACK_BYTES (256u << 10)

struct worker {
	pthread_cond_t wake, answered;
	pid_t tid, pid;	      /* its own tid; the pid that its call reads about */
	int (*fn)(void *job); /* NULL: idle */
	void (*release)(void *job);
	void *job;
	int result;
	atomic_bool done; /* fn has returned; set before the lock is taken to report the result */
	bool left, ends;
	struct worker *next; /* next abandoned worker */
};

static struct {
	pthread_mutex_t lock;
	struct worker *idle, *left;
	struct deadline_counts counts;
	bool is_child;
	bool handles_forks;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool in_worker;

/* ---- the worker -------------------------------------------------------------------------- */

static void worker_free(struct worker *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->answered);
	free(w);
}

static void forget(struct worker *w)
{
	struct worker **at = &all.left;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	all.counts.stuck--;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	in_worker = true;
	pthread_mutex_lock(&all.lock);
	w->tid = (pid_t)syscall(SYS_gettid);
	while (!w->ends) {
		int result;

		if (!w->fn) {
			pthread_cond_wait(&w->wake, &all.lock);
			continue;
		}
		pthread_mutex_unlock(&all.lock);
		result = w->fn(w->job);
		atomic_store(&w->done, true);
		pthread_mutex_lock(&all.lock);
		w->result = result;
		w->fn = NULL;
		w->ends = w->left;
		pthread_cond_signal(&w->answered);
	}
	if (w->left)
		forget(w);
	pthread_mutex_unlock(&all.lock);
	if (w->left)
		w->release(w->job);
	worker_free(w);
	return NULL;
}

/* Signals are blocked, so that the thread with the event loop receives them. */
static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t blocked, before;
	int err;

	sigfillset(&blocked);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_create(&thread, &attr, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static struct worker *worker_new(void)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;

	if (!w)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, NULL);
	pthread_cond_init(&w->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (start_thread(w) == 0)
		return w;
	worker_free(w);
	return NULL;
}

/* ---- the caller -------------------------------------------------------------------------- */

/* After a fork, the child has none of the threads. */
static void in_child(void)
{
	all.is_child = true;
}

void deadline_off(void)
{
	all.is_child = true;
}

void deadline_here(void)
{
	pthread_mutex_init(&all.lock, NULL);
	all.idle = all.left = NULL;
	all.counts = (struct deadline_counts){0};
	all.is_child = false;
}

/* The machine is slow rather than the call blocked: the worker has not started, uses or waits for a
 * CPU, or waits for the lock to report its result. */
static bool is_running(const struct worker *w)
{
	char path[64];

	if (!w->tid || atomic_load(&w->done))
		return true;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	return proc_runs(path);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Returns false if the deadline passed. */
static bool wait_for(struct worker *w)
{
	struct stall_timeout p = stall_timeout_new(
		clock_monotonic_ns(), all.left ? DEADLINE_STUCK_MS : DEADLINE_MS, DEADLINE_RUN_MS);

	while (w->fn) {
		const struct timespec until = time_of(p.next_ns);

		if (pthread_cond_timedwait(&w->answered, &all.lock, &until) == ETIMEDOUT && w->fn &&
		    stall_timeout_expired(&p, clock_monotonic_ns(), is_running(w)))
			break;
	}
	return !w->fn;
}

static void leave(struct worker *w)
{
	w->left = true;
	w->next = all.left;
	all.left = w;
	all.counts.late++;
	all.counts.stuck++;
}

/* Keep one idle worker for the next call. */
static void put_back(struct worker *w)
{
	if (!all.idle) {
		all.idle = w;
		return;
	}
	w->ends = true;
	pthread_cond_signal(&w->wake);
}

static int refuse(pid_t pid)
{
	for (const struct worker *w = all.left; w; w = w->next)
		if (pid && w->pid == pid)
			return -ETIMEDOUT;
	return all.counts.stuck >= DEADLINE_MAX ? -EBUSY : 0;
}

static int run(struct worker *w, void **job)
{
	int result;

	pthread_cond_signal(&w->wake);
	if (!wait_for(w)) {
		leave(w);
		*job = NULL;
		return -ETIMEDOUT;
	}
	result = w->result;
	put_back(w);
	return result;
}

int deadline_run(pid_t pid, int (*fn)(void *job), void **job, void (*release)(void *job))
{
	struct worker *w;
	int r;

	if (all.is_child || in_worker)
		return fn(*job);
	pthread_mutex_lock(&all.lock);
	if (!all.handles_forks)
		all.handles_forks = pthread_atfork(NULL, NULL, in_child) == 0;
	r = refuse(pid);
	w = r ? NULL : all.idle ? all.idle : worker_new();
	if (w) {
		all.idle = all.idle == w ? NULL : all.idle;
		w->pid = pid;
		w->release = release;
		w->job = *job;
		atomic_store(&w->done, false);
		w->fn = fn;
		r = run(w, job);
	} else if (!r) {
		r = -ENOMEM;
	}
	pthread_mutex_unlock(&all.lock);
	if (!*job && pid)
		log_warning("process %d: reading its data in /proc timed out", (int)pid);
	return r;
}

bool deadline_missed(int err)
{
	return err == -ETIMEDOUT || err == -EBUSY;
}

int deadline_diag(struct diag *diag, int err, pid_t pid)
{
	if (err == -EBUSY)
		return diag_set(diag, err, PYP_EXIT_FAILURE, "end those processes, or try again",
				"cannot read process %d: reading %d other processes has timed out",
				(int)pid, DEADLINE_MAX);
	return diag_set(diag, err, PYP_EXIT_FAILURE, "end that server or the process, or try again",
			"reading process %d timed out: it may be in an exec that a file "
			"system's server blocks",
			(int)pid);
}

struct deadline_counts deadline_counts(void)
{
	struct deadline_counts counts;

	pthread_mutex_lock(&all.lock);
	counts = all.counts;
	pthread_mutex_unlock(&all.lock);
	return counts;
}
