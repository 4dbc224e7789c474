// SPDX-License-Identifier: BSD-2-Clause
/* Time outside of functions has its own rows; all rows together are each thread's time. */
#include "snapshot/pseudo.h"

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/merge.h"
#include "stats/reduce.h"
#include "stats/view.h"

#define LIB "/usr/lib/python3.11/"

static const char *const example = "target 42\n"
				   "thread 42 42 MainThread\n"
				   "main /srv/app.py:1 1 1000 1500\n"
				   "  select " LIB "selectors.py:451 5 200 9200\n"
				   "    handler /srv/app.py:9 1 50\n"
				   "  select /srv/app.py:20 1 10 500\n"
				   "  busy " LIB "selectors.py:1 1 10 500\n"
				   "thread 42 43 worker\n"
				   "work /srv/app.py:30 1 7 8\n";

static struct snapshot *build(void)
{
	struct snapshot *s = snapshot_build(example);

	for (uint32_t i = 0; i < s->nthreads; i++) {
		struct snapshot_node *root = &s->nodes[s->threads[i].root];

		root->self[SNAPSHOT_CPU] = 3 + i;
		root->self[SNAPSHOT_WALL] = 70 + i;
	}
	for (uint32_t i = 0; i < s->nnodes; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			uint64_t *total = &s->threads[s->nodes[i].thread].total[c];

			*total = (i == s->threads[s->nodes[i].thread].root ? 0 : *total) +
				 s->nodes[i].self[c];
		}
	return s;
}

static void check_sums(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct view_filter filter = {.tid = s->threads[i].tid};
		_cleanup_(view_freep) struct view *v = NULL;

		assert_ok(view_build(s, &filter, &v));
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			cr_assert_eq(v->total[c], s->threads[i].total[c]);
	}
}

