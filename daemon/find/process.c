// SPDX-License-Identifier: BSD-2-Clause
/* One process that may run Python: see process.h. */
#include "find/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/deadline.h"
#include "target/proc.h"

#define STATUS_MAX 65536
#define CGROUP_MAX 65536
#define MAPS_MAX   (16u << 20)

/* What the worker reads; it may outlive the call. */
struct reading {
	pid_t pid;
	struct target target; /* for target_read_cmdline(); has no pidfd */
	struct process process;
};

static void reading_free(void *job)
{
	struct reading *r = job;

	process_deinit(&r->process);
	free(r);
}

static uint32_t number_of(const char *status, const char *key, unsigned int index)
{
	const char *p = proc_field(status, key);
	unsigned long v = 0;

	for (unsigned int i = 0; p && i <= index; i++) {
		char *end;

		v = strtoul(p, &end, 10);
		p = end == p ? NULL : end;
	}
	return p && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static int read_numbers(int dirfd, struct process *p)
{
	_cleanup_free_ char *status = NULL;
	struct proc_stat st;
	int err = proc_stat_read(dirfd, "stat", &st);

	if (!err)
		err = proc_read(dirfd, "status", STATUS_MAX, &status, NULL);
	if (err)
		return err;
	if (st.state == 'Z' || st.state == 'X' || number_of(status, "Tgid", 0) != (uint32_t)p->pid)
		return -ESRCH;
	p->starttime = st.starttime;
	p->parent = proc_last_pid(status, "PPid");
	p->uid = number_of(status, "Uid", 1);
	p->threads = number_of(status, "Threads", 0);
	return 0;
}

/* Its command line; a kernel thread has none. */
static int read_command(struct reading *r)
{
	int err;

	r->target.pid = r->target.tid = r->pid;
	r->target.pidfd = -1;
	err = target_read_cmdline(&r->target);
	if (err)
		return err;
	r->process.command = strdup(r->target.cmdline);
	return r->process.command ? 0 : -ENOMEM;
}

static void read_place(int dirfd, struct process *p)
{
	_cleanup_free_ char *text = NULL;

	if (proc_read(dirfd, "cgroup", CGROUP_MAX, &text, NULL) == 0)
		cgroup_parse(text, &p->place);
}

static void take_name(struct process *p, const char *path)
{
	char version[IMPLEMENTATION_VERSION];
	enum implementation found = implementation_of_file(path, version);

	if (found == IMPLEMENTATION_NONE)
		return;
	/* PyPy and GraalPy load extension modules with CPython's names, too. */
	if (p->implementation == IMPLEMENTATION_NONE ||
	    (p->implementation == IMPLEMENTATION_CPYTHON && found != IMPLEMENTATION_CPYTHON)) {
		p->implementation = found;
		p->version[0] = '\0';
	}
	if (p->implementation == found && !p->version[0])
		snprintf(p->version, sizeof(p->version), "%s", version);
}

static void take_file(struct process_files *files, size_t i, const struct target_map *m)
{
	if (files->ino[i])
		return;
	files->dev[i] = (uint64_t)m->dev_major << 32 | m->dev_minor;
	files->ino[i] = m->inode;
}

static void take_maps(struct process *p, const struct target_maps *maps, const char *exe)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct target_map *m = &maps->v[i];
		const char *base = strrchr(m->path, '/');

		if (!m->exec || !base)
			continue;
		take_name(p, m->path);
		if (strcmp(m->path, exe) == 0)
			take_file(&p->files, 0, m);
		else if (strncmp(base, "/libpython", 10) == 0)
			take_file(&p->files, 1, m);
	}
}

/* The names of the files that it executes. -EACCES: they cannot be read. */
static int read_files(int dirfd, struct process *p)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	_cleanup_free_ char *text = NULL;
	char exe[4096];
	size_t size = 0;
	ssize_t n = readlinkat(dirfd, "exe", exe, sizeof(exe) - 1);
	int err;

	if (n < 0)
		return errno == EPERM ? -EACCES : -errno;
	exe[n] = '\0';
	take_name(p, exe);
	err = proc_read(dirfd, "maps", MAPS_MAX, &text, &size);
	if (err == -EPERM || err == -EACCES)
		return -EACCES;
	if (err == 0 && target_maps_parse(text, size, &maps, NULL) == 0)
		take_maps(p, &maps, exe);
	return 0;
}

/* Guess from the first argument, which the process may have changed. */
static void guess(struct process *p)
{
	char first[512];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(p->command, " "), p->command);
	take_name(p, first);
	snprintf(p->why, sizeof(p->why),
		 "no permission to read its files; run as root, or as its user");
}

static int do_read(void *job)
{
	struct reading *r = job;
	struct process *p = &r->process;
	_cleanup_close_ int dirfd = -1;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%d", r->pid);
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read_numbers(dirfd, p);
	if (!err)
		err = read_command(r);
	if (err)
		return err;
	err = read_files(dirfd, p);
	if (err == -EACCES)
		guess(p);
	else if (err)
		return err == -ENOENT ? -ESRCH : err;
	if (p->implementation == IMPLEMENTATION_NONE)
		return err ? err : -ENOENT;
	read_place(dirfd, p);
	return 0;
}

int process_read(pid_t pid, struct process *ret)
{
	struct reading *r = calloc(1, sizeof(*r));
	void *job = r;
	int err;

	if (!r)
		return -ENOMEM;
	r->pid = r->process.pid = pid;
	r->process.cpu = -1;
	err = deadline_run(pid, do_read, &job, reading_free);
	if (err == 0) {
		*ret = r->process;
		r->process.command = NULL;
	}
	if (job)
		reading_free(job);
	return err;
}

void process_deinit(struct process *p)
{
	free(p->command);
	p->command = NULL;
}

bool process_is_replaced(pid_t pid, uint64_t starttime)
{
	struct proc_stat st;

	return target_stat_read(pid, &st) == 0 && st.starttime != starttime;
}
