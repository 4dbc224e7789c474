// SPDX-License-Identifier: BSD-2-Clause
/* The report of coroutine lifetimes, and its CSV. */
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "accuracy/finish.h"
#include "snapshot/merge.h"

static const char *const example = "target 42\n"
				   "thread 42 42 MainThread\n"
				   "loop /usr/lib/python3.11/asyncio/base_events.py:1 1 1000\n"
				   "  fetch /srv/app.py:10 9 500\n"
				   "    read /srv/app.py:20 9 300\n"
				   "  sleep /usr/lib/python3.11/asyncio/tasks.py:7 6 50\n";

static struct snapshot_coro *coro_of(struct snapshot *s, uint32_t i, const char *name)
{
	struct snapshot_coro *c = &s->coros[i];

	*c = (struct snapshot_coro){.pid = 42};
	while (strcmp(s->funcs[c->func].name, name) != 0)
		cr_assert(++c->func < s->nfuncs);
	return c;
}

#define MS 1000000u

static struct snapshot *build(void)
{
	struct snapshot *s = snapshot_build(example);
	struct snapshot_coro *c;

	s->coros = snapshot_alloc(s, 3, sizeof(*s->coros));
	s->ncoros = 3;
	c = coro_of(s, 0, "fetch");
	c->kind = SNAPSHOT_COROUTINE;
	c->started = 3;
	c->ended = 2;
	c->steps = 9;
	c->running[SNAPSHOT_CPU] = 5 * MS;
	c->running[SNAPSHOT_WALL] = 8 * MS;
	c->suspended = 200 * MS;
	c->lifetimes = 2;
	c->total = 180 * MS;
	c->min = 80 * MS;
	c->max = 100 * MS;
	c = coro_of(s, 1, "read");
	c->kind = SNAPSHOT_GENERATOR;
	c->ends_hidden = true;
	c->started = c->steps = 9;
	c->running[SNAPSHOT_WALL] = 3 * MS;
	c = coro_of(s, 2, "sleep");
	c->kind = SNAPSHOT_GREENLET;
	c->partial = 1;
	c->steps = 6;
	return s;
}

static void assert_has(const char *text, const char *what)
{
	cr_assert(strstr(text, what), "no \"%s\" in:\n%s", what, text);
}

/* ncalls counts resumptions as well, as cProfile does; it has separate columns for both. */
Test(coroutines, calls_and_resumptions)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts file = {.columns = "calls,resumed", .sort = "ncalls"};
	struct format_opts screen = {.width = 100, .sort = "ncalls"};
	struct format_opts thread = {.width = 100, .filter = {.tid = 42}};
	_cleanup_free_ char *text = report_new("text", s, &file, NULL);
	_cleanup_free_ char *terminal = report_new("text", s, &screen, NULL);
	_cleanup_free_ char *one = report_new("text", s, &thread, NULL);
	_cleanup_free_ char *json = report_new("json", s, &file, NULL);
	_cleanup_free_ char *html = report_new("html", s, &file, NULL);

	assert_has(text, "        9    0.000    0.000    0.000    0.000          3          6 "
			 "/srv/app.py:10(fetch)\n");
	assert_has(text, "        9    0.000    0.000    0.000    0.000          9          0 "
			 "/srv/app.py:20(read)\n");
	assert_has(text,
		   "          1          - /usr/lib/python3.11/asyncio/base_events.py:1(loop)\n");
	assert_has(terminal, "\n      3+6    0.000 ");
	assert_has(terminal, "\n        9    0.000 ");
	assert_has(terminal, "   + is followed by resumptions of generators and coroutines\n");
	cr_assert(!strchr(one, '+'), "coroutines are not a thread's: %s", one);
	assert_has(json, "\"ncalls\":9,\"pcalls\":9,\"resumed\":6,");
	assert_has(html, "\"resumed\":[");
}

