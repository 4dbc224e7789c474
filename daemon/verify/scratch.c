// SPDX-License-Identifier: BSD-2-Clause
/*
 * The scratch process. A file that a user controls is executed here, so it gets no more than that
 * user has: their uid and gids, none of our capabilities, none to be gained, and if the target lives
 * in namespaces or a root directory of its own, those: there are its libc and its standard library.
 * And it gets less: no network, every file system read-only, no way to start a process (which might
 * outlive it), to signal or to trace one. What it is executed from is /proc/PID/exe, the very file
 * that the target runs.
 *
 * A process enters a pid namespace only by being born there: so our child, the keeper, enters the
 * namespaces, and its child is the interpreter.
 */
#include "verify/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/proc.h"

#define TIME_LIMIT_S 5u
#define PUMP_MS	     4
#define ARGS_MAX     16
#define ARGS_BYTES   8192

/* Far more than it needs. */
#define DATA_LIMIT  (UINT64_C(1) << 30)
#define FILES_LIMIT 64u

/* What sets it apart, in this order; for the report of a failure. */
enum stage { STAGE_PIDS, STAGE_NET, STAGE_FILES, STAGE_ROOT, STAGE_READ_ONLY, STAGE_FORK };
static const char *const stages[] = {
	[STAGE_PIDS] = "join the target's pid namespace",
	[STAGE_NET] = "be cut off from the network",
	[STAGE_FILES] = "join the target's mount namespace",
	[STAGE_ROOT] = "enter the target's root directory",
	[STAGE_READ_ONLY] = "see all files read-only",
	[STAGE_FORK] = "be started",
};

/* What the keeper says. */
struct report {
	pid_t pid; /* the interpreter's; a negative errno: it failed */
	enum stage stage;
};

/* All that the child needs, prepared before the fork. */
struct plan_of_run {
	int exe, root;	/* root: -1: ours */
	int mnt, pidns; /* -1: ours */
	int in, out;	/* its ends of the pipes */
	int report;	/* the keeper's: a struct report */
	pid_t parent;	/* the keeper's */
	bool drop;	/* become uid and gid */
	uid_t uid;
	gid_t gid;
	char *argv[ARGS_MAX + 8];
	char text[ARGS_BYTES];
};

/* ---- what to run ------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_python(const char *path)
{
	return strncmp(base_name(path), "python", 6) == 0;
}

/* A program started through the dynamic linker: `ld.so OPTION... PROGRAM ARG...`. */
static bool is_linker(const char *path)
{
	return strncmp(base_name(path), "ld-", 3) == 0 || strncmp(base_name(path), "ld.so", 5) == 0;
}

/* The linker's arguments up to the interpreter, from the target's own command line. */
static int linker_args(struct plan_of_run *r, pid_t pid, unsigned int *n, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (proc_read(AT_FDCWD, path, ARGS_BYTES, &text, &size) < 0 || size > sizeof(r->text))
		return diag_errno(diag, EIO, "the command line cannot be read");
	memcpy(r->text, text, size);
	for (size_t at = 0; at < size && *n < ARGS_MAX; at += strlen(r->text + at) + 1) {
		r->argv[(*n)++] = r->text + at;
		if (at && is_python(r->text + at))
			return 0;
	}
	return diag_errno(diag, ENOENT, "the dynamic linker was not told to run a Python");
}

/* The path of an executable as it is in the target's root directory: where it looks for its
 * library. */
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

static int choose_args(struct plan_of_run *r, const struct target *t, const char *path,
		       const char *script, struct diag *diag)
{
	const char *exe = inside_root(t, path);
	unsigned int n = 0;
	int err = 0;

	if (t && is_linker(exe)) {
		err = linker_args(r, t->pid, &n, diag);
		if (err)
			return err;
	} else if (is_python(exe) && strlen(exe) < sizeof(r->text)) {
		memcpy(r->text, exe, strlen(exe) + 1);
		r->argv[n++] = r->text;
	} else {
		return diag_set(diag, -ENOEXEC, PYP_EXIT_FAILURE, "",
				"'%s' is not called python: it may be anything", base_name(exe));
	}
	r->argv[n++] = (char *)"-I";
	r->argv[n++] = (char *)"-S";
	r->argv[n++] = (char *)"-B";
	r->argv[n++] = (char *)"-c";
	r->argv[n++] = (char *)script;
	return 0;
}

