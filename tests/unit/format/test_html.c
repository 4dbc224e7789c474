// SPDX-License-Identifier: BSD-2-Clause
/* The HTML format: the contents of the file. tests/browser/ tests it in a browser. */
#include <inttypes.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"
#include "snapshot/lines.h"

#define DATA_BEGINS "<script type=\"application/json\" id=\"data\">"
#define DATA_ENDS   "</script>"

/* Python's json accepts lone surrogates, as a browser does. */
static const char *const script =
	"import json, sys\n"
	"page = open(sys.argv[1] + '/p.html', encoding='ascii').read()\n"
	"head, rest = page.split('<script type=\"application/json\" id=\"data\">')\n"
	"data, tail = rest.split('</script>', 1)\n"
	"assert not set('<>&') & set(data)\n"
	"d = json.loads(data)\n"
	"assert d['provenance']['format'] == 'pyprofd-provenance'\n"
	"assert d['lines'][0][0] == 'program'\n"
	"s, n = d['strings'], d['nodes']\n"
	"def name(f):\n"
	"    if f < 0: return 'root'\n"
	"    name, qualname, file, line, pseudo = d['functions'][f]\n"
	"    names = (s[name], '' if qualname < 0 else s[qualname], s[file])\n"
	"    return ' '.join(ascii(i)[1:-1].encode().hex() for i in names) + f' {line} {pseudo}'\n"
	"for t in d['threads']: print(*t[:2], t[2].encode('utf-8', 'surrogatepass').hex(), "
	"*t[3:9])\n"
	"for row in zip(*(n[k] for k in ('parent', 'calls', 'inflight', 'cpu', 'wall', 'min_cpu',\n"
	"        'max_cpu', 'min_wall', 'max_wall'))): print(*row)\n"
	"for f in n['func']: print(f)\n";

static char *read_back(const struct snapshot *s, const struct format_opts *o)
{
	return report_read("html", s, o, "p.html", script, NULL);
}

static void print_none(FILE *out, uint64_t n)
{
	if (n == UINT64_MAX || n == SNAPSHOT_NONE)
		fputs(" -1", out);
	else
		fprintf(out, " %" PRIu64, n);
}

static void print_node(FILE *out, const struct snapshot_node *n, uint32_t first)
{
	bool none = n->min[SNAPSHOT_CPU] == UINT64_MAX;

	if (n->parent == SNAPSHOT_NONE)
		fputs("-1", out);
	else
		fprintf(out, "%" PRIu32, n->parent - first);
	fprintf(out, " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64, n->calls, n->inflight,
		n->self[SNAPSHOT_CPU], n->self[SNAPSHOT_WALL]);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		print_none(out, n->min[c]);
		print_none(out, none ? 0 : n->max[c]);
	}
	fputc('\n', out);
}

/* Prints the same as the script about one selected thread, whose nodes are contiguous. */
static void print_thread(FILE *out, const struct snapshot *s, uint32_t thread)
{
	const struct snapshot_thread *t = &s->threads[thread];

	fprintf(out, "%" PRIu32 " %" PRIu32 " ", t->pid, t->tid);
	for (const char *p = t->name; *p; p++)
		fprintf(out, "%02x", (unsigned char)*p);
	fprintf(out, " %d 0 10000000000 %" PRIu64 " %" PRIu64 " 0\n", t->alive,
		t->total[SNAPSHOT_CPU], t->total[SNAPSHOT_WALL]);
	for (uint32_t i = t->root; i < s->nnodes; i++)
		if (s->nodes[i].thread == thread)
			print_node(out, &s->nodes[i], t->root);
}

Test(html, contexts_are_the_snapshots)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.filter.tid = 42};
		_cleanup_free_ char *have = read_back(s, &o);
		char *want = NULL;
		size_t size;
		FILE *out = open_memstream(&want, &size);

		cr_assert(out);
		print_thread(out, s, 0);
		fclose(out);
		cr_assert(strncmp(have, want, size) == 0, "have:\n%s\nwant:\n%s", have, want);
		free(want);
	}
	check_no_leaks();
}

