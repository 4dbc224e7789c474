// SPDX-License-Identifier: BSD-2-Clause
/* target/: opening processes of all kinds; their threads; parsing texts in /proc. */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness/test.h"
#include "target/proc.h"

/* Start a child that waits until it is killed; returns after its preparations. */
static pid_t spawn(void (*prepare)(void))
{
	int ready[2];
	char c;
	pid_t pid;

	assert_ok(pipe(ready));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare)
			prepare();
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert(pid > 0 && read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void assert_exit(pid_t pid, enum pyp_exit exit, const char *text)
{
	struct target *t = NULL;
	struct diag diag = {0};
	char line[900];

	cr_assert(target_open(pid, &t, &diag) < 0);
	diag_format(&diag, line, sizeof(line));
	cr_assert(diag.exit == exit, "exit %d: %s", diag.exit, line);
	cr_assert_not_null(strstr(line, text), "%s", line);
	cr_assert_null(t);
}

Test(target, ourselves)
{
	struct target *t = NULL;
	struct diag diag = {0};

	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	cr_assert(t->pid == getpid() && t->pidfd >= 0 && t->starttime > 0);
	cr_assert(t->uid == getuid());
	cr_assert_not_null(strstr(t->exe, "test_target"));
	cr_assert(target_alive(t));
	target_free(t);
	target_free(NULL);
	check_no_leaks();
}

Test(target, end_is_noticed)
{
	pid_t pid = spawn(NULL);
	struct target *t = NULL;
	struct target_maps m = {0};
	struct diag diag = {0};
	siginfo_t info;

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	cr_assert(target_alive(t));
	kill(pid, SIGKILL);
	assert_ok(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	cr_assert_not(target_alive(t), "a zombie has ended");
	assert_exit(pid, PYP_EXIT_NO_PROCESS, "zombie");
	waitpid(pid, NULL, 0);
	cr_assert_not(target_alive(t));
	assert_err(target_maps_read(t, &m, &diag), -ESRCH);
	assert_exit(pid, PYP_EXIT_NO_PROCESS, "no process");
	target_free(t);
	check_no_leaks();
}

Test(target, no_such_process)
{
	assert_exit(0, PYP_EXIT_NO_PROCESS, "no process");
	assert_exit(-1, PYP_EXIT_NO_PROCESS, "no process");
	assert_exit(0x7ffffffe, PYP_EXIT_NO_PROCESS, "no process");
	check_no_leaks();
}

/* A thread that reports its id and waits for the mutex. */
struct sleeper {
	pthread_mutex_t stop;
	pthread_barrier_t started;
	pid_t tid;
};

static void *sleep_in_thread(void *arg)
{
	struct sleeper *s = arg;

	prctl(PR_SET_NAME, "a) R thread");
	s->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&s->started);
	pthread_mutex_lock(&s->stop);
	pthread_mutex_unlock(&s->stop);
	return NULL;
}

Test(target, threads)
{
	struct sleeper s = {.stop = PTHREAD_MUTEX_INITIALIZER};
	struct target_thread *v = NULL, one;
	struct target *t = NULL;
	struct diag diag = {0};
	pthread_t thread;
	char text[64];
	size_t n, found = 0;

	pthread_barrier_init(&s.started, NULL, 2);
	pthread_mutex_lock(&s.stop);
	assert_ok(pthread_create(&thread, NULL, sleep_in_thread, &s));
	pthread_barrier_wait(&s.started);

	snprintf(text, sizeof(text), "use the process id %d", getpid());
	assert_exit(s.tid, PYP_EXIT_NO_PROCESS, text);
	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	assert_diag_ok(target_threads(t, &v, &n, &diag), &diag);
	for (size_t i = 0; i < n; i++)
		if (v[i].tid == s.tid) {
			found++;
			cr_assert_str_eq(v[i].comm, "a) R thread");
			cr_assert(v[i].state == 'S' || v[i].state == 'R');
		}
	cr_assert(found == 1);
	assert_ok(target_thread_read(getpid(), getpid(), &one));
	cr_assert(one.runtime > 0 && one.tid == getpid());
	assert_err(target_thread_read(getpid(), 0x7ffffffe, &one), -ESRCH);

	pthread_mutex_unlock(&s.stop);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&s.started);
	free(v);
	target_free(t);
	check_no_leaks();
}

