// SPDX-License-Identifier: BSD-2-Clause
/*
 * A package upgrade while a program is running: the interpreter's file is deleted or replaced by
 * another one. The process still runs the old file, and that one is found, probed and reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/counts.h"
#include "harness/sites.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

static struct traced t;

static void copy_file(const char *from, const char *to)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	cr_assert(in >= 0 && out >= 0, "%s, %s: %s", from, to, strerror(errno));
	assert_ok(fstat(in, &st));
	while (st.st_size > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)st.st_size);

		cr_assert(n > 0, "%s: %s", to, strerror(errno));
		st.st_size -= n;
	}
}

static void delete_it(const char *path)
{
	assert_ok(unlink(path));
}

/* Replaces as dpkg does: writes the new file beside the old one and renames it. */
static void replace_it(const char *path)
{
	char fresh[600];

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	copy_file("/bin/true", fresh);
	assert_ok(rename(fresh, path));
}

static void expect_work(unsigned int n, uint64_t all)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	char line[64];

	snprintf(line, sizeof(line), "work 0 %u", n);
	traced_say(&t, line);
	traced_expect(&t, "worked");
	s = traced_snapshot(&t);
	cr_assert(traced_is_exact(s, "replaced"));
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(counts_named(v, "work").ncalls, all);
}

static void check(const char *exe, const char *path, void (*change)(const char *path))
{
	struct sites sites;

	traced_start(&t, exe, "process_tree.py", NULL);
	traced_expect(&t, "ready");
	change(path);
	traced_attach(&t);
	cr_assert(strstr(traced_status(&t).python_file, path), "%s", traced_status(&t).python_file);
	expect_work(100, 100);
	traced_halt(&t);
	sites_find(&sites, t.pid);
	cr_assert_eq(sites_changed(&sites, t.pid), 0);
	assert_ok(sessions_start(t.sessions, 0, NULL));
	cr_assert_eq(sites_changed(&sites, t.pid), (int)sites.n);
	expect_work(50, 150);
	traced_say(&t, "stop");
	traced_finish(&t);
}

/* The file changes while the target is traced, and tracing continues. */
static void check_while_traced(const char *exe, const char *path, void (*change)(const char *path))
{
	traced_start(&t, exe, "process_tree.py", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	expect_work(10, 10);
	change(path);
	expect_work(10, 20);
	assert_ok(sessions_stop(t.sessions, 0, NULL));
	assert_ok(sessions_start(t.sessions, 0, NULL));
	expect_work(10, 30);
	traced_say(&t, "stop");
	traced_finish(&t);
}

struct layout_case {
	char dir[64], exe[512], file[512]; /* file: a copy of the interpreter's file */
};

/* Copies only the interpreter's file: the program, or its library. */
static void each_change(struct layout_case *c, const char *original)
{
	copy_file(original, c->file);
	check(c->exe, c->file, delete_it);
	copy_file(original, c->file);
	check(c->exe, c->file, replace_it);
	delete_it(c->file);
	copy_file(original, c->file);
	check_while_traced(c->exe, c->file, replace_it);
	delete_it(c->file);
}

static const struct interpreter *find(const struct interpreter *v, size_t n, bool shared)
{
	for (size_t i = n; i-- > 0;)
		if ((strcmp(v[i].exe, v[i].file) != 0) == shared)
			return &v[i];
	return NULL;
}

/* Sets the home to the directory above the program's: the library's modules are there. */
static void set_home(const char *exe)
{
	char *real = realpath(exe, NULL), *slash;

	cr_assert(real);
	for (int i = 0; i < 2; i++) {
		slash = strrchr(real, '/');
		cr_assert(slash);
		*slash = '\0';
	}
	setenv("PYTHONHOME", real, 1);
	free(real);
}

static void run(bool shared)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);
	const struct interpreter *it = find(v, n, shared);
	struct layout_case c;
	char *dir = temp_dir_new(), *real;

	if (!it) {
		temp_dir_remove(dir);
		cr_skip_test("needs an interpreter %s", shared ? "in a library" : "in its program");
	}
	real = realpath(shared ? it->file : it->exe, NULL);
	cr_assert(real);
	set_home(it->exe);
	snprintf(c.file, sizeof(c.file), "%s%s", dir, strrchr(real, '/'));
	snprintf(c.exe, sizeof(c.exe), "%s", shared ? it->exe : c.file);
	if (shared)
		setenv("LD_LIBRARY_PATH", dir, 1);
	each_change(&c, real);
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("PYTHONHOME");
	free(real);
	temp_dir_remove(dir);
	check_no_leaks();
}

Test(replaced, the_program)
{
	run(false);
}

Test(replaced, the_library)
{
	run(true);
}
