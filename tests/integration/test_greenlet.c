// SPDX-License-Identifier: BSD-2-Clause
/*
 * Greenlets exchange whole stacks in the middle of calls, without a call or return. No call is lost
 * and every return matches its own call. The target counts its calls itself, in the functions' own
 * code.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <sys/wait.h>

#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"

extern char **environ;

static bool has_module(const char *exe, const char *module)
{
	char import[64];
	const char *argv[] = {exe, "-c", import, NULL};
	posix_spawn_file_actions_t quiet;
	int status = -1;
	pid_t pid;

	snprintf(import, sizeof(import), "import %s", module);
	assert_ok(posix_spawn_file_actions_init(&quiet));
	assert_ok(posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0));
	assert_ok(posix_spawn(&pid, exe, &quiet, NULL, (char *const *)argv, environ));
	posix_spawn_file_actions_destroy(&quiet);
	cr_assert(waitpid(pid, &status, 0) == pid);
	return status == 0;
}

static const struct snapshot_coro *greenlet_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->ncoros; i++)
		if (s->coros[i].kind == SNAPSHOT_GREENLET &&
		    strcmp(s->funcs[s->coros[i].func].name, name) == 0)
			return &s->coros[i];
	return NULL;
}

/*
 * The number of instances equals the number that greenlets.py starts. All have ended and have been
 * suspended, unless no function was called meanwhile: a switch is only detected at the next event.
 */
static void check_greenlets(const struct snapshot *s)
{
	static const struct {
		const char *name;
		uint64_t n;
		bool seen_waiting;
	} greenlets[] = {{"player", 15, true},
			 {"from_generator", 1, true},
			 {"surprised", 1, false},
			 {"family", 7, true}};

	for (size_t i = 0; i < sizeof(greenlets) / sizeof(greenlets[0]); i++) {
		const struct snapshot_coro *c = greenlet_named(s, greenlets[i].name);

		cr_assert(c, "there is no %s", greenlets[i].name);
		fprintf(stderr,
			"  %-16s %6" PRIu64 " greenlets, %6" PRIu64 " ended, %6" PRIu64
			" steps, %" PRIu64 " us running, %" PRIu64 " us suspended\n",
			greenlets[i].name, c->started, c->ended, c->steps,
			c->running[SNAPSHOT_WALL] / 1000, c->suspended / 1000);
		cr_assert(c->started == greenlets[i].n && c->ended == c->started);
		cr_assert(c->lifetimes == c->ended && c->steps >= c->started);
		cr_assert(c->total == c->running[SNAPSHOT_WALL] + c->suspended);
		cr_assert(c->running[SNAPSHOT_WALL] > 0);
		cr_assert(!greenlets[i].seen_waiting ||
			  (c->suspended > 0 && c->steps > c->started));
	}
}

static void switching(const char *exe, const char *kind)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint32_t differing;
	struct traced t;
	bool exact;

	fprintf(stderr, "%s %s\n", exe, kind);
	traced_start(&t, exe, "run.py", "greenlets", kind, NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	differing = counts_differing(s, t.result);
	exact = traced_is_exact(s, exe);
	fprintf(stderr, "  %" PRIu64 " stack switches, %" PRIu64 " unmatched\n",
		s->targets[0].stack_switches, s->targets[0].unmatched);
	cr_assert(s->targets[0].stack_switches > 0);
	traced_check_times(s);
	if (strcmp(kind, "plain") == 0)
		check_greenlets(s);
	traced_finish(&t);
	cr_assert(differing == 0 && exact);
}

static void everywhere(const char *module, const char *kind)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), tried = 0;

	for (size_t i = 0; i < n; i++) {
		if (!has_module(v[i].exe, module))
			continue;
		switching(v[i].exe, kind);
		tried++;
	}
	if (!tried)
		cr_skip_test("needs an interpreter with the module %s", module);
	check_no_leaks();
}

Test(greenlet, plain)
{
	everywhere("greenlet", "plain");
}

Test(greenlet, gevent)
{
	everywhere("gevent", "gevent");
}
