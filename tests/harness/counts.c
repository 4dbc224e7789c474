// SPDX-License-Identifier: BSD-2-Clause
/* Comparing call counts: see counts.h. */
#include "harness/counts.h"

#include <inttypes.h>
#include <jansson.h>

#include "harness/test.h"
#include "harness/traced.h"
#include "python/layout.h"
#include "stats/view.h"

#define CPROFILE_AGAIN	 3
#define CPROFILE_CRASHES 5
#define MODES		 2
/* In 3.9, an exception that is passed on by suspended generators hides the function that throws it:
 * its callers differ. */
#define HIDES_THROWERS 9

struct row {
	const char *file, *name;
	int64_t line;
	uint64_t n[2][2]; /* [ours, cProfile's][ncalls, pcalls] */
};

struct rows {
	struct row *v;
	size_t n, cap;
};

enum { OURS, THEIRS };

/* The same functions as outside() in compare.py excludes */
static bool outside(const char *file, const char *name)
{
	const char *base = strrchr(file, '/');

	base = base ? base + 1 : file;
	if (strcmp(base, "proto.py") == 0)
		return strcmp(name, "measured") != 0 && strcmp(name, "thread_main") != 0;
	return strcmp(base, "run.py") == 0;
}

static void add(struct rows *r, int whose, struct row row, uint64_t ncalls, uint64_t pcalls)
{
	if (outside(row.file, row.name))
		return;
	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 256;
		r->v = reallocarray(r->v, r->cap, sizeof(*r->v));
		cr_assert(r->v);
	}
	row.n[whose][0] = ncalls;
	row.n[whose][1] = pcalls;
	r->v[r->n++] = row;
}

static void add_ours(struct rows *r, const struct view *v)
{
	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *vr = &v->rows[i];
		const struct snapshot_func *f = &v->snapshot->funcs[vr->func];

		if (f->pseudo || !vr->ncalls)
			continue;
		add(r, OURS, (struct row){f->filename, f->name, f->firstlineno, {{0}}}, vr->ncalls,
		    vr->pcalls);
	}
}

/* With counted, use ncalls for both: counting cannot distinguish primitive calls. */
static void add_theirs(struct rows *r, const json_t *list, bool counted)
{
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e)
	{
		const char *file = NULL, *name = NULL;
		json_int_t line, ncalls, pcalls;

		assert_ok(json_unpack((json_t *)e, "[s, I, s, I, I]", &file, &line, &name, &ncalls,
				      &pcalls));
		add(r, THEIRS, (struct row){file, name, line, {{0}}}, (uint64_t)ncalls,
		    (uint64_t)(counted ? ncalls : pcalls));
	}
}

static int by_identity(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int r = strcmp(x->file, y->file);

	if (r == 0)
		r = (x->line > y->line) - (x->line < y->line);
	return r ? r : strcmp(x->name, y->name);
}

/* Print names up to this length. */
#define SHOWN 80

static struct counts judge(const struct row *row, const char *label, bool primitive)
{
	const uint64_t *ours = row->n[OURS], *theirs = row->n[THEIRS];
	struct counts c = {.functions = 1, .calls = theirs[0]};

	c.differing = ours[0] != theirs[0] || (primitive && ours[1] != theirs[1]);
	if (c.differing)
		fprintf(stderr,
			"  %s: %.*s:%" PRId64 "(%.*s): ours %" PRIu64 "/%" PRIu64
			", cProfile %" PRIu64 "/%" PRIu64 "\n",
			label, SHOWN, row->file, row->line, SHOWN, row->name, ours[0], ours[1],
			theirs[0], theirs[1]);
	return c;
}

static struct counts judge_all(struct rows *r, const char *label, bool primitive)
{
	struct counts all = {0};

	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_identity);
	for (size_t i = 0; i < r->n;) {
		struct row sum = r->v[i];
		struct counts one;

		while (++i < r->n && by_identity(&sum, &r->v[i]) == 0)
			for (int k = 0; k < 4; k++)
				sum.n[k / 2][k % 2] += r->v[i].n[k / 2][k % 2];
		one = judge(&sum, label, primitive);
		all.functions += one.functions;
		all.calls += one.calls;
		all.differing += one.differing;
	}
	return all;
}

static struct counts compare(const struct snapshot *s, const char *json, const char *label,
			     bool primitive)
{
	struct view *v = NULL;
	struct rows rows = {0};
	struct counts ret;
	json_t *list = json_load_file(json, 0, NULL);

	cr_assert(list && json_array_size(list), "%s: nothing to compare with", label);
	assert_ok(view_build(s, NULL, &v));
	add_ours(&rows, v);
	add_theirs(&rows, list, snapshot_modes(s) == 1u << MODE_COUNT);
	ret = judge_all(&rows, label, primitive);
	free(rows.v);
	view_free(v);
	json_decref(list);
	return ret;
}

