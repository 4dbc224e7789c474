// SPDX-License-Identifier: BSD-2-Clause
/*
 * One process as the operating system shows it: see target.h. A pid may be reused at any moment, so
 * data is read between two checks of the same pidfd, or through a directory handle of /proc/PID,
 * which stays with its process.
 */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "target/target_priv.h"
#include "target/proc.h"

#define STATUS_MAX    65536
#define EXEC_TRIES    20
#define EXEC_PAUSE_NS 500000

static int no_process(struct diag *diag, pid_t pid)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "check the pid (see ps -e)",
			"there is no process %d", pid);
}

/* Check that pid is a process, as threads have directories in /proc, too. */
static int check_leader(const char *status, pid_t pid, struct diag *diag)
{
	const char *field = proc_field(status, "Tgid");
	long tgid = field ? strtol(field, NULL, 10) : 0;
	char hint[64];

	if (tgid <= 0)
		return no_process(diag, pid);
	if (tgid == pid)
		return 0;
	snprintf(hint, sizeof(hint), "use the process id %ld", tgid);
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, hint,
			"%d is a thread of process %ld, not a process", pid, tgid);
}

/*
 * The owner of a process. Processes with several user ids (set-user-ID programs) and non-dumpable
 * ones (whose files in /proc belong to root) count as root's.
 */
static uid_t owner_of(int dirfd, const char *status)
{
	const char *p = proc_field(status, "Uid");
	uid_t uid = 0;
	struct stat st;

	if (!p || fstatat(dirfd, "status", &st, 0))
		return 0;
	for (int i = 0; i < 4; i++) {
		char *end;
		unsigned long v = strtoul(p, &end, 10);

		if (end == p || (i && v != uid))
			return 0;
		uid = (uid_t)v;
		p = end;
	}
	return st.st_uid == uid ? uid : 0;
}

/* Reading the link needs the privilege to trace the process, so this checks it, too. */
static int read_exe(int dirfd, struct target *t, struct diag *diag)
{
	ssize_t n = readlinkat(dirfd, "exe", t->exe, sizeof(t->exe) - 1);

	if (n < 0 && errno == ENOENT && target_ending_now(t->pid))
		return no_process(diag, t->pid);
	if (n < 0 && errno == ENOENT)
		return diag_set(diag, -ENOEXEC, PYP_EXIT_UNTRACEABLE, "",
				"process %d has no executable: it is a kernel thread, or its main "
				"thread has "
				"ended",
				t->pid);
	if (n < 0)
		return diag_errno(diag, errno, "no permission to trace process %d of user %u",
				  t->pid, t->uid);
	t->exe[n] = 0;
	return 0;
}

static int identify(struct target *t, struct diag *diag)
{
	int err = target_identify_now(t, &t->identity);

	if (err == -ESRCH || err == -ENOENT)
		return no_process(diag, t->pid);
	if (err == -EAGAIN)
		return diag_set(diag, err, PYP_EXIT_FAILURE, "attach again",
				"process %d has executed another program", t->pid);
	return err ? diag_errno(diag, -err, "cannot read the program of process %d", t->pid) : 0;
}

/* Read the program through thread t->tid. Retries give a process in the middle of an exec time to
 * finish. */
static int read_program(struct target *t, struct diag *diag)
{
	const struct timespec pause = {.tv_nsec = EXEC_PAUSE_NS};
	_cleanup_close_ int dirfd = -1;
	char path[64];
	int err = -EAGAIN;

	snprintf(path, sizeof(path), "/proc/%d", t->tid);
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return errno == ENOENT ? no_process(diag, t->pid)
				       : diag_errno(diag, errno, "cannot open '%s'", path);
	for (int i = 0; i < EXEC_TRIES; i++) {
		memset(t->exe, 0, sizeof(t->exe));
		err = read_exe(dirfd, t, diag);
		if (!err)
			err = identify(t, diag);
		if (err != -EAGAIN)
			return err;
		nanosleep(&pause, NULL);
	}
	return err;
}

