// SPDX-License-Identifier: BSD-2-Clause
/*
 * The scratch process. It executes a file that a user controls, so it never has more rights than
 * that user: the user's uid and gid, no capabilities and no way to gain any, and the target's mount
 * namespace and root directory if it has its own, because its libc and standard library are there.
 * It has less: no network, read-only file systems without devices, limited memory, few threads, and
 * no way to start, signal or trace a process. It executes /proc/PID/exe, the file that the target
 * runs.
 *
 * The daemon opens all descriptors, and checks before and after that the target is still the same
 * process, program and user. Then it forks the keeper (scratch_keep.c), whose child is the
 * interpreter. Both may block, so the daemon always waits for them with a deadline.
 */
#include "verify/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/helper.h"
#include "base/reaper.h"
#include "target/deadline.h"
#include "verify/scratch_priv.h"

/* Time limit of a keeper's end, ms */
#define END_MS 300

static const char *const stages[] = {
	[SCRATCH_PREPARE] = "be prepared",
	[SCRATCH_ARGS] = "be given the arguments that the target gave the dynamic linker",
	[SCRATCH_IDENTITY] = "be started: the target has executed another program",
	[SCRATCH_ISOLATE] = "be isolated from other processes and the network",
	[SCRATCH_USER] = "become the target's user",
	[SCRATCH_FILES] = "join the target's mount namespace",
	[SCRATCH_ROOT] = "enter the target's root directory",
	[SCRATCH_READ_ONLY] = "see all files read-only and without devices",
	[SCRATCH_DROP] = "drop its capabilities",
	[SCRATCH_THREADS] = "have its threads counted",
	[SCRATCH_FORK] = "be started",
};

/* ---- program and arguments ---------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool scratch_is_python(const char *path)
{
	return strncmp(base_name(path), "python", 6) == 0;
}

/* Is it the dynamic linker: `ld.so OPTION... PROGRAM ARG...`? */
static bool is_linker(const char *path)
{
	return strncmp(base_name(path), "ld-", 3) == 0 || strncmp(base_name(path), "ld.so", 5) == 0;
}

/* An executable's path relative to the target's root directory, from which it finds its library. */
static const char *inside_root(const struct target *t, const char *exe)
{
	char link[64], root[4096];
	ssize_t n;

	if (!t)
		return exe;
	snprintf(link, sizeof(link), "/proc/%d/root", t->pid);
	n = readlink(link, root, sizeof(root));
	if (n > 1 && n < (ssize_t)sizeof(root) && strncmp(exe, root, (size_t)n) == 0 &&
	    exe[n] == '/')
		return exe + n;
	return exe;
}

static int choose_args(struct scratch_job *j, const struct target *t, const char *path,
		       const char *script, struct diag *diag)
{
	const char *exe = inside_root(t, path);
	const char *const tail[] = {"-I", "-S", "-B", "-c", script};

	j->linked = t && is_linker(exe);
	if (!j->linked && (!scratch_is_python(exe) || strlen(exe) >= sizeof(j->text)))
		return diag_set(diag, -ENOEXEC, PYP_EXIT_FAILURE, "",
				"'%s' is not named python, so it may be any program",
				base_name(exe));
	if (!j->linked) {
		memcpy(j->text, exe, strlen(exe) + 1);
		j->argv[j->nargs++] = j->text;
		if (*exe == '/')
			snprintf(j->origin, sizeof(j->origin), "LD_ORIGIN_PATH=%.*s",
				 (int)(base_name(exe) - exe), exe);
	}
	for (size_t i = 0; i < sizeof(tail) / sizeof(*tail); i++)
		j->argv[j->nargs++] = (char *)tail[i];
	return 0;
}

/* ---- user -------------------------------------------------------------------------------- */

/* A file that is executed as root must be writable for root only. */
static int check_executable(const struct scratch_job *j, struct diag *diag)
{
	struct statx st;

	if ((j->drop ? j->uid : geteuid()) != 0)
		return 0;
	if (statx(j->exe, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID | STATX_MODE, &st) < 0)
		return diag_errno(diag, errno, "cannot read the owner of the interpreter");
	if (st.stx_uid != 0)
		return diag_set(diag, -EACCES, PYP_EXIT_FAILURE, "",
				"root runs it, but user %u owns its file", st.stx_uid);
	if (st.stx_mode & 022)
		return diag_set(diag, -EACCES, PYP_EXIT_FAILURE, "",
				"root runs it, but other users can write to its file");
	return 0;
}

