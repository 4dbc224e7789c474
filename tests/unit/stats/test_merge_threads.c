// SPDX-License-Identifier: BSD-2-Clause
/* One tree for several threads. */
#include "stats/merge_threads.h"

#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char *const example = "target 42\n"
				   "thread 42 42 MainThread\n"
				   "f a.py:1 2 100 200\n"
				   "  g a.py:2 3 10 20 1\n"
				   "thread 42 43 worker\n"
				   "g a.py:2 1 1000\n"
				   "f a.py:1 5 1\n"
				   "  g a.py:2 7 2\n";

Test(merge_threads, adds_equal_paths)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *m = NULL;
	_cleanup_free_ uint32_t *into = NULL;
	const struct snapshot_node *n;

	s->adding.nodes.cap = 1;
	s->nodes[s->threads[0].root].self[SNAPSHOT_WALL] = 5;
	s->nodes[s->threads[1].root].self[SNAPSHOT_WALL] = 6;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].yields = 1u << i;
	s->measured = COLUMN_BIT(COLUMN_vcsw);
	assert_ok(snapshot_reserve_columns(s, s->measured, s->nnodes));
	s->adding.known_funcs = s;
	assert_ok(merge_threads(s, NULL, &m, &into));
	s->adding.known_funcs = NULL;
	cr_assert(!m->adding.known_funcs, "it belongs to the other one");
	cr_assert(m->nthreads == 1 && m->nnodes == 4 && m->threads[0].root == 0);
	n = m->nodes;
	cr_assert(n[0].parent == SNAPSHOT_NONE && n[0].self[SNAPSHOT_WALL] == 11);
	cr_assert(n[1].parent == 0 && n[1].calls == 7 && n[1].self[SNAPSHOT_CPU] == 101);
	cr_assert(n[2].parent == 1 && n[2].calls == 10 && n[2].inflight == 1);
	cr_assert(n[2].self[SNAPSHOT_CPU] == 12 && n[2].self[SNAPSHOT_WALL] == 22);
	cr_assert(n[3].parent == 0 && n[3].func == n[2].func && n[3].calls == 1);
	/* nodes 3 and 4 are the other root and its g, 5 and 6 its f and the g below that */
	cr_assert(n[0].yields == 1 + 8 && n[1].yields == 2 + 32 && n[2].yields == 4 + 64);
	cr_assert(n[1].min[SNAPSHOT_WALL] == 0 && n[1].max[SNAPSHOT_WALL] == 200);
	cr_assert(n[2].min[SNAPSHOT_CPU] == 0 && n[2].max[SNAPSHOT_CPU] == 10);
	cr_assert(n[0].min[SNAPSHOT_CPU] == UINT64_MAX && n[0].max[SNAPSHOT_CPU] == 0);
	cr_assert(!m->measured && !m->columns[COLUMN_vcsw]);
	cr_assert_eq(m->adding.nodes.cap, 0);
	cr_assert(into[0] == 0 && into[3] == 0 && into[4] == 3 && into[5] == 1 && into[6] == 2);
}

Test(merge_threads, only_selected_threads)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *m = NULL;
	const struct view_filter filter = {.tid = 43};
	uint32_t *into = NULL;

	assert_ok(merge_threads(s, &filter, &m, &into));
	cr_assert(m->nnodes == 4 && m->nodes[1].func == s->nodes[s->threads[1].root + 1].func);
	cr_assert_eq(m->nodes[1].calls, 1);
	cr_assert(m->nodes[1].min[SNAPSHOT_CPU] == 1000 && m->nodes[0].yields == 0);
	cr_assert(into[0] == SNAPSHOT_NONE && into[s->threads[1].root] == 0);
	free(into);
	snapshot_free(TAKE_PTR(s));
	snapshot_free(TAKE_PTR(m));
	check_no_leaks();
}