/*
 * Returns the part of the data selected by an expression: a line per element of an array or member
 * of an object.
 */
static char *part(const struct snapshot *s, const struct format_opts *o, const char *expression)
{
	static const char *const reader =
		"import json, sys\n"
		"page = open(sys.argv[1] + '/p.html').read()\n"
		"d = json.loads(page.split('id=\"data\">')[1].split('</script>', 1)[0])\n"
		"def name(f): return d['strings'][f[0]]\n"
		"print(eval(sys.argv[2]))\n";

	return report_read("html", s, o, "p.html", reader, expression);
}

static void assert_part(const struct snapshot *s, const struct format_opts *o,
			const char *expression, const char *want)
{
	_cleanup_free_ char *have = part(s, o, expression);

	have[strcspn(have, "\n")] = '\0';
	cr_assert_str_eq(have, want, "%s: %s, not %s", expression, have, want);
}

static const char *const two_threads = "target 42\n"
				       "thread 42 42 MainThread\n"
				       "main a.py:1 1 5\n"
				       "thread 42 43 worker\n"
				       "f a.py:9 1 5\n"
				       "  main a.py:1 1 5\n";

/* One column of contexts per recorded counter, the root's share included. */
Test(html, resources_are_columns)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(two_threads);
	struct format_opts o = {0};

	assert_part(s, &o, "d['columns'], 'counters_vcsw' in d['nodes']", "([], False)");
	assert_part(s, &o, "d['strings'][d['functions'][1][2]]", "a.py");
	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_wbytes);
	assert_ok(snapshot_reserve_columns(s, column_group("counters"), s->nnodes));
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->columns[COLUMN_vcsw][i] = 10 + i;
		s->columns[COLUMN_rbytes][i] = 99;
		s->columns[COLUMN_wbytes][i] = UINT64_C(9007199254740992) * i;
	}
	assert_part(s, &o,
		    "[(m[0], m[1], m[4], m[5]) for m in d['columns']], "
		    "'counters_rbytes' in d['nodes']",
		    "([('counters_vcsw', 'counters', 'count', 'sum'), "
		    "('counters_wbytes', 'counters', 'bytes', 'sum')], False)");
	assert_part(s, &o, "d['nodes']['counters_vcsw']", "[10, 11, 12, 13, 14]");
	assert_part(s, &o, "d['nodes']['counters_wbytes'][:3]",
		    "[0, '9007199254740992', '18014398509481984']");
	o.filter.tid = 43;
	assert_part(s, &o, "d['nodes']['counters_vcsw']", "[12, 13, 14]");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Pairs name functions by the index that these have in the data; a filter by thread has none. */
Test(html, holders_of_the_gil_have_rows)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 a\nmain a.py:1 1 5\n"
			       "target 7\nthread 7 7 b\ng b.py:1 1 5\nh b.py:9 1 5\n");
	struct snapshot_gil_pair pairs[] = {
		{42, 0, SNAPSHOT_NONE, 9007199254740992}, {7, 2, 1, 30}, {7, 0, 1, 20}};
	struct format_opts o = {0};

	assert_part(s, &o, "d['gil_pairs']", "[]");
	s->gil_pairs = pairs;
	s->ngil_pairs = 3;
	assert_part(s, &o, "d['gil_pairs']",
		    "[[42, 0, -1, '9007199254740992'], [7, 2, 1, 30], [7, 0, 1, 20]]");
	/* A function without a context among the selected threads is in the data nevertheless. */
	o.filter.pid = 7;
	assert_part(s, &o, "d['gil_pairs'], [name(f) for f in d['functions']]",
		    "([[7, 2, 1, 30], [7, 0, 1, 20]], ['main', 'g', 'h'])");
	o.filter = (struct view_filter){.tid = 7};
	assert_part(s, &o, "d['gil_pairs'], [name(f) for f in d['functions']]", "([], ['g', 'h'])");
	s->gil_pairs = NULL;
	s->ngil_pairs = 0;
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Errors by function; -1: unknown. There are none for single threads or for merged snapshots. */
Test(html, estimates_have_errors)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(two_threads);
	struct format_opts o = {0};

	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = k == SNAPSHOT_CUM_CPU ? -1 : 100.0 * k * k + i;
	assert_part(s, &o, "'errors' in d", "False");
	s->targets[0].windows = (struct snapshot_windows){.sampled = true, .n = 9};
	assert_part(s, &o, "d['errors']",
		    "{'ncalls': [0, 1], 'tot_cpu': [10, 10], 'tot_wall': [20, 20], "
		    "'cum_cpu': [-1, -1], 'cum_wall': [40, 40]}");
	o.filter.tid = 43;
	assert_part(s, &o, "'errors' in d", "False");
	o = (struct format_opts){.only_my_code = true};
	assert_part(s, &o, "'errors' in d", "False");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* A function without a context, main of thread 42, and f, which calls main, of thread 43 */
