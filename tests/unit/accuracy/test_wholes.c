// SPDX-License-Identifier: BSD-2-Clause
/* Calls in whole calls: what is cut at either end of a window leaves nothing. */
#include "accuracy/wholes.h"

#include "harness/test.h"

static bool short_of_memory;

/* Replaces libc's. */
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (short_of_memory || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return realloc(p, bytes);
}

enum { F = 100, G, H };

/* Main calls f, f calls g and h; g calls f, its inner one. */
struct rig {
	struct calltree tree;
	struct wholes w;
	struct thread_whole t;
	uint32_t main, f, g, h, inner;
};

static void rig_init(struct rig *r)
{
	*r = (struct rig){.w = {.on = true, .admits = true}};
	calltree_init(&r->tree, 1000);
	r->main = calltree_child(&r->tree, calltree_add_root(&r->tree), H + 1);
	r->f = calltree_child(&r->tree, r->main, F);
	r->g = calltree_child(&r->tree, r->f, G);
	r->h = calltree_child(&r->tree, r->f, H);
	r->inner = calltree_child(&r->tree, r->g, F);
}

static void rig_deinit(struct rig *r)
{
	wholes_deinit(&r->w);
	calltree_deinit(&r->tree);
}

static void enter(struct rig *r, uint32_t node, uint32_t depth)
{
	wholes_enter(&r->w, &r->t, node, depth);
}

static void leave(struct rig *r, uint32_t node, uint32_t depth)
{
	wholes_leave(&r->w, &r->t, node, depth);
}

/* A call of f, at depth 2, that calls g n times. */
static void call_f(struct rig *r, int n)
{
	enter(r, r->f, 2);
	for (int i = 0; i < n; i++) {
		enter(r, r->g, 3);
		leave(r, r->g, 3);
	}
	leave(r, r->f, 2);
}

static void end_window(struct rig *r)
{
	wholes_drop(&r->w, &r->t);
	cr_assert_eq(r->w.open, 0);
	wholes_fold(&r->w, &r->tree);
}

static struct snapshot_whole sums(const struct rig *r, uint32_t node)
{
	return node < r->w.n ? r->w.v[node].sums : (struct snapshot_whole){0};
}

static void expect(const struct rig *r, uint32_t node, double x, double y)
{
	const struct snapshot_whole s = sums(r, node);

	cr_assert(s.x == x && s.y == y, "%u: %g, %g", node, s.x, s.y);
}

/* Calls of g are in calls of f. Those of f have no whole call around them, so they are only counted as whole. */
Test(wholes, calls_in_calls)
{
	struct rig r;

	rig_init(&r);
	call_f(&r, 3);
	cr_assert_eq(r.w.open, 0);
	call_f(&r, 4);
	expect(&r, r.f, 0, 0);
	end_window(&r);
	expect(&r, r.f, 0, 2);
	expect(&r, r.g, 7, 7);
	expect(&r, r.main, 0, 0);
	rig_deinit(&r);
	check_no_leaks();
}

/* f was running before, so that its end is not that of a whole call; g began in the window. */
Test(wholes, cut_at_the_beginning)
{
	struct rig r;

	rig_init(&r);
	enter(&r, r.g, 3);
	enter(&r, r.inner, 4);
	leave(&r, r.inner, 4);
	leave(&r, r.g, 3);
	leave(&r, r.f, 2);
	leave(&r, r.main, 1);
	end_window(&r);
	expect(&r, r.f, 0, 0);
	expect(&r, r.g, 0, 1);
	expect(&r, r.inner, 1, 1);
	rig_deinit(&r);
	check_no_leaks();
}

/* f does not end in the window, so that not even its callees count, which have ended. */
Test(wholes, cut_at_the_end)
{
	struct rig r;

	rig_init(&r);
	call_f(&r, 2);
	enter(&r, r.f, 2);
	for (int i = 0; i < 5; i++) {
		enter(&r, r.g, 3);
		leave(&r, r.g, 3);
	}
	enter(&r, r.h, 3);
	cr_assert_eq(r.w.open, 1);
	end_window(&r);
	expect(&r, r.f, 0, 1);
	expect(&r, r.g, 2, 2);
	expect(&r, r.h, 0, 0);
	/* Nothing of it is left in the next window. */
	call_f(&r, 1);
	end_window(&r);
	expect(&r, r.f, 0, 2);
	expect(&r, r.g, 3, 3);
	expect(&r, r.h, 0, 0);
	rig_deinit(&r);
	check_no_leaks();
}

/* A call that was cut by a drop does not end; the next one that begins does. */
Test(wholes, dropped)
{
	struct rig r;

	rig_init(&r);
	enter(&r, r.f, 2);
	enter(&r, r.g, 3);
	wholes_drop(&r.w, &r.t);
	leave(&r, r.g, 3);
	enter(&r, r.h, 3);
	leave(&r, r.h, 3);
	leave(&r, r.f, 2);
	end_window(&r);
	expect(&r, r.f, 0, 0);
	expect(&r, r.g, 0, 0);
	expect(&r, r.h, 0, 1);
	rig_deinit(&r);
	check_no_leaks();
}

