// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions of target.h that have a deadline (see deadline.h): each passes a function of
 * target_priv.h to a worker and copies the result back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/deadline.h"
#include "target/target_priv.h"
#include "target/proc.h"

/* Arguments and results of all calls. The worker uses nothing else. */
struct call {
	struct target t;
	bool has_target;
	pid_t pid, tid;
	char path[4096];
	int flags;
	struct target *opened;
	struct target_file file;
	struct proc_stat stat;
	struct target_identity identity;
	struct target_thread thread, *threads;
	struct target_reading *readings;
	size_t n;
	int fd;
	struct diag diag;
};

static void call_release(void *job)
{
	struct call *c = job;

	if (c->has_target)
		closep(&c->t.pidfd);
	target_free(c->opened);
	free(c->threads);
	free(c->readings);
	closep(&c->fd);
	free(c);
}

static void call_releasep(struct call **c)
{
	if (*c)
		call_release(*c);
}

/* t: NULL, or copied. Returns NULL if out of memory or descriptors. */
static struct call *call_new(const struct target *t)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = -1;
	if (!t)
		return c;
	c->t = *t;
	c->has_target = true;
	if (t->pidfd < 0)
		return c;
	c->t.pidfd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 3);
	if (c->t.pidfd >= 0)
		return c;
	free(c);
	return NULL;
}

/* Sets *c to NULL if the worker keeps it. */
static int perform(struct call **c, pid_t pid, int (*fn)(void *job), struct diag *diag)
{
	void *job = *c;
	int r;

	if (!job)
		return diag_errno(diag, ENOMEM, "cannot read the state of process %d", (int)pid);
	(*c)->pid = pid;
	r = deadline_run(pid, fn, &job, call_release);
	*c = job;
	if (deadline_missed(r))
		return deadline_diag(diag, r, pid);
	if (r < 0 && diag && !diag->err)
		*diag = (*c)->diag;
	return r;
}

/* ---- opening ----------------------------------------------------------------------------- */

static int do_open(void *job)
{
	struct call *c = job;

	return target_open_now(c->pid, &c->opened, &c->diag);
}

int target_open(pid_t pid, struct target **ret, struct diag *diag)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);
	int r = perform(&c, pid, do_open, diag);
	if (r == 0)
		*ret = TAKE_PTR(c->opened);
	return r;
}

static int do_refresh(void *job)
{
	struct call *c = job;

	return target_refresh_now(&c->t, &c->diag);
}

int target_refresh(struct target *t, struct diag *diag)
{
	_cleanup_(call_releasep) struct call *c = call_new(t);
	int r = perform(&c, t->pid, do_refresh, diag);

	if (!c || deadline_missed(r))
		return r;
	t->tid = c->t.tid;
	t->identity = c->t.identity;
	memcpy(t->exe, c->t.exe, sizeof(t->exe));
	memcpy(t->cmdline, c->t.cmdline, sizeof(t->cmdline));
	return r;
}

static int do_hold(void *job)
{
	struct call *c = job;

	return target_hold_now(&c->t);
}

int target_hold(struct target *t)
{
	_cleanup_(call_releasep) struct call *c = call_new(t);
	int r = perform(&c, t->pid, do_hold, NULL);

	if (r == 0)
		t->tid = c->t.tid;
	return r;
}

static int do_open_file(void *job)
{
	struct call *c = job;

	c->fd = open(c->path, c->flags | O_CLOEXEC);
	return c->fd < 0 ? -errno : 0;
}

/* The pid in a path "/proc/PID/…", else 0. */
static pid_t pid_of(const char *path)
{
	static const char proc[] = "/proc/";
	long pid = strncmp(path, proc, sizeof(proc) - 1) == 0
			   ? strtol(path + sizeof(proc) - 1, NULL, 10)
			   : 0;

	return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int take_path(struct call *c, const char *path)
{
	size_t n = strlen(path);

	if (!c)
		return -ENOMEM;
	if (n >= sizeof(c->path))
		return -ENAMETOOLONG;
	memcpy(c->path, path, n + 1);
	return 0;
}

int target_open_path(const char *path, int flags)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);
	int r = take_path(c, path);

	if (r < 0)
		return r;
	c->flags = flags;
	r = perform(&c, pid_of(path), do_open_file, NULL);
	return r < 0 ? r : TAKE_FD(c->fd);
}

