// SPDX-License-Identifier: BSD-2-Clause
/* The children that a process has: their number and CPU time, without those of other programs. */
#include "session/workers.h"

#include "harness/patience.h"
#include "harness/process_tree.h"
#include "harness/test.h"

static struct process_tree f;

/* ns */
#define BURNED (PATIENCE_MOMENT_MS * 1000000ull)

Test(workers, are_counted)
{
	struct workers w, again;
	struct workers_use u;
	char text[WORKERS_TEXT], line[64];

	process_tree_start(&f, traced_newest().exe);
	workers_find(f.t.pid, &w);
	u = workers_use(&w);
	cr_assert(u.n == 0 && !workers_text(&u, text));
	process_tree_fork(&f, 0, 3);
	process_tree_fork(&f, 1, 1);
	process_tree_ask(&f, "other", 3, 0, "other");
	workers_find(f.t.pid, &w);
	cr_assert_eq(w.n, 3, "2 children and one of theirs, not the shell: %zu", w.n);
	snprintf(line, sizeof(line), "burn %d 2", PATIENCE_MOMENT_MS);
	traced_say(&f.t, line);
	(void)traced_answer(&f.t, "burned");
	u = workers_use(&w);
	fprintf(stderr, "  %.3f s of children, %.3f s of their parent\n", (double)u.theirs_ns / 1e9,
		(double)u.own_ns / 1e9);
	cr_assert(u.theirs_ns >= BURNED && u.theirs_ns < 2 * BURNED);
	cr_assert(strstr(workers_text(&u, text), "its 3 Python child processes use"), "%s", text);
	workers_find(f.t.pid, &again);
	u = workers_use(&again);
	cr_assert(u.theirs_ever_ns >= BURNED, "the time before is forgotten");
	process_tree_finish(&f);
	check_no_leaks();
}
