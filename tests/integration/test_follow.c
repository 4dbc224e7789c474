// SPDX-License-Identifier: BSD-2-Clause
/*
 * Following children, their children, and programs that are executed: which processes become
 * targets, their counts, the reported gaps and untraced children, and the data kept of processes
 * that have ended.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accuracy/finish.h"
#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/process_tree.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "stats/view.h"

static struct process_tree f;

/* Returns the calls of work() in one process; pid 0: in all processes together. */
static uint64_t work_of(pid_t pid)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);
	_cleanup_(view_freep) struct view *v = NULL;

	cr_assert(traced_is_exact(s, "process tree"));
	assert_ok(view_build(s, NULL, &v));
	return counts_named(v, "work").ncalls;
}

/* Following -------------------------------------------------------------------------------- */

static void check_provenance(pid_t child, pid_t parent)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, child);

	cr_assert_eq(s->ntargets, 1);
	cr_assert_eq(s->targets[0].pid, (uint32_t)child);
	cr_assert_eq(s->targets[0].parent, (uint32_t)parent);
	cr_assert(s->targets[0].fork_gap_ns > 0, "what it did before is not said");
	fprintf(stderr, "  traced %.1f ms after its fork\n",
		(double)s->targets[0].fork_gap_ns / 1e6);
}

static void children(const char *exe)
{
	struct session_status first;

	process_tree_start(&f, exe);
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 3);
	process_tree_traced(&f, 1, 3);
	process_tree_fork(&f, 2, 1);
	process_tree_traced(&f, 4, 4);
	for (unsigned int i = 0; i <= 4; i++)
		process_tree_ask(&f, "work", i, 100 + i, "worked");
	for (unsigned int i = 0; i <= 4; i++)
		cr_assert_eq(work_of(f.members[i]), 100 + i, "member %u", i);
	cr_assert_eq(work_of(0), 510);
	check_provenance(f.members[1], f.t.pid);
	check_provenance(f.members[4], f.members[2]);
	first = process_tree_status(&f, f.t.pid);
	cr_assert(first.follows && first.children.failed == 0 && first.children.over_limit == 0);
	/* When a child of a child and its parent have ended, the process tree is not over. */
	process_tree_ask(&f, "end", 4, 0, "ended");
	process_tree_ended(&f, 4, 4);
	process_tree_ask(&f, "end", 1, 0, "ended");
	process_tree_ended(&f, 1, 1);
	cr_assert(!sessions_over(f.t.sessions, f.t.pid));
	traced_say(&f.t, "stop");
	traced_close(&f.t);
	cr_assert_eq(traced_wait(&f.t), 0);
	process_tree_ended(&f, 0, 4);
	cr_assert(sessions_over(f.t.sessions, f.members[0]));
	cr_assert_eq(work_of(0), 510, "what has ended is forgotten");
	cr_assert_eq(f.t.ended, 5);
	traced_stop(&f.t);
}

Test(follow, children_and_theirs)
{
	process_tree_everywhere(children);
}

static void begin_newest(void)
{
	process_tree_start(&f, traced_newest().exe);
}

/* The children were forked before the attach, so there were no fork events. */
Test(follow, children_that_are_there_already)
{
	begin_newest();
	process_tree_fork(&f, 0, 2);
	process_tree_fork(&f, 1, 1);
	traced_attach(&f.t);
	process_tree_traced(&f, 0, 3);
	for (unsigned int i = 0; i <= 3; i++)
		process_tree_ask(&f, "work", i, 50, "worked");
	cr_assert_eq(work_of(0), 200);
	check_provenance(f.members[3], f.members[1]);
	process_tree_finish(&f);
}

static bool limit_is_reported(struct traced *traced, void *ctx)
{
	(void)traced, (void)ctx;
	return process_tree_status(&f, f.t.pid).children.over_limit == 2;
}

static bool unfollowed_are_clean(struct traced *traced, void *ctx)
{
	const struct sites *sites = ctx;
	bool clean = true;

	(void)traced;
	for (unsigned int i = 1; i <= 4; i++)
		if (!process_tree_status(&f, f.members[i]).pid)
			clean &= sites_changed(sites, f.members[i]) == 0 &&
				 sites_marked(sites, f.members[i]) == 0;
	return clean;
}

