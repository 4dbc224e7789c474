// SPDX-License-Identifier: BSD-2-Clause
/* speedscope's format: the rules that its importer enforces, and the figures. */
#include <inttypes.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

/*
 * Replays the events as speedscope does: a close event must match the open one, time must not go
 * backwards, and nothing may be open at the end. Prints per profile its name, its end, and the self
 * time per frame.
 */
static const char *const script =
	"import json, sys\n"
	"doc = json.load(open(sys.argv[1] + '/p.speedscope.json'))\n"
	"assert doc['$schema'] == 'https://www.speedscope.app/file-format-schema.json'\n"
	"assert doc['pyprofd']['format'] == 'pyprofd-provenance'\n"
	"frames = doc['shared']['frames']\n"
	"for f in frames:\n"
	"    assert type(f['name']) is str and type(f.get('file', '')) is str\n"
	"    assert type(f.get('line', 0)) is int\n"
	"for p in doc['profiles']:\n"
	"    assert p['type'] == 'evented' and p['unit'] == 'nanoseconds'\n"
	"    stack, at, own = [], p['startValue'], [0] * len(frames)\n"
	"    for e in p['events']:\n"
	"        assert e['at'] >= at\n"
	"        if stack: own[stack[-1]] += e['at'] - at\n"
	"        else: assert e['at'] == at\n"
	"        at = e['at']\n"
	"        if e['type'] == 'O': stack.append(e['frame'])\n"
	"        else: assert e['type'] == 'C' and stack.pop() == e['frame']\n"
	"    assert not stack and at == p['endValue']\n"
	"    print(p['name'].split(', ')[-1], p['endValue'], *own)\n";

static char *play(const struct snapshot *s, const struct format_opts *o)
{
	return report_read("speedscope", s, o, "p.speedscope.json", script, NULL);
}

/* Prints the same as the script for a thread and a clock. */
static void print_expected(const struct snapshot *s, uint32_t thread, enum snapshot_clock clock,
			   FILE *out)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].thread == thread && s->nodes[i].func != SNAPSHOT_NONE)
			total += s->nodes[i].self[clock];
	fprintf(out, "%s time %" PRIu64, clock == SNAPSHOT_CPU ? "cpu" : "wall", total);
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		uint64_t own = 0;

		for (uint32_t i = 0; i < s->nnodes; i++)
			if (s->nodes[i].thread == thread && s->nodes[i].func == f)
				own += s->nodes[i].self[clock];
		fprintf(out, " %" PRIu64, own);
	}
	fputc('\n', out);
}

static char *expected(const struct snapshot *s, const struct format_opts *o)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	cr_assert(out);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		for (uint32_t t = 0; t < s->nthreads; t++)
			if (!o->filter.tid || s->threads[t].tid == o->filter.tid)
				print_expected(s, t, c ? !o->clock : o->clock, out);
	fclose(out);
	return ret;
}

Test(speedscope, self_times_are_the_snapshots)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.clock = seed % 2 ? SNAPSHOT_CPU : SNAPSHOT_WALL,
					.filter.tid = seed == 3 ? 42 : 0};
		char *have = play(s, &o), *want = expected(s, &o);

		cr_assert_str_eq(have, want);
		free(have);
		free(want);
	}
	check_no_leaks();
}

/* The file, to the letter but for the provenance */
Test(speedscope, everything)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 MainThread\n"
								      "f a.py:1 1 10 100\n"
								      "  (lost) a.py:7 1 5 50\n"
								      "thread 42 43 worker\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	_cleanup_free_ char *text = NULL;
	const char *start =
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		"\"shared\":{\"frames\":[\n"
		"{\"name\":\"f\",\"file\":\"a.py\",\"line\":1},\n"
		"{\"name\":\"(lost)\"}\n]},\n"
		"\"profiles\":[\n"
		"{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\"MainThread [42:42], "
		"wall "
		"time\",\"startValue\":0,\"endValue\":150,\"events\":[\n"
		"{\"type\":\"O\",\"frame\":0,\"at\":0},\n"
		"{\"type\":\"O\",\"frame\":1,\"at\":0},\n"
		"{\"type\":\"C\",\"frame\":1,\"at\":50},\n"
		"{\"type\":\"C\",\"frame\":0,\"at\":150}\n]},\n"
		"{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\"thread [42:43], wall "
		"time\",\"startValue\":0,\"endValue\":0,\"events\":[\n]},\n"
		"{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\"MainThread [42:42], cpu "
		"time\",\"startValue\":0,\"endValue\":15,\"events\":[\n";

	s->funcs[1].pseudo = true;
	s->threads[1].name = "";
	s->nodes[s->threads[0].root].self[SNAPSHOT_WALL] = 1000;
	text = report_new("speedscope", s, &o, NULL);
	cr_assert(strncmp(text, start, strlen(start)) == 0, "%s", text);
	cr_assert(strstr(text,
			 "\n],\n\"activeProfileIndex\":0,\"exporter\":\"pyprofd test\",\"name\":"
			 "\"python app.py\",\n\"pyprofd\":{"),
		  "%s", text);
	s->targets[0].cmdline = NULL;
	free(text);
	text = report_new("speedscope", s, &o, NULL);
	cr_assert(strstr(text, ",\"name\":\"pyprofd\",\n\"pyprofd\":{"), "%s", text);
	s->ntargets = 0;
	free(text);
	text = report_new("speedscope", s, &o, NULL);
	cr_assert(strstr(text, ",\"name\":\"pyprofd\",\n\"pyprofd\":{"), "%s", text);
}

Test(speedscope, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	size_t size;
	_cleanup_free_ char *report = report_new("speedscope", s, &o, &size);
	char *have = play(s, &o), *want = expected(s, &o);

	cr_assert(report_harmless(report, size));
	cr_assert_str_eq(have, want);
	free(have);
	free(want);
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
