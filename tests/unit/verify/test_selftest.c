// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify/selftest: which tests are run, in which order, and what the cache saves. The helper processes
 * answer without running an interpreter.
 */
#include "verify/selftest.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/reaper.h"
#include "harness/temp_dir.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "verify/cache.h"
#include "verify/offload.h"

static struct python py = {.build_id = {0xab, 0xcd, 0xef}, .build_id_len = 3};
static const struct plan plan = {
	.nsites = 1,
	.sites[0] = {.kind = PYP_SITE_ENTER, .offset = 4096},
};
static struct verify_opts opts = {.python = &py, .plan = &plan};
static struct verify_result of_plan, of_builtins;
static char *home;
static int *helpers; /* number of helpers that ran; shared with them */

static void setup(void)
{
	FILE *f;

	home = temp_dir_new();
	snprintf(py.file, sizeof(py.file), "%s/python", home);
	f = fopen(py.file, "we");
	cr_assert(f && fclose(f) == 0);
	cr_assert(setenv("XDG_CACHE_HOME", home, 1) == 0 && unsetenv("CACHE_DIRECTORY") == 0);
	helpers = mmap(NULL, sizeof(*helpers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	cr_assert(helpers != MAP_FAILED);
	of_plan = (struct verify_result){.verdict = VERIFY_RIGHT, .events = 1};
	of_builtins = (struct verify_result){.verdict = VERIFY_RIGHT, .events = 2};
}

static void teardown(void)
{
	char *dir;

	cr_assert(asprintf(&dir, "%s/pyprofd", home) > 0);
	if (access(dir, F_OK) == 0)
		temp_dir_remove(dir);
	else
		free(dir);
	temp_dir_remove(home);
	cr_assert(munmap(helpers, sizeof(*helpers)) == 0);
}

TestSuite(selftest, .init = setup, .fini = teardown);

static void answer(const struct verify_opts *o, int out)
{
	const struct verify_result *v = o->builtins ? &of_builtins : &of_plan;

	++*helpers;
	if (write(out, v, sizeof(*v)) != sizeof(*v))
		_exit(1);
}

static void fail(const struct verify_opts *o, int out)
{
	(void)o, (void)out;
	++*helpers;
	_exit(1);
}

static void stay(const struct verify_opts *o, int out)
{
	(void)o, (void)out;
	for (;;)
		pause();
}

/* A helper that has answered may still be about to exit. */
static void check_reaped(void)
{
	while (reaper_pending())
		sched_yield();
	cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static struct selftest_result run(void (*helper)(const struct verify_opts *o, int out))
{
	struct selftest_result r;
	struct selftest *s;

	offload_test_helper = helper;
	*helpers = 0;
	s = selftest_start(&opts);
	cr_assert(s);
	while (!selftest_poll(s, &r)) {
		struct pollfd p = {.fd = selftest_fd(s), .events = POLLIN};

		cr_assert(poll(&p, 1, patience_left_ms()) == 1 && selftest_deadline(s) > 0);
	}
	selftest_free(s);
	check_reaped();
	return r;
}

Test(selftest, of_the_plan)
{
	struct selftest_result r = run(answer);

	cr_assert(r.plan.verdict == VERIFY_RIGHT && r.plan.events == 1 && !r.has_builtins);
	cr_assert(*helpers == 1);
	check_no_leaks();
}

Test(selftest, of_builtins_after_the_plan)
{
	struct selftest_result r;

	opts.builtins = true;
	of_builtins.verdict = VERIFY_WRONG;
	r = run(answer);
	cr_assert(r.plan.verdict == VERIFY_RIGHT && r.plan.events == 1);
	cr_assert(r.has_builtins && r.builtins.verdict == VERIFY_WRONG && r.builtins.events == 2);
	cr_assert(*helpers == 2);
	check_no_leaks();
}

/* A plan that is wrong, or could not be tested, is the result. */
Test(selftest, no_second_test_after_a_failure)
{
	struct selftest_result r;

	opts.builtins = true;
	of_plan.verdict = VERIFY_WRONG;
	r = run(answer);
	cr_assert(r.plan.verdict == VERIFY_WRONG && !r.has_builtins);
	of_plan.verdict = VERIFY_NOT_RUN;
	r = run(answer);
	cr_assert(r.plan.verdict == VERIFY_NOT_RUN && !r.has_builtins);
	r = run(fail);
	cr_assert(r.plan.verdict == VERIFY_NOT_RUN && !r.has_builtins && r.plan.reason[0]);
	check_no_leaks();
}

/* What the cache knows needs no process; calls of C functions are never cached. */
Test(selftest, cached)
{
	struct selftest_result r;

	cache_store(&opts, &of_plan);
	r = run(fail);
	cr_assert(r.plan.verdict == VERIFY_RIGHT && r.plan.cached && *helpers == 0);
	opts.builtins = true;
	r = run(answer);
	cr_assert(r.plan.cached && r.has_builtins && r.builtins.events == 2 && *helpers == 1);
	opts.builtins = false;
	opts.fresh = true;
	r = run(answer);
	cr_assert(r.plan.verdict == VERIFY_RIGHT && !r.plan.cached && *helpers == 1);
	check_no_leaks();
}

Test(selftest, is_freed_early)
{
	struct selftest_result r;
	struct selftest *s;

	offload_test_helper = stay;
	s = selftest_start(&opts);
	cr_assert(s && !selftest_poll(s, &r));
	selftest_free(s);
	selftest_free(NULL);
	check_reaped();
	check_no_leaks();
}