/* ---- programs and files ------------------------------------------------------------------ */

static int do_identify(void *job)
{
	struct call *c = job;

	return target_identify_now(&c->t, &c->identity);
}

int target_identify(const struct target *t, struct target_identity *ret)
{
	_cleanup_(call_releasep) struct call *c = call_new(t);
	int r = perform(&c, t->pid, do_identify, NULL);

	if (r == 0)
		*ret = c->identity;
	return r;
}

static int do_file_of(void *job)
{
	struct call *c = job;

	return target_file_of_now(c->path, &c->file);
}

int target_file_of(const char *path, struct target_file *ret)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);
	int r = take_path(c, path);

	if (r == 0)
		r = perform(&c, pid_of(path), do_file_of, NULL);
	if (r == 0)
		*ret = c->file;
	return r;
}

static int do_check_mount(void *job)
{
	struct call *c = job;

	return target_check_mount_now(c->has_target ? &c->t : NULL, c->path, &c->diag);
}

int target_check_mount(const struct target *t, const char *path, struct diag *diag)
{
	_cleanup_(call_releasep) struct call *c = call_new(t);
	int r = take_path(c, path);

	if (r < 0)
		return diag_errno(diag, -r, "cannot inspect '%s'", path);
	return perform(&c, t ? t->pid : pid_of(path), do_check_mount, diag);
}

static int do_stat_read(void *job)
{
	struct call *c = job;

	snprintf(c->path, sizeof(c->path), "/proc/%d/stat", (int)c->pid);
	return proc_stat_read(AT_FDCWD, c->path, &c->stat);
}

int target_stat_read(pid_t pid, struct proc_stat *ret)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);
	int r = perform(&c, pid, do_stat_read, NULL);
	if (r == 0)
		*ret = c->stat;
	return r;
}

/* ---- threads ----------------------------------------------------------------------------- */

static int do_threads(void *job)
{
	struct call *c = job;

	return target_threads_now(&c->t, &c->threads, &c->n, &c->diag);
}

int target_threads(const struct target *t, struct target_thread **ret, size_t *n, struct diag *diag)
{
	_cleanup_(call_releasep) struct call *c = call_new(t);
	int r = perform(&c, t->pid, do_threads, diag);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(c->threads);
	*n = c->n;
	return 0;
}

static int do_thread_read(void *job)
{
	struct call *c = job;

	return target_thread_read_now(c->pid, c->tid, &c->thread);
}

int target_thread_read(pid_t pid, pid_t tid, struct target_thread *ret)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);
	int r;

	if (c)
		c->tid = tid;
	r = perform(&c, pid, do_thread_read, NULL);
	if (r == 0)
		*ret = c->thread;
	return r;
}

static int do_threads_update(void *job)
{
	struct call *c = job;

	for (size_t i = 0; i < c->n; i++) {
		struct target_reading *r = &c->readings[i];

		r->err = target_thread_read_now(c->pid, r->thread.tid, &r->thread);
	}
	return 0;
}

int target_threads_update(pid_t pid, struct target_reading *v, size_t n)
{
	_cleanup_(call_releasep) struct call *c = n ? call_new(NULL) : NULL;
	int r;

	if (!n)
		return 0;
	if (c)
		c->readings = calloc(n, sizeof(*v));
	if (!c || !c->readings)
		return -ENOMEM;
	memcpy(c->readings, v, n * sizeof(*v));
	c->n = n;
	r = perform(&c, pid, do_threads_update, NULL);
	if (r == 0)
		memcpy(v, c->readings, n * sizeof(*v));
	return r;
}

static int do_ending(void *job)
{
	struct call *c = job;

	return target_ending_now(c->pid);
}

/* If it cannot be read, assume that it is not ending. */
bool target_ending(pid_t pid)
{
	_cleanup_(call_releasep) struct call *c = call_new(NULL);

	return perform(&c, pid, do_ending, NULL) > 0;
}
