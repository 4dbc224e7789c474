// SPDX-License-Identifier: BSD-2-Clause
/* The pstats format, loaded by the pstats module of every interpreter on this machine. */
#include <inttypes.h>

#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

/* Run a script in every interpreter; all outputs must be equal. */
static void run_everywhere(const char *script, const char *arg, const char *expected)
{
	struct interpreter found[INTERPRETERS_MAX];
	size_t n = interpreters_find(found);

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *out = python_run(found[i].exe, script, arg);

		cr_assert(strcmp(out, expected) == 0, "%s printed:\n%s\nexpected:\n%s",
			  found[i].exe, out, expected);
	}
}

static const char *const example = "main app.py:1 1 1000000\n"
				   "  f /srv/lib.py:10 3 2000000 2500000\n"
				   "    f /srv/lib.py:10 2 500000\n"
				   "  g b.py:3 0 7000 8000 1\n";

#define LOAD                                                                                       \
	"import io, marshal, os, pstats, sys\n"                                                    \
	"path = sys.argv[1] + '/profile'\n"                                                        \
	"out = io.StringIO()\n"                                                                    \
	"st = pstats.Stats(path, stream=out)\n"                                                    \
	"st.files = []\n"

Test(pstats, loads_with_callers)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {0};
	char *dir = temp_dir_new();

	report_save("pstats", s, &o, dir, "profile");
	run_everywhere(LOAD "for k, v in sorted(st.stats.items()):\n"
			    "    print('%r %r' % (k, v))\n",
		       dir,
		       "('/srv/lib.py', 10, 'f') (3, 5, 0.0025, 0.0025, {"
		       "('app.py', 1, 'main'): (3, 3, 0.002, 0.0025), "
		       "('/srv/lib.py', 10, 'f'): (2, 2, 0.0005, 0.0005)})\n"
		       "('app.py', 1, 'main') (1, 1, 0.001, 0.003507, {})\n"
		       "('b.py', 3, 'g') (0, 0, 7e-06, 7e-06, {"
		       "('app.py', 1, 'main'): (0, 0, 7e-06, 7e-06)})\n");
	temp_dir_remove(dir);
	check_no_leaks();
}

Test(pstats, restrictions_leave_out_functions)
{
	static const char *const restrictions[] = {"py", "1"};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {.sort = "calls", .restrict_ = restrictions, .nrestrict = 2};
	char *dir = temp_dir_new();

	report_save("pstats", s, &o, dir, "profile");
	run_everywhere(LOAD "print(list(st.stats), sorted(list(st.stats.values())[0][4]))\n", dir,
		       "[('/srv/lib.py', 10, 'f')] "
		       "[('/srv/lib.py', 10, 'f'), ('app.py', 1, 'main')]\n");
	temp_dir_remove(dir);
}

Test(pstats, every_method_of_stats_works)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	char *dir = temp_dir_new();

	report_save("pstats", s, &o, dir, "profile");
	run_everywhere(LOAD "st.add(path).strip_dirs().sort_stats('time')\n"
			    "st.files = []\n"
			    "st.print_stats()\n"
			    "st.print_callers('lib')\n"
			    "st.print_callees('main')\n"
			    "st.dump_stats(sys.argv[1] + '/again')\n"
			    "assert pstats.Stats(sys.argv[1] + '/again').stats == st.stats\n"
			    "print('\\n'.join(l.rstrip() for l in out.getvalue().split('\\n')))\n",
		       dir,
		       "         12 function calls (8 primitive calls) in 0.008 seconds\n"
		       "\n"
		       "   Ordered by: internal time\n"
		       "\n"
		       "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
		       "     10/6    0.006    0.001    0.006    0.001 lib.py:10(f)\n"
		       "        2    0.002    0.001    0.008    0.004 app.py:1(main)\n"
		       "        0    0.000             0.000          b.py:3(g)\n"
		       "\n"
		       "\n"
		       "   Ordered by: internal time\n"
		       "   List reduced from 3 to 1 due to restriction <'lib'>\n"
		       "\n"
		       "Function      was called by...\n"
		       "                  ncalls  tottime  cumtime\n"
		       "lib.py:10(f)  <-       6    0.005    0.006  app.py:1(main)\n"
		       "                       4    0.001    0.001  lib.py:10(f)\n"
		       "\n"
		       "\n"
		       "   Ordered by: internal time\n"
		       "   List reduced from 3 to 1 due to restriction <'main'>\n"
		       "\n"
		       "Function        called...\n"
		       "                    ncalls  tottime  cumtime\n"
		       "app.py:1(main)  ->       0    0.000    0.000  b.py:3(g)\n"
		       "                         6    0.005    0.006  lib.py:10(f)\n"
		       "\n"
		       "\n"
		       "\n");
	temp_dir_remove(dir);
	check_no_leaks();
}

Test(pstats, provenance_stands_behind_the_profile)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {0};
	char *dir = temp_dir_new();

	s->targets[0].losses[PYP_LOSS_lost_events] = 5000000000;
	report_save("pstats", s, &o, dir, "profile");
	run_everywhere("import marshal, sys\n"
		       "f = open(sys.argv[1] + '/profile', 'rb')\n"
		       "marshal.load(f)\n"
		       "p = marshal.load(f)\n"
		       "assert not f.read(1)\n"
		       "print(p['format'], p['version'], p['host'], p['clock'], p['exact'])\n"
		       "t = p['targets'][0]\n"
		       "print(t['pid'], t['cmdline'], t['python']['version'], t['lost'],\n"
		       "      t['end_unix_ns'], t['traced_seconds'])\n",
		       dir,
		       "pyprofd-provenance 1 testhost cpu False\n"
		       "42 python app.py 3.13.0 5000000000 1700000010000000000 10.0\n");
	temp_dir_remove(dir);
	check_no_leaks();
}

