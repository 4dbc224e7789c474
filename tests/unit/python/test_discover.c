// SPDX-License-Identifier: BSD-2-Clause
/* python/discover on real interpreters: as files, as processes, embedded in another program. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "harness/interpreters.h"
#include "harness/test.h"
#include "python/python.h"

static const char say_version[] = "import platform, signal\n"
				  "print(platform.python_version())\n"
				  "signal.pause()\n";

static bool supported(const struct interpreter *it)
{
	const struct layout *l = interpreter_layout(it);

	return l && l->proven;
}

static int discover(pid_t pid, struct python **ret, struct diag *diag)
{
	_cleanup_(target_freep) struct target *t = NULL;

	assert_diag_ok(target_open(pid, &t, diag), diag);
	return python_discover(t, ret, diag);
}

static void assert_untraceable(int err, const struct diag *diag, const char *text)
{
	char line[900];

	diag_format(diag, line, sizeof(line));
	cr_assert(err < 0 && diag->exit == PYP_EXIT_UNTRACEABLE, "exit %d: %s", diag->exit, line);
	cr_assert_not_null(strstr(line, text), "'%s' is not in: %s", text, line);
}

/*
 * Checks the address of _PyRuntime: in 3.13 and later, it begins with a cookie; from 3.10 on, it
 * leads to an interpreter with a thread.
 */
static void check_addresses(const struct python *py, pid_t pid)
{
	struct memory mem = memory_live(pid);
	struct python_stack *v = NULL;
	struct diag diag = {0};
	char cookie[8];
	size_t n;

	cr_assert(py->runtime);
	assert_diag_ok(python_stacks(py, &mem, pid, &v, &n, &diag), &diag);
	cr_assert(n == 1 && v[0].tid == pid && v[0].n >= 1);
	python_stacks_free(v, n);
	if (py->minor < 13)
		return;
	cr_assert(py->debug_offsets);
	assert_ok(memory_read(&mem, py->runtime, cookie, 8));
	assert_bytes_eq(cookie, "xdebugpy", 8);
}

static void check_process(const struct interpreter *it)
{
	struct python *py = NULL;
	struct diag diag = {0};
	char version[64];
	int out, err;
	pid_t pid = interpreter_start(it, say_version, &out);

	interpreter_line(out, version, sizeof(version));
	err = discover(pid, &py, &diag);
	if (supported(it)) {
		assert_diag_ok(err, &diag);
		cr_assert_str_eq(py->version, version);
		cr_assert(py->major == it->major && py->minor == it->minor);
		cr_assert(strncmp(py->via, "/proc/", 6) == 0);
		check_addresses(py, pid);
		python_free(py);
	} else {
		assert_untraceable(err, &diag, version);
	}
	interpreter_end(pid, out);
}

Test(discover, processes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_process(&v[i]);
	check_no_leaks();
}

static void check_file(const struct interpreter *it)
{
	struct python *py = NULL;
	struct diag diag = {0};
	int err = python_open_file(it->file, &py, &diag);

	if (!supported(it)) {
		assert_untraceable(err, &diag, "supported: CPython");
		return;
	}
	assert_diag_ok(err, &diag);
	cr_assert(py->minor == it->minor && py->bias == 0 && !py->via[0]);
	cr_assert_str_eq(py->file, it->file);
	cr_assert(py->build_id_len == 0 || py->build_id_len == 20);
	python_free(py);
	if (strcmp(it->file, it->exe) == 0)
		return;
	err = python_open_file(it->exe, &py, &diag);
	assert_untraceable(err, &diag, "use the path of");
}

Test(discover, files)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_file(&v[i]);
	check_no_leaks();
}

Test(discover, no_python)
{
	struct python *py = NULL;
	struct diag diag = {0};

	assert_untraceable(discover(getpid(), &py, &diag), &diag, "does not run Python");
	diag_clear(&diag);
	assert_untraceable(python_open_file("/bin/sh", &py, &diag), &diag, "no Python");
	diag_clear(&diag);
	assert_untraceable(python_open_file("/etc/passwd", &py, &diag), &diag, "not a usable ELF");
	diag_clear(&diag);
	assert_untraceable(python_open_file("/dev/null", &py, &diag), &diag, "regular file");
	assert_err(python_open_file("/nonexistent/python3", &py, NULL), -ENOENT);
	cr_assert_null(py);
	check_no_leaks();
}

/* Start a child that is not a Python program but has these libraries loaded. */
static pid_t embed(const char *first, const char *second, int *out)
{
	int fds[2];
	pid_t pid;

	assert_ok(pipe(fds));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!dlopen(first, RTLD_LAZY | RTLD_LOCAL) ||
		    (second && !dlopen(second, RTLD_LAZY | RTLD_LOCAL)) ||
		    write(fds[1], "ready\n", 6) != 6)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	*out = fds[0];
	return pid;
}

/* Finds the libpythons of supported versions; returns their number. */
static size_t libraries(struct interpreter v[INTERPRETERS_MAX])
{
	size_t n = interpreters_find(v), m = 0;

	for (size_t i = 0; i < n; i++)
		if (supported(&v[i]) && strcmp(v[i].file, v[i].exe) != 0)
			v[m++] = v[i];
	return m;
}

Test(discover, embedded)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = libraries(v);
	struct python *py = NULL;
	struct diag diag = {0};
	char line[16];
	int out;
	pid_t pid;

	if (n < 2)
		cr_skip_test("needs two libpythons");
	pid = embed(v[0].file, NULL, &out);
	interpreter_line(out, line, sizeof(line));
	assert_diag_ok(discover(pid, &py, &diag), &diag);
	cr_assert(py->minor == v[0].minor);
	cr_assert_not_null(strstr(py->file, "libpython"));
	python_free(py);
	interpreter_end(pid, out);

	pid = embed(v[0].file, v[1].file, &out);
	interpreter_line(out, line, sizeof(line));
	assert_untraceable(discover(pid, &py, &diag), &diag, "more than one Python interpreter");
	interpreter_end(pid, out);
	check_no_leaks();
}