/* ---- where ------------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The target's namespace (or root), if it is not ours too. */
static int open_other(pid_t pid, const char *name, int *ret, struct diag *diag)
{
	char theirs[64], ours[64];
	int fd;

	snprintf(theirs, sizeof(theirs), "/proc/%d/%s", pid, name);
	snprintf(ours, sizeof(ours), "/proc/self/%s", name);
	if (same_file(theirs, ours))
		return 0;
	fd = open(theirs, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return diag_errno(diag, errno, "'%s' cannot be entered", theirs);
	*ret = fd;
	return 0;
}

static int choose_place(struct plan_of_run *r, const struct target *t, struct diag *diag)
{
	char path[64];
	struct stat st;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/exe", t->pid);
	r->exe = open(path, O_PATH | O_CLOEXEC);
	if (r->exe < 0)
		return diag_errno(diag, errno, "'%s' cannot be opened", path);
	snprintf(path, sizeof(path), "/proc/%d", t->pid);
	if (stat(path, &st) < 0)
		return diag_errno(diag, errno, "the process has gone");
	r->uid = st.st_uid;
	r->gid = st.st_gid;
	r->drop = r->uid != geteuid() || r->gid != getegid();
	err = open_other(t->pid, "root", &r->root, diag);
	if (!err)
		err = open_other(t->pid, "ns/mnt", &r->mnt, diag);
	return err ? err : open_other(t->pid, "ns/pid", &r->pidns, diag);
}

static void plan_deinit(struct plan_of_run *r)
{
	closep(&r->exe);
	closep(&r->root);
	closep(&r->mnt);
	closep(&r->pidns);
	closep(&r->in);
	closep(&r->out);
	closep(&r->report);
}

/* ---- in the children --------------------------------------------------------------------- */

static void limit(int what, rlim_t value)
{
	const struct rlimit rl = {value, value};

	(void)setrlimit(what, &rl);
}

/* Nothing that we may do shall be possible from here on. */
static int drop_all(const struct plan_of_run *r)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL && errno != EPERM)
			return -errno;
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0) < 0 &&
	    errno != EPERM)
		return -errno;
	if (r->drop && (setgroups(0, NULL) < 0 || setresgid(r->gid, r->gid, r->gid) < 0 ||
			setresuid(r->uid, r->uid, r->uid) < 0))
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/*
 * A copy of all that is mounted below our root directory, read-only, becomes our root directory.
 * It is attached nowhere, and ends with its descriptor, which is the keeper's.
 */
static int enter_read_only(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
	int tree = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return -errno;
	/* Before 5.12 there is none, and the limit on the size of files has to do. */
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 &&
	    errno != ENOSYS)
		return -errno;
	return fchdir(tree) < 0 || chroot(".") < 0 ? -errno : 0;
}

static int enter_places(const struct plan_of_run *r, enum stage *at)
{
	*at = STAGE_PIDS;
	if (r->pidns >= 0 && setns(r->pidns, CLONE_NEWPID) < 0)
		return -errno;
	*at = STAGE_NET;
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0)
		return -errno;
	*at = STAGE_FILES;
	if (r->mnt >= 0 && setns(r->mnt, CLONE_NEWNS) < 0)
		return -errno;
	*at = STAGE_ROOT;
	if (r->root >= 0 && (fchdir(r->root) < 0 || chroot(".") < 0))
		return -errno;
	*at = STAGE_READ_ONLY;
	return enter_read_only();
}

#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, k, n, m) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (n), (m))
#define FORBID(call)	IF(BPF_JEQ, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM)
#define X32_BIT		0x40000000u