static struct snapshot *with_unused(void)
{
	struct snapshot_builder *b = snapshot_builder_new();
	uint32_t main, f, node;

	snapshot_builder_target(b, 42);
	snapshot_builder_func(b, "u.py", 3, "unused", NULL);
	main = snapshot_builder_func(b, "a.py", 1, "main", NULL);
	f = snapshot_builder_func(b, "a.py", 9, "f", "A.f");
	snapshot_builder_node(b, snapshot_builder_thread(b, 42, 42, "Main"), main, 1, 5, 5, 0);
	node = snapshot_builder_thread(b, 42, 43, "worker");
	node = snapshot_builder_node(b, node, f, 1, 5, 5, 0);
	snapshot_builder_node(b, node, main, 1, 5, 5, 0);
	return snapshot_builder_finish(b);
}

#define FUNCTIONS                                                                                  \
	"[[d['strings'][i] if i >= 0 else i for i in f[:3]] + f[3:] for f in d['functions']]"

/* Only what the selected threads have, and by the indices that these have in the data. */
Test(html, functions_and_contexts_are_numbered)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_unused();
	struct format_opts o = {0};

	s->funcs[1].pseudo = true;
	assert_part(s, &o, FUNCTIONS, "[['main', -1, 'a.py', 0, 1], ['f', 'A.f', 'a.py', 9, 0]]");
	assert_part(s, &o, "d['nodes']['parent'], d['nodes']['func']",
		    "([-1, 0, -1, 2, 3], [-1, 0, -1, 1, 0])");
	assert_part(s, &o, "[t[8] for t in d['threads']]", "[0, 2]");
	o.filter.tid = 43;
	assert_part(s, &o, "d['nodes']['parent'], d['nodes']['func'], d['threads'][0][8]",
		    "([-1, 0, 1], [-1, 1, 0], 0)");
	o.filter.tid = 42;
	assert_part(s, &o, FUNCTIONS, "[['main', -1, 'a.py', 0, 1]]");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Columns of contexts, only if windows have shown whole calls */
Test(html, whole_calls)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 42 Main\nf a.py:1 1 1\nthread 42 43 other\nf a.py:1 1 "
			       "1\n  g a.py:2 1 1\n");
	const char *all = "[d['nodes'].get('whole_' + k) for k in ('x', 'y', 'x2', 'xy', 'y2')]";
	struct format_opts o = {.filter.tid = 43};

	assert_part(s, &o, all, "[None, None, None, None, None]");
	WHOLES_ADD_WINDOW(s, 0, {3, 1, 2}, {4, 7, 0});
	WHOLES_ADD_WINDOW(s, 0, {1, 9, 9}, {3, 0, 1}, {4, 3, 3});
	assert_part(s, &o, all, "[[0, 1, 10], [0, 3, 3], [0, 1, 58], [0, 0, 17], [0, 5, 9]]");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Histograms and lines by function, of all threads together only */
