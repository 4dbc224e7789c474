// SPDX-License-Identifier: BSD-2-Clause
/* A thread that merges old intervals: see merger.h. */
#include "continuous/merger.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "history/compaction.h"
#include "history/disk_tree.h"

#define NS UINT64_C(1000000000)

struct merger {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct merger_opts opts;
	int dir;
	/* Under the lock: */
	bool stop;
	enum { FREE, GIVEN, DONE } state; /* `due` and what follows belong to the thread if GIVEN */
	struct merger_counts counts;
	/* Of the side that has it: */
	struct disk_due due;
	struct compaction *compaction;
	void *data;
	size_t size;
	int r;
	struct diag diag;
};

/* ---- the thread ---- */

/* Returns whether to go on. */
static bool rest(struct merger *m, uint64_t ns)
{
	const uint64_t until = clock_monotonic_ns() + ns;
	const struct timespec ts = {(time_t)(until / NS), (long)(until % NS)};
	bool stop;

	pthread_mutex_lock(&m->lock);
	m->counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!m->stop && clock_monotonic_ns() < until)
		pthread_cond_timedwait(&m->changed, &m->lock, &ts);
	stop = m->stop;
	pthread_mutex_unlock(&m->lock);
	return !stop;
}

/* In proportion to the time used since then. */
static bool rest_after(struct merger *m, uint64_t *cpu_ns)
{
	const uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), used = now - *cpu_ns;

	*cpu_ns = now;
	return rest(m, (uint64_t)((double)used / MERGER_SHARE));
}

static void add_file(struct merger *m, const char *name)
{
	struct diag why = {0};
	char *data;
	size_t size;

	/* What cannot be read stays as it is. */
	if (disk_file_read(m->dir, name, &data, &size) == 0 &&
	    compaction_add(m->compaction, name, data, size, &why) < 0)
		log_debug("%s is not merged: %s", name, why.msg);
}

/* Returns false to end. */
static bool work(struct merger *m)
{
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	m->compaction = compaction_new();
	m->r = m->compaction ? 1 : -ENOMEM;
	for (size_t i = 0; m->r > 0 && i < m->due.n; i++) {
		add_file(m, m->due.names[i]);
		if (!rest_after(m, &cpu_ns))
			return false;
	}
	while (m->r > 0) {
		m->r = compaction_step(m->compaction, &m->diag);
		if (!rest_after(m, &cpu_ns))
			return false;
	}
	if (m->r == 0)
		m->r = compaction_take(m->compaction, &m->data, &m->size, &m->diag);
	return true;
}

static void *merger_main(void *arg)
{
	struct merger *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		if (m->state != GIVEN) {
			pthread_cond_wait(&m->changed, &m->lock);
			continue;
		}
		pthread_mutex_unlock(&m->lock);
		if (!work(m))
			return NULL;
		pthread_mutex_lock(&m->lock);
		m->state = DONE;
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* ---- the writer's side ---- */

static void forget(struct merger *m)
{
	compaction_free(TAKE_PTR(m->compaction));
	free(TAKE_PTR(m->data));
	m->diag = (struct diag){0};
}

/* Returns false if it has to be tried again. */
static bool finish(struct merger *m, struct disk *disk)
{
	size_t n = 0;
	int r = m->r;

	if (r == 0) {
		const char **names = calloc(m->due.n + 1, sizeof(*names));

		for (; names && compaction_file(m->compaction, n); n++)
			names[n] = compaction_file(m->compaction, n);
		r = names ? disk_merge(disk, &m->due, names, n, m->data, m->size, &m->diag)
			  : -ENOMEM;
		free(names);
	}
	if (r == -EAGAIN)
		return false;
	if (r < 0)
		log_debug("intervals are not merged: %s", m->diag.msg);
	pthread_mutex_lock(&m->lock);
	m->counts.failed += r < 0;
	m->counts.merged += r < 0 ? 0 : n;
	pthread_mutex_unlock(&m->lock);
	forget(m);
	return true;
}

void merger_turn(struct merger *m, struct disk *disk, uint64_t now_unix_ns)
{
	int state;

	pthread_mutex_lock(&m->lock);
	state = m->state;
	pthread_mutex_unlock(&m->lock);
	if (state == DONE && finish(m, disk))
		state = FREE;
	if (state == FREE && now_unix_ns > m->opts.after_ns &&
	    disk_due(disk, (int64_t)((now_unix_ns - m->opts.after_ns) / NS), m->opts.to_s, &m->due))
		state = GIVEN;
	pthread_mutex_lock(&m->lock);
	if (m->state != GIVEN)
		m->state = state;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

struct merger_counts merger_counts(struct merger *m)
{
	struct merger_counts c;

	pthread_mutex_lock(&m->lock);
	c = m->counts;
	pthread_mutex_unlock(&m->lock);
	return c;
}

/* ---- begin and end ---- */

static void destroy(struct merger *m)
{
	forget(m);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int merger_new(int dir, const struct merger_opts *opts, struct merger **ret, struct diag *diag)
{
	struct merger *m = calloc(1, sizeof(*m));
	pthread_condattr_t monotonic;
	int r;

	if (!m)
		return diag_errno(diag, ENOMEM, "cannot merge intervals");
	m->dir = dir;
	m->opts = *opts;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = worker_start(&m->thread, merger_main, m);
	if (r < 0) {
		destroy(m);
		return diag_errno(diag, -r, "cannot merge intervals");
	}
	*ret = m;
	return 0;
}

void merger_free(struct merger *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	destroy(m);
}
