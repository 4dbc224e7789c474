// SPDX-License-Identifier: BSD-2-Clause
/*
 * The self-test passes on every interpreter here, fails with a plan that lacks a site, is
 * remembered, and is not to be fooled by what others write into its memory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "harness/caps.h"
#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/test.h"
#include "verify/verify.h"

static const char sleeping[] = "import signal\nprint('ready')\nsignal.pause()\n";

struct subject {
	pid_t pid;
	int out;
	struct target *target;
	struct python *python;
	struct plan plan;
	char *cache; /* $XDG_CACHE_HOME */
};

static void subject_start(struct subject *s, const struct interpreter *it)
{
	struct diag diag = {0};
	char line[16];

	s->cache = temp_dir_new();
	cr_assert(setenv("XDG_CACHE_HOME", s->cache, 1) == 0 && unsetenv("CACHE_DIRECTORY") == 0);
	s->pid = interpreter_start(it, sleeping, &s->out);
	interpreter_line(s->out, line, sizeof(line));
	assert_diag_ok(target_open(s->pid, &s->target, &diag), &diag);
	assert_diag_ok(python_discover(s->target, &s->python, &diag), &diag);
	assert_diag_ok(plan_build(s->python->image, &s->python->layout, &s->plan, &diag), &diag);
}

static char *cache_path(const struct subject *s, const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/pyprofd/%s", s->cache, name);
	return path;
}

static void subject_end(struct subject *s)
{
	char hex[2 * IMAGE_BUILD_ID_MAX + 1] = "";

	for (size_t i = 0; i < s->python->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->python->build_id[i]);
	(void)unlink(cache_path(s, hex));
	(void)rmdir(cache_path(s, ""));
	temp_dir_remove(s->cache);
	python_free(s->python);
	target_free(s->target);
	interpreter_end(s->pid, s->out);
}

static struct verify_result verify(struct subject *s, bool fresh)
{
	const struct verify_opts vo = {
		.python = s->python,
		.plan = &s->plan,
		.target = s->target,
		.fresh = fresh,
	};
	struct verify_result v;

	verify_run(&vo, &v);
	return v;
}

Test(verify, every_interpreter, .timeout = 200)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		struct subject s;
		struct verify_result r;
		char text[256];

		if (v[i].major != 3)
			continue;
		subject_start(&s, &v[i]);
		r = verify(&s, true);
		fprintf(stderr, "3.%-3d %s  %s\n", v[i].minor, verify_text(&r, text, sizeof(text)),
			v[i].exe);
		cr_expect(r.verdict == VERIFY_RIGHT && !r.cached, "%s: %s", v[i].exe, r.reason);
		cr_expect(r.functions >= 30 && r.calls >= 5000);
		r = verify(&s, false);
		cr_expect(r.verdict == VERIFY_RIGHT && r.cached, "%s: %s", v[i].exe, r.reason);
		subject_end(&s);
	}
	check_no_leaks();
}

/* Without one of its sites a plan is wrong, and that is found out. */
Test(verify, incomplete_plans, .timeout = 200)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		const enum pyp_site_kind kinds[] = {PYP_SITE_LEAVE, PYP_SITE_YIELD, PYP_SITE_THROW};
		struct subject s;
		struct plan whole;

		if (v[i].major != 3)
			continue;
		subject_start(&s, &v[i]);
		whole = s.plan;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			struct plan *p = &s.plan;

			*p = whole;
			for (unsigned int j = 0; j < p->nsites;)
				if (p->sites[j].kind == kinds[k] &&
				    !strstr(p->sites[j].role, "INSTRUMENTED"))
					p->sites[j] = p->sites[--p->nsites];
				else
					j++;
			if (p->nsites != whole.nsites)
				cr_expect_eq(verify(&s, false).verdict, VERIFY_WRONG,
					     "%s without %s", v[i].exe, plan_kind_name(kinds[k]));
		}
		subject_end(&s);
	}
	check_no_leaks();
}

static void cache_file(const struct subject *s, char *path, size_t size)
{
	DIR *d = opendir(cache_path(s, ""));
	struct dirent *e;

	cr_assert(d);
	path[0] = '\0';
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			snprintf(path, size, "%s/pyprofd/%s", s->cache, e->d_name);
	closedir(d);
	cr_assert(path[0]);
}

/* What is not exactly what we wrote, or could be somebody else's, is not believed. */
Test(verify, tampering, .timeout = 100)
{
	struct interpreter v[INTERPRETERS_MAX];
	struct subject s;
	char path[600];
	int fd;

	caps_require_bpf();
	interpreters_find(v);
	subject_start(&s, &v[0]);
	cr_assert_eq(verify(&s, false).verdict, VERIFY_RIGHT);
	cache_file(&s, path, sizeof(path));
	cr_assert(verify(&s, false).cached);

	cr_assert(chmod(path, 0620) == 0);
	cr_expect(!verify(&s, false).cached, "a file that a group may write");
	cr_assert(verify(&s, false).cached, "it was written anew");
	cr_assert(chmod(cache_path(&s, ""), 0770) == 0);
	cr_expect(!verify(&s, false).cached, "a directory that a group may write");
	cr_assert(chmod(cache_path(&s, ""), 0700) == 0);

	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && pwrite(fd, "9", 1, 23) == 1);
	close(fd);
	cr_expect(!verify(&s, false).cached, "another subject");
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	cr_assert(fd >= 0);
	close(fd);
	cr_expect(!verify(&s, false).cached, "an empty file");
	cr_assert(verify(&s, false).cached);

	s.python->layout.bpf.code_flags += 4;
	cr_expect(!verify(&s, false).cached, "another layout");
	subject_end(&s);
	check_no_leaks();
}

/* A program that is not called python may do anything when it is run. */
Test(verify, programs_that_are_not_run, .timeout = 60)
{
	struct interpreter v[INTERPRETERS_MAX];
	struct subject s;
	struct verify_result r;

	caps_require_bpf();
	interpreters_find(v);
	subject_start(&s, &v[0]);
	snprintf(s.target->exe, sizeof(s.target->exe), "/usr/sbin/service");
	r = verify(&s, true);
	cr_expect(r.verdict == VERIFY_NOT_RUN && strstr(r.reason, "not called python"), "%s",
		  r.reason);
	subject_end(&s);
	check_no_leaks();
}
