// SPDX-License-Identifier: BSD-2-Clause
/* Folding library code into its callers: no time and no call of the user's own code is lost. */
#include "stats/reduce.h"

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/pseudo.h"
#include "stats/view.h"

Test(reduce, what_is_a_library)
{
	static const char *const libraries[] = {
		"/usr/lib/python3.11/json/decoder.py",
		"/opt/py/lib/python3.13t/threading.py",
		"/usr/lib64/python3.9/os.py",
		"/usr/lib/python3/dist-packages/yaml/__init__.py",
		"/srv/venv/lib/python3.11/site-packages/flask/app.py",
		"/usr/lib/python311.zip/os.py",
		"<frozen importlib._bootstrap>",
		"/lib/python/x/lib/python3.8/os.py",
	};
	static const char *const own[] = {
		"app.py",
		"/srv/app/lib/python/tool.py",
		"/srv/lib/python3/tool.py",
		"/srv/lib/python3.11",
		"/srv/lib/python3.x/a.py",
		"<string>",
		"",
	};

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		cr_assert(reduce_is_library(libraries[i]), "%s", libraries[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		cr_assert(!reduce_is_library(own[i]), "%s", own[i]);
	cr_assert(!reduce_is_library(NULL));
}

#define LIB "/usr/lib/python3.11/"

static const char *const example = "target 42\n"
				   "thread 42 42 MainThread\n"
				   "boot " LIB "threading.py:1 1 10\n"
				   "  main /srv/app.py:1 1 1000\n"
				   "    loads " LIB "json.py:5 3 200\n"
				   "      hook /srv/app.py:9 6 50\n"
				   "      scan " LIB "json.py:50 7 30\n"
				   "        hook /srv/app.py:9 1 5\n"
				   "    hook /srv/app.py:9 2 8\n"
				   "main /srv/app.py:1 1 1\n";

static const struct view_row *row_of(const struct view *v, const char *name)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

static void assert_row(const struct view *v, const char *name, uint64_t calls, uint64_t tot,
		       uint64_t cum)
{
	const struct view_row *r = row_of(v, name);

	cr_assert(r, "%s", name);
	cr_assert(r->ncalls == calls && r->tot[0] == tot && r->cum[0] == cum,
		  "%s: %lu calls, %lu %lu", name, r->ncalls, r->tot[0], r->cum[0]);
}

Test(reduce, only_my_code)
{
	const struct reduce_opts opts = {.only_my_code = true};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *to = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	const struct view_row *r;

	s->nodes[4].inflight = s->nodes[3].inflight = 1; /* hook, loads */
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert(snapshot_valid(to) && to->folded && !to->stripped && !to->busy);
	assert_ok(view_build(to, NULL, &v));
	cr_assert_eq(v->nrows, 3);
	assert_row(v, "main", 2, 1231, 1294);
	assert_row(v, "hook", 9, 63, 63);
	assert_row(v, REDUCE_LIBRARY, 0, 10, 1303);
	/* library calls are no calls of what they are added to */
	r = row_of(v, REDUCE_LIBRARY);
	cr_assert(r->min[0] == UINT64_MAX && r->max[0] == 0 && r->inflight == 0);
	r = row_of(v, "main");
	cr_assert(r->min[0] == 1 && r->max[0] == 1000 && r->inflight == 0);
	r = row_of(v, "hook");
	cr_assert(r->min[0] == 4 && r->max[0] == 50 && r->inflight == 1);
	/* hook is one context below main, by whichever path it was called */
	cr_assert_eq(to->nnodes, 1 + 4);
}

/* Functions folded by name are merged into their callers, which then also call their callees. */
Test(reduce, single_functions)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *to = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	bool fold[16] = {false};
	const struct reduce_opts opts = {.fold = fold, .builtins_of = "some"};

	for (uint32_t i = 0; i < s->nfuncs; i++)
		fold[i] = strcmp(s->funcs[i].name, "scan") == 0;
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert(snapshot_valid(to));
	cr_assert_str_eq(to->builtins_of, "some");
	assert_ok(view_build(to, NULL, &v));
	cr_assert_eq(v->nrows, 4);
	assert_row(v, "loads", 3, 230, 285);
	assert_row(v, "hook", 9, 63, 63);
	assert_row(v, "boot", 1, 10, 1303);
}

/* A function that calls itself is folded into its caller as one; pseudo functions are not. */
Test(reduce, columns_are_folded_too)
{
	const struct reduce_opts opts = {.only_my_code = true};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 Main\n"
								      "main /srv/app.py:1 1 1\n"
								      "  f " LIB "a.py:1 1 1\n"
								      "    f " LIB "a.py:1 1 1\n"
								      "  (lost) " LIB "a.py:3 1 1\n"
								      "thread 42 43 worker\n"
								      "f " LIB "a.py:1 1 1\n"
								      "  main /srv/app.py:1 1 1\n");
	_cleanup_(snapshot_freep) struct snapshot *to = NULL;

	for (uint32_t i = 0; i < s->nfuncs; i++)
		s->funcs[i].pseudo = s->funcs[i].name[0] == '(';
	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_majflt);
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_vcsw), s->nnodes));
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->columns[COLUMN_vcsw][i] = 1u << i;
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert(snapshot_valid(to));
	/* root, main, (lost); root, (library), main */
	cr_assert(to->nnodes == 6 && to->threads[1].root == 3);
	cr_assert(to->nodes[2].parent == 1 && to->nodes[4].func == s->nfuncs);
	for (uint32_t i = 0; i < to->nnodes; i++) {
		static const uint64_t expected[] = {1, 2 + 4 + 8, 16, 32, 64, 128};

		cr_assert_eq(to->columns[COLUMN_vcsw][i], expected[i], "%u: %lu", i,
			     to->columns[COLUMN_vcsw][i]);
	}
	cr_assert(!to->columns[COLUMN_majflt] && s->columns[COLUMN_vcsw][1] == 2);
	snapshot_free(TAKE_PTR(to));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(reduce, strip_dirs)
{
	const struct reduce_opts opts = {.strip_dirs = true};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *to = NULL;

	s->funcs[1].filename = "app.py";
	s->funcs[2].filename = NULL;
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert(to->stripped && !to->folded && !to->builtins_of);
	cr_assert_eq(to->nnodes, s->nnodes);
	cr_assert_eq(to->nfuncs, s->nfuncs + 1);
	cr_assert_str_eq(to->funcs[0].filename, "threading.py");
	cr_assert_str_eq(to->funcs[1].filename, "app.py");
	cr_assert_null(to->funcs[2].filename);
}

