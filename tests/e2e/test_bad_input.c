// SPDX-License-Identifier: BSD-2-Clause
/*
 * Errors: each has its own exit status and one line on stderr, and does not affect the daemon or
 * the target.
 */
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", NULL);
	pyprofd_init(&d);
}

/* The target is unaffected: it finishes its work and exits with 0. */
static void teardown(void)
{
	pyprofd_deinit(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
}

TestSuite(bad_input, .init = setup, .fini = teardown);

static void check_exit(struct ran r, int status)
{
	cr_assert(r.status == status, "pyprofd ended with %d: %s", r.status, r.err);
	ran_free(&r);
}

static void begin(const char *arg, const char *value)
{
	pyprofd_launch(&d, arg, value, NULL);
	pyprofd_ready(&d);
}

static void end(void)
{
	free(ctl_ok(&d, "shutdown", NULL));
	check_exit(pyprofd_wait(&d), 0);
}

/* --- processes --- */

Test(bad_input, a_process_that_does_not_exist)
{
	char nobody[16];

	pid_text(nobody, pid_of_nobody());
	pyprofd_fails(&d, 3, nobody, "--pid", nobody, NULL);
	ctl_fails(&d, 3, nobody, "doctor", nobody, NULL);
	begin("--no-start", NULL);
	ctl_fails(&d, 3, nobody, "attach", nobody, NULL);
	end();
}

/* A process of the same user that is not a Python interpreter */
static pid_t start_sleeper(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sleep", "sleep", "3600", (char *)NULL);
		_exit(127);
	}
	cr_assert(child > 0);
	return child;
}

static void stop_sleeper(pid_t child)
{
	kill(child, SIGKILL);
	cr_assert(waitpid(child, NULL, 0) == child);
}

Test(bad_input, not_python)
{
	pid_t child = start_sleeper();
	char text[16];

	pid_text(text, child);
	pyprofd_fails(&d, 5, text, "--pid", text, NULL);
	ctl_fails(&d, 5, text, "doctor", text, NULL);
	ctl_fails(&d, 5, "", "doctor", "/bin/sleep", NULL);
	begin("--no-start", NULL);
	ctl_fails(&d, 5, text, "attach", text, NULL);
	free(ctl_ok(&d, "attach", pid, NULL));
	end();
	stop_sleeper(child);
}

/* Pythons of this machine whose versions are not supported, such as 2.7 */
Test(bad_input, another_python)
{
	const char *home = getenv("HOME");
	struct traced other;
	char pattern[512], text[16];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/2.*/bin/python2.*[0-9]",
		 home ? home : "");
	if (glob(pattern, 0, NULL, &g))
		cr_skip_test("needs a python2 in ~/.pyenv/versions");
	traced_ready(&other, text, g.gl_pathv[0], "deep.py", NULL);
	pyprofd_fails(&d, 5, "is Python 2.", "--pid", text, NULL);
	ctl_fails(&d, 5, "is Python 2.", "doctor", text, NULL);
	ctl_fails(&d, 5, "", "doctor", g.gl_pathv[0], NULL);
	traced_go(&other);
	traced_expect(&other, "done");
	traced_finish(&other);
	globfree(&g);
}

Test(bad_input, files_that_are_none)
{
	char empty[128];

	pyprofd_file(&d, "empty", empty, sizeof(empty));
	close(open(empty, O_CREAT | O_WRONLY, 0755));
	ctl_fails(&d, 5, "", "doctor", empty, NULL);
	ctl_fails(&d, 5, "", "doctor", d.dir, NULL);
	ctl_fails(&d, 1, "nowhere", "doctor", "/nowhere", NULL);
	ctl_fails(&d, 5, "", "doctor", "/dev/zero", NULL);
}

Test(bad_input, attached_already)
{
	pyprofd_fails(&d, 2, "given twice", "--pid", pid, "--pid", pid, NULL);
	begin("--pid", pid);
	ctl_fails(&d, 7, "attached already", "attach", pid, NULL);
	end();
}

static bool runs_valgrind(struct traced *unused, void *ctx)
{
	char path[64], exe[256] = "";

	(void)unused;
	snprintf(path, sizeof(path), "/proc/%d/exe", *(const pid_t *)ctx);
	return readlink(path, exe, sizeof(exe) - 1) > 0 && strstr(exe, "/valgrind/");
}

/* Valgrind translates the code, so probes in the file would never be hit. */
Test(bad_input, under_valgrind)
{
	pid_t child = fork();
	char text[16];

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("valgrind", "valgrind", "-q", "--tool=none", "/usr/bin/sleep", "3600",
		       (char *)NULL);
		_exit(127);
	}
	cr_assert(child > 0);
	traced_until(&t, runs_valgrind, &child, "valgrind");
	ctl_fails(&d, 5, "runs under valgrind", "doctor", pid_text(text, child), NULL);
	pyprofd_fails(&d, 5, "runs under valgrind", "--pid", text, NULL);
	cr_assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