/* Threads, but no processes; clone3, whose flags cannot be seen, does not exist: clone will do. */
static int forbid_calls(void)
{
	static struct sock_filter code[] = {
		LOAD(arch),
		IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IF(BPF_JGE, X32_BIT, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		IF(BPF_JEQ, SYS_clone, 0, 4),
		LOAD(args[0]),
		IF(BPF_JSET, CLONE_THREAD, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		IF(BPF_JEQ, SYS_clone3, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | ENOSYS),
		FORBID(fork),
		FORBID(vfork),
		FORBID(unshare),
		FORBID(setns),
		FORBID(kill),
		FORBID(tkill),
		FORBID(tgkill),
		FORBID(rt_sigqueueinfo),
		FORBID(rt_tgsigqueueinfo),
		FORBID(pidfd_send_signal),
		FORBID(pidfd_open),
		FORBID(ptrace),
		FORBID(process_vm_writev),
		FORBID(socket),
		FORBID(io_uring_setup),
		FORBID(keyctl),
		FORBID(add_key),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {.len = sizeof(code) / sizeof(*code), .filter = code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0 ? -errno : 0;
}

__attribute__((noreturn)) static void become_interpreter(const struct plan_of_run *r)
{
	char *const env[] = {(char *)"LC_ALL=C", (char *)"PYTHON_JIT=0", NULL};
	int null;

	limit(RLIMIT_CPU, TIME_LIMIT_S);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_DATA, DATA_LIMIT);
	limit(RLIMIT_NOFILE, FILES_LIMIT);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, 2) < 0)
		(void)close(2);
	if (dup2(r->in, 0) < 0 || dup2(r->out, 1) < 0 || drop_all(r) < 0)
		_exit(126);
	/* Not before: changing the user clears it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (forbid_calls() < 0)
		_exit(125);
	(void)execveat(r->exe, "", r->argv, env, AT_EMPTY_PATH);
	_exit(127);
}

__attribute__((noreturn)) static void keep(const struct plan_of_run *r)
{
	struct report say;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Killed before it was asked for that: nobody would ever end us. */
	if (getppid() != r->parent)
		_exit(1);
	(void)setpgid(0, 0);
	say.pid = enter_places(r, &say.stage);
	if (say.pid == 0) {
		say.stage = STAGE_FORK;
		say.pid = fork();
		if (say.pid == 0)
			become_interpreter(r);
		if (say.pid < 0)
			say.pid = -errno;
	}
	if (write(r->report, &say, sizeof(say)) != sizeof(say) || say.pid < 0)
		_exit(1);
	(void)close(r->in);
	(void)close(r->out);
	(void)waitpid(say.pid, NULL, 0);
	_exit(0);
}

/* ---- here -------------------------------------------------------------------------------- */

static int signals_default(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_apart_failed(const struct report *said, struct diag *diag)
{
	const char *what = stages[said->stage];

	if (said->pid == -EPERM)
		return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION,
				"run as root, or as packaging/pyprofd.service does",
				"a scratch process may not %s (CAP_SYS_ADMIN, CAP_SYS_CHROOT)",
				what);
	return diag_errno(diag, -said->pid, "a scratch process cannot %s", what);
}

static int launch(struct plan_of_run *r, struct scratch *s, int report, struct diag *diag)
{
	struct report said;

	r->parent = getpid();
	s->keeper = fork();
	if (s->keeper == 0) {
		(void)signals_default();
		keep(r);
	}
	if (s->keeper < 0) {
		s->keeper = 0;
		return diag_errno(diag, errno, "no process can be started");
	}
	closep(&r->report);
	r->report = -1;
	if (read(report, &said, sizeof(said)) != sizeof(said))
		return diag_errno(diag, EPIPE, "the scratch process did not start");
	if (said.pid < 0)
		return set_apart_failed(&said, diag);
	s->pid = said.pid;
	return 0;
}

int scratch_start(const struct target *target, const char *path, const char *script,
		  struct scratch *ret, struct diag *diag)
{
	_cleanup_(plan_deinit) struct plan_of_run r = {
		.exe = -1, .root = -1, .mnt = -1, .pidns = -1, .in = -1, .out = -1, .report = -1};
	int in[2], out[2], report[2];
	int err;

	*ret = (struct scratch){.in = -1, .out = -1};
	err = choose_args(&r, target, target ? target->exe : path, script, diag);
	if (!err && target)
		err = choose_place(&r, target, diag);
	if (!err && !target) {
		r.exe = open(path, O_PATH | O_CLOEXEC);
		err = r.exe < 0 ? diag_errno(diag, errno, "'%s' cannot be opened", path) : 0;
	}
	if (err)
		return err;
	if (pipe2(in, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "no pipe");
	r.in = in[0];
	ret->in = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "no pipe");
	r.out = out[1];
	ret->out = out[0];
	if (pipe2(report, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "no pipe");
	r.report = report[1];
	ret->deadline_ns = clock_monotonic_ns() + TIME_LIMIT_S * UINT64_C(1000000000);
	err = launch(&r, ret, report[0], diag);
	(void)close(report[0]);
	return err;
}

int scratch_discover(struct scratch *s, const struct python *want, struct diag *diag)
{
	int r = target_open(s->pid, &s->target, diag);

	if (r == 0)
		r = python_discover(s->target, &s->python, diag);
	if (r < 0)
		return r;
	return python_same_build(s->python, want)
		       ? 0
		       : diag_set(diag, -ESTALE, PYP_EXIT_FAILURE, "",
				  "the scratch process got another interpreter");
}

int scratch_probe(const struct scratch *s, const struct plan *plan, size_t ring_bytes,
		  struct probe **ret, struct diag *diag)
{
	const struct probe_opts po = {
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
	size_t n = 0;

	for (;;) {
		struct pollfd p = {.fd = s->out, .events = POLLIN};
		uint64_t now = clock_monotonic_ns();
		int left = now < s->deadline_ns ? (int)((s->deadline_ns - now) / 1000000) : 0;
		int r = poll(&p, 1, s->pump && left > PUMP_MS ? PUMP_MS : left);

		if (r == 0 && left == 0)
			return -ETIMEDOUT;
		if (s->pump)
			s->pump(s->pump_ctx);
		if (r == 0)
			continue;
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 || read(s->out, line + n, 1) != 1)
			return -EPIPE;
		if (line[n] == '\n')
			break;
		if (++n == size)
			return -EMSGSIZE;
	}
	line[n] = '\0';
	return 0;
}

/* Killing the interpreter by its pid is safe: its parent, the keeper, reaps it, and we the keeper;
 * should the keeper have gone, the interpreter has died with it. */
void scratch_end(struct scratch *s)
{
	closep(&s->in);
	closep(&s->out);
	s->in = s->out = -1;
	if (s->keeper > 0) {
		(void)kill(s->keeper, SIGKILL);
		(void)waitpid(s->keeper, NULL, 0);
	}
	s->keeper = s->pid = 0;
	python_free(TAKE_PTR(s->python));
	target_free(TAKE_PTR(s->target));
}
