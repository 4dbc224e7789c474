// SPDX-License-Identifier: BSD-2-Clause
/*
 * The self-test's scratch process with hostile targets: devices it opens, its user, access to it.
 * Its limits are tested in test_scratch_bounds.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/attack.h"
#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define SECTOR	  512
#define DISK_SIZE 1048576

TestSuite(scratch);

/* ---- a disk of root ---------------------------------------------------------------------- */

/* A loop device filled with dots; it disappears when its descriptor is closed. */
static int disk_new(struct attack *a, char dev[32])
{
	struct loop_config config = {.info.lo_flags = LO_FLAGS_AUTOCLEAR};
	char dots[SECTOR];
	int ctl, fd = -1;

	attack_setup(a);
	memset(dots, '.', sizeof(dots));
	config.fd = (uint32_t)open(attack_path(a, "disk"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_ok(ftruncate((int)config.fd, DISK_SIZE));
	cr_assert(pwrite((int)config.fd, dots, sizeof(dots), 0) == sizeof(dots));
	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	for (int tries = 0; ctl >= 0 && fd < 0 && tries < 20; tries++) {
		snprintf(dev, 32, "/dev/loop%d", ioctl(ctl, LOOP_CTL_GET_FREE));
		fd = open(dev, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) < 0) {
			close(fd);
			fd = -1;
		}
	}
	close((int)config.fd);
	if (ctl >= 0)
		close(ctl);
	if (fd < 0)
		cr_skip_test("needs a loop device");
	a->disk = dev;
	return fd;
}

static bool disk_is_whole(int disk)
{
	char sector[SECTOR];

	cr_assert(pread(disk, sector, sizeof(sector), 0) == sizeof(sector));
	for (size_t i = 0; i < sizeof(sector); i++)
		if (sector[i] != '.')
			return false;
	return true;
}

/* A device mounted over /dev/null must not be opened with the daemon's privileges. */
Test(scratch, a_disk_in_the_place_of_dev_null)
{
	struct attack a = {.uid = ATTACK_USER, .code = "    posix.write(2, b'ATTACKED' * 64)\n"};
	char dev[32];
	int disk = disk_new(&a, dev);

	attack_run(&a);
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	cr_assert(disk_is_whole(disk), "an unprivileged user wrote to root's disk");
	attack_end(&a);
	close(disk);
}

/* A container's root may create device nodes; its device cgroup forbids opening them. */
#define DEVICES "/sys/fs/cgroup/devices"

static char group[128];

static void container_root(struct attack *a)
{
	char pid[16];
	struct stat st;

	attack_must(unshare(CLONE_NEWNS) == 0, "mount namespace");
	attack_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	attack_must(stat(a->disk, &st) == 0, a->disk);
	attack_must(mount("tmpfs", "/mnt", "tmpfs", 0, NULL) == 0, "/mnt");
	attack_must(mknod("/mnt/disk", S_IFBLK | 0666, st.st_rdev) == 0, "/mnt/disk");
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	attack_put(group, pid);
	attack_must(open("/mnt/disk", O_RDONLY | O_CLOEXEC) < 0 && errno == EPERM,
		    "no device policy");
}

static void group_new(void)
{
	char deny[160];

	snprintf(group, sizeof(group), DEVICES "/pyprof-test-%d", (int)getpid());
	if (mkdir(group, 0755) < 0)
		cr_skip_test("needs the devices cgroup of version 1");
	snprintf(deny, sizeof(deny), "%s/devices.deny", group);
	attack_put(deny, "b 7:* rwm");
	strncat(group, "/cgroup.procs", sizeof(group) - strlen(group) - 1);
}

static void group_end(void)
{
	*strrchr(group, '/') = '\0';
	while (rmdir(group) < 0 && errno == EBUSY && !patience_over())
		patience_step();
}

Test(scratch, a_device_that_its_container_may_not_open)
{
	struct attack a = {.prepare = container_root,
			   .code = "    try:\n"
				   "        posix.read(posix.open('/mnt/disk', posix.O_RDONLY), "
				   "8); say('read')\n"
				   "    except OSError: pass\n"
				   "    try:\n"
				   "        fd = posix.open('/mnt/disk', posix.O_WRONLY)\n"
				   "        posix.write(fd, b'ATTACKED' * 64); say('wrote')\n"
				   "    except OSError: pass\n"};
	char dev[32];
	int disk = disk_new(&a, dev);

	group_new();
	attack_run(&a);
	cr_expect(attack_printed(&a, "ran"), "%s", a.text);
	cr_expect(!attack_printed(&a, "read") && !attack_printed(&a, "wrote"),
		  "the scratch process opened it");
	cr_expect(disk_is_whole(disk));
	attack_end(&a);
	group_end();
	close(disk);
}

/* ---- the user of the process ------------------------------------------------------------- */

#define WHO "    say('root' if posix.getuid() == 0 or posix.getgid() == 0 else 'user')\n"

/* /proc/PID of a non-dumpable process belongs to root, and any process can be non-dumpable. */
Test(scratch, a_guarded_process_is_not_roots)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = WHO,
			   .program = "import ctypes\n"
				      "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" ATTACK_WAITS};

	attack_run(&a);
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	cr_assert(!attack_printed(&a, "root"), "a user's program was run as root");
	cr_assert(attack_printed(&a, "user"));
	attack_end(&a);
}