Test(html, durations_and_lines)
{
	static const struct snapshot_line lines[] = {{0, 1, 10, 2}, {3, 4, 30, 3}};
	_cleanup_(snapshot_freep) struct snapshot *s = with_unused();
	const char *both = "'durations' in d, 'own_lines' in d";
	struct histogram_sum sum = {.count = 3};
	struct format_opts o = {0};

	assert_part(s, &o, both, "(False, False)");
	sum.n[histogram_bucket(1 << 10)] = 2;
	sum.n[histogram_bucket(1 << 20)] = 1;
	assert_ok(snapshot_add_durations(s, &s->funcs[1], SNAPSHOT_CPU, &sum, 1 << 20));
	assert_part(s, &o, both, "(True, False)");
	assert_ok(snapshot_add_lines(s, &s->funcs[2], lines, 2));
	assert_part(s, &o, "d['durations'], d['own_lines']",
		    "([[[1048576, 982, 2, 1005062, 1], [0]], None], "
		    "[None, [0, 10, 1, 1, 3, 30, 2, 4]])");
	o.filter.tid = 43;
	assert_part(s, &o, both, "(False, False)");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* By function; of several kinds, which are added up. Greenlets' steps are no calls. */
Test(html, resumptions)
{
	struct snapshot_coro coros[] = {
		{.pid = 42, .func = 2, .kind = SNAPSHOT_COROUTINE, .started = 3, .steps = 9},
		{.pid = 42, .func = 2, .kind = SNAPSHOT_GENERATOR, .started = 5, .steps = 5},
		{.pid = 7, .func = 2, .kind = SNAPSHOT_GENERATOR, .started = 1, .steps = 3},
		{.pid = 42, .func = 1, .kind = SNAPSHOT_GREENLET, .started = 1, .steps = 3},
		{.pid = 42, .func = 0, .kind = SNAPSHOT_GENERATOR, .started = 9, .steps = 8}};
	_cleanup_(snapshot_freep) struct snapshot *s = with_unused();
	struct format_opts o = {0};

	assert_part(s, &o, "'resumed' in d", "False");
	s->coros = coros;
	s->ncoros = 5;
	assert_part(s, &o, "d['resumed']", "[None, 8]");
	o.filter.pid = 42;
	assert_part(s, &o, "d['resumed']", "[None, 6]");
	o.filter.tid = 43;
	assert_part(s, &o, "d['resumed']", "[None, None]");
	coros[4].func = 1;
	o = (struct format_opts){0};
	assert_part(s, &o, "d['resumed']", "[0, 8]");
	s->targets[0].windows.sampled = true;
	assert_part(s, &o, "d['resumed']", "[None, None]");
	s->coros = NULL;
	s->ncoros = 0;
}

#define S UINT64_C(1000000000)

/* From the start of the first selected process, on the clock of the thread's own process. */
Test(html, threads_have_times)
{
	const char *times = "[t[4:6] for t in d['threads']]";
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 a\n"
			       "target 7\nthread 7 7 b\n"
			       "target 42\nthread 42 45 c\nthread 42 46 d\nthread 42 47 e\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};

	s->threads[0].start_ns = S / 2;
	s->targets[1].start_unix_ns += 5 * S;
	s->threads[1].start_ns = 3 * S;
	/* a later run with the same pid, of which two threads are */
	s->targets[2].start_unix_ns += 60 * S;
	s->targets[2].start_ns = 20 * S;
	s->targets[2].end_ns = 30 * S;
	s->targets[2].truncated = 1;
	s->threads[2].start_ns = 20 * S;
	s->threads[2].end_ns = 25 * S;
	s->threads[3].start_ns = 30 * S;
	s->threads[3].end_ns = 30 * S;
	s->threads[4].start_ns = 11 * S;
	assert_part(s, &o, times,
		    "[[0, 10000000000], [7000000000, 15000000000], [60000000000, 65000000000], "
		    "[70000000000, 70000000000], [10000000000, 10000000000]]");
	assert_part(s, &o, "d['targets']",
		    "[[42, 'python app.py', 0, 10000000000, 1], "
		    "[7, 'python app.py', 5000000000, 15000000000, 1], "
		    "[42, 'python app.py', 60000000000, 70000000000, 0]]");
	o.filter.pid = 7;
	assert_part(s, &o, times, "[[2000000000, 10000000000]]");
	assert_part(s, &o, "d['targets']", "[[7, 'python app.py', 0, 10000000000, 1]]");
	o.filter.pid = 0;
	s->threads[1].start_ns = 31 * S;
	s->threads[3].start_ns = 19 * S;
	s->threads[4].pid = 99;
	assert_part(s, &o, "[t[4] for t in d['threads'][1:]]",
		    "[35000000000, 60000000000, 18000000000, 0]");
}

Test(html, provenance_is_escaped)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(two_threads);
	struct format_opts o = {0};

	s->targets[0].warnings = "a<b>&";
	free(read_back(s, &o));
	assert_part(s, &o, "d['provenance']['targets'][0]['warnings']", "a<b>&");
	assert_part(s, &o, "[l for l in d['lines'] if l[0] == 'WARNING']",
		    "[['WARNING', 'a<b>&']]");
}

