// SPDX-License-Identifier: BSD-2-Clause
/* Snapshots: the arena, exactness, validity. */
#include "snapshot/snapshot.h"

#include "base/wait.h"
#include "harness/test.h"

Test(snapshot, arena)
{
	struct snapshot *s = snapshot_new();
	const char *str = snapshot_str(s, "hello");
	unsigned char *p;

	cr_assert_str_eq(str, "hello");
	cr_assert_str_eq(snapshot_strn(s, "hello", 3), "hel");
	cr_assert_null(snapshot_str(s, NULL));
	/* Sizes around and far above a chunk's; all are zeroed, aligned and disjoint. */
	for (size_t n = 1; n < 300000; n = n * 3 + 1) {
		p = snapshot_alloc(s, n, 3);
		cr_assert_not_null(p);
		cr_assert_eq((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < 3 * n; i++)
			cr_assert_eq(p[i], 0);
		memset(p, 0xaa, 3 * n);
	}
	cr_assert_str_eq(str, "hello");
	cr_assert_not_null(snapshot_alloc(s, 0, 8));
	cr_assert_null(snapshot_alloc(s, SIZE_MAX / 2, 3), "the product overflows");
	cr_assert_null(snapshot_alloc(s, SIZE_MAX, 1), "no room for rounding");
	cr_assert_null(snapshot_strn(s, "", SIZE_MAX));
	snapshot_free(s);
	snapshot_free(NULL);
	check_no_leaks();
}

/* An array is replaced only if its room does not suffice; the room at least doubles. */
Test(snapshot, arrays_that_grow)
{
	struct snapshot *s = snapshot_new();
	struct snapshot_room room = {0}, other = {0};
	uint64_t *a, *b;

	cr_assert_not_null(snapshot_grow(s, &other, NULL, 0, 0, sizeof(*a)),
			   "no element is not an error");
	a = snapshot_grow(s, &room, NULL, 0, 3, sizeof(*a));
	cr_assert(a && room.array == a && room.cap == 3);
	for (uint64_t i = 0; i < 3; i++)
		a[i] = 100 + i;
	cr_assert_eq(snapshot_grow(s, &room, a, 1, 2, sizeof(*a)), a);
	b = snapshot_grow(s, &room, a, 3, 1, sizeof(*a));
	cr_assert(b && b != a && room.array == b && room.cap == 6);
	cr_assert(b[0] == 100 && b[2] == 102 && b[3] == 0);
	cr_assert_eq(snapshot_grow(s, &room, b, 4, 2, sizeof(*b)), b);
	/* The room is that of another array. */
	cr_assert_neq(snapshot_grow(s, &room, a, 3, 1, sizeof(*a)), a);
	cr_assert_null(snapshot_grow(s, &room, a, UINT32_MAX, 1, sizeof(*a)));
	/* There is no double of more than half of what can be counted. */
	cr_assert(snapshot_grow(s, &other, NULL, INT32_MAX, 1, 0) && other.cap == UINT32_MAX - 1);
	cr_assert(snapshot_grow(s, &other, NULL, 3u << 30, 1, 0) && other.cap == (3u << 30) + 1);
	snapshot_free(s);
	check_no_leaks();
}

Test(snapshot, exact)
{
	struct snapshot_target t[2] = {{.pid = 1}, {.pid = 2}};
	struct snapshot s = {.targets = t, .ntargets = 2};

	cr_assert(snapshot_exact(&s));
	t[1].unmatched = t[1].unstarted = t[1].stack_switches = 5;
	t[1].losses[PYP_LOSS_fault_string] = 1;
	cr_assert(snapshot_exact(&s), "corrections cost no counts");
	t[1].losses[PYP_LOSS_lost_events] = 1;
	cr_assert(!snapshot_exact(&s));
	t[1].losses[PYP_LOSS_lost_events] = 0;
	t[0].decode_errors = 1;
	cr_assert(!snapshot_exact(&s));
	t[0].decode_errors = 0;
	t[0].truncated = 1;
	cr_assert(!snapshot_exact(&s));
	t[0] = (struct snapshot_target){.misses_calls = true};
	cr_assert(!snapshot_exact(&s));
	t[0] = (struct snapshot_target){.mode = MODE_SAMPLE};
	cr_assert(!snapshot_exact(&s));
	t[0] = (struct snapshot_target){.windows.sampled = true};
	cr_assert(!snapshot_exact(&s));
	t[0] = (struct snapshot_target){.losses[PYP_LOSS_unknown_site] = 1};
	cr_assert(!snapshot_exact(&s));
}

struct parts {
	struct snapshot_thread threads[2];
	struct snapshot_func funcs[1];
	struct snapshot_node nodes[4];
	struct snapshot_gil_pair gil_pairs[2];
	struct snapshot_wait waits[2];
	struct snapshot_coro coros[2];
	struct snapshot_line lines[3];
	struct snapshot s;
};

/* Two threads; in the first one f calls f. Whatever there are several of is valid up to the last one. */
static void parts_init(struct parts *p)
{
	const uint32_t none = SNAPSHOT_NONE;

	*p = (struct parts){
		.threads = {{.root = 0}, {.root = 3}},
		.funcs = {{.filename = "a.py", .name = "f", .nlines = 3}},
		.nodes = {{.parent = none, .func = none, .thread = 0},
			  {.parent = 0, .func = 0, .thread = 0},
			  {.parent = 1, .func = 0, .thread = 0},
			  {.parent = none, .func = none, .thread = 1}},
		.gil_pairs = {{.holder = none, .waiter = 0}, {.holder = 0, .waiter = none}},
		.waits = {{.func = none, .why = WAITS - 1}, {.func = 0}},
		.coros = {{.func = 0, .kind = SNAPSHOT_CORO_KINDS - 1}, {.func = 0}},
		.lines = {{.line = 0}, {.line = 1}, {.line = 7}},
	};
	p->funcs[0].lines = p->lines;
	p->s = (struct snapshot){
		.threads = p->threads,
		.nthreads = 2,
		.funcs = p->funcs,
		.nfuncs = 1,
		.nodes = p->nodes,
		.nnodes = 4,
		.gil_pairs = p->gil_pairs,
		.ngil_pairs = 2,
		.waits = p->waits,
		.nwaits = 2,
		.coros = p->coros,
		.ncoros = 2,
	};
}

#define invalid(change)                                                                            \
	do {                                                                                       \
		struct parts p;                                                                    \
		parts_init(&p);                                                                    \
		p.change;                                                                          \
		cr_assert(!snapshot_valid(&p.s), "%s", #change);                                   \
	} while (0)

Test(snapshot, valid)
{
	struct parts good;

	parts_init(&good);
	cr_assert(snapshot_valid(&good.s));
	invalid(threads[0].root = 1);
	invalid(threads[0].root = 4);
	invalid(threads[0].root = 3);
	invalid(nodes[1].parent = 2);
	invalid(nodes[1].parent = 1);
	invalid(nodes[1].parent = SNAPSHOT_NONE);
	invalid(nodes[1].func = 1);
	invalid(nodes[1].thread = 2);
	invalid(nodes[1].thread = 1);
	invalid(nodes[0].func = 0);
	invalid(funcs[0].name = NULL);
	invalid(funcs[0].filename = NULL);
	invalid(threads[1].root = 0);
	invalid(nodes[3].func = 0);
	invalid(nodes[2].thread = 1);
	invalid(gil_pairs[1].holder = 1);
	invalid(gil_pairs[1].waiter = 1);
	invalid(waits[1].func = 1);
	invalid(waits[1].why = WAITS);
	invalid(coros[1].func = 1);
	invalid(coros[1].kind = SNAPSHOT_CORO_KINDS);
	invalid(lines[0].line = -1);
	invalid(lines[1].line = 0);
	invalid(lines[2].line = 1);
}

/* Each way to be an estimate; rows that were changed afterwards have no known errors. */
Test(snapshot, which_figures_have_errors)
{
	struct snapshot_target targets[2] = {{.mode = MODE_TRACE}, {.mode = MODE_TRACE}};
	struct snapshot s = {.targets = targets, .ntargets = 2};

	cr_assert(!snapshot_estimated(&s) && !snapshot_guesses_counts(&s));
	cr_assert(!snapshot_has_errors(&s));
	targets[1].estimate.rate = 99;
	cr_assert(snapshot_estimated(&s) && !snapshot_guesses_counts(&s));
	targets[1] = (struct snapshot_target){.mode = MODE_SAMPLE};
	cr_assert(snapshot_estimated(&s) && snapshot_guesses_counts(&s));
	targets[1] = (struct snapshot_target){.mode = MODE_TRACE, .windows.sampled = true};
	cr_assert(snapshot_estimated(&s) && snapshot_guesses_counts(&s));
	cr_assert(snapshot_has_errors(&s));
	s.folded = true;
	cr_assert(!snapshot_has_errors(&s));
	s.folded = false, s.stripped = true;
	cr_assert(!snapshot_has_errors(&s));
	s.stripped = false, s.builtins_of = "len";
	cr_assert(!snapshot_has_errors(&s));
}

Test(snapshot, mode_of_a_thread)
{
	struct snapshot_target targets[1] = {{.pid = 42, .mode = MODE_COUNT}};
	struct snapshot_thread threads[2] = {{.pid = 42}, {.pid = 43}};
	struct snapshot s = {.targets = targets, .ntargets = 1, .threads = threads, .nthreads = 2};

	cr_assert_eq(snapshot_thread_mode(&s, 0), MODE_COUNT);
	cr_assert_eq(snapshot_modes(&s), 1u << MODE_COUNT);
	targets[0].estimate.rate = 99;
	cr_assert_eq(snapshot_modes(&s), 1u << MODE_COUNT | 1u << MODE_SAMPLE);
	targets[0].mode = MODE_TRACE;
	cr_assert_eq(snapshot_modes(&s), 1u << MODE_TRACE);
	cr_assert_eq(snapshot_thread_mode(&s, 1), MODE_TRACE, "of no target");
}

/* Of three targets; samples cannot show C functions. */
Test(snapshot, which_targets_have_c_functions)
{
	struct snapshot_target t[3] = {{.mode = MODE_SAMPLE}};
	struct snapshot s = {.targets = t, .ntargets = 3};

	cr_assert_eq(snapshot_builtins(&s), SNAPSHOT_BUILTINS_NONE);
	t[1].builtins = true;
	cr_assert_eq(snapshot_builtins(&s), SNAPSHOT_BUILTINS_SOME);
	t[2].builtins = true;
	cr_assert_eq(snapshot_builtins(&s), SNAPSHOT_BUILTINS_ALL);
}

/* Of the second of two functions: two sets on one clock, none on the other; then all of them of the first. */
Test(snapshot, durations)
{
	static const struct histogram_sum some = {.n = {[80] = 3, [160] = 1}, .count = 4};
	static const struct histogram_sum more = {.n = {[40] = 2}, .count = 2}, none = {.count = 0};
	struct snapshot *s = snapshot_new();
	struct snapshot_func f[2] = {{.name = "f"}, {.name = "g"}};
	struct histogram_sum sum = {.count = 0};

	s->funcs = f;
	s->nfuncs = 2;
	assert_ok(snapshot_add_durations(s, &f[1], SNAPSHOT_WALL, &none, 9));
	assert_ok(snapshot_merge_durations(s, &f[1], NULL));
	cr_assert(!f[1].durations && !snapshot_has_durations(s));
	assert_ok(snapshot_add_durations(s, &f[1], SNAPSHOT_WALL, &some, 1000));
	assert_ok(snapshot_add_durations(s, &f[1], SNAPSHOT_WALL, &more, 500));
	cr_assert(f[1].durations && snapshot_has_durations(s));
	assert_ok(snapshot_merge_durations(s, &f[0], f[1].durations));
	assert_ok(snapshot_merge_durations(s, &f[0], f[1].durations));
	cr_assert(f[0].durations[SNAPSHOT_WALL].max == 1000 && !f[0].durations[SNAPSHOT_CPU].max);
	cr_assert_eq(f[0].durations[SNAPSHOT_CPU].histogram.len, 0);
	cr_assert_eq(f[0].durations[SNAPSHOT_WALL].histogram.first, 40);
	cr_assert_eq(f[0].durations[SNAPSHOT_WALL].histogram.len, 121);
	histogram_add(&sum, &f[0].durations[SNAPSHOT_WALL].histogram);
	cr_assert(sum.n[40] == 4 && sum.n[80] == 6 && sum.n[160] == 2 && sum.count == 12);
	snapshot_free(s);
	check_no_leaks();
}

Test(snapshot, kinds_of_functions)
{
	struct snapshot_func f = {.filename = SNAPSHOT_NATIVE_FILE, .name = "<gc>"};

	cr_assert(snapshot_func_is_native(&f) && !snapshot_func_is_gc(&f));
	f.pseudo = true;
	cr_assert(!snapshot_func_is_native(&f) && snapshot_func_is_gc(&f));
	f.name = "<g>";
	cr_assert(!snapshot_func_is_gc(&f));
	f.name = NULL;
	cr_assert(!snapshot_func_is_gc(&f));
	f = (struct snapshot_func){.filename = SNAPSHOT_NATIVE_FILE, .firstlineno = 1};
	cr_assert(!snapshot_func_is_native(&f));
	f = (struct snapshot_func){.filename = "a.py"};
	cr_assert(!snapshot_func_is_native(&f));
	f.filename = NULL;
	cr_assert(!snapshot_func_is_native(&f));
}

Test(snapshot, names_of_folded_threads)
{
	struct snapshot *s = snapshot_new();

	cr_assert_str_eq(snapshot_folded_name(s, 7, NULL), "ended threads (7)");
	cr_assert_str_eq(snapshot_folded_name(s, 999, "f"), "ended threads (999) of f");
	cr_assert_str_eq(snapshot_folded_name(s, 1000, NULL), "ended threads (1,000)");
	cr_assert_str_eq(snapshot_folded_name(s, 12345678, NULL), "ended threads (12,345,678)");
	snapshot_free(s);
	check_no_leaks();
}

Test(snapshot, errors_of_sums)
{
	struct snapshot_func f = {.variance = {9, -1, 0, 16}};
	const double more[SNAPSHOT_FIGURES] = {7, 1, 0, -1};

	snapshot_add_variance(&f, more);
	cr_assert_eq(snapshot_error(&f, (enum snapshot_figure)0), 4);
	cr_assert_eq(snapshot_error(&f, (enum snapshot_figure)1), -1);
	cr_assert_eq(snapshot_error(&f, (enum snapshot_figure)2), 0);
	cr_assert_eq(snapshot_error(&f, (enum snapshot_figure)3), -1);
}

/* The two that a snapshot has, and a new one: of three nodes, then of five. */
Test(snapshot, columns)
{
	struct snapshot *s = snapshot_new(), *to = snapshot_new();
	const uint64_t both = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_live);

	s->nnodes = 3;
	cr_assert_eq(snapshot_columns(s), 0);
	assert_ok(snapshot_reserve_columns(s, both, 3));
	cr_assert_eq(snapshot_columns(s), both);
	s->columns[COLUMN_vcsw][0] = 5;
	s->columns[COLUMN_vcsw][2] = 7;
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_gil), 5));
	cr_assert_eq(snapshot_columns(s), both | COLUMN_BIT(COLUMN_gil));
	cr_assert(s->columns[COLUMN_vcsw][0] == 5 && s->columns[COLUMN_vcsw][2] == 7);
	cr_assert(s->columns[COLUMN_vcsw][3] == 0 && s->columns[COLUMN_vcsw][4] == 0);
	assert_ok(snapshot_reserve_columns(s, 0, 1));
	cr_assert_eq(s->columns[COLUMN_vcsw][0], 5, "fewer than there are");
	assert_ok(snapshot_reserve_columns(to, snapshot_columns(s), 2));
	snapshot_add_columns(to, 1, s, 0);
	snapshot_add_columns(to, 1, s, 0);
	cr_assert(snapshot_figure(to, COLUMN_vcsw, 1) == 10 &&
		  !snapshot_figure(to, COLUMN_live, 1));
	snapshot_free(to);
	snapshot_free(s);
	check_no_leaks();
}
