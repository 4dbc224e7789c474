// SPDX-License-Identifier: BSD-2-Clause
/*
 * Self-test verdicts cached between runs: a user who copies an interpreter, and so its build-id and
 * plan, gets a separate entry. A verdict on one user's file is not used for another user's file,
 * nor for a file that has changed.
 */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define ALICE 12345u
#define BOB   12346u

static const char program[] = "import os, time\n"
			      "def work(): return sum(i for i in range(10))\n"
			      "os.write(1, b'x')\n"
			      "while True:\n"
			      "    work()\n"
			      "    time.sleep(0.001)\n";

static struct pyprofd d;
static char cache[96];

static pid_t start_as(uid_t user, const char *exe)
{
	int out[2];
	char c;
	pid_t pid;

	assert_ok(pipe2(out, O_CLOEXEC));
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		dup2(out[1], 1);
		if (setgroups(0, NULL) || setgid(user) || setuid(user))
			_exit(125);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(exe, "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	cr_assert(read(out[0], &c, 1) == 1, "%s does not run", exe);
	close(out[0]);
	return pid;
}

/* Copy the system's interpreter to a file of this user. */
static void copy_as(uid_t user, const char *name, char path[200])
{
	const char *const cp[] = {"cp", "-L", "/usr/bin/python3", path, NULL};

	snprintf(path, 200, "%s/%s", d.dir, name);
	free(tool_run(cp));
	assert_ok(chmod(path, 0755));
	assert_ok(chown(path, user, user));
}

/*
 * Attach to a process of this user that runs this file; returns whether a cached verdict was used.
 */
static bool is_known(uid_t user, const char *exe)
{
	pid_t target = start_as(user, exe);
	char pid[16];
	const char *verdict;
	bool known;
	json_t *t;

	free(ctl_ok(&d, "attach", pid_text(pid, target), NULL));
	t = ctl_target(&d, 0);
	verdict = json_string_value(json_object_get(t, "self_test"));
	cr_assert(strncmp(verdict, "passed", 6) == 0, "%s", verdict);
	known = strncmp(verdict, "passed before", 13) == 0;
	json_decref(t);
	free(ctl_ok(&d, "detach", pid, NULL));
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	return known;
}

static void setup(void)
{
	caps_require_bpf();
	pyprofd_init(&d);
	assert_ok(chmod(d.dir, 0755));
	snprintf(cache, sizeof(cache), "%s/cache", d.dir);
	assert_ok(mkdir(cache, 0700));
	cr_assert(setenv("CACHE_DIRECTORY", cache, 1) == 0);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
}

static void teardown(void)
{
	const char *const rm[] = {"rm", "-rf", cache, NULL};

	free(tool_run(rm));
	pyprofd_end(&d);
}

TestSuite(verdicts, .init = setup, .fini = teardown);

Test(verdicts, are_kept_by_user)
{
	cr_assert(!is_known(ALICE, "/usr/bin/python3"));
	cr_expect(is_known(ALICE, "/usr/bin/python3"), "nothing is kept");
	cr_expect(!is_known(BOB, "/usr/bin/python3"), "another user's verdict");
}

Test(verdicts, are_kept_by_file)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char first[200], second[200];

	copy_as(ALICE, "python-first", first);
	copy_as(BOB, "python-second", second);
	cr_assert(!is_known(ALICE, first));
	cr_expect(is_known(ALICE, first), "nothing is kept");
	cr_expect(!is_known(ALICE, second), "the verdict on another file");
	assert_ok(utimensat(AT_FDCWD, first, times, 0));
	cr_expect(!is_known(ALICE, first), "the file has changed since");
}