/* --- permissions --- */

/* Become nobody, a user without permissions on root's processes. */
static void become_nobody(void)
{
	struct passwd *pw = getpwnam("nobody");

	if (geteuid() != 0)
		cr_skip_test("needs root, to be somebody else");
	d.uid = pw ? pw->pw_uid : 65534;
}

Test(bad_input, not_ours_to_trace)
{
	become_nobody();
	pyprofd_fails(&d, 4, "CAP_", "--pid", pid, NULL);
	ctl_fails(&d, 4, "CAP_", "doctor", pid, NULL);
	pyprofd_fails(&d, 4, "CAP_", "--", "/usr/bin/python3", "-c", "pass", NULL);
}

/* Even for the user's own processes: probes need more privileges. */
Test(bad_input, no_privileges)
{
	pid_t child;
	char text[16];

	become_nobody();
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgid(d.uid) < 0 || setuid(d.uid) < 0)
			_exit(1);
		execl("/usr/bin/python3", "python3", "-c", "import time; time.sleep(3600)",
		      (char *)NULL);
		_exit(127);
	}
	pid_text(text, child);
	pyprofd_fails(&d, 4, "CAP_", "--pid", text, NULL);
	stop_sleeper(child);
}

Test(bad_input, another_users_client)
{
	begin("--pid", pid);
	become_nobody();
	ctl_fails(&d, 4, "socket", "status", NULL);
	ctl_fails(&d, 4, "socket", "shutdown", NULL);
	d.uid = 0;
	/* The daemon refuses the client even if the socket's mode admits it. */
	assert_ok(chmod(d.sock, 0666));
	become_nobody();
	ctl_fails(&d, 4, "has no permission to use this daemon", "status", NULL);
	ctl_fails(&d, 4, "has no permission to use this daemon", "shutdown", NULL);
	d.uid = 0;
	end();
}

/* --- daemons and sockets --- */

Test(bad_input, a_second_daemon)
{
	struct pyprofd second;

	begin("--pid", pid);
	pyprofd_init(&second);
	snprintf(second.sock, sizeof(second.sock), "%s", d.sock);
	pyprofd_fails(&second, 7, d.sock, NULL);
	pyprofd_fails(&second, 7, d.sock, "--pid", pid, NULL);
	free(ctl_ok(&d, "ping", NULL));
	end();
	pyprofd_deinit(&second);
}

Test(bad_input, no_daemon)
{
	static const char *const commands[] = {"ping",	"status",   "start",   "stop",
					       "clear", "shutdown", "snapshot"};
	char *env[] = {(char[]){"PYPROFD_SOCKET=/nonexistent/e2e"}, NULL};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		ctl_fails(&d, 6, d.sock, commands[i], NULL);
	ctl_fails(&d, 6, d.sock, "attach", pid, NULL);
	ctl_fails(&d, 6, d.sock, "detach", pid, NULL);
	d.env = env;
	ctl_fails(&d, 6, "/nonexistent/e2e", "ping", "--socket", "/nonexistent/e2e", NULL);
}

Test(bad_input, sockets_that_cannot_be)
{
	struct pyprofd other = d;
	char *text;
	int fd;

	snprintf(other.sock, sizeof(other.sock), "%.60s/a/b/c", d.dir);
	pyprofd_fails(&other, 1, "socket", NULL);
	/* A file that is not a socket is not removed. */
	snprintf(other.sock, sizeof(other.sock), "%.60s/file", d.dir);
	fd = open(other.sock, O_CREAT | O_WRONLY, 0644);
	cr_assert(write(fd, "precious", 8) == 8);
	close(fd);
	pyprofd_fails(&other, 1, "is not a socket", NULL);
	text = file_text(other.sock, NULL);
	cr_assert_str_eq(text, "precious");
	free(text);
	memset(other.sock, 'x', sizeof(other.sock) - 1);
	other.sock[0] = '/';
	ctl_fails(&other, 6, "no daemon", "ping", NULL);
}

/* --- output --- */

Test(bad_input, an_output_that_cannot_be_written)
{
	char path[128];

	pyprofd_fails(&d, 1, "/nowhere/p.txt", "--pid", pid, "-o", "/nowhere/p.txt", NULL);
	pyprofd_fails(&d, 1, d.dir, "--pid", pid, "-f", "json", "-o", d.dir, NULL);
	begin("--pid", pid);
	ctl_fails(&d, 1, "/nowhere/p.txt", "snapshot", "-o", "/nowhere/p.txt", NULL);
	ctl_fails(&d, 1, "/dev/full", "snapshot", "-o", "/dev/full", NULL);
	free(ctl_ok(&d, "snapshot", "-o", pyprofd_file(&d, "p.txt", path, sizeof(path)), NULL));
	end();
}