static int choose_user(struct scratch_job *j, const struct target *t, struct diag *diag)
{
	if (t->identity.mixed)
		return diag_set(diag, -EACCES, PYP_EXIT_FAILURE, "",
				"process %d runs with the ids of several users", t->pid);
	j->uid = t->identity.uid;
	j->gid = t->identity.gid;
	j->drop = j->uid != geteuid() || j->gid != getegid();
	return 0;
}

/* ---- namespaces and files ---------------------------------------------------------------- */

/* Open the target's namespace or root directory if it is not ours. O_PATH accesses no file
 * system. */
static int open_other(pid_t pid, const char *name, int flags, int *ret, struct diag *diag)
{
	struct target_file a, b;
	char theirs[64], ours[64];
	int fd;

	snprintf(theirs, sizeof(theirs), "/proc/%d/%s", pid, name);
	snprintf(ours, sizeof(ours), "/proc/self/%s", name);
	if (target_file_of(theirs, &a) == 0 && target_file_of(ours, &b) == 0 &&
	    target_file_equal(&a, &b))
		return 0;
	fd = target_open_path(theirs, flags);
	if (deadline_missed(fd))
		return deadline_diag(diag, fd, pid);
	if (fd < 0)
		return diag_errno(diag, -fd, "cannot enter '%s'", theirs);
	*ret = fd;
	return 0;
}

static int choose_place(struct scratch_job *j, const struct target *t, struct diag *diag)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/exe", t->tid);
	j->exe = target_open_path(path, O_PATH);
	if (deadline_missed(j->exe))
		return deadline_diag(diag, j->exe, t->pid);
	if (j->exe < 0)
		return diag_errno(diag, -j->exe, "cannot open '%s'", path);
	err = choose_user(j, t, diag);
	if (!err)
		err = open_other(t->tid, "root", O_PATH | O_DIRECTORY, &j->root, diag);
	if (!err)
		err = open_other(t->tid, "ns/mnt", O_RDONLY, &j->mnt, diag);
	/* Executable, user and directories belong together only if nothing has changed
	 * meanwhile. */
	return err ? err : target_check(t, diag);
}

static int choose_file(struct scratch_job *j, const char *path, struct diag *diag)
{
	j->exe = open(path, O_PATH | O_CLOEXEC);
	return j->exe < 0 ? diag_errno(diag, errno, "cannot open '%s'", path) : 0;
}

/* The only device of the scratch process */
static int open_null(struct scratch_job *j, struct diag *diag)
{
	struct stat st;

	j->null = open("/dev/null", O_WRONLY | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (j->null < 0 || fstat(j->null, &st) < 0)
		return diag_errno(diag, errno, "cannot open '/dev/null'");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return diag_set(diag, -ENODEV, PYP_EXIT_FAILURE, "",
				"'/dev/null' is not the null device");
	return 0;
}

static int open_pipes(struct scratch_job *j, struct scratch *s, struct diag *diag)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "cannot create a pipe");
	j->in = in[0];
	s->in = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "cannot create a pipe");
	j->out = out[1];
	s->out = out[0];
	return 0;
}

static void job_deinit(struct scratch_job *j)
{
	closep(&j->exe);
	closep(&j->root);
	closep(&j->mnt);
	closep(&j->in);
	closep(&j->out);
	closep(&j->null);
}

/* ---- starting ---------------------------------------------------------------------------- */

/* Wait until fd is readable or closed. -ETIMEDOUT. */
static int wait_readable(const struct scratch *s, int fd)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_monotonic_ns();
		int left = now < s->deadline_ns ? (int)((s->deadline_ns - now) / 1000000) : 0;
		int r = poll(&p, 1, left);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0 && left == 0)
			return -ETIMEDOUT;
		if (r > 0)
			return 0;
	}
}

static int isolate_failed(const struct scratch_report *report, struct diag *diag)
{
	const char *what = report->stage <= SCRATCH_FORK ? stages[report->stage] : "be started";

	if (report->pid == -EPERM && report->stage != SCRATCH_THREADS)
		return diag_set(
			diag, -EPERM, PYP_EXIT_PERMISSION,
			"run as root, or like packaging/pyprofd.service",
			"no permission for a scratch process to %s (CAP_SYS_ADMIN, CAP_SYS_CHROOT)",
			what);
	return diag_errno(diag, -report->pid, "a scratch process cannot %s", what);
}

static int receive_report(struct scratch *s, struct diag *diag)
{
	struct scratch_report report;
	int r = wait_readable(s, s->leash);

	if (r == -ETIMEDOUT)
		return diag_set(diag, r, PYP_EXIT_FAILURE, "",
				"a file system of the target does not respond");
	if (r < 0 || read(s->leash, &report, sizeof(report)) != sizeof(report) || report.pid == 0)
		return diag_errno(diag, EPIPE, "the scratch process did not start");
	if (report.pid < 0)
		return isolate_failed(&report, diag);
	s->pid = report.pid;
	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	return 0;
}