static void become_nobody(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(2);
}

static void become_nobody_dumpable(void)
{
	become_nobody();
	prctl(PR_SET_DUMPABLE, 1);
}

static void become_nobody_guarded(void)
{
	become_nobody();
	prctl(PR_SET_DUMPABLE, 0);
}

static void assert_owner(void (*prepare)(void), uid_t uid)
{
	struct target *t = NULL;
	struct diag diag = {0};
	pid_t pid = spawn(prepare);

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	cr_assert(t->uid == uid, "%u, not %u", t->uid, uid);
	target_free(t);
	end(pid);
}

Test(target, whose_process)
{
	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	assert_owner(become_nobody_dumpable, 65534);
	assert_owner(become_nobody_guarded, 0);
	check_no_leaks();
}

/* Start a child that executes sh, which waits for input; returns after the exec. */
static pid_t spawn_shell(int *input)
{
	int executed[2], in[2];
	pid_t pid;
	char c;

	assert_ok(pipe2(executed, O_CLOEXEC));
	assert_ok(pipe2(in, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		execl("/bin/sh", "sh", "-c", "read x", "two\nlines", "\033[1m", "", (char *)NULL);
		_exit(127);
	}
	close(executed[1]);
	cr_assert(pid > 0 && read(executed[0], &c, 1) == 0);
	close(executed[0]);
	close(in[0]);
	*input = in[1];
	return pid;
}

Test(target, command_line)
{
	struct target *t = NULL;
	struct diag diag = {0};
	int input;
	pid_t pid = spawn_shell(&input);

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_ok(target_read_cmdline(t));
	cr_assert_str_eq(t->cmdline, "sh -c read x two?lines ?[1m");
	target_free(t);
	close(input);
	end(pid);
	check_no_leaks();
}

Test(target, not_ours_to_trace)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	pid = fork();
	if (pid == 0) {
		become_nobody();
		assert_exit(1, PYP_EXIT_PERMISSION, "no permission to trace process 1");
		_exit(0);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Start a child that executes sh, which waits for input, after a byte was sent to *go. */
static pid_t spawn_to_exec(int *go)
{
	int in[2], ready[2];
	char c;
	pid_t pid;

	assert_ok(pipe2(in, O_CLOEXEC));
	assert_ok(pipe2(ready, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "r", 1) != 1 || read(in[0], &c, 1) != 1 || dup2(in[0], 0) < 0)
			_exit(125);
		execl("/bin/sh", "sh", "-c", "read x", (char *)NULL);
		_exit(127);
	}
	cr_assert(pid > 0 && read(ready[0], &c, 1) == 1);
	close(in[0]);
	close(ready[0]);
	close(ready[1]);
	*go = in[1];
	return pid;
}

static bool runs(pid_t pid, const char *program)
{
	char path[64], exe[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, exe, sizeof(exe) - 1) > 0 && strstr(exe, program);
}

Test(target, an_exec_changes_the_identity)
{
	struct target *t = NULL;
	struct diag diag = {0};
	int go;
	pid_t pid = spawn_to_exec(&go);

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_diag_ok(target_check(t, &diag), &diag);
	cr_assert(t->identity.starttime == t->starttime && t->identity.uid == getuid() &&
		  t->identity.gid == getgid() && !t->identity.mixed && t->identity.exe.ino);
	cr_assert(write(go, "x", 1) == 1);
	while (runs(pid, "test_target"))
		sched_yield();
	assert_err(target_check(t, &diag), -ESTALE);
	cr_assert_not_null(strstr(diag.msg, "has executed another program"));
	assert_ok(target_refresh(t, NULL)); /* waits for the end of the exec */
	assert_ok(target_check(t, NULL));
	close(go);
	waitpid(pid, NULL, 0);
	assert_err(target_check(t, NULL), -ESRCH);
	target_free(t);
	check_no_leaks();
}

/*
 * Start a child that executes its own program again: the same file, user and group, but a new exec.
 */
static pid_t spawn_twice(int *go)
{
	int in[2];
	pid_t pid;

	assert_ok(pipe2(in, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		execl("/bin/sh", "sh", "-c", "read x; exec sh -c 'read y'", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	*go = in[1];
	while (runs(pid, "test_target"))
		sched_yield();
	return pid;
}

Test(target, the_same_program_again_is_another_identity)
{
	struct target *t = NULL;
	struct diag diag = {0};
	int go, err = 0;
	pid_t pid = spawn_twice(&go);

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	cr_assert(write(go, "\n", 1) == 1);
	while (!err)
		err = target_check(t, NULL);
	assert_err(err, -ESTALE);
	end(pid);
	close(go);
	target_free(t);
	check_no_leaks();
}

static void become_half_nobody(void)
{
	if (setresuid(65534, (uid_t)-1, (uid_t)-1))
		_exit(2);
}

static void become_half_nogroup(void)
{
	if (setresgid(65534, (gid_t)-1, (gid_t)-1))
		_exit(2);
}

static struct target_identity identity_of(void (*prepare)(void))
{
	struct target_identity id;
	struct target *t = NULL;
	struct diag diag = {0};
	pid_t pid = spawn(prepare);

	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	id = t->identity;
	target_free(t);
	end(pid);
	return id;
}

/* /proc of a process that has dropped its privileges belongs to root; its user is still found. */
Test(target, as_which_user)
{
	struct target_identity id;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	id = identity_of(become_nobody_guarded);
	cr_assert(!id.mixed && id.uid == 65534 && id.gid == 65534);
	cr_assert(identity_of(become_half_nobody).mixed);
	cr_assert(identity_of(become_half_nogroup).mixed);
	check_no_leaks();
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

/* The main thread has ended and another one has not: the process is alive. */
Test(target, main_thread_has_ended)
{
	char path[64];
	struct proc_stat st = {0};
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		pthread_create(&thread, NULL, wait_for_end, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (st.state != 'Z')
		assert_ok(proc_stat_read(AT_FDCWD, path, &st));
	cr_assert(st.exiting && !target_ending(pid));
	assert_ok(kill(pid, SIGKILL));
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* A zombie, and a process that does not exist any more. */
Test(target, ending)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	cr_assert(pid > 0 && !target_ending(pid) && !target_ending(getpid()));
	assert_ok(kill(pid, SIGKILL));
	assert_ok(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	cr_assert(target_ending(pid));
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_assert(target_ending(pid));
	check_no_leaks();
}

Test(target, kernel_thread)
{
	char comm[32] = "";
	FILE *f = fopen("/proc/2/comm", "re");

	if (f) {
		if (!fgets(comm, sizeof(comm), f))
			comm[0] = 0;
		fclose(f);
	}
	if (strcmp(comm, "kthreadd\n") != 0)
		cr_skip_test("no kernel threads to be seen here");
	assert_exit(2, PYP_EXIT_UNTRACEABLE, "kernel thread");
	check_no_leaks();
}

Test(proc, stat_lines)
{
	static const char good[] = "12 (a) R (b) S 1 1 1 0 -1 4194304 1 0 0 0 7 8 0 0 20 0 1 0 "
				   "4711 0 0\n";
	struct proc_stat st;

	assert_ok(proc_stat_parse(good, &st));
	cr_assert_str_eq(st.comm, "a) R (b");
	cr_assert(st.state == 'S' && st.utime == 7 && st.stime == 8 && st.starttime == 4711);
	for (size_t n = 0; n < strlen(good) - strlen("4711 0 0\n"); n++) {
		char *cut = strndup(good, n);

		assert_err(proc_stat_parse(cut, &st), -EINVAL);
		free(cut);
	}
	assert_err(proc_stat_parse(")(", &st), -EINVAL);
	check_no_leaks();
}

Test(proc, status_fields)
{
	const char *status = "Name:\tTgid:\t9\nTgid:\t12\nNSpid:\t812\t7\nEmpty:\n";

	cr_assert(strncmp(proc_field(status, "Tgid"), "12\n", 3) == 0);
	cr_assert_null(proc_field(status, "Tg"));
	cr_assert(proc_last_pid(status, "NSpid") == 7);
	cr_assert(proc_last_pid(status, "Tgid") == 12);
	cr_assert(proc_last_pid(status, "Name") == 0);
	cr_assert(proc_last_pid(status, "Empty") == 0);
	cr_assert(proc_last_pid("", "Empty") == 0);
}
