// SPDX-License-Identifier: BSD-2-Clause
/* A thread that completes intervals: see writer.h. */
#include "continuous/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "history/gz.h"
#include "snapshot/pseudo.h"

/* An interval, or the end of a cut */
struct job {
	struct job *next;
	struct interval *iv; /* NULL: the end of the cut at unix_ns */
	uint64_t unix_ns;
	struct kept *kept;
};

struct jobs {
	struct job *first, **last;
	size_t n;
};

struct writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct jobs todo, done; /* under the lock, like the next two */
	bool stop;
	struct writer_counts counts;
	int wake; /* eventfd: `done` has some */
	struct sd_event_source *source;
	writer_done_fn fn;
	void *ctx;
	/* Of the thread: */
	struct disk *disk;
	struct merger *merger; /* NULL: old intervals are not merged */
	char *cut;	       /* bytes of the cut's file so far */
	size_t ncut, room;
};

/* ---- queues ---- */

static void jobs_init(struct jobs *q)
{
	*q = (struct jobs){.last = &q->first};
}

static void jobs_put(struct jobs *q, struct job *j)
{
	j->next = NULL;
	*q->last = j;
	q->last = &j->next;
	q->n++;
}

static struct job *jobs_take(struct jobs *q)
{
	struct job *j = q->first;

	if (!j)
		return NULL;
	q->first = j->next;
	if (!q->first)
		q->last = &q->first;
	q->n--;
	return j;
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	interval_free(j->iv);
	kept_free(j->kept);
	free(j);
}

/* ---- the thread ---- */

static bool cut_append(struct writer *w, const void *data, size_t size)
{
	size_t room = w->room ? w->room : 65536;
	char *v;

	while (room < w->ncut + size)
		room *= 2;
	v = room == w->room ? w->cut : realloc(w->cut, room);
	if (!v)
		return false;
	w->cut = v;
	w->room = room;
	memcpy(w->cut + w->ncut, data, size);
	w->ncut += size;
	return true;
}

static void complete(struct writer *w, struct job *j)
{
	struct diag diag = {0};
	void *data = NULL;
	size_t size = 0;
	int r = snapshot_pseudo(j->iv->snapshot);

	if (r == 0)
		r = gz_pack_interval(j->iv, GZ_FAST, &data, &size, &diag);
	if (r == 0 && w->disk && !cut_append(w, data, size))
		r = -ENOMEM;
	if (r == 0)
		j->kept = kept_new(j->iv, data, size);
	else
		free(data);
}

/* Reported once, until a file could be written again. */
static void report(struct writer *w, int r, const struct diag *diag)
{
	bool first;

	pthread_mutex_lock(&w->lock);
	first = r < 0 && !w->counts.error[0];
	w->counts.disk = disk_counts(w->disk);
	snprintf(w->counts.error, sizeof(w->counts.error), "%.200s", r < 0 ? diag->msg : "");
	pthread_mutex_unlock(&w->lock);
	if (first)
		log_warning("%s; intervals are kept in memory only", diag->msg);
}

static void merge_more(struct writer *w)
{
	merger_turn(w->merger, w->disk, clock_unix_ns());
	pthread_mutex_lock(&w->lock);
	w->counts.disk = disk_counts(w->disk);
	w->counts.merger = merger_counts(w->merger);
	pthread_mutex_unlock(&w->lock);
}

static void write_cut(struct writer *w, uint64_t unix_ns)
{
	struct diag diag = {0};

	if (w->disk && w->ncut)
		report(w, disk_write(w->disk, unix_ns, w->cut, w->ncut, &diag), &diag);
	w->ncut = 0;
	if (w->merger)
		merge_more(w);
}

static struct job *next_job(struct writer *w)
{
	struct job *j;

	pthread_mutex_lock(&w->lock);
	w->counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!w->todo.n && !w->stop)
		pthread_cond_wait(&w->more, &w->lock);
	j = jobs_take(&w->todo);
	pthread_mutex_unlock(&w->lock);
	return j;
}

static void deliver_later(struct writer *w, struct job *j)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	jobs_put(&w->done, j);
	w->counts.failed += !j->kept;
	pthread_mutex_unlock(&w->lock);
	if (write(w->wake, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	struct job *j;

	while ((j = next_job(w))) {
		if (j->iv) {
			complete(w, j);
			deliver_later(w, j);
		} else {
			write_cut(w, j->unix_ns);
			job_free(j);
		}
	}
	return NULL;
}

/* ---- the event loop's side ---- */

static void deliver(struct writer *w)
{
	struct job *j;

	do {
		pthread_mutex_lock(&w->lock);
		j = jobs_take(&w->done);
		pthread_mutex_unlock(&w->lock);
		if (!j)
			break;
		w->fn(w->ctx, TAKE_PTR(j->iv), TAKE_PTR(j->kept));
		job_free(j);
	} while (true);
}

static int on_wake(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	uint64_t n;

	(void)source, (void)revents;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		deliver(ctx);
	return 0;
}

static void destroy(struct writer *w)
{
	sd_event_source_disable_unref(w->source);
	closep(&w->wake);
	merger_free(w->merger);
	disk_free(w->disk);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	free(w->cut);
	free(w);
}

int writer_new(struct sd_event *event, struct disk *disk, const struct merger_opts *merging,
	       writer_done_fn done, void *ctx, struct writer **ret, struct diag *diag)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w) {
		disk_free(disk);
		return diag_errno(diag, ENOMEM, "cannot keep intervals");
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	jobs_init(&w->todo);
	jobs_init(&w->done);
	w->disk = disk;
	if (disk)
		w->counts.disk = disk_counts(disk);
	w->fn = done;
	w->ctx = ctx;
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->wake < 0 ? -errno : sd_event_add_io(event, &w->source, w->wake, EPOLLIN, on_wake, w);
	if (r >= 0 && disk && merging)
		r = merger_new(disk_descriptor(disk), merging, &w->merger, diag);
	if (r >= 0)
		r = worker_start(&w->thread, writer_main, w);
	if (r < 0) {
		destroy(w);
		return diag_errno(diag, -r, "cannot keep intervals");
	}
	*ret = w;
	return 0;
}

void writer_free(struct writer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	deliver(w);
	destroy(w);
}

static void put(struct writer *w, struct job *j)
{
	bool full;

	pthread_mutex_lock(&w->lock);
	full = j->iv && w->todo.n >= WRITER_QUEUE_MAX;
	if (full)
		w->counts.dropped++;
	else
		jobs_put(&w->todo, j);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	if (full)
		job_free(j);
}

void writer_put(struct writer *w, struct interval *iv)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j) {
		interval_free(iv);
		return;
	}
	j->iv = iv;
	put(w, j);
}

void writer_end_cut(struct writer *w, uint64_t unix_ns)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return;
	j->unix_ns = unix_ns;
	put(w, j);
}

struct writer_counts writer_counts(struct writer *w)
{
	struct writer_counts c;

	pthread_mutex_lock(&w->lock);
	c = w->counts;
	pthread_mutex_unlock(&w->lock);
	return c;
}
