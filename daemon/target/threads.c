// SPDX-License-Identifier: BSD-2-Clause
/* A process's threads, from /proc/PID/task: see target.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "target/target_priv.h"
#include "target/proc.h"
#include "target/target.h"

#define SCHEDSTAT_MAX 256

/* CPU time in ns; without schedstat, from utime and stime in ticks. */
static int read_runtime(const char *dir, const struct proc_stat *st, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	char path[96], *end;
	uint64_t v;

	snprintf(path, sizeof(path), "%s/schedstat", dir);
	if (proc_read(AT_FDCWD, path, SCHEDSTAT_MAX, &text, NULL)) {
		*ret = (st->utime + st->stime) * (1000000000u / ticks);
		return 0;
	}
	v = strtoull(text, &end, 10);
	if (end == text)
		return -EINVAL;
	*ret = v;
	return 0;
}

int target_thread_read_now(pid_t pid, pid_t tid, struct target_thread *ret)
{
	struct target_thread th = {.tid = tid};
	struct proc_stat st;
	char dir[64], path[96];
	int err;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	snprintf(path, sizeof(path), "%s/stat", dir);
	err = proc_stat_read(AT_FDCWD, path, &st);
	if (!err)
		err = read_runtime(dir, &st, &th.runtime);
	if (err)
		return err;
	th.state = st.state;
	memcpy(th.comm, st.comm, sizeof(th.comm));
	*ret = th;
	return 0;
}

/* The next thread's id; 0 at the end. */
static pid_t next_tid(DIR *d)
{
	struct dirent *e;

	while ((e = readdir(d))) {
		char *end;
		long v = strtol(e->d_name, &end, 10);

		if (v > 0 && v <= INT32_MAX && !*end)
			return (pid_t)v;
	}
	return 0;
}

bool target_ending_now(pid_t pid)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct proc_stat st;
	char path[64];
	pid_t tid;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT;
	while ((tid = next_tid(d))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
		if (!proc_stat_read(AT_FDCWD, path, &st) && !st.exiting)
			return false;
	}
	return true;
}

int target_threads_now(const struct target *t, struct target_thread **ret, size_t *n,
		       struct diag *diag)
{
	_cleanup_free_ struct target_thread *v = NULL;
	_cleanup_(closedirp) DIR *d = NULL;
	size_t have = 0, room = 0;
	char path[64];
	pid_t tid;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	d = opendir(path);
	if (!d)
		return diag_errno(diag, errno == ENOENT ? ESRCH : errno,
				  "cannot list the threads of process %d", t->pid);
	while (have < TARGET_MAX_THREADS && (tid = next_tid(d))) {
		if (have == room) {
			size_t want = room ? 2 * room : 64;
			struct target_thread *p = reallocarray(v, want, sizeof(*v));

			if (!p)
				return diag_errno(diag, ENOMEM, "cannot list threads");
			v = p;
			room = want;
		}
		if (!target_thread_read_now(t->pid, tid, &v[have]))
			have++;
	}
	if (!target_alive(t))
		return diag_errno(diag, ESRCH, "process %d has ended", t->pid);
	*ret = TAKE_PTR(v);
	*n = have;
	return 0;
}
