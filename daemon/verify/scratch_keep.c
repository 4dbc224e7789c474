// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keeper of a scratch process, and what becomes the interpreter: see scratch_priv.h.
 *
 * The keeper is the daemon's child. It enters the target's mount namespace and root directory,
 * which their owner may have prepared against us; the interpreter is its child. The order of the
 * steps is what keeps the host safe:
 *
 *  1. Every descriptor is opened by the daemon, or here before anything foreign is entered; all
 *     others are closed first. Nothing is opened by its path afterwards.
 *  2. The keeper becomes the target's user and keeps two capabilities, those that entering takes.
 *  3. It enters. All that is mounted there becomes read-only, without devices and set-user-id bits.
 *  4. It drops the two capabilities.
 *  5. Only then it forks. The child has nothing left to drop but system calls.
 *
 * Neither process is ever visible in a pid namespace of the target's: the interpreter gets one of
 * its own below ours. Where the target shares our pid namespace, both are not dumpable, so that the
 * same user can neither trace them nor open their /proc/PID/exe, fd or mem; the interpreter is so
 * until its exec has replaced all that it had of us.
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

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "target/proc.h"

/*
 * What an interpreter and the self-test take is a tenth of it. Address space counts all that is
 * mapped, shared memory too; data what is private and writable.
 */
#define SPACE_LIMIT (UINT64_C(512) << 20)
#define DATA_LIMIT  (UINT64_C(256) << 20)
#define STACK_LIMIT (UINT64_C(8) << 20)
#define FILES_LIMIT 64u

/* The keeper ends the interpreter if the daemon has not by then. */
#define KEEP_MS ((int)SCRATCH_TIME_S * 1000 + 1000)

#define CAPS_TO_ENTER (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_CHROOT)

/* ---- descriptors ------------------------------------------------------------------------- */

/* Away from 0, 1 and 2, which are the interpreter's. */
static int lift(int *fd)
{
	if (*fd >= 0 && *fd < 3)
		*fd = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	return *fd;
}

static int close_others(const struct scratch_job *j)
{
	const int keep[] = {j->exe, j->root, j->mnt, j->leash, j->target ? j->target->pidfd : -1};

	return descriptors_close_others(3, keep, sizeof(keep) / sizeof(*keep));
}

/* The interpreter's three become 0, 1, 2; else only what the keeper needs stays open. */
static int arrange_files(struct scratch_job *j)
{
	int *const all[] = {&j->exe, &j->root, &j->mnt, &j->leash, &j->in, &j->out, &j->null};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*all[i] >= 0 && lift(all[i]) < 0)
			return -errno;
	if (dup2(j->in, 0) < 0 || dup2(j->out, 1) < 0 || dup2(j->null, 2) < 0)
		return -errno;
	return close_others(j);
}

/* ---- the command line of a program started through the dynamic linker --------------------- */

/* A program that root runs must be root's: its path is looked at where the target lives. */
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
 * The linker's arguments up to the interpreter go before ours, from the target's own command line.
 * That is memory of the target's: reading it can take for ever, and so the daemon does not.
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

/* Keep no capability but those of mask that we have. */
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
 * Become the target's user, with no capability but those that entering takes, and none to be
 * gained. A process that may not change its bounding set has none that matters in it.
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
	/* Changing the user undid both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* ---- where the target lives -------------------------------------------------------------- */

/*
 * A copy of all that is mounted below our root directory, read-only, becomes our root directory.
 * It is attached nowhere, and ends with its descriptor. A kernel that cannot make it so (before
 * 5.12) gets no self-test: a device that the target's owner made would be open for writing.
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
	*at = SCRATCH_APART;
	/* An IPC namespace is not needed: no IPC call is allowed (scratch_calls.c). */
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
	return limit(RLIMIT_CPU, SCRATCH_TIME_S) && limit(RLIMIT_CORE, 0) &&
	       limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_AS, SPACE_LIMIT) &&
	       limit(RLIMIT_DATA, DATA_LIMIT) && limit(RLIMIT_STACK, STACK_LIMIT) &&
	       limit(RLIMIT_NOFILE, FILES_LIMIT) && limit(RLIMIT_MEMLOCK, 0) &&
	       limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_SIGPENDING, FILES_LIMIT);
}

/*
 * alive: readable once the keeper has ended, should that be before we asked to die with it.
 *
 * The target's /proc, if it has a pid namespace, does not know us and has no "self". The linker
 * then takes the directory of the program from LD_ORIGIN_PATH, for libraries beside it ($ORIGIN).
 */
static _Noreturn void become_interpreter(struct scratch_job *j, int alive)
{
	char *const env[] = {(char *)"LC_ALL=C", (char *)"PYTHON_JIT=0",
			     j->origin[0] ? j->origin : NULL, NULL};
	struct pollfd p = {.fd = alive, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&p, 1, 0) != 0)
		_exit(126);
	if (!limit_all() || scratch_allow_calls() < 0)
		_exit(125);
	(void)syscall(SYS_execveat, j->exe, "", j->argv, env, AT_EMPTY_PATH);
	_exit(127);
}

/* ---- the keeper -------------------------------------------------------------------------- */

static int prepare(struct scratch_job *j)
{
	int fd, r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* Killed before it was asked for that: nobody would ever end us. */
	if (getppid() != j->parent)
		_exit(1);
	(void)setpgid(0, 0);
	r = scratch_group_join(j->group);
	if (r == 0)
		r = arrange_files(j);
	if (r < 0)
		return r;
	/* When memory runs out, this is to go first. */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "1000", 4);
		(void)close(fd);
	}
	return 0;
}

static int set_apart(struct scratch_job *j, enum scratch_stage *at, int *listener)
{
	int r;

	*at = SCRATCH_PREPARE;
	r = prepare(j);
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

static pid_t start_interpreter(struct scratch_job *j)
{
	int alive[2];
	pid_t pid;

	if (pipe2(alive, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)close(alive[1]);
		become_interpreter(j, alive[0]);
	}
	/* alive[1] stays open until we end. */
	return pid < 0 ? -errno : pid;
}

/* Until the interpreter has ended. Should the daemon let go of the leash, or the time be over, it
 * is killed. It may be past killing for a while: a server of its file system does not answer. */
static void watch_over(pid_t pid, int leash, int listener)
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

_Noreturn void scratch_keep(struct scratch_job *j)
{
	struct scratch_report say;
	int listener = -1;

	say.pid = set_apart(j, &say.stage, &listener);
	if (say.pid == 0) {
		say.stage = SCRATCH_FORK;
		say.pid = start_interpreter(j);
	}
	/* The interpreter's. Its own end must be the end of its output. */
	(void)close_range(0, 2, 0);
	if (write(j->leash, &say, sizeof(say)) != sizeof(say) || say.pid < 0)
		_exit(1);
	watch_over(say.pid, j->leash, listener);
	_exit(0);
}
