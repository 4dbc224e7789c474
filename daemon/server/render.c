// SPDX-License-Identifier: BSD-2-Clause
/* The thread that writes a response: see render.h. */
#include "server/render.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bounded.h"
#include "base/worker.h"
#include "accuracy/finish.h"
#include "snapshot/since.h"

struct render {
	pthread_t thread;
	bool started, joined;
	struct render_job job;
	size_t held, max;
	struct bounded_room room;
	/* The result, valid after the thread has ended */
	int fd, err;
	size_t size;
	struct diag diag;
};

/* A profile */
struct profile {
	struct snapshot *snapshot, *before;
	struct snapshot_query query;
};

/* ---- in the thread ----------------------------------------------------------------------- */

static int refuse_large(const struct render *r, struct diag *diag)
{
	const char *name = r->job.name;

	diag_clear(diag);
	if (r->held)
		return diag_set(diag, -ENOBUFS, PYP_EXIT_FAILURE, "try again later",
				"no memory for the %s output: %zu MiB of profiles are being sent, "
				"the limit is %zu MiB",
				name, r->held >> 20, r->max >> 20);
	return diag_set(diag, -EFBIG, PYP_EXIT_FAILURE,
			"restrict it with --pid, --tid, --limit or a pattern, or use the format "
			"json, pprof or text",
			"the %s output is larger than %zu MiB", name, r->max >> 20);
}

static int write_output(struct render *r, struct diag *diag)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct stat st;
	int err;

	r->fd = memfd_create("pyprofd-response", MFD_CLOEXEC);
	if (r->fd < 0)
		return diag_errno(diag, errno, "cannot create a file for the response");
	f = bounded_open(r->fd, &r->room);
	if (!f)
		return diag_errno(diag, errno, "cannot write the response");
	err = r->job.write(r->job.ctx, f, diag);
	if (r->room.exceeded)
		return refuse_large(r, diag);
	if (err < 0)
		return err;
	if (fflush(f) != 0 && r->room.exceeded)
		return refuse_large(r, diag);
	if (ferror(f) || fstat(r->fd, &st) < 0)
		return diag_errno(diag, errno, "cannot write the response");
	r->size = (size_t)st.st_size;
	return 0;
}

static void *render_main(void *arg)
{
	struct render *r = arg;

	r->err = write_output(r, &r->diag);
	return NULL;
}

static int profile_write(void *ctx, FILE *out, struct diag *diag)
{
	struct profile *p = ctx;
	struct snapshot *s = p->snapshot;

	if ((p->before && snapshot_subtract(s, p->before) < 0) ||
	    snapshot_finish(s, p->query.raw) < 0)
		return diag_errno(diag, ENOMEM, "cannot take a snapshot");
	if (!p->query.clock_given)
		p->query.opts.clock = s->clock;
	return format_write(p->query.format, s, &p->query.opts, out, diag);
}

static void profile_free(void *ctx)
{
	struct profile *p = ctx;

	snapshot_free(p->snapshot);
	snapshot_free(p->before);
	free(p);
}

/* ---- in the main thread ------------------------------------------------------------------ */

/* Copy strings, as the request is freed before the snapshot. */
static int copy_query(struct profile *p, const struct snapshot_query *q)
{
	struct snapshot_query *own = &p->query;

	*own = *q;
	own->opts.restrict_ = own->restricts;
	for (size_t i = 0; i < own->opts.nrestrict; i++) {
		own->restricts[i] = snapshot_str(p->snapshot, q->restricts[i]);
		if (!own->restricts[i])
			return -ENOMEM;
	}
	own->opts.sort = snapshot_str(p->snapshot, q->opts.sort);
	own->opts.columns = snapshot_str(p->snapshot, q->opts.columns);
	own->opts.builtins_of = snapshot_str(p->snapshot, q->opts.builtins_of);
	if ((q->opts.sort && !own->opts.sort) || (q->opts.columns && !own->opts.columns) ||
	    (q->opts.builtins_of && !own->opts.builtins_of))
		return -ENOMEM;
	return 0;
}

static int start_thread(struct render *r)
{
	int err = worker_start(&r->thread, render_main, r);

	r->started = err == 0;
	return err;
}

int render_start_job(const struct render_job *job, size_t held, size_t max, struct render **ret,
		     struct diag *diag)
{
	_cleanup_(render_freep) struct render *r = calloc(1, sizeof(*r));
	int err;

	if (!r) {
		job->free(job->ctx);
		return diag_errno(diag, ENOMEM, "cannot write the response");
	}
	r->job = *job;
	r->fd = -1;
	r->held = held;
	r->max = max;
	r->room.left = max > held ? max - held : 0;
	err = start_thread(r);
	if (err)
		return diag_errno(diag, -err, "cannot write the response");
	*ret = TAKE_PTR(r);
	return 0;
}

int render_start(struct snapshot *s, struct snapshot *before, const struct snapshot_query *q,
		 size_t held, size_t max, struct render **ret, struct diag *diag)
{
	struct profile *p = calloc(1, sizeof(*p));
	const struct render_job job = {.write = profile_write,
				       .free = profile_free,
				       .ctx = p,
				       .name = q->format->name,
				       .mime = q->attachment ? "application/octet-stream"
							     : q->format->mime,
				       .attachment = q->attachment};

	if (!p) {
		snapshot_free(s);
		snapshot_free(before);
		return diag_errno(diag, ENOMEM, "cannot write the profile");
	}
	p->snapshot = s;
	p->before = before;
	if (copy_query(p, q) < 0) {
		profile_free(p);
		return diag_errno(diag, ENOMEM, "cannot write the profile");
	}
	return render_start_job(&job, held, max, ret, diag);
}

bool render_done(struct render *r)
{
	if (r->started && !r->joined)
		r->joined = pthread_tryjoin_np(r->thread, NULL) == 0;
	return r->joined;
}

static void join(struct render *r)
{
	if (!r->started || r->joined)
		return;
	pthread_join(r->thread, NULL);
	r->joined = true;
}

int render_take(struct render *r, struct response *rs, struct diag *diag)
{
	join(r);
	*diag = r->diag;
	if (r->err < 0)
		return r->err;
	rs->fd = TAKE_FD(r->fd);
	rs->size = r->size;
	rs->mime = r->job.mime;
	rs->attachment = r->job.attachment;
	rs->status = 200;
	return 0;
}

void render_free(struct render *r)
{
	if (!r)
		return;
	join(r);
	closep(&r->fd);
	r->job.free(r->job.ctx);
	free(r);
}
