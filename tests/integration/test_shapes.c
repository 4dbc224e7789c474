// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stacks of every shape, on every interpreter that can be traced: each call is counted, every frame
 * ends, no frame remains at the end, and each thread's time is in its calls. Programs that cProfile
 * can follow are compared with it, function by function; the others count their own calls.
 */
#include <inttypes.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/counts.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "accuracy/finish.h"
#include "snapshot/pseudo.h"
#include "stats/view.h"

#define CPROFILE_AGAIN 3

/*
 * With rows for pseudo functions, the sum of all rows equals the threads' total, to the nanosecond.
 */
static void check_rows(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct view_filter filter = {.tid = s->threads[i].tid};
		_cleanup_(view_freep) struct view *v = NULL;

		assert_ok(view_build(s, &filter, &v));
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			uint64_t total = 0; /* of all threads with this tid */

			for (uint32_t k = 0; k < s->nthreads; k++)
				/* A row of merged threads has no tid, and 0 selects all threads. */
				if (!filter.tid || s->threads[k].tid == filter.tid)
					total += s->threads[k].total[c];
			cr_assert_eq(v->total[c], total, "thread %" PRIu32 ", clock %d", filter.tid,
				     c);
		}
	}
}

/* Checks the raw times, and the times after the probes' own time was subtracted. */
static void check_all_times(struct traced *t, const struct snapshot *raw)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);
	_cleanup_(snapshot_freep) struct snapshot *corrected = traced_snapshot(t);

	traced_check_times(raw);
	assert_ok(snapshot_pseudo(s));
	check_rows(s);
	assert_ok(snapshot_correct(corrected));
	traced_check_times(corrected);
	assert_ok(snapshot_pseudo(corrected));
	check_rows(corrected);
}

/* Checks that threads that have ended have empty stacks. */
static bool nothing_left(const struct snapshot *s, const char *label)
{
	bool ok = true;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->inflight && !s->threads[n->thread].alive) {
			fprintf(stderr, "  %s: %s still runs in a thread that has ended\n", label,
				s->funcs[n->func].name);
			ok = false;
		}
	}
	return ok;
}

static struct snapshot *run_ours(const char *exe, const char *program, const char *kind,
				 struct traced *t)
{
	struct snapshot *s;

	traced_start(t, exe, "run.py", program, kind, NULL);
	traced_expect(t, "ready");
	traced_attach(t);
	traced_go(t);
	traced_expect(t, "done");
	s = traced_snapshot(t);
	check_all_times(t, s);
	return s;
}

static bool judge(const struct snapshot *s, const char *label, uint32_t differing)
{
	bool exact = traced_is_exact(s, label);

	fprintf(stderr,
		"  %s: %" PRIu32 " differ, %" PRIu64 " events, %" PRIu64 " unstarted, %" PRIu64
		" stack switches\n",
		label, differing, s->targets[0].events, s->targets[0].unstarted,
		s->targets[0].stack_switches);
	return nothing_left(s, label) && exact && differing == 0;
}

static void run_watched(const char *exe, const char *kind, const char *observer, const char *json)
{
	struct traced t;

	traced_start(&t, exe, "run.py", "shapes", observer, json, kind, NULL);
	traced_expect(&t, "ready");
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
}

/*
 * cProfile of 3.11 reports returns from coroutines without calls, and its counts are wrong from
 * then on.
 */
static bool cprofile_is_lost(const struct interpreter *py, const char *kind)
{
	return py->minor == 11 && strcmp(kind, "cancel") == 0;
}

static struct counts compare(const struct interpreter *py, const char *kind,
			     const struct snapshot *s, const char *json, const char *label)
{
	if (cprofile_is_lost(py, kind)) {
		run_watched(py->exe, kind, "--monitoring", json);
		return counts_compare_calls(s, json, label);
	}
	run_watched(py->exe, kind, "--cprofile", json);
	return counts_compare(s, json, label);
}