Test(follow, no_more_than_the_limit)
{
	struct sites sites;
	unsigned int followed = 0;

	begin_newest();
	sites_find(&sites, f.t.pid);
	f.t.max_children = 2;
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 4);
	traced_until(&f.t, limit_is_reported, NULL, "two that are over the limit");
	traced_until(&f.t, unfollowed_are_clean, &sites, "children without breakpoints");
	for (unsigned int i = 1; i <= 4; i++) {
		followed += process_tree_status(&f, f.members[i]).pid != 0;
		process_tree_ask(&f, "work", i, 10, "worked");
	}
	cr_assert_eq(followed, 2);
	cr_assert_eq(work_of(0), 20);
	/* When a followed child ends, another one can be followed. */
	for (unsigned int i = 1; i <= 4; i++)
		if (process_tree_status(&f, f.members[i]).pid) {
			process_tree_ask(&f, "end", i, 0, "ended");
			process_tree_ended(&f, i, i);
			break;
		}
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 5, 5);
	process_tree_finish(&f);
}

/*
 * More children end than are kept as separate targets: the older ones are merged into one target,
 * and no call is missing.
 */
#define BATCHES	 6
#define BATCH	 4
#define KEPT	 16
#define PER_WORK 25

static bool all_but_kept_are_folded(struct traced *traced, void *ctx)
{
	(void)traced, (void)ctx;
	return sessions_count(f.t.sessions) == 1 + KEPT;
}

Test(follow, many_that_end)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint32_t folded = 0;

	begin_newest();
	traced_attach(&f.t);
	for (unsigned int b = 0; b < BATCHES; b++) {
		unsigned int first = 1 + b * BATCH, last = first + BATCH - 1;

		process_tree_fork(&f, 0, BATCH);
		process_tree_traced(&f, first, last);
		for (unsigned int i = first; i <= last; i++)
			process_tree_ask(&f, "work", i, PER_WORK, "worked");
		for (unsigned int i = first; i <= last; i++)
			process_tree_ask(&f, "end", i, 0, "ended");
	}
	traced_until(&f.t, all_but_kept_are_folded, NULL, "ended children folded into one");
	cr_assert_eq(work_of(0), BATCHES * BATCH * PER_WORK);
	s = traced_snapshot(&f.t);
	for (uint32_t i = 0; i < s->ntargets; i++)
		folded += s->targets[i].folded;
	cr_assert_eq(folded, BATCHES * BATCH - KEPT);
	cr_assert_eq(process_tree_status(&f, f.t.pid).children.followed, BATCHES * BATCH);
	assert_ok(sessions_clear(f.t.sessions, 0, NULL));
	cr_assert_eq(work_of(0), 0);
	process_tree_finish(&f);
}

/* The children end before they can be followed: only their number is known. */
#define BURST 40

static uint64_t accounted_for(void)
{
	struct snapshot_children c = process_tree_status(&f, f.t.pid).children;

	return c.followed + c.ended_first + c.failed + c.over_limit;
}

static bool all_are_accounted_for(struct traced *traced, void *ctx)
{
	(void)traced, (void)ctx;
	return accounted_for() >= BURST;
}

Test(follow, children_that_end_at_once)
{
	struct session_status st;
	size_t n;

	begin_newest();
	traced_attach(&f.t);
	process_tree_ask(&f, "burst", BURST, 0, "burst");
	process_tree_ask(&f, "work", 0, 5, "worked");
	traced_until(&f.t, all_are_accounted_for, NULL, "news of all children");
	n = sessions_count(f.t.sessions);
	st = process_tree_status(&f, f.t.pid);
	cr_assert_eq(st.children.followed + st.children.ended_first, BURST,
		     "%" PRIu64 " and %" PRIu64, st.children.followed, st.children.ended_first);
	cr_assert(n <= 1 + KEPT, "%zu targets", n);
	cr_assert(work_of(0) >= 5);
	process_tree_finish(&f);
}

Test(follow, stop_and_start)
{
	struct sites sites;

	begin_newest();
	sites_find(&sites, f.t.pid);
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 1, 1);
	process_tree_ask(&f, "work", 1, 10, "worked");
	traced_halt(&f.t);
	cr_assert_eq(sites_changed(&sites, f.members[1]), 0);
	cr_assert_eq(sites_marked(&sites, f.members[1]), 0);
	process_tree_ask(&f, "work", 1, 10, "worked");
	process_tree_fork(&f, 0, 1);
	assert_ok(sessions_start(f.t.sessions, 0, NULL));
	/* This child was forked while tracing was stopped. */
	process_tree_traced(&f, 1, 2);
	process_tree_ask(&f, "work", 1, 10, "worked");
	process_tree_ask(&f, "work", 2, 10, "worked");
	cr_assert_eq(work_of(0), 30);
	cr_assert_eq(work_of(f.members[1]), 20);
	/* Detaching the first target also detaches the targets that were followed from it. */
	assert_ok(sessions_detach(f.t.sessions, f.t.pid, NULL));
	cr_assert_eq(sessions_count(f.t.sessions), 0);
	cr_assert_eq(sites_changed(&sites, f.members[2]), 0);
	cr_assert_eq(sites_marked(&sites, f.members[2]), 0);
	process_tree_finish(&f);
}