static void check_row(const struct snapshot *s, const char *name, uint64_t cpu, uint64_t wall)
{
	_cleanup_(view_freep) struct view *v = NULL;
	uint64_t tot[SNAPSHOT_CLOCKS] = {0};

	assert_ok(view_build(s, NULL, &v));
	for (size_t i = 0; i < v->nrows; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			if (strcmp(s->funcs[v->rows[i].func].name, name) == 0)
				tot[c] += v->rows[i].tot[c];
	cr_assert(tot[SNAPSHOT_CPU] == cpu && tot[SNAPSHOT_WALL] == wall, "%s: %lu/%lu", name,
		  (unsigned long)tot[SNAPSHOT_CPU], (unsigned long)tot[SNAPSHOT_WALL]);
}

Test(pseudo, rows_add_up)
{
	struct snapshot *s = build();

	for (int again = 0; again < 2; again++) {
		assert_ok(snapshot_pseudo(s));
		cr_assert(snapshot_valid(s));
		check_sums(s);
		check_row(s, SNAPSHOT_WAIT, 0, 9000);
		check_row(s, SNAPSHOT_OUTSIDE, 3 + 4, 70 + 71);
		check_row(s, "select", 200 + 10, 200 + 500); /* busy is not a poller */
		check_row(s, "busy", 10, 500);
	}
	snapshot_free(s);
	check_no_leaks();
}

Test(pseudo, callers_keep_their_cumulative_time)
{
	struct snapshot *s = build();
	struct view *before = NULL, *after = NULL;

	assert_ok(view_build(s, NULL, &before));
	assert_ok(snapshot_pseudo(s));
	assert_ok(view_build(s, NULL, &after));
	for (size_t i = 0; i < before->nrows; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			cr_assert_eq(after->rows[i].cum[c], before->rows[i].cum[c]);
	cr_assert_eq(after->ncalls, before->ncalls);
	view_free(before);
	view_free(after);
	snapshot_free(s);
	check_no_leaks();
}

Test(pseudo, waiting_is_no_library_code)
{
	const struct reduce_opts opts = {.only_my_code = true};
	struct snapshot *s = build(), *own = NULL;

	assert_ok(snapshot_pseudo(s));
	assert_ok(reduce_snapshot(s, &opts, &own));
	check_sums(own);
	check_row(own, SNAPSHOT_WAIT, 0, 9000);
	check_row(own, "main", 1000 + 200 + 10, 1500 + 200 + 500);
	snapshot_free(own);
	snapshot_free(s);
	check_no_leaks();
}

/* Functions that wait for work, and a C function in which one of them waits. */
Test(pseudo, waits_for_work)
{
	static const char *const functions[] = {
		"accept " LIB "socket.py:287",
		"_worker " LIB "concurrent/futures/thread.py:70",
		"sleep /usr/lib/python3/dist-packages/gunicorn/arbiter.py:351",
		"wait /srv/lib/gunicorn/workers/sync.py:33",
		"_poll /srv/lib/kombu/utils/eventio.py:80",
		"<method>accept ~:0",
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = NULL;
		char text[256];

		snprintf(text, sizeof(text),
			 "target 42\nthread 42 42 Main\n%s%s 1 10 500\n  handle a.py:1 1 3 40\n"
			 "sleep a.py:9 1 10 500\n",
			 strchr(functions[i], '~') ? "accept " LIB "socket.py:287 1 0\n  " : "",
			 functions[i]);
		s = snapshot_build(text);
		assert_ok(snapshot_pseudo(s));
		check_row(s, SNAPSHOT_WAIT, 0, 490);
		check_row(s, "handle", 3, 40);
		check_row(s, "sleep", strstr(functions[i], "sleep ") ? 20 : 10,
			  strstr(functions[i], "sleep ") ? 510 : 500);
	}
}

/* By the end of the file's name, or a directory in it */
Test(pseudo, pollers)
{
	static const struct {
		struct snapshot_func f;
		bool is;
	} cases[] = {
		{{.filename = "/selectors.py", .name = "select"}, true},
		{{.filename = "selectors.py", .name = "select"}, false},
		{{.filename = "/x/my_selectors.py", .name = "select"}, false},
		{{.filename = "/selectors.py", .name = "selects"}, false},
		{{.filename = "/selectors.py", .name = "select", .pseudo = true}, false},
		{{.filename = "/x/eventlet/hubs/epolls.py", .name = "do_poll"}, true},
		{{.filename = "/x/eventlet/hubs.py", .name = "do_poll"}, false},
		{{.filename = "/x/werkzeug/_reloader.py", .name = "run"}, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(snapshot_is_poller(&cases[i].f), cases[i].is, "%s",
			     cases[i].f.filename);
}

/* Waiting in a C function is waiting for work only if a poller calls it; that outside goes on as it was. */
Test(pseudo, other_figures)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 Main\n<method>accept ~:0 1 10 500\n"
			       "f a.py:1 1 0\n  <method>accept ~:0 1 10 500\n"
			       "select /selectors.py:1 1 500 500\n"
			       "  select /selectors.py:1 1 500 400\n");
	struct snapshot_node *root = &s->nodes[0], *outside;

	root->self[SNAPSHOT_WALL] = 5;
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_vcsw), s->nnodes));
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->columns[COLUMN_vcsw][i] = 10 + i;
	s->wholes = snapshot_alloc(s, s->nnodes, sizeof(*s->wholes));
	s->wholes[5].y = 3;
	assert_ok(snapshot_pseudo(s));
	cr_assert(s->wholes[5].y == 3 && s->wholes[6].y == 0);
	check_row(s, SNAPSHOT_WAIT, 0, 0);
	check_row(s, SNAPSHOT_OUTSIDE, 0, 5);
	cr_assert_eq(s->nnodes, 7);
	outside = &s->nodes[6];
	cr_assert(outside->parent == 0 && outside->thread == 0 && outside->calls == 0);
	cr_assert(outside->min[0] == UINT64_MAX && outside->min[1] == UINT64_MAX);
	cr_assert(snapshot_figure(s, COLUMN_vcsw, 0) == 0 &&
		  snapshot_figure(s, COLUMN_vcsw, 6) == 10);
	cr_assert_eq(snapshot_figure(s, COLUMN_vcsw, 5), 15, "of a function");
	/* More of it goes to the same context. */
	s->nodes[0].self[SNAPSHOT_CPU] = 3;
	s->nodes[0].self[SNAPSHOT_WALL] = 4;
	s->columns[COLUMN_vcsw][0] = 1;
	assert_ok(snapshot_pseudo(s));
	cr_assert_eq(s->nnodes, 7);
	check_row(s, SNAPSHOT_OUTSIDE, 3, 9);
	cr_assert_eq(snapshot_figure(s, COLUMN_vcsw, 6), 11);
}

/* Estimated functions have errors; those of these rows are unknown. */
Test(pseudo, errors_are_not_known)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	uint32_t functions = s->nfuncs;

	assert_ok(snapshot_pseudo(s));
	cr_assert(s->nfuncs > functions);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		cr_assert_eq(snapshot_error(&s->funcs[i], SNAPSHOT_TOT_CPU) < 0, i >= functions);
}

Test(pseudo, merged)
{
	struct snapshot *a = build(), *b = build(), *both = NULL;
	const struct snapshot *list[] = {a, b};

	assert_ok(snapshot_pseudo(a));
	assert_ok(snapshot_pseudo(b));
	assert_ok(snapshot_merge(list, 2, &both));
	check_sums(both);
	check_row(both, SNAPSHOT_WAIT, 0, 18000);
	snapshot_free(a);
	snapshot_free(b);
	snapshot_free(both);
	check_no_leaks();
}

Test(pseudo, any_snapshot)
{
	for (unsigned int seed = 1; seed <= 50; seed++) {
		struct snapshot *s = snapshot_random(seed);
		uint64_t self[SNAPSHOT_CLOCKS] = {0}, after[SNAPSHOT_CLOCKS] = {0};

		for (uint32_t i = 0; i < s->nnodes; i++)
			for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
				self[c] += s->nodes[i].self[c];
		assert_ok(snapshot_pseudo(s));
		cr_assert(snapshot_valid(s));
		for (uint32_t i = 0; i < s->nnodes; i++)
			for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
				after[c] += s->nodes[i].self[c];
		cr_assert(memcmp(self, after, sizeof(self)) == 0);
		snapshot_free(s);
	}
	check_no_leaks();
}