/* A thread that has ended has no exe, maps etc. in /proc, although its directory exists. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct target_thread th;

	return target_thread_read_now(pid, tid, &th) < 0 || th.state == 'Z' || th.state == 'X';
}

int target_hold_now(struct target *t)
{
	_cleanup_free_ struct target_thread *v = NULL;
	size_t n = 0;
	int r;

	if (!has_ended(t->pid, t->tid))
		return 0;
	r = target_threads_now(t, &v, &n, NULL);
	if (r < 0)
		return -ESRCH;
	for (size_t i = 0; i < n; i++) {
		if (v[i].state == 'Z' || v[i].state == 'X' || v[i].tid == t->pid)
			continue;
		t->tid = v[i].tid;
		return 0;
	}
	return -ESRCH;
}

static int read_identity(int dirfd, struct target *t, struct diag *diag)
{
	_cleanup_free_ char *status = NULL;
	struct proc_stat st;
	int err = proc_read(dirfd, "status", STATUS_MAX, &status, NULL);

	if (!err)
		err = proc_stat_read(dirfd, "stat", &st);
	if (err == -ESRCH)
		return no_process(diag, t->pid);
	if (err)
		return diag_errno(diag, -err, "cannot read the state of process %d", t->pid);
	err = check_leader(status, t->pid, diag);
	if (err)
		return err;
	if (st.state == 'X' || (st.state == 'Z' && !target_alive(t)))
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "",
				"process %d has ended (it is a zombie)", t->pid);
	t->starttime = st.starttime;
	t->parent = proc_last_pid(status, "PPid");
	t->uid = owner_of(dirfd, status);
	return 0;
}

static int open_pidfd(pid_t pid, struct diag *diag)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return fd;
	if (errno == ESRCH)
		return no_process(diag, pid);
	if (errno == ENOSYS)
		return diag_set(diag, -ENOSYS, PYP_EXIT_FAILURE, "use Linux 5.8 or later",
				"the kernel has no pidfd_open");
	return diag_errno(diag, errno, "cannot open process %d", pid);
}

/* pidfd_open refuses thread ids, with an error that depends on the kernel version. */
static int refuse_thread_id(pid_t pid, struct diag *diag)
{
	_cleanup_free_ char *status = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (proc_read(AT_FDCWD, path, STATUS_MAX, &status, NULL))
		return no_process(diag, pid);
	return check_leader(status, pid, diag);
}

int target_open_now(pid_t pid, struct target **ret, struct diag *diag)
{
	_cleanup_(target_freep) struct target *t = calloc(1, sizeof(*t));
	_cleanup_close_ int dirfd = -1;
	char path[64];
	int err;

	if (!t)
		return diag_errno(diag, ENOMEM, "cannot open process %d", pid);
	t->pid = t->tid = pid;
	t->pidfd = -1;
	err = pid > 0 ? refuse_thread_id(pid, diag) : no_process(diag, pid);
	if (err)
		return err;
	t->pidfd = open_pidfd(pid, diag);
	if (t->pidfd < 0)
		return t->pidfd;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return errno == ENOENT ? no_process(diag, pid)
				       : diag_errno(diag, errno, "cannot open '%s'", path);
	err = read_identity(dirfd, t, diag);
	if (!err && target_hold_now(t) < 0)
		err = no_process(diag, pid);
	if (!err)
		err = read_program(t, diag);
	if (err)
		return err;
	if (!target_alive(t))
		return no_process(diag, pid);
	*ret = TAKE_PTR(t);
	return 0;
}

int target_refresh_now(struct target *t, struct diag *diag)
{
	int err;

	t->tid = t->pid; /* the thread that executes becomes the leader */
	memset(t->cmdline, 0, sizeof(t->cmdline));
	err = read_program(t, diag);
	return !err && !target_alive(t) ? no_process(diag, t->pid) : err;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	closep(&t->pidfd);
	free(t);
}

bool target_alive(const struct target *t)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

	/* A pidfd becomes readable when the last thread has ended, before the process is reaped. */
	return poll(&p, 1, 0) == 0;
}