static int launch(struct scratch_job *j, struct scratch *s, struct diag *diag)
{
	struct helper keeper;
	int r = helper_start(&(struct helper_opts){.name = "pyprofd-keeper", .flags = HELPER_EXECS},
			     scratch_keep, j, &keeper);

	if (r < 0)
		return diag_errno(diag, -r, "cannot start a process");
	s->keeper = keeper.pid;
	s->leash = keeper.fd;
	return 0;
}

int scratch_start(const struct scratch_opts *o, struct scratch *ret, struct diag *diag)
{
	_cleanup_(job_deinit) struct scratch_job j = {.target = o->target,
						      .exe = -1,
						      .root = -1,
						      .mnt = -1,
						      .in = -1,
						      .out = -1,
						      .null = -1};
	int err;

	*ret = (struct scratch){.in = -1, .out = -1, .leash = -1, .pidfd = -1};
	err = reaper_check(SCRATCH_STUCK_MAX, diag);
	if (!err)
		err = choose_args(&j, o->target, o->target ? o->target->exe : o->path, o->script,
				  diag);
	if (!err)
		err = o->target ? choose_place(&j, o->target, diag)
				: choose_file(&j, o->path, diag);
	if (!err)
		err = check_executable(&j, diag);
	if (!err)
		err = open_null(&j, diag);
	if (!err)
		err = open_pipes(&j, ret, diag);
	if (err)
		return err;
	scratch_group_new(&ret->group);
	j.group = &ret->group;
	ret->deadline_ns = clock_monotonic_ns() + SCRATCH_TIME_S * UINT64_C(1000000000);
	err = launch(&j, ret, diag);
	if (err)
		return err;
	/* Close the scratch process's ends, otherwise its end would not be seen. */
	job_deinit(&j);
	j = (struct scratch_job){.exe = -1, .root = -1, .mnt = -1, .in = -1, .out = -1, .null = -1};
	return receive_report(ret, diag);
}

int scratch_discover(struct scratch *s, const struct python *want, struct diag *diag)
{
	_cleanup_(inspect_result_deinit) struct inspect_result found = {0};
	struct inspect_opts io = {0};
	int r = target_open(s->pid, &s->target, diag);

	io.target = s->target;
	if (r == 0)
		r = inspect_start(&io, &s->inspect, diag);
	if (r == 0)
		r = inspect_wait(s->inspect, -1, &found, diag);
	if (r < 0)
		return r;
	s->python = TAKE_PTR(found.python);
	return python_same_build(s->python, want)
		       ? 0
		       : diag_set(diag, -ESTALE, PYP_EXIT_FAILURE, "",
				  "the scratch process runs another interpreter");
}

int scratch_probe(const struct scratch *s, const struct plan *plan, bool builtins,
		  size_t ring_bytes, struct probe **ret, struct diag *diag)
{
	const struct probe_opts po = {
		.builtins = builtins,
		.collections = !builtins,
		.sampling.interp_head = python_interp_head(s->python),
		.native = python_native_types(s->python),
		.pid = s->pid,
		.via = s->python->via,
		.bias = s->python->bias,
		.ring_bytes = ring_bytes,
		.layout = &s->python->layout,
		.plan = plan,
	};

	return probe_open(&po, ret, diag);
}

int scratch_go(struct scratch *s)
{
	return write(s->in, "\n", 1) == 1 ? 0 : -errno;
}

int scratch_line(struct scratch *s, char *line, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		int r = wait_readable(s, s->out);

		if (r < 0)
			return r == -ETIMEDOUT ? r : -EPIPE;
		if (read(s->out, line + n, 1) != 1)
			return -EPIPE;
		if (line[n] == '\n') {
			line[n] = '\0';
			return 0;
		}
	}
	return -EMSGSIZE;
}

/* Closing the leash makes the keeper kill and reap the interpreter, and then exit. If it is stopped
 * or waits for a file system, it is killed, and reaped once that succeeds. */
void scratch_end(struct scratch *s)
{
	closep(&s->in);
	closep(&s->out);
	closep(&s->leash);
	s->in = s->out = s->leash = -1;
	if (s->keeper > 0)
		reaper_end(s->keeper, TAKE_FD(s->pidfd), END_MS);
	s->keeper = s->pid = 0;
	scratch_group_end(&s->group);
	inspect_free(TAKE_PTR(s->inspect));
	python_free(TAKE_PTR(s->python));
	target_free(TAKE_PTR(s->target));
}
