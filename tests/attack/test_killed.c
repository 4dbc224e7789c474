// SPDX-License-Identifier: BSD-2-Clause
/*
 * `pyprofctl record` and `run` with a private daemon, ended by signals: they leave no files in the
 * temporary directory and no daemon. The test has its own /tmp, so that all its files are known.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct traced t;
static struct interpreter it;

/* What stays visible below /tmp: the source tree and the programs, if they are there. */
#define KEPT 2
static const char *kept[KEPT];

static void make_directories(const char *path)
{
	char part[4096];

	for (const char *end = path; end; end = strchr(end + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		cr_assert(!part[0] || mkdir(part, 0755) == 0 || errno == EEXIST, "%s", part);
	}
	cr_assert(mkdir(path, 0755) == 0 || errno == EEXIST, "%s", path);
}

/* An empty /tmp for this process and its children */
static void own_tmp(void)
{
	char from[64];
	int fds[KEPT];

	kept[0] = getenv("PYPROF_TOP");
	kept[1] = getenv("PYPROF_BUILD");
	for (int i = 0; i < KEPT; i++) {
		bool there = kept[i] && strncmp(kept[i], "/tmp/", 5) == 0;

		fds[i] = there ? open(kept[i], O_PATH | O_CLOEXEC) : -1;
	}
	assert_ok(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	assert_ok(mount("tmpfs", "/tmp", "tmpfs", 0, "size=64m"));
	for (int i = 0; i < KEPT; i++) {
		if (fds[i] < 0) {
			kept[i] = NULL;
			continue;
		}
		make_directories(kept[i]);
		snprintf(from, sizeof(from), "/proc/self/fd/%d", fds[i]);
		assert_ok(mount(from, kept[i], NULL, MS_BIND | MS_REC, NULL));
		close(fds[i]);
	}
}

static void setup(void)
{
	it = traced_newest();
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		cr_skip_test("needs root");
	own_tmp();
	/* adopt orphaned processes */
	assert_ok(prctl(PR_SET_CHILD_SUBREAPER, 1));
	traced_ready(&t, NULL, it.exe, "run.py", "busy_empty", "3600", NULL);
	traced_go(&t);
}

static void teardown(void)
{
	traced_stop(&t);
}

TestSuite(killed, .init = setup, .fini = teardown);

static pid_t start(const char *const *args)
{
	const char *build = getenv("PYPROF_BUILD"), *argv[24] = {"pyprofctl"};
	char program[4096];
	pid_t pid;

	for (size_t i = 0; args[i]; i++)
		argv[1 + i] = args[i];
	snprintf(program, sizeof(program), "%s/pyprofctl", build ? build : "build");
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	return pid;
}

/* Returns the pid of its child pyprofd after the exec; 0: not yet. */
static pid_t daemon_of(pid_t pid)
{
	char path[64], text[256] = "";
	pid_t child = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[strcspn(text, " \n")] = '\0';
	if (n <= 0 || parse_pid(text, &child) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && strncmp(text, "pyprofd\n", 8) == 0 ? child : 0;
}

static void wait_gone(pid_t pid)
{
	while (kill(pid, 0) == 0) {
		waitpid(pid, NULL, WNOHANG);
		cr_assert(!patience_over(), "the daemon did not end");
		patience_step();
	}
}

/* Is this the first part below /tmp of a path that is kept? */
static bool is_kept(const char *name)
{
	size_t n = strlen(name);

	for (int i = 0; i < KEPT; i++)
		if (kept[i] && strncmp(kept[i] + 5, name, n) == 0 && strchr("/", kept[i][5 + n]))
			return true;
	return false;
}

static void assert_nothing_left(void)
{
	DIR *dir = opendir("/tmp");

	cr_assert(dir);
	for (struct dirent *e; (e = readdir(dir));)
		cr_assert(e->d_name[0] == '.' || is_kept(e->d_name), "'%s' is left in /tmp",
			  e->d_name);
	closedir(dir);
}

static void end_by(int signo, const char *const *args)
{
	pid_t pid = start(args), daemon;

	while (!(daemon = daemon_of(pid))) {
		cr_assert(!patience_over(), "it started no daemon");
		patience_step();
	}
	assert_ok(kill(pid, signo));
	cr_assert(waitpid(pid, NULL, 0) == pid);
	wait_gone(daemon);
	assert_nothing_left();
}

#define END_BY(signo, ...) end_by(signo, (const char *const[]){__VA_ARGS__, NULL})

static void record_by(int signo)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", t.pid);
	END_BY(signo, "--socket", "/nonexistent/s", "record", "--exact", "--yes", "--pid", pid,
	       "-d", "3600", "-o", "/dev/null");
}

Test(killed, record_by_sigkill)
{
	record_by(SIGKILL);
}

Test(killed, record_by_sigterm)
{
	record_by(SIGTERM);
}

Test(killed, run_by_signals)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGHUP};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		END_BY(signals[i], "run", "-o", "/dev/null", "--", it.exe, "-c",
		       "import time; time.sleep(3600)");
}
