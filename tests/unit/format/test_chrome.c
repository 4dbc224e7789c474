// SPDX-License-Identifier: BSD-2-Clause
/* Chrome's trace format: well-formed, slices nested, figures exact to the nanosecond. */
#include <inttypes.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

/*
 * Reads the file as trace viewers do: a slice lies within the open slice of its thread. Prints for
 * each slice its length minus that of the slices within it, and its own time according to its
 * arguments; then the names of threads.
 */
static const char *const script =
	"import decimal, json, sys\n"
	"doc = json.load(open(sys.argv[1] + '/p.trace.json'), parse_float=decimal.Decimal)\n"
	"clock = sys.argv[2]\n"
	"assert doc['otherData']['provenance']['format'] == 'pyprofd-provenance'\n"
	"opened, threads = {}, []\n"
	"def close(stack, at):\n"
	"    while stack and stack[-1][1] <= at:\n"
	"        _, _, e, rest = stack.pop()\n"
	"        assert rest * 1000 == e['args']['self_%s_ns' % clock], e\n"
	"        assert e['dur'] * 1000 == e['args'][clock + '_ns'], e\n"
	"for e in doc['traceEvents']:\n"
	"    if e['ph'] == 'M':\n"
	"        if e['name'] == 'thread_name': threads.append(e['args']['name'])\n"
	"        continue\n"
	"    assert e['ph'] == 'X' and type(e['name']) is str\n"
	"    stack = opened.setdefault((e['pid'], e['tid']), [])\n"
	"    if e['dur']:\n"
	"        close(stack, e['ts'])\n"
	"        if stack:\n"
	"            assert e['ts'] + e['dur'] <= stack[-1][1], e\n"
	"            stack[-1][3] -= e['dur']\n"
	"        stack.append([e['ts'], e['ts'] + e['dur'], e, e['dur']])\n"
	"for stack in opened.values(): close(stack, decimal.Decimal('inf'))\n"
	"slices = [e for e in doc['traceEvents'] if e['ph'] == 'X']\n"
	"print(len(slices), sum(e['args']['calls'] for e in slices),\n"
	"      sum(e['args']['self_cpu_ns'] for e in slices),\n"
	"      sum(e['args']['self_wall_ns'] for e in slices), len(threads))\n";

static void check(const struct snapshot *s, const struct format_opts *o)
{
	_cleanup_(view_freep) struct view *v = NULL;
	char *out, want[256];

	assert_ok(view_build(s, &o->filter, &v));
	out = report_read("chrome", s, o, "p.trace.json", script, o->clock ? "wall" : "cpu");
	snprintf(want, sizeof(want),
		 "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 "\n",
		 s->nnodes - s->nthreads, v->ncalls, v->total[SNAPSHOT_CPU],
		 v->total[SNAPSHOT_WALL], s->nthreads);
	cr_assert_str_eq(out, want);
	free(out);
}

Test(chrome, slices_are_the_snapshots_contexts)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.clock = seed % 2 ? SNAPSHOT_CPU : SNAPSHOT_WALL};

		check(s, &o);
	}
	check_no_leaks();
}

/* Merged snapshots can contain one thread id twice: the second thread comes after the first. */
Test(chrome, one_thread_id_twice)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 43 first\n"
								      "f a.py:1 1 1000\n"
								      "thread 42 43 second\n"
								      "f a.py:1 1 2500\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("chrome", s, &o, NULL);

	check(s, &o);
	cr_assert_not_null(strstr(report, "\"ts\":0.000,\"dur\":1.000"), "%s", report);
	cr_assert_not_null(strstr(report, "\"ts\":1.000,\"dur\":2.500"), "%s", report);
}

/* Names of the selected processes and threads, and where each slice is */
Test(chrome, events)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 MainThread\n"
								      "f a.py:1 1 1001 7\n"
								      "  g a.py:5 2 2002 7\n"
								      "g a.py:5 3 30 7\n"
								      "target 7\n"
								      "thread 7 9 worker\n"
								      "f a.py:1 1 4 7\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = NULL;
	const char *process =
		"{\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":42,\"tid\":0,\"args\":{\"name\":"
		"\"python app.py\"}},\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"tid\":0,\"args\":{\"name\":"
		"\"\"}"
		"},\n"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":42,\"tid\":42,\"args\":{\"name\":"
		"\"MainThread\"}},\n"
		"{\"ph\":\"X\",\"cat\":\"python\",\"name\":\"f\",\"pid\":42,\"tid\":42,\"ts\":0."
		"000,"
		"\"dur\":3.003,\"args\":{\"file\":\"a.py\",\"line\":1,\"calls\":1,\"self_cpu_ns\":"
		"1001,"
		"\"self_wall_ns\":7,\"cpu_ns\":3003,\"wall_ns\":14}},\n";

	s->targets[1].cmdline = NULL;
	s->threads[1].name = "";
	text = report_new("chrome", s, &o, NULL);
	cr_assert(strncmp(text, process, strlen(process)) == 0, "%s", text);
	cr_assert(strstr(text, "\"name\":\"g\",\"pid\":42,\"tid\":42,\"ts\":0.000,\"dur\":2.002,"),
		  "%s", text);
	cr_assert(strstr(text, "\"name\":\"g\",\"pid\":42,\"tid\":42,\"ts\":3.003,\"dur\":0.030,"),
		  "%s", text);
	cr_assert(strstr(text,
			 "\"thread_name\",\"pid\":7,\"tid\":9,\"args\":{\"name\":\"thread\"}},\n"
			 "{\"ph\":\"X\",\"cat\":\"python\",\"name\":\"f\",\"pid\":7,\"tid\":9,"
			 "\"ts\":0.000,\"dur\":0.004,"),
		  "%s", text);
	o.filter.pid = 7;
	free(text);
	text = report_new("chrome", s, &o, NULL);
	cr_assert(!strstr(text, "\"pid\":42,\"tid"), "%s", text);
}

Test(chrome, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	size_t size;
	_cleanup_free_ char *report = report_new("chrome", s, &o, &size);

	cr_assert(report_harmless(report, size));
	check(s, &o);
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