/* The page needs each thread's mode, to know which threads have no contexts. */
Test(html, threads_say_their_mode)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 a\nmain a.py:1 1 0\n"
			       "target 7\nthread 7 7 b\nmain a.py:1 1 5\n");
	struct format_opts o = {0};

	s->targets[0].mode = MODE_COUNT;
	assert_part(s, &o, "[t[9] for t in d['threads']]", "['count', 'trace']");
}

Test(html, hostile_names_stay_in_their_strings)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("html", s, &o, NULL);
	char *begin = strstr(report, DATA_BEGINS), *end;

	cr_assert(strncmp(report, "<!DOCTYPE html>", 15) == 0 && begin);
	begin += strlen(DATA_BEGINS);
	cr_assert_null(strstr(begin, DATA_BEGINS));
	end = strchr(begin, '<');
	cr_assert(end && strncmp(end, DATA_ENDS, strlen(DATA_ENDS)) == 0);
	*end = '\0';
	cr_assert(report_harmless(begin, strlen(begin)));
	cr_assert(strstr(begin, "\\u003c/script\\u003e\\u003cscript\\u003e"));
	cr_assert(strstr(begin, "surrogate \\udcff"));
	cr_assert(strstr(begin, "tag \\udb40\\udc41") && strstr(begin, "\\u0008\\u007f\""));
	free(read_back(s, &o));
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* The characters at the ends of what is written as it is, and as one unit */
Test(html, characters)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(two_threads);
	struct format_opts o = {0};
	_cleanup_free_ char *report = NULL;

	s->threads[0].name = "\x1f ~\x7f\xc2\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
	report = report_new("html", s, &o, NULL);
	cr_assert(strstr(report,
			 "[42,42,\"\\u001f ~\\u007f\\u0080\\uffff\\ud800\\udc00\\udbff\\udfff"
			 "\",1,0,"));
}

/* The page must not be able to fetch anything or to run other scripts than the embedded ones. */
Test(html, needs_no_network)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("main a.py:1 1 5\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("html", s, &o, NULL);

	cr_assert(strstr(report, "content=\"default-src 'none'; script-src 'sha256-"));
	cr_assert_null(strstr(report, "unsafe-"));
	cr_assert_null(strstr(report, "<script src"));
	cr_assert_null(strstr(report, "<link rel=\"stylesheet"));
	cr_assert_null(strstr(report, "@import"));
	cr_assert_null(strstr(report, "url(http"));
	/* The page contains the licences of its libraries. */
	cr_assert(strstr(report, "d3-flame-graph ") && strstr(report, "tabulator-tables "));
	cr_assert(strstr(report, "Apache License") &&
		  strstr(report, "Permission is hereby granted"));
}

Test(html, numbers_beyond_doubles_are_strings_of_digits)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("main a.py:1 1 9007199254740991 9007199254740992\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("html", s, &o, NULL);

	cr_assert(strstr(report, ",9007199254740991]"));
	cr_assert(strstr(report, ",\"9007199254740992\"]"));
}