/* Executing -------------------------------------------------------------------------------- */

static bool is_at_it_again(struct traced *traced, void *ctx)
{
	struct session_status st = process_tree_status(&f, f.members[*(unsigned int *)ctx]);

	(void)traced;
	return st.state == SESSION_TRACING && st.execs == 1;
}

/*
 * The target executes the same program again: tracing resumes, and the old program's frames are no
 * longer on any stack.
 */
static void executes_again(const char *exe)
{
	unsigned int leader = 1, other = 2;

	process_tree_start(&f, exe);
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 2);
	process_tree_traced(&f, 1, 2);
	process_tree_ask(&f, "work", leader, 10, "worked");
	process_tree_ask(&f, "work", other, 10, "worked");
	process_tree_ask(&f, "again", leader, 0, "again");
	traced_until(&f.t, is_at_it_again, &leader, "the program anew");
	process_tree_ask(&f, "thread", other, 0, "again");
	traced_until(&f.t, is_at_it_again, &other, "the program anew");
	process_tree_ask(&f, "work", leader, 7, "worked");
	process_tree_ask(&f, "work", other, 8, "worked");
	cr_assert_eq(work_of(f.members[leader]), 17);
	cr_assert_eq(work_of(f.members[other]), 18);
	cr_assert(process_tree_status(&f, f.members[leader]).exec_gap_ns > 0);
	fprintf(stderr, "  not traced for %.2f ms after an exec, %.1f ms after one by a thread\n",
		(double)process_tree_status(&f, f.members[leader]).exec_gap_ns / 1e6,
		(double)process_tree_status(&f, f.members[other]).exec_gap_ns / 1e6);
	process_tree_finish(&f);
}

Test(follow, the_same_program_again)
{
	process_tree_everywhere(executes_again);
}

static bool has_worked(pid_t pid)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);
	_cleanup_(view_freep) struct view *v = NULL;

	assert_ok(snapshot_correct(s));
	assert_ok(view_build(s, NULL, &v));
	return counts_named(v, "work").ncalls > 0;
}

/*
 * A child that is traced in windows executes the same program again. The test does not know when
 * windows are open, so it lets the child work until a call was counted.
 */
Test(follow, the_same_program_again_in_windows)
{
	unsigned int member = 1;

	process_tree_start(&f, traced_newest().exe);
	f.t.max_overhead = 5;
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, member, member);
	process_tree_ask(&f, "again", member, 0, "again");
	traced_until(&f.t, is_at_it_again, &member, "the program anew");
	cr_assert_eq(process_tree_status(&f, f.members[member]).windows.max_overhead, 5);
	cr_assert(process_tree_status(&f, f.members[member]).exec_gap_ns > 0);
	while (!has_worked(f.members[member]))
		process_tree_ask(&f, "work", member, 10, "worked");
	process_tree_finish(&f);
}

#define WORKS	100000
#define SAMPLES 60

/*
 * The first window may have been closed late and exceeded its budget; then the next one may open
 * only after many seconds, or after some work.
 */
static void work_until_sampled(unsigned int member)
{
	for (;;) {
		struct snapshot_windows w = process_tree_status(&f, f.members[member]).windows;

		if (w.n >= 2 && w.samples >= SAMPLES)
			return;
		cr_assert(!patience_over(), "it is not sampled between windows");
		process_tree_ask(&f, "work", member, WORKS, "worked");
	}
}

/*
 * Checks that less than 30 % of the CPU time is outside Python. 5 % are: 30 % of 60 samples then
 * have a probability of 4e-9.
 */
static void check_outside(void)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(&f.t);
	double all = 0, root = 0;

	assert_ok(snapshot_correct(s));
	for (uint32_t i = 0; i < s->nthreads; i++) {
		all += (double)s->threads[i].total[SNAPSHOT_CPU];
		root += (double)s->nodes[s->threads[i].root].self[SNAPSHOT_CPU];
	}
	cr_assert_lt(root, 0.3 * all, "%.0f of %.0f ns are outside Python", root, all);
}

