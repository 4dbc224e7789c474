// SPDX-License-Identifier: BSD-2-Clause
/* The encoding thread: see encoder.h. */
#include "push/encoder.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/worker.h"

struct waiting {
	struct encoder_job job;
	struct waiting *next;
};

struct encoder {
	const struct push_kind **kinds;
	size_t nkinds;
	pthread_t thread;
	bool started;
	int fd; /* eventfd: there are results */
	/* Guarded by the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct waiting *first, *last;
	struct encoder_result *results, *last_result;
	size_t nwaiting, pending;
	bool end;
};

void encoder_result_free(struct encoder_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->requests && i < r->n; i++)
		push_request_free(r->requests[i]);
	free(r->requests);
	free(r);
}

/* ---- in the thread ---- */

/* Waits for a job; NULL: the end. */
static struct waiting *next_job(struct encoder *e)
{
	struct waiting *w = NULL;

	pthread_mutex_lock(&e->lock);
	while (!e->first && !e->end)
		pthread_cond_wait(&e->changed, &e->lock);
	if (!e->end) {
		w = e->first;
		e->first = w->next;
		if (!e->first)
			e->last = NULL;
		e->nwaiting--;
	}
	pthread_mutex_unlock(&e->lock);
	return w;
}

/* result NULL: the job had none. */
static void deliver(struct encoder *e, struct encoder_result *result)
{
	pthread_mutex_lock(&e->lock);
	if (!result)
		e->pending--;
	else if (e->last_result)
		e->last_result->next = result;
	else
		e->results = result;
	if (result)
		e->last_result = result;
	pthread_mutex_unlock(&e->lock);
	/* Also without a result: whoever waits until nothing is pending looks again. */
	(void)eventfd_write(e->fd, 1);
}

static struct encoder_result *result_new(size_t n)
{
	struct encoder_result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->n = n;
	r->requests = calloc(n + 1, sizeof(struct push_request *));
	if (r->requests)
		return r;
	free(r);
	return NULL;
}

static struct encoder_result *run(const struct encoder *e, const struct encoder_job *job)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	struct encoder_result *result = result_new(e->nkinds);
	int r;

	if (!result) {
		job->cancel(job->ctx);
		return NULL;
	}
	r = job->make(job->ctx, &iv, &result->diag);
	if (r == 0 && !iv) {
		encoder_result_free(result);
		return NULL;
	}
	for (size_t i = 0; r == 0 && i < e->nkinds; i++)
		if (e->kinds[i]->encode(iv, &result->requests[i], &result->diag) < 0)
			result->requests[i] = NULL;
	return result;
}

static void *encoder_main(void *arg)
{
	struct encoder *e = arg;
	struct waiting *w;

	while ((w = next_job(e))) {
		deliver(e, run(e, &w->job));
		free(w);
	}
	return NULL;
}

/* ---- in the main thread ---- */

static int start_thread(struct encoder *e)
{
	int r = worker_start(&e->thread, encoder_main, e);

	e->started = r == 0;
	return r;
}

int encoder_new(const struct push_kind *const *kinds, size_t n, struct encoder **ret)
{
	_cleanup_(encoder_freep) struct encoder *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->kinds = calloc(n + 1, sizeof(struct push_kind *));
	if (e->fd < 0 || !e->kinds)
		return e->fd < 0 ? -errno : -ENOMEM;
	for (size_t i = 0; i < n; i++)
		e->kinds[i] = kinds[i];
	e->nkinds = n;
	r = start_thread(e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

static void end_thread(struct encoder *e)
{
	if (!e->started)
		return;
	pthread_mutex_lock(&e->lock);
	e->end = true;
	pthread_cond_signal(&e->changed);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	end_thread(e);
	for (struct waiting *w = e->first, *after; w; w = after) {
		after = w->next;
		w->job.cancel(w->job.ctx);
		free(w);
	}
	for (struct encoder_result *r = e->results, *after; r; r = after) {
		after = r->next;
		encoder_result_free(r);
	}
	closep(&e->fd);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e->kinds);
	free(e);
}

int encoder_fd(const struct encoder *e)
{
	return e->fd;
}

bool encoder_add(struct encoder *e, const struct encoder_job *job)
{
	struct waiting *w = calloc(1, sizeof(*w));
	bool taken;

	pthread_mutex_lock(&e->lock);
	taken = w && e->nwaiting < ENCODER_JOBS_MAX;
	if (taken) {
		w->job = *job;
		if (e->last)
			e->last->next = w;
		else
			e->first = w;
		e->last = w;
		e->nwaiting++;
		e->pending++;
		pthread_cond_signal(&e->changed);
	}
	pthread_mutex_unlock(&e->lock);
	if (!taken) {
		free(w);
		job->cancel(job->ctx);
	}
	return taken;
}

struct encoder_result *encoder_take(struct encoder *e)
{
	struct encoder_result *r;
	eventfd_t n;

	pthread_mutex_lock(&e->lock);
	r = e->results;
	if (r) {
		e->results = r->next;
		if (!e->results)
			e->last_result = NULL;
		r->next = NULL;
		e->pending--;
	} else {
		(void)eventfd_read(e->fd, &n);
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

size_t encoder_pending(struct encoder *e)
{
	size_t n;

	pthread_mutex_lock(&e->lock);
	n = e->pending;
	pthread_mutex_unlock(&e->lock);
	return n;
}