static void copy_python(struct attack *a, const char *to, uid_t uid, mode_t mode)
{
	char command[512];

	snprintf(command, sizeof(command), "import shutil, sys; shutil.copy('%s', '%s')",
		 ATTACK_PYTHON, to);
	free(python_run(ATTACK_PYTHON, command, ""));
	assert_ok(chown(to, uid, uid));
	assert_ok(chmod(to, mode));
	a->exe = to;
}

/* Root runs it, but its owner controls the file's contents. */
Test(scratch, a_file_of_a_user_is_not_run_as_root)
{
	struct attack a = {.code = WHO, .prepare = attack_private_mounts};

	attack_setup(&a);
	copy_python(&a, attack_path(&a, "python3"), ATTACK_USER, 0755);
	attack_run(&a);
	cr_assert(!attack_printed(&a, "ran"), "a user's file was run as root");
	cr_assert(strstr(a.text, "user 4711 owns its file"), "%s", a.text);
	attack_end(&a);
}

/* Set-user-id: real and effective user differ */
static void as_user_privately(struct attack *a)
{
	attack_private_mounts(a);
	attack_mount(a);
	attack_must(setgroups(0, NULL) == 0 &&
			    setresgid(ATTACK_USER, ATTACK_USER, ATTACK_USER) == 0 &&
			    setresuid(ATTACK_USER, 0, 0) == 0,
		    "user");
}

Test(scratch, a_process_of_two_users_is_not_run_again)
{
	struct attack a = {.code = WHO, .prepare = as_user_privately};

	attack_run(&a);
	cr_assert(!attack_printed(&a, "ran"), "a process with two users was run as one of them");
	cr_assert(strstr(a.text, "the ids of several users"), "%s", a.text);
	attack_end(&a);
}

/* ---- another program at a critical moment ------------------------------------------------ */

/* A Python owned by the user, with a standard library owned by the user */
static const char make_python[] =
	"import os, shutil, sys\n"
	"top, std = sys.argv[1], os.path.dirname(os.__file__)\n"
	"lib = top + '/lib/' + os.path.basename(std)\n"
	"os.makedirs(lib); os.mkdir(top + '/bin')\n"
	"for e in os.listdir(std):\n"
	"    if e != 'encodings': os.symlink(std + '/' + e, lib + '/' + e)\n"
	"shutil.copytree(std + '/encodings', lib + '/encodings')\n"
	"shutil.copy(top + '/attack.py', lib + '/encodings/__init__.py')\n"
	"shutil.copy(sys.executable, top + '/bin/python3')\n"
	"shutil.copy('/bin/sleep', top + '/sleep'); os.chmod(top + '/sleep', 0o4755)\n";

