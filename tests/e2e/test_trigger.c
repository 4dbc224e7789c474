// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl timeline --trigger and --keep on real programs: the file holds the end of what happened,
 * is complete and balanced, and states what it waited for and when that happened; without it the exit
 * status does. A program at full rate does not make it larger than the buffer allows.
 */
#include <jansson.h>
#include <signal.h>
#include <unistd.h>

#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16], path[128];

static void setup(void)
{
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_end(&d);
	traced_stop(&t);
}

TestSuite(trigger, .init = setup, .fini = teardown);

static void start(const char *exe, const char *program, const char *a, const char *b)
{
	traced_start(&t, exe, "run.py", program, a, b, NULL);
	traced_expect(&t, "ready");
	pid_text(pid, t.pid);
	pyprofd_launch(&d, "--pid", pid, NULL);
	pyprofd_ready(&d);
	pyprofd_file(&d, "t.json", path, sizeof(path));
}

/* Returns whether a timeline of the recent past is being recorded. */
static bool records(void)
{
	json_t *list = background_api(&d, "GET", "/v1/timelines", NULL);
	const json_t *first = json_array_get(json_object_get(list, "timelines"), 0);
	bool recent = json_is_true(json_object_get(first, "recent"));

	json_decref(list);
	return recent;
}

/* Start `pyprofctl timeline -o t.json A B C D` in the background, and wait until it records. */
static pid_t background(const char *a, const char *b, const char *c, const char *e)
{
	const char *const argv[] = {"timeline", "-o", path, a, b, c, e, NULL};
	char errors[128];

	return background_start(&d, pyprofd_file(&d, "errors", errors, sizeof(errors)), records,
				argv);
}

/* It ends, after a signal if it is not 0, with this status and these words on stderr. */
static void ends(pid_t child, int signal, int want, const char *words)
{
	char errors[128], *text;
	int status = background_end(child, signal);

	text = file_text(pyprofd_file(&d, "errors", errors, sizeof(errors)), NULL);
	cr_assert(status == want && strstr(text, words), "status %d: %s", status, text);
	free(text);
}

/* Checks that the file is balanced and in order, then runs the script. */
#define CHROME                                                                                     \
	"import collections, json, sys\n"                                                          \
	"trace = json.load(open(sys.argv[1] + '/t.json'))\n"                                       \
	"other = trace['otherData']\n"                                                             \
	"recent = other['recent']\n"                                                               \
	"trigger = recent['trigger']\n"                                                            \
	"open_ = collections.defaultdict(list)\n"                                                  \
	"ended, marks, n = [], [], 0\n"                                                            \
	"last = {}\n"                                                                              \
	"for e in trace['traceEvents']:\n"                                                         \
	"    key = e['pid'], e['tid']\n"                                                           \
	"    if e['ph'] == 'M':\n"                                                                 \
	"        continue\n"                                                                       \
	"    assert e['ts'] >= last.get(key, 0), e\n"                                              \
	"    last[key] = e['ts']\n"                                                                \
	"    n += e['ph'] in 'BE' and e['cat'] in ('call', 'resume', 'throw', 'return', "          \
	"'yield')\n"                                                                               \
	"    if e['ph'] == 'B':\n"                                                                 \
	"        open_[key].append(e)\n"                                                           \
	"    elif e['ph'] == 'E':\n"                                                               \
	"        ended.append((open_[key].pop(), e))\n"                                            \
	"    elif e['cat'] == 'trigger':\n"                                                        \
	"        marks.append((e, [f['name'] for f in open_[key]], open_[key][-1:]))\n"            \
	"assert not any(open_.values()), open_\n"                                                  \
	"assert n == other['calls'] + other['returns'], (n, other)\n"                              \
	"assert max(last.values()) <= other['duration_ns'] / 1000 + 0.001, other\n"

/* One slow request ends it. */
Test(trigger, a_slow_call)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++) {
		pid_t child;

		start(v[i].exe, "slow_service", NULL, NULL);
		child = background("--trigger", "slow:handle_request:150ms", "--keep", "2");
		traced_go(&t);
		ends(child, 0, 0, "pyprofctl: a call of handle_request (slow_service.py:");
		background_judge(
			&d, CHROME
			"(mark, stack, _), = marks\n"
			"assert trigger['met'] and trigger['condition'] == "
			"'slow:handle_request:150ms'\n"
			"assert abs(mark['ts'] - trigger['at_ns'] / 1000) < 0.002, (mark, "
			"trigger)\n"
			"assert mark['tid'] == trigger['tid'] and mark['name'] == trigger['what']\n"
			"assert 'handle_request' in stack, stack\n"
			"slow = [b for b, e in ended if b['name'] == 'handle_request' and\n"
			"        b['tid'] == mark['tid'] and b['ts'] <= mark['ts'] <= e['ts']]\n"
			"assert abs(slow[0]['ts'] + 150000 - mark['ts']) < 0.002, (slow, mark)\n"
			"assert recent['keep_ns'] == 2 * 10**9 >= other['duration_ns'], other\n"
			"assert not trigger['not_followed'] and not recent['beyond_size'], recent\n"
			"print('fine')\n");
		teardown();
		setup();
	}
}

