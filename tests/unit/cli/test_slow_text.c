// SPDX-License-Identifier: BSD-2-Clause
/* cli/slow_text and cli/slow_tree: the text, compared exactly; damaged and hostile JSON. */
#include "slow_text.h"

#include <time.h>

#include "base/cleanup.h"
#include "harness/test.h"
#include "slow_tree.h"

static char *render_json(json_t *slow, int width)
{
	char *out = NULL;
	size_t n;
	FILE *f;

	setenv("TZ", "UTC", 1);
	tzset();
	f = open_memstream(&out, &n);
	assert_ok(slow_text(slow, width, f));
	fclose(f);
	json_decref(slow);
	return out;
}

static char *render(const char *text, int width)
{
	json_error_t error;
	json_t *slow = json_loads(text, 0, &error);

	cr_assert(slow, "%d:%d: %s", error.line, error.column, error.text);
	return render_json(slow, width);
}

#define FUNCTIONS                                                                                  \
	"\"functions\": ["                                                                         \
	"{\"file\": \"/srv/shop/app.py\", \"line\": 20, \"name\": \"handle_request\"},"            \
	"{\"file\": \"/srv/shop/db/pool.py\", \"line\": 31, \"name\": \"Pool.acquire\"},"          \
	"{\"file\": \"~\", \"line\": 0, \"name\": \"{built-in method x}\"},"                       \
	"{\"file\": \"app.py\", \"line\": 7, \"name\": \"tiny\"}]"

#define NODES                                                                                      \
	"\"nodes\": ["                                                                             \
	"{\"function\": 0, \"parent\": -1, \"calls\": 1, \"wall_ns\": 10000000,"                   \
	" \"cpu_ns\": 3000000, \"waits\": {\"runnable\": 7000000}},"                               \
	"{\"function\": 3, \"parent\": 0, \"calls\": 2, \"wall_ns\": 1000000,"                     \
	" \"cpu_ns\": 1000000, \"waits\": {}},"                                                    \
	"{\"function\": 1, \"parent\": 0, \"calls\": 1, \"wall_ns\": 200000,"                      \
	" \"cpu_ns\": 100000, \"waits\": {}},"                                                     \
	"{\"function\": 2, \"parent\": 2, \"calls\": 1234567, \"wall_ns\": 301200000,"             \
	" \"cpu_ns\": 0, \"waits\": {\"lock\": 300100000, \"disk\": 1100000}},"                    \
	"{\"function\": 3, \"parent\": 0, \"calls\": 3, \"wall_ns\": 500000,"                      \
	" \"cpu_ns\": 500000, \"waits\": {}}]"

#define CALL                                                                                       \
	"{\"pid\": 4242, \"tid\": 4243, \"thread\": \"worker-1\", \"running\": false,"             \
	" \"start_unix_ns\": 50602123456789, \"wall_ns\": 312900000, \"cpu_ns\": 4600000,"         \
	" \"suspended_ns\": 0, \"events\": 2004, \"gap\": false, \"truncated\": 0, " NODES "}"

#define HEAD                                                                                       \
	"{\"id\": 1, \"match\": \"handle\", \"over_ns\": 200000000, \"n\": 10,"                    \
	" \"clock\": \"wall\", \"elapsed_ns\": 12340000000, \"active\": true, "

#define SMALL HEAD "\"seen\": 2000, \"over\": 1, \"calls\": [" CALL "], " FUNCTIONS "}"

Test(slow_text, whole)
{
	_cleanup_free_ char *out = render(SMALL, 0);

	cr_assert_str_eq(
		out,
		"#1  312.9 ms wall, 4.6 ms CPU, waiting 308.3 ms: lock 300.1 ms, runnable 7.0 ms\n"
		"    handle_request (shop/app.py:20), process 4242, thread 4243 \"worker-1\", "
		"at 14:03:22.123, 2004 events\n"
		"      wall        cpu    waits                           calls  function\n"
		"   312.90 ms    4.60 ms  lock 300.1 ms, runnable 7.0 ms      1  handle_request "
		"shop/app.py:20\n"
		"   301.40 ms    0.10 ms  lock 300.1 ms                       1    Pool.acquire "
		"db/pool.py:31\n"
		"   301.20 ms    0.00 ms  lock 300.1 ms                    1.2M      {built-in "
		"method x}\n"
		"     1.50 ms    1.50 ms                                      5    (2 others)\n"
		"\n"
		"calls of 'handle': 2000 ended in 12.3s, 1 took 200 ms or more; shown: 1\n"
		"times include the probes' own cost for each event (call or return) inside: 2004 "
		"events\n");
	check_no_leaks();
}