/* The caller of a folded poller keeps its own waits. */
Test(reduce, waits_for_work_are_left_out)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 Main\n"
			       "serve /srv/app.py:1 1 10 110\n"
			       "  select " LIB "selectors.py:451 5 200 9200\n");
	const struct reduce_opts opts = {.busy = true, .only_my_code = true};
	_cleanup_(snapshot_freep) struct snapshot *to = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	uint32_t root = s->threads[0].root, serve = root + 1, select = root + 2;

	s->threads[0].total[SNAPSHOT_WALL] = 9310;
	assert_ok(snapshot_reserve_columns(s, COLUMN_WAITS | COLUMN_BIT(COLUMN_vcsw), s->nnodes));
	s->columns[COLUMN_gil][serve] = 100;
	s->columns[COLUMN_gil][select] = 9000;
	s->columns[COLUMN_vcsw][serve] = 3;
	s->columns[COLUMN_vcsw][select] = 40;
	assert_ok(snapshot_pseudo(s));
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert(snapshot_valid(to) && to->busy && !s->busy);
	assert_ok(view_build(to, NULL, &v));
	cr_assert_eq(v->total[SNAPSHOT_WALL], 310);
	cr_assert_eq(to->threads[0].total[SNAPSHOT_WALL], 310);
	assert_row(v, "serve", 1, 210, 210);
	cr_assert_eq(snapshot_figure(to, COLUMN_gil, to->threads[0].root + 1), 100);
	cr_assert_eq(snapshot_figure(to, COLUMN_vcsw, to->threads[0].root + 1), 43);
	cr_assert_eq(snapshot_figure(s, COLUMN_gil, select), 9000, "the source is unchanged");
	snapshot_free(TAKE_PTR(to));
	s->threads[0].total[SNAPSHOT_WALL] = 8999; /* as the clocks are read one after the other */
	assert_ok(reduce_snapshot(s, &opts, &to));
	cr_assert_eq(to->threads[0].total[SNAPSHOT_WALL], 0);
}

/* After folding, all formats work and the total time is the same. */
Test(reduce, time_is_kept)
{
	const struct reduce_opts opts = {.only_my_code = true, .strip_dirs = true};

	for (unsigned int i = 1; i < 50; i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(i), *to = NULL;
		_cleanup_(view_freep) struct view *before = NULL, *after = NULL;

		assert_ok(reduce_snapshot(s, &opts, &to));
		cr_assert(snapshot_valid(to));
		assert_ok(view_build(s, NULL, &before));
		assert_ok(view_build(to, NULL, &after));
		cr_assert(before->total[0] == after->total[0] &&
			  before->total[1] == after->total[1]);
	}
	check_no_leaks();
}