/* Of all functions of the program the one that raises, and none that ends otherwise */
Test(trigger, an_exception)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	for (size_t i = 0; i < n; i++) {
		pid_t child;

		fprintf(stderr, "%s\n", v[i].exe);
		start(v[i].exe, "raising", "100", NULL);
		if (v[i].minor < 8) {
			ctl_fails(&d, PYP_EXIT_UNTRACEABLE, "from 3.8 on", "timeline", "--trigger",
				  "raise:f", "-o", path, NULL);
			teardown();
			setup();
			continue;
		}
		child = background("--trigger", "raise:raising.py", "--keep", "1h");
		traced_go(&t);
		traced_expect(&t, "done");
		ends(child, 0, 0, "pyprofctl: an exception has left bad (raising.py:");
		background_judge(&d, CHROME
				 "(mark, stack, top), = marks\n"
				 "assert stack[-3:] == ['outer', 'middle', 'bad'], stack\n"
				 "assert mark['ts'] == other['duration_ns'] / 1000, (mark, other)\n"
				 "print('fine')\n");
		teardown();
		setup();
		if (i + 1 < n)
			continue;
		/* outer() handles it. */
		start(v[i].exe, "raising", "20", NULL);
		child = background("--trigger", "raise:raising.py.*(outer|main|measured)", NULL,
				   NULL);
		traced_go(&t);
		traced_expect(&t, "done");
		ends(child, SIGINT, 1, "condition was not met");
		teardown();
		setup();
	}
}

/* It does not have to return. */
Test(trigger, a_call_that_runs)
{
	pid_t child;

	start(traced_newest().exe, "waits", "3600", "sleep");
	child = background("--trigger", "slow:waits.py.*main:100ms", "--keep", "10");
	traced_go(&t);
	ends(child, 0, 0, "has taken 100 ms");
	background_judge(
		&d,
		CHROME "(mark, stack, _), = marks\n"
		       "assert 'main' in stack, stack\n"
		       "assert all(e['cat'] == 'close' for b, e in ended if b['name'] == 'main')\n"
		       "assert other['complete'], other\n"
		       "print('fine')\n");
}

/* It fires when the target has used 20 ms within a second: so long, it has called its function. */
Test(trigger, cpu_time)
{
	pid_t child;

	start(traced_newest().exe, "busy_empty", "3600", NULL);
	child = background("--trigger", "cpu:2%", "--keep", "0.1");
	/* It waits for its line: it uses none. */
	patience_pass(1500);
	cr_assert(records());
	traced_go(&t);
	ends(child, 0, 0, "% of a CPU over 1 s");
	background_judge(&d,
			 CHROME "(mark, stack, _), = marks\n"
				"assert mark['tid'] == trigger['pid'], mark\n"
				"assert other['duration_ns'] == 10**8, other\n"
				"assert recent['older'] + other['calls'] > 100, (recent, other)\n"
				"print('fine')\n");
}

/* Whether it happens or not, the file is written, and holds the end. */
static void it_does_not_happen(void)
{
	struct ran r;
	pid_t child = background("--trigger", "slow:no_such:1", "--keep", "0.1");

	/* Of this CPU time, no more than a part was in the time that is kept. */
	traced_work(&t, PATIENCE_MOMENT_MS);
	traced_work(&t, PATIENCE_MOMENT_MS);
	ends(child, SIGINT, 1, "condition was not met: slow:no_such:1; the file is written");
	background_judge(&d, CHROME
			 "assert not marks and trigger['met'] is False and 'at_ns' not in trigger\n"
			 "assert other['duration_ns'] == 10**8 and recent['older'], other\n"
			 "print('fine')\n");
	r = ctl(&d, "timeline", "--trigger", "cpu:99999%", "-d", "300ms", "-o", path, NULL);
	cr_assert(r.status == 1 && strstr(r.err, "condition was not met: cpu:99999%"), "%s", r.err);
	ran_free(&r);
	background_judge(&d, CHROME
			 "assert recent['keep_ns'] == 10**10, recent\n"
			 "assert other['duration_ns'] == 3 * 10**8 and not recent['older'], other\n"
			 "print('fine')\n");
	/* without a condition: Ctrl-C is it */
	child = background("--keep", "0.1", "--buffer", "128M");
	traced_work(&t, PATIENCE_MOMENT_MS);
	traced_work(&t, PATIENCE_MOMENT_MS);
	ends(child, SIGINT, 0, "pyprofctl: the file holds the last 0.1s; ");
	background_judge(&d,
			 CHROME "assert trigger is None and other['duration_ns'] == 10**8, other\n"
				"print('fine')\n");
}

/* The oldest events give way, and are counted: more than twice as many as there is room for. */
static void full_rate(void)
{
	pid_t child = background("--keep", "1h", "--buffer", "512K");

	ctl_until(&d, 0, "events", ctl_number(&d, 0, "events") + 40000);
	ends(child, SIGINT, 0, "the buffer was full");
	background_judge(&d, CHROME
			 "assert recent['beyond_size'] > n and not recent['older'], (n, recent)\n"
			 "assert n <= (512 << 10) / 48, n\n"
			 "assert n >= (512 << 10) / 48 * 0.8, n\n"
			 "assert not other['complete'] and not other['dropped'], other\n"
			 "print('fine')\n");
}

Test(trigger, of_a_target_that_calls_all_the_time)
{
	pid_t child;

	start(traced_newest().exe, "busy_empty", "3600", NULL);
	traced_go(&t);
	it_does_not_happen();
	full_rate();
	child = background("--trigger", "slow:no_such:1", "--keep", "1h");
	free(ctl_ok(&d, "detach", pid, NULL));
	ends(child, 0, 1, "condition was not met");
}

Test(trigger, what_is_not_possible)
{
	start(traced_newest().exe, "busy_empty", "0", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "'slow:f'", "timeline", "--trigger", "slow:f", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "(", "timeline", "--trigger", "slow:(:1", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "'cpu:0'", "timeline", "--trigger", "cpu:0", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "--max-size", "timeline", "--keep", "1", "--max-size", "1M",
		  NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "buffer", "timeline", "--keep", "1", "--buffer", "1K", NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "", "timeline", "-p", "4194303", "--keep", "1", NULL);
}
