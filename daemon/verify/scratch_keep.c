// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keeper of a scratch process, and the code that becomes the interpreter: see scratch_priv.h.
 *
 * The keeper is the daemon's child and the interpreter's parent. It enters the target's mount
 * namespace and root directory, which their owner may have prepared for an attack. The order of
 * steps protects the host:
 *
 *   1. The daemon opens each descriptor, or the keeper does before entering anything; all others are closed
 *      first. Afterwards nothing is opened by path.
 *   2. The keeper becomes the target's user and keeps only the two capabilities needed to enter.
 *   3. It enters. All mounts become read-only, without devices and set-user-id bits.
 *   4. It drops the two capabilities.
 *   5. Then it forks. The child only has to restrict its system calls.
 *
 * Neither process is visible in a pid namespace of the target: the interpreter gets a new one below
 * ours. If the target shares our pid namespace, both are not dumpable, so that the same user can
 * neither trace them nor open their /proc/PID/exe, fd or mem; for the interpreter this lasts until
 * its exec has replaced all of our memory.
 */
#include "verify/scratch_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/call_filter.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/helper.h"
#include "target/proc.h"

/*
 * Interpreter and self-test need a tenth of these. The address space includes all mappings; data is
 * private writable memory.
 */
#define SPACE_LIMIT (UINT64_C(512) << 20)
#define DATA_LIMIT  (UINT64_C(256) << 20)
#define STACK_LIMIT (UINT64_C(8) << 20)
#define FILES_LIMIT 64u

/* The keeper ends the interpreter if the daemon does not. */
#define KEEP_MS ((int)SCRATCH_TIME_S * 1000 + 1000)

#define CAPS_TO_ENTER (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_CHROOT)

/* ---- descriptors ------------------------------------------------------------------------- */

/* Move descriptors 0, 1 and 2 away, for the interpreter's. */
static int lift(int *fd)
{
	if (*fd >= 0 && *fd < 3)
		*fd = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	return *fd;
}

static int close_others(const struct scratch_job *j, int leash)
{
	const int keep[] = {j->exe, j->root, j->mnt, leash, j->target ? j->target->pidfd : -1};

	return descriptors_close_others(3, keep, sizeof(keep) / sizeof(*keep));
}

/* Set the interpreter's descriptors 0, 1 and 2, and close all that the keeper does not need. */
static int arrange_files(struct scratch_job *j, int *leash)
{
	int *const all[] = {&j->exe, &j->root, &j->mnt, leash, &j->in, &j->out, &j->null};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*all[i] >= 0 && lift(all[i]) < 0)
			return -errno;
	if (dup2(j->in, 0) < 0 || dup2(j->out, 1) < 0 || dup2(j->null, 2) < 0)
		return -errno;
	return close_others(j, *leash);
}

/* ---- the command line of a program started by the dynamic linker -------------------------- */

/* A program that runs as root must be owned by root. Its path is relative to the target's root. */
static int check_linked(const struct scratch_job *j, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	_cleanup_close_ int fd = -1;
	char root[64];
	struct statx st;
	_cleanup_close_ int dir = -1;

	if (j->uid != 0)
		return 0;
	snprintf(root, sizeof(root), "/proc/%d/root", j->target->tid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_UID | STATX_MODE, &st) < 0)
		return -errno;
	return st.stx_uid == 0 && !(st.stx_mode & 022) ? 0 : -EACCES;
}

/*
 * Put the linker's arguments up to the interpreter, from the target's command line, before ours.
 * Reading the target's memory may block for ever, so the keeper does it instead of the daemon.
 */
static int add_linker_args(struct scratch_job *j)
{
	char *rest[SCRATCH_ARGS_MAX + 8];
	_cleanup_free_ char *text = NULL;
	unsigned int n = 0, nrest = j->nargs;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", j->target->tid);
	if (proc_read(AT_FDCWD, path, sizeof(j->text), &text, &size) < 0)
		return -EIO;
	memcpy(rest, j->argv, sizeof(rest));
	memcpy(j->text, text, size);
	for (size_t at = 0; at < size && n < SCRATCH_ARGS_MAX; at += strlen(j->text + at) + 1) {
		j->argv[n++] = j->text + at;
		if (!at || !scratch_is_python(j->text + at))
			continue;
		for (unsigned int i = 0; i < nrest; i++)
			j->argv[n++] = rest[i];
		j->argv[n] = NULL;
		return check_linked(j, j->text + at);
	}
	return -ENOEXEC;
}

/* ---- privileges -------------------------------------------------------------------------- */

/* Drop all capabilities except those in mask. */
static int keep_caps(uint64_t mask)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		caps[i].permitted &= (uint32_t)(mask >> (32 * i));
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

/*
 * Become the target's user, keeping only the capabilities needed to enter, with no way to gain
 * others. A process that cannot change its bounding set has no capabilities that matter.
 */
static int become_user(const struct scratch_job *j)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED;
	int r;

	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL && errno != EPERM)
			return -errno;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 && errno != EPERM)
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 && j->drop)
		return -errno;
	if (j->drop &&
	    (setresgid(j->gid, j->gid, j->gid) < 0 || setresuid(j->uid, j->uid, j->uid) < 0))
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = keep_caps(CAPS_TO_ENTER);
	if (r < 0)
		return r;
	/* changing the user has reset these */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* ---- entering the target's environment --------------------------------------------------- */

/*
 * Make a read-only copy of all mounts below our root directory the root directory. It is attached
 * nowhere and disappears with its descriptor. Without this (kernels before 5.12) there is no
 * self-test, because devices created by the target's owner could be opened for writing.
 */
static int enter_read_only(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					      MOUNT_ATTR_NODEV};
	_cleanup_close_ int tree =
		open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return -errno;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return fchdir(tree) < 0 || chroot(".") < 0 ? -errno : 0;
}