/* On a terminal all lines but the notes are cut, and the function's name keeps some columns. */
Test(slow_text, cut)
{
	_cleanup_free_ char *out = render(SMALL, 80);
	char *notes = strstr(out, "\n\n");

	cr_assert(notes);
	cr_assert(strstr(notes, "inside: 2004 events\n"), "%s", out);
	cr_assert(strstr(out, "  lock 300.1 ms      1  handle_request shop/app.py:20\n"), "%s",
		  out);
	cr_assert(strstr(out, "  lock 300.1 ms   1.2M    {built-in method x}\n"), "%s", out);
	*notes = '\0';
	for (const char *line = out; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		cr_assert(strcspn(line, "\n") <= 80, "%s", line);
	}
	check_no_leaks();
}

/* Sorted by CPU time, of which acquire() has less than 1 %. */
Test(slow_text, by_cpu_time)
{
	_cleanup_free_ char *out =
		render("{\"match\": \"x\", \"clock\": \"cpu\", \"over_ns\": 1500000, \"seen\": 3, "
		       "\"over\": 1, \"elapsed_ns\": 1, \"calls\": [" CALL "], " FUNCTIONS "}",
		       0);
	const char *tiny = strstr(out, "tiny app.py:7"), *acquire = strstr(out, "Pool.acquire");

	cr_assert(tiny && acquire && tiny < acquire, "%s", out);
	cr_assert(strstr(out, ", 1 took 1.5 ms of CPU time or more; shown: 1\n"), "%s", out);
}

Test(slow_text, nothing_was_slow)
{
	_cleanup_free_ char *out = render(HEAD "\"seen\": 7, \"over\": 0, \"calls\": []}", 0);
	_cleanup_free_ char *none =
		render("{\"match\": \"x\", \"elapsed_ns\": 61000000000, \"calls\": []}", 80);

	cr_assert_str_eq(out, "calls of 'handle': 7 ended in 12.3s, none took 200 ms or more\n");
	cr_assert_str_eq(none, "calls of 'x': 0 ended in 61.0s\n");
}

Test(slow_text, notes)
{
	_cleanup_free_ char *out =
		render(HEAD "\"seen\": 9, \"over\": 2, \"unknown_start\": 3, \"refused\": 4,"
			    "\"interrupted\": 5, \"unsearched\": 6, \"calls\": ["
			    "{\"events\": 12, \"running\": true, \"gap\": true, \"truncated\": 6,"
			    " \"wall_ns\": 12340000000, \"suspended_ns\": 1000000},"
			    "{\"events\": 8, \"truncated\": 1, \"wall_ns\": 1}]}",
		       0);

	cr_assert(strstr(out, "#1  12.3 s wall (still running), 0.0 ms CPU, suspended 1.0 ms, "
			      "waiting 12.3 s\n"),
		  "%s", out);
	cr_assert(strstr(out, ", 12 events, some lost\n"), "%s", out);
	cr_assert(
		strstr(out,
		       "calls of 'handle': 9 ended in 12.3s, 2 took 200 ms or more; shown: 2, 1 "
		       "still running\n"
		       "not timed: 3 that had begun before, 4 that were too many at a time, 5 that "
		       "ended unseen; pattern too slow for the names of 6 functions\n"
		       "incomplete: events were lost inside 1 of these calls; 7 calls inside have "
		       "no row, their time is their caller's\n"
		       "times include the probes' own cost for each event (call or return) inside: "
		       "8 to 12 events\n"),
		"%s", out);
	check_no_leaks();
}

/* Without reasons for waiting */
Test(slow_text, reasons_not_measured)
{
	_cleanup_free_ char *out =
		render(HEAD "\"calls\": [{\"wall_ns\": 5000000, \"cpu_ns\": 1000000, \"nodes\": ["
			    "{\"function\": 0, \"parent\": -1, \"calls\": 1, \"wall_ns\": 5000000,"
			    " \"cpu_ns\": 1000000}]}], " FUNCTIONS "}",
		       0);

	cr_assert(strstr(out, "#1  5.0 ms wall, 1.0 ms CPU, waiting 4.0 ms\n"), "%s", out);
	cr_assert(strstr(out, "     5.00 ms    1.00 ms  -          1  handle_request "), "%s", out);
}

/* A target chooses the names of its functions and threads. */
Test(slow_text, hostile_names)
{
	_cleanup_free_ char *out =
		render("{\"match\": \"m\\u001b[2J\", \"calls\": [{\"thread\": \"t\\n\\u009b\\\"\","
		       " \"nodes\": [{\"function\": 0, \"calls\": 1}]}], \"functions\": ["
		       "{\"file\": \"/x/a\\r/b\\u001b]0;\\u0007\", \"line\": 1, \"name\": "
		       "\"n\\u202e\\u001b[31m\"}]}",
		       0);

	for (const char *s = out; *s; s++)
		cr_assert(*s == '\n' || (unsigned char)*s >= ' ', "%s", out);
	cr_assert(strstr(out, "    n??[31m (a?/b?]0;?:1), "), "%s", out);
	cr_assert(strstr(out, "\"t??\"\""), "%s", out);
	cr_assert(strstr(out, "'m?[2J'"), "%s", out);
}