/* If counts differ, cProfile counts again: that of 3.13 sometimes misses a call. */
static bool like_cprofile(const struct interpreter *py, const char *kind, const char *dir)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct counts c = {.differing = 1};
	char json[256], label[700];
	struct traced t;

	snprintf(json, sizeof(json), "%s/%s.json", dir, kind);
	snprintf(label, sizeof(label), "%s %s", py->exe, kind);
	s = run_ours(py->exe, "shapes", kind, &t);
	traced_finish(&t);
	for (int i = 0; i < CPROFILE_AGAIN && c.differing; i++)
		c = compare(py, kind, s, json, label);
	cr_assert(c.functions > 0 && c.calls > 0);
	return judge(s, label, c.differing);
}

static bool like_its_own(const struct interpreter *py, const char *kind, const char *dir)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;
	char label[700];
	bool ok;

	(void)dir;
	snprintf(label, sizeof(label), "%s %s", py->exe, kind);
	s = run_ours(py->exe, "shapes_known", kind, &t);
	ok = judge(s, label, counts_differing(s, t.result));
	traced_finish(&t);
	return ok;
}

typedef bool (*check_fn)(const struct interpreter *, const char *kind, const char *dir);

static void check_all(const struct interpreter *v, size_t n, const char *kind, int from_minor,
		      check_fn check)
{
	size_t failed = 0, tried = 0;
	char *dir = temp_dir_new();

	for (size_t i = 0; i < n; i++) {
		if (v[i].minor < from_minor)
			continue;
		failed += !check(&v[i], kind, dir);
		tried++;
	}
	temp_dir_remove(dir);
	if (!tried)
		cr_skip_test("needs a Python 3.%d or later", from_minor);
	cr_assert(failed == 0, "%s: wrong on %zu of %zu interpreters", kind, failed, tried);
	check_no_leaks();
}

/*
 * The shapes take turns: together they reach every interpreter, and `make fidelity` has all of
 * both.
 */
static void in_turn(unsigned int turn, const char *kind, int from_minor, check_fn check)
{
	struct interpreter v[INTERPRETERS_MAX];

	check_all(v, traced_in_turn(v, turn), kind, from_minor, check);
}

#define CPROFILES(turn, kind)                                                                      \
	Test(shapes, kind)                                                                         \
	{                                                                                          \
		in_turn(turn, #kind, 6, like_cprofile);                                            \
	}

#define KNOWN(turn, kind, from_minor)                                                              \
	Test(shapes, kind)                                                                         \
	{                                                                                          \
		in_turn(turn, #kind, from_minor, like_its_own);                                    \
	}

CPROFILES(0, deep)
CPROFILES(1, exceptions)
CPROFILES(2, asyncgen)
CPROFILES(3, cancel)
CPROFILES(4, callbacks)
CPROFILES(5, codes)
CPROFILES(6, names)
KNOWN(7, recursion_error, 6)
KNOWN(8, gen_threads, 6)
KNOWN(9, pthread_exit, 6)
KNOWN(10, foreign, 6)
KNOWN(4, subinterpreters, 8)

/*
 * Returns the function that called this context; for a callee of a collection, the function that
 * triggered the collection.
 */
static const char *caller_of(const struct snapshot *s, const struct snapshot_node *n)
{
	do {
		if (n->parent == SNAPSHOT_NONE)
			return "";
		n = &s->nodes[n->parent];
	} while (n->func != SNAPSHOT_NONE && snapshot_func_is_gc(&s->funcs[n->func]));
	return n->func != SNAPSHOT_NONE ? s->funcs[n->func].name : "";
}

/* Returns the number of calls from caller to callee. */
static uint64_t edge_calls(const struct view *v, const char *caller, const char *callee)
{
	const struct snapshot *s = v->snapshot;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func != SNAPSHOT_NONE && strcmp(s->funcs[n->func].name, callee) == 0 &&
		    strcmp(caller_of(s, n), caller) == 0)
			sum += n->calls;
	}
	return sum;
}