/*
 * The output can be opened at the start but not written at the end: the profile is saved elsewhere.
 */
Test(bad_input, an_output_that_fails_at_the_end)
{
	char tmp[128], *env[] = {tmp, NULL}, *where, *text;
	struct ran r;

	snprintf(tmp, sizeof(tmp), "TMPDIR=%s", d.dir);
	d.env = env;
	pyprofd_launch(&d, "--pid", pid, "-o", "/dev/full", NULL);
	pyprofd_ready(&d);
	kill(d.pid, SIGTERM);
	r = pyprofd_wait(&d);
	cr_assert(r.status == 1, "%d: %s", r.status, r.err);
	cr_assert(strchr(r.err, '\n') == r.err + strlen(r.err) - 1, "%s", r.err);
	where = strstr(r.err, "the profile is in '");
	cr_assert(where, "%s", r.err);
	where += strlen("the profile is in '");
	*strchr(where, '\'') = '\0';
	text = file_text(where, NULL);
	cr_assert(text && strstr(text, "function calls"), "%s", where);
	free(text);
	ran_free(&r);
}

/* --- usage --- */

Test(bad_input, usage_of_pyprofctl)
{
	ctl_fails(&d, 2, "a command is required", NULL);
	ctl_fails(&d, 2, "unknown command 'atach'; did you mean 'attach'", "atach", NULL);
	ctl_fails(&d, 2, "no process is given", "attach", NULL);
	ctl_fails(&d, 2, "missing", "detach", NULL);
	ctl_fails(&d, 2, "missing", "doctor", NULL);
	ctl_fails(&d, 2, "unexpected", "detach", "1", "2", NULL);
	ctl_fails(&d, 2, "unexpected", "ping", "x", NULL);
	ctl_fails(&d, 2, "--nonsense", "status", "--nonsense", NULL);
	ctl_fails(&d, 2, "not a process id", "detach", "--", "-5", NULL);
	ctl_fails(&d, 2, "0", "attach", "0", NULL);
	ctl_fails(&d, 2, "12x", "attach", "12x", NULL);
	ctl_fails(&d, 3, "no-such-name", "attach", "no-such-name", NULL);
	ctl_fails(&d, 2, "snapshot", "snap", NULL);
	ctl_fails(&d, 2, "clock", "snapshot", "--clock", "sun", NULL);
	ctl_fails(&d, 2, "limit", "snapshot", "-l", "many", NULL);
	ctl_fails(&d, 2, "limit", "snapshot", "-l", "0", NULL);
	ctl_fails(&d, 2, "pid", "snapshot", "--pid", "x", NULL);
	ctl_fails(&d, 2, "tid", "snapshot", "--tid", "1e3", NULL);
	ctl_fails(&d, 2, "needs a value", "snapshot", "-o", NULL);
}

Test(bad_input, what_the_daemon_checks)
{
	begin("--pid", pid);
	ctl_fails(&d, 2, "unknown format 'bogus'", "snapshot", "-f", "bogus", NULL);
	ctl_fails(&d, 2, "sort key 'bogus'", "snapshot", "-s", "bogus", NULL);
	ctl_fails(&d, 2, "sort key", "snapshot", "-s", "c", NULL);
	ctl_fails(&d, 2, "(", "snapshot", "(", NULL);
	end();
}

Test(bad_input, usage_of_pyprofd)
{
	pyprofd_fails(&d, 2, "bogus", "--pid", pid, "-f", "bogus", NULL);
	pyprofd_fails(&d, 2, "pid", "--pid", "0", NULL);
	pyprofd_fails(&d, 2, "pid", "--pid", "self", NULL);
	pyprofd_fails(&d, 2, "duration", "-d", "soon", NULL);
	pyprofd_fails(&d, 2, "duration", "-d", "-1", NULL);
	pyprofd_fails(&d, 2, "clock", "--clock", "sun", NULL);
	pyprofd_fails(&d, 2, "ring-size", "--ring-size", "1", NULL);
	pyprofd_fails(&d, 2, "max-overhead", "--max-overhead", "0", NULL);
	pyprofd_fails(&d, 2, "max-overhead", "--max-overhead", "51", NULL);
	pyprofd_fails(&d, 2, "max-overhead", "--max-overhead", "5x", NULL);
	pyprofd_fails(&d, 2, "requires mode trace", "--max-overhead", "5", "--mode", "count", NULL);
	pyprofd_fails(&d, 2, "without --counters", "--max-overhead", "5", "--counters", "all",
		      NULL);
	pyprofd_fails(&d, 2, "nonsense", "--nonsense", NULL);
	pyprofd_fails(&d, 2, "unexpected argument", pid, NULL);
	pyprofd_fails(&d, 2, "command after -- is missing", "--", NULL);
	pyprofd_fails(&d, 2, "pid", "--pid", NULL);
}