static int go_exec;

/* It executes the set-user-id program at the end of its standard input. */
static void as_user_to_exec(struct attack *a)
{
	struct stat st;

	attack_must(dup2(go_exec, 0) == 0, "standard input");
	attack_must(stat(attack_path(a, "sleep"), &st) == 0 && st.st_mode & S_ISUID &&
			    st.st_uid == 0,
		    "sleep");
	attack_become(a->uid);
}

/* Returns whether this is a call that opens /proc/PID/exe without reading it. */
static bool opens_exe(pid_t pid, const struct user_regs_struct *r)
{
	union {
		long words[8];
		char text[8 * sizeof(long) + 1];
	} path = {0};
	const char *end;

	if (r->orig_rax != SYS_openat || !(r->rdx & O_PATH))
		return false;
	for (size_t i = 0; i < 8; i++)
		path.words[i] = ptrace(PTRACE_PEEKDATA, pid, r->rsi + i * sizeof(long), 0);
	end = strstr(path.text, "/exe");
	return strncmp(path.text, "/proc/", 6) == 0 && end && !end[4];
}

/* The next thread of doctor that stops */
static pid_t next_stop(pid_t doctor, int *status)
{
	pid_t tid;

	do {
		tid = waitpid(-1, status, __WALL);
		cr_assert(tid > 0 && (tid != doctor || WIFSTOPPED(*status)),
			  "doctor does not open the program");
	} while (!WIFSTOPPED(*status));
	return tid;
}

/*
 * Let doctor run until one of its threads has opened the target's program; that thread is then
 * stopped. (doctor reads processes in a worker thread.)
 */
static pid_t stop_at_exe(pid_t doctor)
{
	struct user_regs_struct regs;
	pid_t opening = 0, tid;
	int status;

	cr_assert(waitpid(doctor, &status, 0) == doctor && WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, doctor, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
	ptrace(PTRACE_SYSCALL, doctor, 0, 0);
	for (;;) {
		tid = next_stop(doctor, &status);
		if (WSTOPSIG(status) & 0x80) {
			ptrace(PTRACE_GETREGS, tid, 0, &regs);
			if (opening == tid)
				return tid;
			if (opens_exe(tid, &regs))
				opening = tid;
		}
		ptrace(PTRACE_SYSCALL, tid, 0, 0);
	}
}

/* Resume threads as they stop, first this one, which is stopped. */
static void let_go(pid_t doctor, pid_t tid)
{
	int status;

	ptrace(PTRACE_DETACH, tid, 0, 0);
	if (tid != doctor)
		ptrace(PTRACE_DETACH, next_stop(doctor, &status), 0, 0);
}

static void wait_for_program(pid_t pid, const char *name)
{
	char path[64], exe[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	do {
		cr_assert(!patience_over(), "it does not execute %s", name);
		n = readlink(path, exe, sizeof(exe) - 1);
		exe[n > 0 ? n : 0] = '\0';
	} while (!strstr(exe, name));
}

/*
 * The target executes a set-user-id program between doctor's reading of its executable, which is
 * the user's, and of its user id, which is then root's.
 */
Test(scratch, a_set_user_id_program_between_two_looks)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = WHO,
			   .prepare = as_user_to_exec,
			   .in_place = true,
			   .traced = true,
			   .program = "import os\nos.write(1, b'x')\nos.read(0, 1)\n"
				      "os.execv(os.environ['SLEEP'], ['sleep', '300'])\n"};
	int go[2];
	pid_t doctor, stopped;

	caps_require_bpf();
	assert_ok(pipe2(go, O_CLOEXEC));
	go_exec = go[0];
	attack_setup(&a);
	free(python_run(ATTACK_PYTHON, make_python, a.dir));
	a.exe = attack_path(&a, "bin/python3");
	cr_assert(setenv("SLEEP", attack_path(&a, "sleep"), 1) == 0);
	attack_start(&a);
	doctor = attack_doctor(&a);
	stopped = stop_at_exe(doctor);
	close(go[1]);
	close(go[0]);
	wait_for_program(a.target, "/sleep");
	let_go(doctor, stopped);
	attack_follow(&a, doctor);
	cr_assert(!attack_printed(&a, "root"), "a user's program was run as root");
	cr_assert(strstr(a.text, "executed another program"), "%s", a.text);
	attack_end(&a);
}