static bool edge_differs(const struct view *v, const char *edge, uint64_t calls)
{
	const char *arrow = strstr(edge, " -> ");
	char caller[64];
	uint64_t ours;

	if (!arrow)
		return counts_named(v, edge).ncalls != calls;
	snprintf(caller, sizeof(caller), "%.*s", (int)(arrow - edge), edge);
	ours = edge_calls(v, caller, arrow + 4);
	if (ours != calls)
		fprintf(stderr, "  %s: %" PRIu64 " calls, ours %" PRIu64 "\n", edge, calls, ours);
	return ours != calls;
}

static uint32_t edges_differing(const struct snapshot *s, const char *json)
{
	_cleanup_(view_freep) struct view *v = NULL;
	json_t *truth = json_loads(json, 0, NULL), *calls;
	uint32_t differing = 0;
	const char *edge;

	cr_assert_gt(json_object_size(truth), 5);
	assert_ok(view_build(s, NULL, &v));
	json_object_foreach(truth, edge, calls)
		differing += edge_differs(v, edge, (uint64_t)json_integer_value(calls));
	json_decref(truth);
	return differing;
}

static bool edges_counted_like_its_own(const struct interpreter *py, const char *kind)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;
	uint32_t differing;

	traced_start(&t, py->exe, "run.py", "shapes_known", kind, NULL);
	t.mode = (struct mode_choice){.mode = MODE_COUNT};
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	differing = edges_differing(s, t.result);
	traced_finish(&t);
	return differing == 0;
}

/*
 * 3.11 can collect while a frame is being set up, before its ENTER event, so that frame is not
 * shown as the caller. Every frame that calls something must have had an ENTER (unseen is 0).
 */
static bool edges_like_its_own(const struct interpreter *py, const char *kind, const char *dir)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;
	char label[700];
	bool ok;

	(void)dir;
	snprintf(label, sizeof(label), "%s %s", py->exe, kind);
	s = run_ours(py->exe, "shapes_known", kind, &t);
	ok = judge(s, label, edges_differing(s, t.result)) && s->targets[0].unseen == 0;
	traced_finish(&t);
	return edges_counted_like_its_own(py, kind) && ok;
}

Test(shapes, collected)
{
	in_turn(11, "collected", 6, edges_like_its_own);
}

/* the same as in shapes_known.py */
#define NAPS 8
#define NAP  50000000u /* ns */

/* The time that an event loop waits is in its poller's "<wait>": all of it, and no CPU time. */
static bool waits(const struct interpreter *py, const char *kind, const char *dir)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct view_row wait, poller;
	struct traced t;

	(void)dir;
	s = run_ours(py->exe, "shapes_known", kind, &t);
	cr_assert_eq(counts_differing(s, t.result), 0);
	traced_finish(&t);
	assert_ok(snapshot_pseudo(s));
	assert_ok(view_build(s, NULL, &v));
	wait = counts_named(v, SNAPSHOT_WAIT);
	poller = counts_named(v, "select");
	fprintf(stderr, "  %s: %" PRIu64 " ms in <wait>, %" PRIu64 " us in select\n", py->exe,
		wait.tot[SNAPSHOT_WALL] / 1000000, poller.tot[SNAPSHOT_WALL] / 1000);
	/* epoll rounds its timeouts, and the loop's clock has a limited resolution */
	return wait.tot[SNAPSHOT_WALL] >= (uint64_t)NAPS * NAP * 9 / 10 &&
	       wait.tot[SNAPSHOT_CPU] == 0 &&
	       poller.cum[SNAPSHOT_WALL] == wait.tot[SNAPSHOT_WALL] + poller.tot[SNAPSHOT_WALL];
}

Test(shapes, waiting)
{
	in_turn(12, "waiting", 6, waits);
}

Test(shapes, tid_reuse)
{
	if (access("/proc/sys/kernel/ns_last_pid", W_OK))
		cr_skip_test("needs a kernel with CONFIG_CHECKPOINT_RESTORE");
	in_turn(13, "tid_reuse", 6, like_its_own);
}