/*
 * A child of a target that is traced in windows is also traced in windows, and sampled between
 * them. The sampling program was loaded before the child existed and, after an exec, must use new
 * addresses; with wrong ones, all samples would be outside Python.
 */
Test(follow, samples_of_the_same_program_again)
{
	process_tree_start(&f, traced_newest().exe);
	f.t.max_overhead = 5;
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 1, 1);
	work_until_sampled(1);
	check_outside();
	process_tree_ask(&f, "again", 1, 0, "again");
	traced_until(&f.t, is_at_it_again, &(unsigned int){1}, "the program anew");
	/* The startup of an interpreter is outside Python, so clear after it. */
	process_tree_ask(&f, "work", 1, 10, "worked");
	assert_ok(sessions_clear(f.t.sessions, 0, NULL));
	work_until_sampled(1);
	check_outside();
	process_tree_finish(&f);
	check_no_leaks();
}

Test(follow, another_program)
{
	begin_newest();
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 2);
	process_tree_traced(&f, 1, 2);
	process_tree_ask(&f, "work", 1, 10, "worked");
	process_tree_ask(&f, "other", 1, 0, "other");
	process_tree_ended(&f, 1, 1);
	cr_assert_str_eq(process_tree_status(&f, f.members[1]).end_reason,
			 "executed another program");
	cr_assert_eq(work_of(f.members[1]), 10);
	cr_assert(!sessions_over(f.t.sessions, f.t.pid));
	process_tree_finish(&f);
}

/*
 * While tracing is stopped, an exec is not reported. The next start must detect it and must not put
 * probes into the other program.
 */
Test(follow, another_program_while_stopped)
{
	struct diag diag = {0};

	begin_newest();
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 1, 1);
	traced_halt(&f.t);
	process_tree_ask(&f, "other", 1, 0, "other");
	cr_assert(sessions_start(f.t.sessions, f.members[1], &diag) < 0);
	cr_assert_eq(diag.exit, PYP_EXIT_NO_PROCESS, "%s", diag.msg);
	cr_assert(strstr(diag.msg, "another program"), "%s", diag.msg);
	process_tree_ended(&f, 1, 1);
	process_tree_finish(&f);
}

/* A child that has just ended, and whose end was not handled yet, is no failure of the group's start. */
Test(follow, a_child_ends_while_stopped)
{
	struct pollfd ended = {.events = POLLIN};
	struct diag diag = {0};
	int n;

	begin_newest();
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 2);
	process_tree_traced(&f, 1, 2);
	traced_halt(&f.t);
	ended.fd = (int)syscall(SYS_pidfd_open, f.members[1], 0);
	cr_assert_geq(ended.fd, 0);
	kill(f.members[1], SIGKILL);
	n = poll(&ended, 1, patience_left_ms());
	cr_assert_eq(n, 1);
	close(ended.fd);
	assert_diag_ok(sessions_start(f.t.sessions, f.t.pid, &diag), &diag);
	process_tree_ended(&f, 1, 1);
	process_tree_ask(&f, "work", 2, 9, "worked");
	cr_assert_eq(work_of(f.members[2]), 9);
	process_tree_finish(&f);
}

/* As above, but with the same program, whose addresses have changed. */
Test(follow, the_same_program_while_stopped)
{
	begin_newest();
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 1, 1);
	traced_halt(&f.t);
	process_tree_ask(&f, "again", 1, 0, "again");
	assert_ok(sessions_start(f.t.sessions, f.members[1], NULL));
	process_tree_ask(&f, "work", 1, 9, "worked");
	cr_assert_eq(work_of(f.members[1]), 9);
	process_tree_finish(&f);
}

static bool has_ended(struct traced *traced, void *ctx)
{
	(void)ctx;
	return traced->ended > 0;
}

/* on_end() is called even if a snapshot is the first to detect the exec. */
Test(follow, an_exec_that_a_snapshot_finds)
{
	struct session_status st;

	traced_start(&f.t, traced_newest().exe, "load.py", NULL);
	traced_expect(&f.t, "ready");
	traced_attach(&f.t);
	traced_say(&f.t, "exec");
	traced_hear(&f.t, "executed");
	snapshot_free(traced_snapshot(&f.t));
	st = traced_status(&f.t);
	cr_assert_eq(st.state, SESSION_ENDED);
	traced_until(&f.t, has_ended, NULL, "news of the end");
	cr_assert_eq(f.t.ended, 1);
	traced_finish(&f.t);
}