struct counts counts_compare(const struct snapshot *s, const char *cprofile_json, const char *label)
{
	return compare(s, cprofile_json, label, true);
}

struct counts counts_compare_calls(const struct snapshot *s, const char *json, const char *label)
{
	return compare(s, json, label, false);
}

static void start_observed(struct traced *t, const struct interpreter *py, const char *program,
			   const char *observer, const char *json)
{
	traced_start(t, py->exe, "run.py", program, observer, json, NULL);
	traced_expect(t, "ready");
	traced_go(t);
}

static void start_cprofile(struct traced *t, const struct interpreter *py, const char *program,
			   const char *json)
{
	start_observed(t, py, program, "--cprofile", json);
}

/*
 * In free-threaded CPython before 3.15, cProfile is not thread-safe and crashes now and then (its issues 125165 and
 * 116738), so it may run again. What we trace may not crash.
 */
static void finish_cprofile(struct traced *t, const struct interpreter *py, const char *program,
			    const char *json)
{
	for (int i = 0; !traced_expect_or_end(t, "done"); i++) {
		cr_assert(py->abi == LAYOUT_ABI_FREE_THREADED && i < CPROFILE_CRASHES,
			  "%s %s: cProfile has crashed", py->exe, program);
		fprintf(stderr, "  %s %s: cProfile has crashed: once more\n", py->exe, program);
		traced_stop(t);
		start_cprofile(t, py, program, json);
	}
	traced_finish(t);
}

/* Run all at once: they do not affect each other, and it takes less time. */
static void run_all(const struct interpreter *py, const char *program, const char *json,
		    const enum mode *modes, size_t n, struct snapshot **ret)
{
	struct traced ours[MODES], theirs;

	for (size_t i = 0; i < n; i++) {
		traced_start(&ours[i], py->exe, "run.py", program, NULL);
		ours[i].mode.mode = modes[i];
		traced_expect(&ours[i], "ready");
		traced_attach(&ours[i]);
	}
	start_cprofile(&theirs, py, program, json);
	for (size_t i = 0; i < n; i++)
		traced_go(&ours[i]);
	for (size_t i = 0; i < n; i++) {
		traced_expect(&ours[i], "done");
		ret[i] = traced_snapshot(&ours[i]);
		traced_finish(&ours[i]);
	}
	finish_cprofile(&theirs, py, program, json);
}

/*
 * Since some release of 3.13, cProfile enables unwinding events, so CPython runs generators that
 * are closed while suspended and cProfile counts that. sys.monitoring with call events only shows
 * the calls without this effect.
 */
static struct counts ask_monitoring(const struct interpreter *py, const char *program,
				    const struct snapshot *s, const char *json, const char *label)
{
	struct traced theirs;

	fprintf(stderr, "  %s: sys.monitoring\n", label);
	start_observed(&theirs, py, program, "--monitoring", json);
	traced_expect(&theirs, "done");
	traced_finish(&theirs);
	return counts_compare_calls(s, json, label);
}

/*
 * On a busy machine, cProfile of 3.13 sometimes misses a call immediately after enable(), in about
 * one run of ten. Therefore cProfile may run again, but not our own count.
 */
static struct counts compare_again(const struct interpreter *py, const char *program,
				   const struct snapshot *s, const char *json, const char *label)
{
	struct counts c = counts_compare(s, json, label);
	const int again = py->minor >= 13 ? 1 : CPROFILE_AGAIN;

	for (int i = 0; i < again && c.differing; i++) {
		struct traced theirs;

		fprintf(stderr, "  %s: cProfile once more\n", label);
		start_cprofile(&theirs, py, program, json);
		finish_cprofile(&theirs, py, program, json);
		c = counts_compare(s, json, label);
	}
	if (c.differing && py->minor >= 13)
		c = ask_monitoring(py, program, s, json, label);
	return c;
}

/* Prints one line. */
static bool is_equal(const struct interpreter *py, const char *program, const struct snapshot *s,
		     const char *json, const char *label)
{
	struct counts c = compare_again(py, program, s, json, label);
	bool exact = traced_is_exact(s, label);

	fprintf(stderr,
		"%d.%d  %-20s %-5s %5" PRIu32 " functions %8" PRIu64 " calls %3" PRIu32
		" differ, unmatched %" PRIu64 ", unstarted %" PRIu64 "  %s\n",
		py->major, py->minor, program, mode_names[s->targets[0].mode], c.functions, c.calls,
		c.differing, s->targets[0].unmatched, s->targets[0].unstarted, py->exe);
	return c.functions > 0 && c.differing == 0 && exact;
}