static int enter_places(const struct scratch_job *j, enum scratch_stage *at)
{
	*at = SCRATCH_ISOLATE;
	/* no IPC namespace, as no IPC call is allowed (base/call_filter.c) */
	if (unshare(CLONE_NEWPID | CLONE_NEWNET) < 0)
		return -errno;
	*at = SCRATCH_FILES;
	if (j->mnt >= 0 && setns(j->mnt, CLONE_NEWNS) < 0)
		return -errno;
	*at = SCRATCH_ROOT;
	if (j->root >= 0 && (fchdir(j->root) < 0 || chroot(".") < 0))
		return -errno;
	*at = SCRATCH_READ_ONLY;
	return enter_read_only();
}

/* ---- the interpreter --------------------------------------------------------------------- */

static bool limit(int what, rlim_t value)
{
	struct rlimit rl;

	if (getrlimit(what, &rl) < 0)
		return false;
	if (rl.rlim_max < value)
		value = rl.rlim_max;
	rl = (struct rlimit){value, value};
	return setrlimit(what, &rl) == 0;
}

static bool limit_all(void)
{
	return limit(RLIMIT_CPU, SCRATCH_CPU_S) && limit(RLIMIT_CORE, 0) &&
	       limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_AS, SPACE_LIMIT) &&
	       limit(RLIMIT_DATA, DATA_LIMIT) && limit(RLIMIT_STACK, STACK_LIMIT) &&
	       limit(RLIMIT_NOFILE, FILES_LIMIT) && limit(RLIMIT_MEMLOCK, 0) &&
	       limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_SIGPENDING, FILES_LIMIT);
}

/*
 * If the target has a pid namespace, its /proc has no "self" for this process. Then the linker gets
 * the program's directory from LD_ORIGIN_PATH, for libraries next to it ($ORIGIN).
 */
static void become_interpreter(struct helper_side *side)
{
	struct scratch_job *j = side->ctx;
	char *const env[] = {(char *)"LC_ALL=C", (char *)"PYTHON_JIT=0",
			     j->origin[0] ? j->origin : NULL, NULL};

	if (!limit_all() || call_filter_install(CALL_FILTER_SCRATCH) < 0)
		_exit(125);
	(void)syscall(SYS_execveat, j->exe, "", j->argv, env, AT_EMPTY_PATH);
	_exit(127);
}

/* ---- the keeper -------------------------------------------------------------------------- */

static int prepare(struct scratch_job *j, int *leash)
{
	int fd, r;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	(void)setpgid(0, 0);
	r = scratch_group_join(j->group);
	if (r == 0)
		r = arrange_files(j, leash);
	if (r < 0)
		return r;
	/* Make it the first process that is killed if memory runs out. */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "1000", 4);
		(void)close(fd);
	}
	return 0;
}

static int isolate(struct scratch_job *j, int *leash, enum scratch_stage *at, int *listener)
{
	int r;

	*at = SCRATCH_PREPARE;
	r = prepare(j, leash);
	*at = SCRATCH_ARGS;
	if (r == 0 && j->linked)
		r = add_linker_args(j);
	if (r == 0 && j->target) {
		*at = SCRATCH_IDENTITY;
		r = target_check(j->target, NULL);
	}
	if (r < 0)
		return r;
	*at = SCRATCH_USER;
	r = become_user(j);
	if (r == 0)
		r = enter_places(j, at);
	if (r < 0)
		return r;
	*at = SCRATCH_DROP;
	r = keep_caps(0);
	if (r < 0)
		return r;
	*at = SCRATCH_THREADS;
	return scratch_watch_threads(listener);
}

/* Its channel stays open until the keeper ends. */
static pid_t start_interpreter(struct scratch_job *j)
{
	struct helper interpreter;
	int r = helper_start(&(struct helper_opts){.flags = HELPER_EXECS}, become_interpreter, j,
			     &interpreter);

	return r < 0 ? r : interpreter.pid;
}

/* Wait until the interpreter has ended. Kill it when the daemon closes the leash or the time is
 * over. It may not react as long as a file system's server does not respond. */
static void supervise(pid_t pid, int leash, int listener)
{
	const uint64_t deadline = clock_monotonic_ns() + KEEP_MS * UINT64_C(1000000);
	struct pollfd p[] = {
		{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
		{.fd = leash, .events = POLLIN},
		{.fd = listener, .events = POLLIN},
	};
	unsigned int started = 0;

	for (;;) {
		uint64_t now = clock_monotonic_ns();
		int left = now < deadline ? (int)((deadline - now) / 1000000) + 1 : 0;
		int n = p[0].fd < 0 ? 0 : poll(p, 3, p[1].fd < 0 ? -1 : left);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && p[0].revents)
			break;
		if (p[1].fd >= 0 && (n == 0 || p[1].revents)) {
			(void)kill(pid, SIGKILL);
			p[1].fd = -1;
		}
		if (n > 0 && p[2].revents)
			scratch_answer_thread(listener, &started);
		if (p[0].fd < 0)
			break;
	}
	(void)waitpid(pid, NULL, 0);
}

void scratch_keep(struct helper_side *side)
{
	struct scratch_job *j = side->ctx;
	struct scratch_report report;
	int listener = -1;

	report.pid = isolate(j, &side->chan, &report.stage, &listener);
	if (report.pid == 0) {
		report.stage = SCRATCH_FORK;
		report.pid = start_interpreter(j);
	}
	/* These are the interpreter's, and its exit must close its output. */
	(void)close_range(0, 2, 0);
	if (write(side->chan, &report, sizeof(report)) != sizeof(report) || report.pid < 0)
		_exit(1);
	supervise(report.pid, side->chan, listener);
}
