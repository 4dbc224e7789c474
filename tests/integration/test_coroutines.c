// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lifetimes of generators and coroutines, on every interpreter that can be traced: the numbers of
 * instances, of steps and of instances that are still suspended equal the program's own counts, and
 * the time an instance was suspended is charged to it.
 */
#include <inttypes.h>
#include <jansson.h>

#include "harness/test.h"
#include "harness/traced.h"
#include "accuracy/finish.h"

static const struct snapshot_coro *coro_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->ncoros; i++)
		if (strcmp(s->funcs[s->coros[i].func].name, name) == 0)
			return &s->coros[i];
	return NULL;
}

/* null: do not compare */
static bool differs(const json_t *want, uint64_t got)
{
	return json_is_integer(want) && (uint64_t)json_integer_value(want) != got;
}

static bool counts_differ(const struct snapshot_coro *c, const json_t *want)
{
	uint64_t open = c->started + c->partial - c->ended;

	return c->partial || differs(json_array_get(want, 0), c->started) ||
	       (!c->ends_hidden && differs(json_array_get(want, 1), open)) ||
	       differs(json_array_get(want, 2), c->steps);
}

/* A sleep lasts at least its nominal time; 10 % are allowed for the clock's resolution. */
static bool times_differ(const struct snapshot_coro *c, const json_t *want)
{
	uint64_t nap = (uint64_t)json_integer_value(json_array_get(want, 3)) * 900000;

	return c->suspended < nap * c->started || (c->lifetimes && c->min < nap) ||
	       c->running[SNAPSHOT_WALL] + 1000000 < c->running[SNAPSHOT_CPU] ||
	       c->total < c->min * c->lifetimes || c->total > c->max * c->lifetimes;
}

static size_t check(const struct snapshot *s, const char *result)
{
	json_t *all = json_loads(result, 0, NULL), *want;
	size_t wrong = 0;
	const char *name;

	cr_assert(json_object_size(all) > 0, "no result");
	json_object_foreach(all, name, want)
	{
		const struct snapshot_coro *c = coro_named(s, name);

		if (c && !counts_differ(c, want) && !times_differ(c, want))
			continue;
		wrong++;
		if (c)
			fprintf(stderr,
				"  %s: %" PRIu64 " started, %" PRIu64 " partial, %" PRIu64
				" ended, %" PRIu64 " steps, suspended %" PRIu64 " ns\n",
				name, c->started, c->partial, c->ended, c->steps, c->suspended);
		else
			fprintf(stderr, "  there is no %s\n", name);
	}
	json_decref(all);
	return wrong;
}

static size_t follow(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;
	size_t wrong;

	fprintf(stderr, "%s\n", exe);
	traced_start(&t, exe, "run.py", "coroutines", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	cr_assert(traced_is_exact(s, exe));
	wrong = check(s, t.result);
	assert_ok(snapshot_correct(s));
	wrong += check(s, t.result);
	traced_finish(&t);
	return wrong;
}

Test(coroutines, everywhere)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += follow(v[i].exe);
	cr_assert_eq(wrong, 0);
	check_no_leaks();
}

/*
 * Stop, start and clear while instances are suspended: tracing sees them only from the middle of
 * their lifetimes.
 */
Test(coroutines, seen_in_the_middle)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	const struct snapshot_coro *c;
	struct diag diag = {0};
	struct traced t;

	traced_start(&t, traced_newest().exe, "run.py", "coroutines", "--repeat", "2", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	assert_diag_ok(sessions_stop(t.sessions, 0, &diag), &diag);
	assert_diag_ok(sessions_start(t.sessions, 0, &diag), &diag);
	sessions_clear(t.sessions, 0, &diag);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	c = coro_named(s, "kept_open");
	cr_assert(c && c->started == 10 && c->ended == 0 && c->steps == 20);
	c = coro_named(s, "naps");
	cr_assert(c && c->started == 10 && c->ended == 10 && c->lifetimes == 10);
	traced_finish(&t);
	check_no_leaks();
}
