// SPDX-License-Identifier: BSD-2-Clause
/* Snapshots: the arena, exactness, validity. */
#include "snapshot/snapshot.h"

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
}

struct parts {
	struct snapshot_thread threads[2];
	struct snapshot_func funcs[1];
	struct snapshot_node nodes[4];
	struct snapshot s;
};

/* Two threads; in the first one f calls f. */
static void parts_init(struct parts *p)
{
	const uint32_t none = SNAPSHOT_NONE;

	*p = (struct parts){
		.threads = {{.root = 0}, {.root = 3}},
		.funcs = {{.filename = "a.py", .name = "f"}},
		.nodes = {{.parent = none, .func = none, .thread = 0},
			  {.parent = 0, .func = 0, .thread = 0},
			  {.parent = 1, .func = 0, .thread = 0},
			  {.parent = none, .func = none, .thread = 1}},
	};
	p->s = (struct snapshot){
		.threads = p->threads,
		.nthreads = 2,
		.funcs = p->funcs,
		.nfuncs = 1,
		.nodes = p->nodes,
		.nnodes = 4,
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
	cr_assert_eq(snapshot_thread_mode(&s, 1), MODE_TRACE, "of no target");
}
