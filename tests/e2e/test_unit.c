// SPDX-License-Identifier: BSD-2-Clause
/*
 * The systemd unit: its restrictions permit everything that the daemon needs. pyprofd runs under
 * the unit's restrictions (harness/confine.py) and traces another user's process, after a self-test
 * of its interpreter. With further restrictions it still traces, and reports what it left out.
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

#define SOMEBODY 12345u

static const char program[] = "import os, time\n"
			      "def work(): return sum(i for i in range(10))\n"
			      "os.write(1, b'x')\n"
			      "while True:\n"
			      "    work()\n"
			      "    time.sleep(0.001)\n";

static struct pyprofd d;
static pid_t target;
static char home[64];

static pid_t start_somebodys(const char *exe)
{
	int out[2];
	char c;
	pid_t pid;

	assert_ok(pipe2(out, O_CLOEXEC));
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		dup2(out[1], 1);
		if (setgroups(0, NULL) || setgid(SOMEBODY) || setuid(SOMEBODY))
			_exit(125);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(exe, "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	cr_assert(read(out[0], &c, 1) == 1, "no python3");
	close(out[0]);
	return pid;
}

static void setup(void)
{
	caps_require_bpf();
	tool_need("systemd-analyze");
	pyprofd_init(&d);
	/* An empty cache, so that the self-test runs. */
	cr_assert(setenv("CACHE_DIRECTORY", d.dir, 1) == 0);
	target = start_somebodys("/usr/bin/python3");
}

static void end_somebodys(void)
{
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	target = 0;
}

static void teardown(void)
{
	const char *const rm[] = {"rm", "-rf", home, NULL};

	end_somebodys();
	if (home[0])
		free(tool_run(rm));
}

TestSuite(unit, .init = setup, .fini = teardown);

static void start_confined(const char *without)
{
	static char confine[512], unit[512];
	static const char *by[9];
	size_t n = 0;

	by[n++] = "python3";
	by[n++] = traced_path("tests/harness", "confine.py", confine, sizeof(confine));
	by[n++] = traced_path("packaging", "pyprofd.service", unit, sizeof(unit));
	by[n++] = "--writable";
	by[n++] = d.dir;
	if (without) {
		by[n++] = "--without";
		by[n++] = without;
	}
	by[n++] = "--";
	by[n] = NULL;
	d.by = by;
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
}

/* Attach, wait for events, and check the value of a key in the status. */
static void expect_status(const char *key, const char *want)
{
	char pid[16];
	json_t *t;

	free(ctl_ok(&d, "attach", pid_text(pid, target), NULL));
	ctl_until(&d, 0, "events", 100);
	t = ctl_target(&d, 0);
	cr_assert(strstr(json_string_value(json_object_get(t, key)), want), "%s: %s", key,
		  json_string_value(json_object_get(t, key)));
	cr_assert(json_integer_value(json_object_get(t, "lost")) == 0);
	json_decref(t);
}

Test(unit, is_understood)
{
	char unit[512], socket[512], sed[1100];
	_cleanup_free_ char *path = NULL;
	const char *const copy[] = {"sh", "-c", sed, NULL};
	const char *const copy_socket[] = {
		"cp", traced_path("packaging", "pyprofd.socket", (char[512]){""}, 512), d.dir,
		NULL};
	const char *const verify[] = {"systemd-analyze", "verify", "--man=no", unit, socket, NULL};
	char *said;

	pyprofd_file(&d, "pyprofd.service", unit, sizeof(unit));
	pyprofd_file(&d, "pyprofd.socket", socket, sizeof(socket));
	path = realpath("/usr/bin/python3", NULL);
	snprintf(sed, sizeof(sed), "sed 's|=/usr/local/sbin/pyprofd |=%s |' '%s' > '%s'", path,
		 traced_path("packaging", "pyprofd.service", (char[512]){""}, 512), unit);
	free(tool_run(copy));
	free(tool_run(copy_socket));
	said = tool_run(verify);
	cr_assert_str_empty(said);
	free(said);
	pyprofd_deinit(&d);
}

Test(unit, verifies_and_traces)
{
	start_confined(NULL);
	expect_status("self_test", "passed");
	pyprofd_shutdown(&d);
}

/* The daemon sees no home directory (ProtectHome=yes): it opens the interpreter through /proc. */
Test(unit, verifies_an_interpreter_in_a_home_directory)
{
	char exe[100];
	const char *const cp[] = {"cp", "-L", "/usr/bin/python3", exe, NULL};

	end_somebodys();
	snprintf(home, sizeof(home), "%s/pyprofd-test-%d", "/home", (int)getpid());
	snprintf(exe, sizeof(exe), "%s/python3", home);
	assert_ok(mkdir(home, 0700));
	free(tool_run(cp));
	assert_ok(chmod(exe, 0700));
	assert_ok(chown(exe, SOMEBODY, SOMEBODY));
	assert_ok(chown(home, SOMEBODY, SOMEBODY));
	target = start_somebodys(exe);
	start_confined(NULL);
	expect_status("self_test", "passed");
	pyprofd_shutdown(&d);
}

Test(unit, traces_without_the_self_tests_capabilities)
{
	start_confined("CAP_SYS_ADMIN");
	expect_status("self_test", "not verified: no permission for a scratch process");
	pyprofd_shutdown(&d);
}

Test(unit, without_a_user_to_become)
{
	start_confined("CAP_SETUID");
	expect_status("self_test", "not verified: ");
	pyprofd_shutdown(&d);
}

/* tracefs is mounted read-only there, or not at all. */
Test(unit, by_a_uprobe_event)
{
	cr_assert(setenv("PYPROFD_ATTACH", "tracefs", 1) == 0);
	start_confined(NULL);
	expect_status("mechanism", "tracefs");
	pyprofd_shutdown(&d);
}

/* The exposure computed by systemd is below 2.6. The threshold is in tenths. */
Test(unit, is_narrow)
{
	char unit[512];
	const char *const security[] = {"systemd-analyze", "security", "--offline=true",
					"--threshold=25",  unit,       NULL};

	traced_path("packaging", "pyprofd.service", unit, sizeof(unit));
	free(tool_run(security));
	pyprofd_deinit(&d);
}