Test(pstats, numbers_of_all_sizes)
{
	static const uint64_t numbers[] = {0,	       1,	   32767,
					   32768,      INT32_MAX,  INT32_MAX + 1ull,
					   UINT32_MAX, 1ull << 45, (1ull << 60) - 1,
					   1ull << 60, INT64_MAX,  UINT64_MAX};
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct format_opts o = {0};
	char *dir = temp_dir_new(), expected[512] = "";
	uint32_t root;

	snapshot_builder_target(b, 42);
	root = snapshot_builder_thread(b, 42, 42, "MainThread");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		/* Line numbers are signed 32-bit integers. */
		int line = (int)i * 150000000 - 1000000000;
		uint32_t f = snapshot_builder_func(b, "n.py", line, "f", NULL);

		snapshot_builder_node(b, root, f, numbers[i], 0, 0, !numbers[i]);
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
			 "%d %" PRIu64 "\n", line, numbers[i]);
	}
	s = snapshot_builder_finish(b);
	report_save("pstats", s, &o, dir, "profile");
	run_everywhere(LOAD "for k, v in sorted(st.stats.items()): print(k[1], v[1])\n", dir,
		       expected);
	temp_dir_remove(dir);
	check_no_leaks();
}

/* Bytes that are not UTF-8 are replaced by U+FFFD; everything else is kept. */
Test(pstats, hostile_names_arrive)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	char *dir = temp_dir_new(), expected[16];

	snprintf(expected, sizeof(expected), "%" PRIu32 "\n", s->nfuncs);
	report_save("pstats", s, &o, dir, "profile");
	run_everywhere(LOAD "names = {k[2] for k in st.stats}\n"
			    "assert all(k[0] == k[2] for k in st.stats if k[0] not in\n"
			    "           ('l', '<unknown>'))\n"
			    "for n in ('two\\nlines', '\\x1b[2J\\x1b]0;title\\x07', '', ' ',\n"
			    "          'right-to-left \\u202etxet', 'surrogate \\udcff',\n"
			    "          'invalid \\ufffd\\ufffd\\ufffd', 'cut off \\ufffd\\ufffd',\n"
			    "          'quotes \" \\' ` and \\\\', 'x' * 10240, '<unknown>'):\n"
			    "    assert n in names, ascii(n)\n"
			    "print(len(st.stats))\n",
		       dir, expected);
	temp_dir_remove(dir);
	check_no_leaks();
}

/*
 * pstats and json are derived from a snapshot in different ways: pstats merges functions that
 * differ only in their qualified names, and omits calls from outside. Applied to the JSON here,
 * this must give the same result.
 */
static const char *const merge_script =
	"import json, io, pstats, sys\n"
	"for i in range(1, 41):\n"
	"    for clock in ('cpu', 'wall'):\n"
	"        base = '%s/%d.%s' % (sys.argv[1], i, clock)\n"
	"        st = pstats.Stats(base + '.pstats')\n"
	"        j = json.load(io.open(base + '.json', encoding='utf-8'))\n"
	"        key = [(f['file'], f['line'], f['name']) for f in j['functions']]\n"
	"        rows, edges = {}, {}\n"
	"        def add(d, k, *v):\n"
	"            d[k] = [a + b for a, b in zip(d.get(k, [0] * len(v)), v)]\n"
	"        for k, f in zip(key, j['functions']):\n"
	"            # Contexts without calls or time make no row.\n"
	"            if not any([f['ncalls']] + list(f['cumtime'].values())): continue\n"
	"            add(rows, k, f['pcalls'], f['ncalls'], f['tottime'][clock],\n"
	"                f['cumtime'][clock])\n"
	"        for e in j['edges']:\n"
	"            if e['caller'] is not None and key[e['callee']] in rows:\n"
	"                add(edges, (key[e['callee']], key[e['caller']]), e['ncalls'],\n"
	"                    e['pcalls'], e['tottime'][clock], e['cumtime'][clock])\n"
	"        def seconds(v): return (v[0], v[1], v[2] / 1e9, v[3] / 1e9)\n"
	"        got = {k: v[:4] for k, v in st.stats.items()}\n"
	"        assert got == {k: seconds(v) for k, v in rows.items()}, base\n"
	"        got = {(k, c): e for k, v in st.stats.items() for c, e in v[4].items()}\n"
	"        assert got == {k: seconds(v) for k, v in edges.items()}, base\n"
	"        assert st.total_calls == j['totals']['ncalls']\n"
	"        assert st.prim_calls == j['totals']['pcalls']\n"
	"print('same')\n";

Test(pstats, agrees_with_json)
{
	struct interpreter found[INTERPRETERS_MAX];
	size_t n = interpreters_find(found);
	_cleanup_free_ char *out = NULL;
	char *dir = temp_dir_new(), file[32];

	for (unsigned int i = 1; i <= 40; i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(i);

		for (enum snapshot_clock clock = 0; clock < SNAPSHOT_CLOCKS; clock++) {
			struct format_opts o = {.clock = clock};
			const char *name = clock == SNAPSHOT_CPU ? "cpu" : "wall";

			snprintf(file, sizeof(file), "%u.%s.pstats", i, name);
			report_save("pstats", s, &o, dir, file);
			snprintf(file, sizeof(file), "%u.%s.json", i, name);
			report_save("json", s, &o, dir, file);
		}
	}
	out = python_run(found[n - 1].exe, merge_script, dir);
	cr_assert_str_eq(out, "same\n");
	temp_dir_remove(dir);
	free(TAKE_PTR(out));
	check_no_leaks();
}