bool counts_equal(const struct interpreter *py, const char *program, const char *dir)
{
	const enum mode mode = MODE_TRACE;
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	char json[256], label[700];

	snprintf(json, sizeof(json), "%s/%s.json", dir, program);
	snprintf(label, sizeof(label), "%s %s", py->exe, program);
	run_all(py, program, json, &mode, 1, &s);
	return is_equal(py, program, s, json, label);
}

bool counts_equal_in_modes(const struct interpreter *py, const char *program, const char *dir)
{
	static const enum mode modes[MODES] = {MODE_TRACE, MODE_COUNT};
	struct snapshot *s[MODES];
	char json[256], label[700];
	bool equal = true;

	snprintf(json, sizeof(json), "%s/%s.json", dir, program);
	snprintf(label, sizeof(label), "%s %s", py->exe, program);
	run_all(py, program, json, modes, MODES, s);
	for (int i = 0; i < MODES; i++)
		equal &= s[i]->targets[0].mode == modes[i] && !snapshot_estimated(s[i]) &&
			 is_equal(py, program, s[i], json, label);
	if (py->minor != HIDES_THROWERS) {
		struct counts edges = counts_edges(s[1], s[0], label);

		equal &= edges.functions > 0 && edges.differing == 0;
	}
	for (int i = 0; i < MODES; i++)
		snapshot_free(s[i]);
	return equal;
}

struct view_row counts_named(const struct view *v, const char *name)
{
	struct view_row sum = {.func = SNAPSHOT_NONE};

	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *row = &v->rows[i];

		if (strcmp(v->snapshot->funcs[row->func].name, name) != 0)
			continue;
		sum.func = row->func;
		sum.ncalls += row->ncalls;
		sum.pcalls += row->pcalls;
		sum.inflight += row->inflight;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			sum.tot[c] += row->tot[c];
			sum.cum[c] += row->cum[c];
		}
	}
	return sum;
}

uint32_t counts_differing(const struct snapshot *s, const char *json)
{
	_cleanup_(view_freep) struct view *v = NULL;
	json_t *counts = json_loads(json, 0, NULL), *value;
	uint32_t differing = 0;
	const char *name;

	cr_assert(json_object_size(counts) > 0, "no result");
	assert_ok(view_build(s, NULL, &v));
	json_object_foreach(counts, name, value)
	{
		uint64_t ours = counts_named(v, name).ncalls;
		uint64_t theirs = (uint64_t)json_integer_value(value);

		if (ours != theirs)
			fprintf(stderr, "  %s: %" PRIu64 " calls, ours %" PRIu64 "\n", name, theirs,
				ours);
		differing += ours != theirs;
	}
	json_decref(counts);
	return differing;
}

static const char *name_of(const struct snapshot_func *f, char *out, size_t size)
{
	if (!f)
		return "nobody";
	snprintf(out, size, "%s:%" PRId32 "(%s)", f->filename, f->firstlineno, f->name);
	return out;
}

static void add_edges(struct rows *r, int side, const struct view *v)
{
	const struct snapshot_func *funcs = v->snapshot->funcs;

	for (size_t i = 0; i < v->nedges; i++) {
		const struct view_edge *e = &v->edges[i];
		const struct snapshot_func *caller = e->caller == SNAPSHOT_NONE ? NULL
										: &funcs[e->caller];
		const struct snapshot_func *callee = &funcs[e->callee];
		char a[1024], b[1024], *key;

		if (!e->ncalls || outside(callee->filename, callee->name))
			continue;
		cr_assert(asprintf(&key, "%s -> %s", name_of(caller, a, sizeof(a)),
				   name_of(callee, b, sizeof(b))) > 0);
		add(r, side, (struct row){key, "", 0, {{0}}}, e->ncalls, e->ncalls);
	}
}

struct counts counts_edges(const struct snapshot *ours, const struct snapshot *theirs,
			   const char *label)
{
	struct view *a = NULL, *b = NULL;
	struct rows rows = {0};
	struct counts ret;

	assert_ok(view_build(ours, NULL, &a));
	assert_ok(view_build(theirs, NULL, &b));
	add_edges(&rows, OURS, a);
	add_edges(&rows, THEIRS, b);
	ret = judge_all(&rows, label, false);
	for (size_t i = 0; i < rows.n; i++)
		free((char *)rows.v[i].file);
	free(rows.v);
	view_free(a);
	view_free(b);
	return ret;
}