/* Whatever the JSON is, it is printed somehow. */
Test(slow_text, damaged_json)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"{\"calls\": 7, \"functions\": 7, \"match\": 7}",
		"{\"calls\": [7, null, [], {}, {\"nodes\": 7}, {\"nodes\": {}}]}",
		"{\"calls\": [{\"nodes\": [7, null, {}, {\"parent\": \"x\"}]}]}",
		"{\"calls\": [{\"nodes\": [{\"parent\": 1}, {\"parent\": 1}, {\"parent\": 7},"
		" {\"parent\": -9}, {\"parent\": 9223372036854775807}, {\"parent\": 3.5}]}]}",
		"{\"calls\": [{\"nodes\": [{\"function\": -1}, {\"function\": "
		"9223372036854775807},"
		" {\"function\": 4294967295}]}], \"functions\": [7]}",
		"{\"calls\": [{\"wall_ns\": -1, \"cpu_ns\": 9223372036854775807, \"events\": -1,"
		" \"start_unix_ns\": 9223372036854775807, \"tid\": {}, \"nodes\": [{\"wall_ns\": "
		"9223372036854775807, \"waits\": {\"lock\": 9223372036854775807, \"new\": 1}},"
		" {\"wall_ns\": 9223372036854775807, \"parent\": 0}, {\"wall_ns\": "
		"9223372036854775807, \"parent\": 0, \"waits\": [1]}]}]}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		_cleanup_free_ char *out = render(texts[i], 0), *narrow = render(texts[i], 1);

		cr_assert(strstr(out, "calls of "), "%s", out);
		cr_assert(strstr(narrow, "calls of "), "%s", narrow);
	}
	check_no_leaks();
}

static json_t *node_json(int parent, int wall)
{
	return json_pack("{s:i, s:i, s:i, s:i}", "function", 0, "parent", parent, "calls", 1,
			 "wall_ns", wall);
}

static json_t *with_nodes(json_t *nodes)
{
	return json_pack("{s:s, s:[{s:o}], s:[{s:s, s:s, s:i}]}", "match", "x", "calls", "nodes",
			 nodes, "functions", "file", "f.py", "name", "f", "line", 1);
}

#define DEEP 100000

/* A chain is neither recursed into nor indented without end. */
Test(slow_text, deep)
{
	_cleanup_free_ char *out = NULL, *narrow = NULL;
	json_t *nodes = json_array();

	for (int i = 0; i < DEEP; i++)
		json_array_append_new(nodes, node_json(i - 1, i == DEEP - 1 ? 1000 : 0));
	json_incref(nodes);
	out = render_json(with_nodes(nodes), 0);
	narrow = render_json(with_nodes(nodes), 60);
	cr_assert(strstr(out, " [99999] f f.py:1\n"));
	cr_assert(strstr(narrow, " [99999] f f.py:1\n"));
	check_no_leaks();
}

/* All children are of the call: shown are those with 1 %, the longest first. */
Test(slow_tree, wide)
{
	_cleanup_(slow_tree_deinit) struct slow_tree t = {0};
	json_t *nodes = json_array();
	struct slow_figures f;

	json_array_append_new(nodes, node_json(-1, 0));
	for (int i = 1; i <= 100; i++)
		json_array_append_new(nodes, node_json(0, i));
	assert_ok(slow_tree_build(nodes, false, &t));
	json_decref(nodes);
	/* of 5050: at least 50 */
	cr_assert_eq(t.nrows, 1 + 51 + 1);
	cr_assert_eq(t.rows[1].node, 100);
	cr_assert_eq(t.rows[51].node, 50);
	cr_assert(t.rows[52].nothers == 49 && t.rows[52].depth == 1);
	slow_tree_figures(&t, &t.rows[0], &f);
	cr_assert(f.calls == 1 && f.wall == 5050);
	slow_tree_figures(&t, &t.rows[52], &f);
	cr_assert(f.calls == 49 && f.wall == 49 * 50 / 2);
	cr_assert(!t.measured);
	slow_tree_deinit(&t);
	check_no_leaks();
}

Test(slow_text, progress)
{
	_cleanup_free_ char *out = NULL;
	json_t *counters = json_pack("{s:I, s:i, s:i, s:i}", "elapsed_ns", (json_int_t)12340000000,
				     "seen", 1234, "over", 3, "over_ns", 200000000);
	size_t n;
	FILE *f = open_memstream(&out, &n);

	slow_text_progress(counters, f);
	putc('\n', f);
	slow_text_progress(NULL, f);
	fclose(f);
	json_decref(counters);
	cr_assert_str_eq(out, "12.3s, 1234 calls, 3 over 200 ms\n0.0s, 0 calls");
	check_no_leaks();
}