Test(coroutines, report)
{
	struct snapshot *s = build();
	struct format_opts o = {0};
	char *text = report_new("coroutines", s, &o, NULL);

	assert_has(text, "   Ordered by: cumulative time\n");
	assert_has(text, "        3      1          9     0.005     0.008     0.200     0.208"
			 "    0.080    0.090    0.100  coroutine /srv/app.py:10(fetch)\n");
	assert_has(text, "        9      9?         9     0.000     0.003     0.000     0.003"
			 "        -        -        -  generator /srv/app.py:20(read)\n");
	assert_has(text, "  greenlet  /usr/lib/python3.11/asyncio/tasks.py:7(sleep)\n");
	assert_has(text, "?: before CPython 3.11");
	cr_assert(strstr(text, "(fetch)") < strstr(text, "(read)"));
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

Test(coroutines, selected)
{
	struct snapshot *s = build();
	struct format_opts o = {.only_my_code = true, .sort = "calls"};
	char *text = report_new("coroutines", s, &o, NULL);

	assert_has(text, "(fetch)");
	cr_assert(!strstr(text, "(sleep)"));
	free(text);
	o = (struct format_opts){.filter.tid = 42};
	text = report_new("coroutines", s, &o, NULL);
	assert_has(text, "they move between threads");
	cr_assert(!strstr(text, "(fetch)"));
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

Test(coroutines, csv)
{
	struct snapshot *s = build();
	struct format_opts o = {0};
	char *text = report_new("coroutines-csv", s, &o, NULL);

	assert_has(text, "\r\ncoroutine,3,3,2,1,9,5000000,8000000,200000000,2,180000000,80000000,"
			 "100000000,\"/srv/app.py\",10,\"fetch\",");
	assert_has(text, "\r\ngenerator,9,9,0,,9,0,3000000,0,0,0,,,\"/srv/app.py\",20,\"read\",");
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* Processes have functions of their own; what has more ends than starts is not open. */
Test(coroutines, of_processes)
{
	struct snapshot *s = build();
	struct format_opts o = {.filter.pid = 42};
	struct snapshot_coro *c = &s->coros[0];
	char *text, *csv;

	c->kind = SNAPSHOT_ASYNC_GENERATOR;
	c->partial = 4;
	c->ended = 8;
	s->coros[1].pid = 7;
	s->coros[2].ends_hidden = true;
	s->funcs[s->coros[2].func].pseudo = true;
	s->targets[0].forgotten = 5;
	text = report_new("coroutines", s, &o, NULL);
	csv = report_new("coroutines-csv", s, &o, NULL);
	assert_has(text, "        7      0          9     0.005 ");
	assert_has(text, "  async gen /srv/app.py:10(fetch)\n");
	assert_has(text, "        1      1?         6 ");
	assert_has(text, "  greenlet  sleep\n");
	assert_has(text, "\n5 more were too many at a time to be followed to their end\n");
	cr_assert(!strstr(text, "(read)") && !strstr(csv, "\"read\""));
	assert_has(csv, "\r\nasync generator,7,3,8,0,9,");
	assert_has(csv, ",10,\"fetch\",\"\",0,42\r\n");
	s->coros[2].ended = 1;
	s->targets[0].forgotten = 0;
	free(text);
	text = report_new("coroutines", s, &o, NULL);
	assert_has(text, "        1      0          6 ");
	cr_assert(!strstr(text, "?:") && !strstr(text, "too many"), "%s", text);
	free(text);
	s->ncoros = 0;
	text = report_new("coroutines", s, &o, NULL);
	assert_has(text, "no coroutines, generators or greenlets\n\n   process");
	free(text);
	free(csv);
	snapshot_free(s);
	check_no_leaks();
}

/* A lifetime that was shorter than the cost of its probes is unknown, not 0. */
Test(coroutines, unknown_lifetimes)
{
	struct snapshot *s = build();
	struct format_opts o = {0};
	char *text, *csv, *json;

	s->coros[0].min = s->coros[0].max = SNAPSHOT_MIN_UNKNOWN;
	text = report_new("coroutines", s, &o, NULL);
	csv = report_new("coroutines-csv", s, &o, NULL);
	json = report_new("json", s, &o, NULL);
	assert_has(text,
		   "     0.208        -    0.090        -  coroutine /srv/app.py:10(fetch)\n");
	assert_has(csv, ",200000000,2,180000000,,,\"/srv/app.py\",10,\"fetch\",");
	assert_has(json, "\"total\":180000000,\"min\":null,\"max\":null");
	free(text);
	free(csv);
	free(json);
	snapshot_free(s);
	check_no_leaks();
}

Test(coroutines, merged)
{
	struct snapshot *a = build(), *b = build(), *both = NULL;
	const struct snapshot *list[] = {a, b};

	b->coros[0].min = 10 * MS;
	assert_ok(snapshot_merge(list, 2, &both));
	cr_assert_eq(both->ncoros, 3);
	cr_assert(both->coros[0].started == 6 && both->coros[0].suspended == 400 * MS);
	cr_assert(both->coros[0].min == 10 * MS && both->coros[0].max == 100 * MS);
	snapshot_free(a);
	snapshot_free(b);
	snapshot_free(both);
	check_no_leaks();
}

/* The cost of probes in an instance's steps, and in their callees, is subtracted from its time. */
Test(coroutines, corrected)
{
	struct snapshot *s = build();
	uint64_t cost = 9 * (10 + 5 + 20 + 7) + 9 * (10 + 5);

	s->targets[0].cost =
		(struct cost){.known = true, .before = {20, 5, 5}, .after = {10, 7, 7}};
	assert_ok(snapshot_correct(s));
	cr_assert_eq(s->coros[0].running[SNAPSHOT_WALL], 8 * MS - cost);
	cr_assert_eq(s->coros[0].min, 80 * MS - cost / 3);
	cr_assert_eq(s->coros[0].suspended, 200 * MS);
	snapshot_free(s);
	check_no_leaks();
}
