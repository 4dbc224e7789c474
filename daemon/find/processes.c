// SPDX-License-Identifier: BSD-2-Clause
/* Listing the Python processes of this machine: see processes.h. */
#include "find/processes.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "inspect/inspect.h"
#include "target/deadline.h"

/* ---- listing ---- */

static int add(struct processes *l, const struct process *p, size_t *room)
{
	if (l->n == *room) {
		size_t want = *room ? 2 * *room : 64;
		struct process *v = reallocarray(l->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		*room = want;
	}
	l->v[l->n++] = *p;
	return 0;
}

static int add_pid(struct processes *l, pid_t pid, size_t *room)
{
	struct process p = {0};
	int err = process_read(pid, &p);

	if (deadline_missed(err))
		l->late++;
	if (err == -EACCES)
		l->unreadable++;
	if (err)
		return err == -ENOMEM ? err : 0;
	err = add(l, &p, room);
	if (err)
		process_deinit(&p);
	return err;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int processes_list(struct processes *ret, struct diag *diag)
{
	_cleanup_(closedirp) DIR *d = opendir("/proc");
	struct processes l = {0};
	struct dirent *e;
	size_t room = 0;
	int err = 0;

	if (!d)
		return diag_errno(diag, errno, "cannot read /proc");
	while (!err && l.n < PROCESSES_MAX && (e = readdir(d))) {
		pid_t pid;

		if (parse_pid(e->d_name, &pid) == 0 && pid != getpid())
			err = add_pid(&l, pid, &room);
	}
	if (err) {
		processes_deinit(&l);
		return diag_errno(diag, -err, "cannot list the processes");
	}
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_pid);
	*ret = l;
	return 0;
}

void processes_deinit(struct processes *l)
{
	for (size_t i = 0; i < l->n; i++)
		process_deinit(&l->v[i]);
	free(l->v);
	*l = (struct processes){0};
}

/* ---- CPU time ---- */

/* CPU time of all threads of a process, ns; 0: it has ended. */
static uint64_t cpu_of(pid_t pid)
{
	uint64_t ns = 0;

	(void)clock_process_cpu_ns(pid, &ns);
	return ns;
}

void processes_measure(struct processes *l, unsigned int ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	_cleanup_free_ uint64_t *before = calloc(2 * l->n + 1, sizeof(*before));

	if (!before || !l->n)
		return;
	for (size_t i = 0; i < l->n; i++) {
		before[2 * i] = cpu_of(l->v[i].pid);
		before[2 * i + 1] = clock_monotonic_ns();
	}
	nanosleep(&pause, NULL);
	for (size_t i = 0; i < l->n; i++) {
		uint64_t cpu = cpu_of(l->v[i].pid), now = clock_monotonic_ns();

		/* 0: it has ended, or its clock cannot be read */
		if (before[2 * i] && cpu >= before[2 * i] && now > before[2 * i + 1])
			l->v[i].cpu = 100 * (double)(cpu - before[2 * i]) /
				      (double)(now - before[2 * i + 1]);
	}
}

/* ---- which can be traced ---- */

static void refuse(struct process *p, const struct diag *why)
{
	p->traceable = why->exit == PYP_EXIT_UNTRACEABLE ? PROCESS_UNTRACEABLE : PROCESS_UNKNOWN;
	snprintf(p->why, sizeof(p->why), "%s", why->msg);
}

/* Sets IMPLEMENTATION_NONE if no interpreter is in it. */
static void inspect(struct process *p)
{
	_cleanup_(inspect_freep) struct inspect *in = NULL;
	_cleanup_(inspect_result_deinit) struct inspect_result found = {0};
	_cleanup_(target_freep) struct target *t = NULL;
	struct diag why = {0};
	int r = target_open(p->pid, &t, &why);

	if (r == 0 && t->starttime != p->starttime)
		r = diag_set(&why, -ESRCH, PYP_EXIT_NO_PROCESS, "", "it has ended");
	if (r == 0)
		r = inspect_open(&(struct inspect_opts){.target = t, .plan = true}, &in, &found,
				 &why);
	if (r == -ENOENT)
		p->implementation = IMPLEMENTATION_NONE;
	if (r < 0) {
		refuse(p, &why);
		return;
	}
	snprintf(p->version, sizeof(p->version), "%s", found.python->version);
	if (found.plan_err)
		refuse(p, &found.plan_diag);
	else
		p->traceable = PROCESS_TRACEABLE;
}

static bool same_files(const struct process_files *a, const struct process_files *b)
{
	return (a->ino[0] || a->ino[1]) && memcmp(a, b, sizeof(*a)) == 0;
}

/* Copy the result of an earlier one with the same files. */
static bool is_known(const struct processes *l, size_t i)
{
	struct process *p = &l->v[i];

	for (size_t k = 0; k < i; k++) {
		const struct process *q = &l->v[k];

		if (q->traceable == PROCESS_UNKNOWN || !same_files(&p->files, &q->files))
			continue;
		p->implementation = q->implementation;
		p->traceable = q->traceable;
		memcpy(p->version, q->version, sizeof(p->version));
		memcpy(p->why, q->why, sizeof(p->why));
		return true;
	}
	return false;
}

static void check(struct processes *l, size_t i, uint64_t end)
{
	struct process *p = &l->v[i];

	if (p->implementation != IMPLEMENTATION_CPYTHON) {
		p->traceable = PROCESS_UNTRACEABLE;
		snprintf(p->why, sizeof(p->why), "it runs %s; only CPython can be traced",
			 implementation_name(p->implementation));
	} else if (p->why[0] || is_known(l, i)) {
		return; /* not permitted to look, or looked at */
	} else if (clock_monotonic_ns() < end) {
		inspect(p);
	} else {
		snprintf(p->why, sizeof(p->why), "not checked: checking the others took too long");
	}
}

void processes_check(struct processes *l)
{
	uint64_t end = clock_monotonic_ns() + PROCESSES_CHECK_NS;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		check(l, i, end);
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].implementation != IMPLEMENTATION_NONE)
			l->v[n++] = l->v[i];
		else
			process_deinit(&l->v[i]);
	}
	l->n = n;
}