/* f in f is not an outermost call: only the end of the outer one ends it. */
Test(wholes, recursion)
{
	struct rig r;

	rig_init(&r);
	enter(&r, r.f, 2);
	enter(&r, r.g, 3);
	for (int i = 0; i < 2; i++) {
		enter(&r, r.inner, 4);
		leave(&r, r.inner, 4);
		cr_assert_eq(r.w.open, 1);
	}
	leave(&r, r.g, 3);
	leave(&r, r.f, 2);
	cr_assert_eq(r.w.open, 0);
	end_window(&r);
	expect(&r, r.f, 0, 1);
	expect(&r, r.g, 1, 1);
	expect(&r, r.inner, 2, 2);
	rig_deinit(&r);
	check_no_leaks();
}

/* Without `on`, nothing is counted; without `admits`, only what has begun. */
Test(wholes, off_and_not_admitted)
{
	struct rig r;

	rig_init(&r);
	r.w.on = false;
	call_f(&r, 2);
	r.w.on = true;
	enter(&r, r.f, 2);
	r.w.admits = false;
	enter(&r, r.g, 3);
	leave(&r, r.g, 3);
	leave(&r, r.f, 2);
	call_f(&r, 50);
	end_window(&r);
	expect(&r, r.f, 0, 1);
	expect(&r, r.g, 1, 1);
	rig_deinit(&r);
	check_no_leaks();
}

/* Each thread has its own contexts, and an outermost call of its own. */
Test(wholes, several_threads)
{
	struct rig r;
	struct thread_whole other = {0};
	uint32_t f, g;

	rig_init(&r);
	f = calltree_child(&r.tree, calltree_add_root(&r.tree), F);
	g = calltree_child(&r.tree, f, G);
	enter(&r, r.f, 2);
	wholes_enter(&r.w, &other, f, 1);
	cr_assert_eq(r.w.open, 2);
	for (int i = 0; i < 3; i++) {
		wholes_enter(&r.w, &other, g, 2);
		enter(&r, r.g, 3);
		wholes_leave(&r.w, &other, g, 2);
		leave(&r, r.g, 3);
	}
	wholes_leave(&r.w, &other, f, 1);
	cr_assert_eq(r.w.open, 1);
	wholes_drop(&r.w, &other);
	end_window(&r);
	expect(&r, f, 0, 1);
	expect(&r, g, 3, 3);
	expect(&r, r.f, 0, 0);
	expect(&r, r.g, 0, 0);
	rig_deinit(&r);
	check_no_leaks();
}

/* Two windows with 2 and 3 calls of f, and 7 and 1 of g in these. */
Test(wholes, sums_over_windows)
{
	struct snapshot_whole of_f, of_g;
	struct rig r;

	rig_init(&r);
	call_f(&r, 3);
	call_f(&r, 4);
	end_window(&r);
	call_f(&r, 1);
	call_f(&r, 0);
	call_f(&r, 0);
	end_window(&r);
	end_window(&r);
	of_f = sums(&r, r.f);
	of_g = sums(&r, r.g);
	cr_assert(of_f.x == 0 && of_f.y == 5 && of_f.x2 == 0 && of_f.xy == 0 && of_f.y2 == 13);
	cr_assert(of_g.x == 8 && of_g.y == 8 && of_g.x2 == 50 && of_g.y2 == 50);
	cr_assert_eq(of_g.xy, 7 * 2 + 1 * 3);
	wholes_clear(&r.w);
	expect(&r, r.f, 0, 0);
	call_f(&r, 2);
	end_window(&r);
	expect(&r, r.f, 0, 1);
	expect(&r, r.g, 2, 2);
	rig_deinit(&r);
	check_no_leaks();
}

/* Figures that windows have shown are moved to another context; those of the present window are not known then. */
Test(wholes, moved)
{
	struct rig r;
	uint32_t f, g;

	rig_init(&r);
	call_f(&r, 3);
	end_window(&r);
	f = calltree_child(&r.tree, calltree_add_root(&r.tree), F);
	g = calltree_child(&r.tree, f, G);
	call_f(&r, 2);
	wholes_move(&r.w, r.f, f);
	wholes_move(&r.w, r.g, g);
	wholes_move(&r.w, r.h, f);
	wholes_move(&r.w, 1000, f);
	end_window(&r);
	expect(&r, f, 0, 1);
	expect(&r, g, 3, 3);
	cr_assert(sums(&r, g).x2 == 9 && sums(&r, g).xy == 3 && sums(&r, g).y2 == 9);
	expect(&r, r.f, 0, 0);
	expect(&r, r.g, 0, 0);
	/* The context is used again, and merged once more. */
	call_f(&r, 1);
	end_window(&r);
	expect(&r, r.g, 1, 1);
	wholes_move(&r.w, r.f, f);
	wholes_move(&r.w, r.g, g);
	expect(&r, f, 0, 2);
	expect(&r, g, 4, 4);
	rig_deinit(&r);
	check_no_leaks();
}

/* A call for which there was no memory is not whole. */
Test(wholes, without_memory)
{
	struct rig r;

	rig_init(&r);
	enter(&r, r.f, 2);
	short_of_memory = true;
	enter(&r, r.g, 3);
	cr_assert_eq(r.w.open, 0);
	short_of_memory = false;
	leave(&r, r.g, 3);
	leave(&r, r.f, 2);
	call_f(&r, 2);
	end_window(&r);
	expect(&r, r.f, 0, 1);
	expect(&r, r.g, 2, 2);
	rig_deinit(&r);
	check_no_leaks();
}