/* ---- access to it ------------------------------------------------------------------------ */

/*
 * Attempts to access this process as the target's user; returns the number of the first way that
 * works, 0: none.
 */
static int look_into(pid_t pid)
{
	static const char *const files[] = {"exe", "mem", "maps", "environ", "root", "cwd", "fd/0"};
	char path[64];

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0)
		return 1;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
			return 2 + (int)i;
	}
	return 0;
}

static int keeper_reached = -1;

/* The keeper is a child of doctor and supervises the interpreter, as the same user. */
static void reach_keeper(struct attack *a, pid_t doctor)
{
	pid_t keeper = attack_child_of(doctor, ATTACK_KEEPER), pid;
	int status = 0;

	cr_assert(keeper > 0, "no keeper");
	pid = fork();
	if (pid == 0) {
		attack_become(a->uid);
		_exit(look_into(keeper));
	}
	waitpid(pid, &status, 0);
	keeper_reached = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

Test(scratch, the_same_user_cannot_reach_its_keeper)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = "    say('held'); say('user')\n",
			   .meanwhile = reach_keeper};

	attack_run(&a);
	cr_assert(attack_printed(&a, "held"), "%s", a.text);
	cr_assert(keeper_reached == 0, "%d", keeper_reached);
	attack_end(&a);
}

/* A process in a container that waits for other processes to appear. */
static _Noreturn void lie_in_wait(int found)
{
	static char line[128];
	char path[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (pid_t pid = 3;; pid = pid < 200 ? pid + 1 : 3) {
		ssize_t n;

		if (kill(pid, 0) < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		n = readlink(path, line, sizeof(line) - 1);
		(void)!write(found, line, n > 0 ? (size_t)n : 1);
	}
}

static int found[2];

/* Processes in the container: 1, the target; 2, the waiting process. */
static void container_with_a_lurker(struct attack *a)
{
	pid_t pid;
	int status = 0;

	attack_must(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "namespaces");
	pid = fork();
	if (pid) {
		/* It is also doctor's target: report its pid and wait. */
		char text[16];
		int n = snprintf(text, sizeof(text), "%d ", (int)pid);

		attack_must(write(found[1], text, (size_t)n) == n, "pid");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		waitpid(pid, &status, 0);
		_exit(status ? 1 : 0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	attack_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	attack_must(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
	if (fork() == 0)
		lie_in_wait(found[1]);
	(void)a;
}

Test(scratch, a_container_never_sees_it)
{
	struct attack a = {.code = "", .prepare = container_with_a_lurker};
	char text[512];
	ssize_t n;
	pid_t outer;

	caps_require_bpf();
	assert_ok(pipe2(found, O_CLOEXEC | O_NONBLOCK));
	a.exe = ATTACK_PYTHON;
	a.program = ATTACK_WAITS;
	attack_setup(&a);
	attack_start(&a);
	n = read(found[0], text, sizeof(text) - 1);
	cr_assert(n > 0);
	text[n] = '\0';
	cr_assert_str_eq(strchr(text, ' '), " ", "somebody was there from the beginning: %s", text);
	outer = a.target;
	a.target = (pid_t)strtol(text, NULL, 10);
	attack_follow(&a, attack_doctor(&a));
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	n = read(found[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	cr_assert(n < 0, "a newcomer was seen from inside, whose program is '%s'", text);
	kill(a.target, SIGKILL);
	a.target = outer;
	attack_end(&a);
}
