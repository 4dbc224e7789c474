// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ended threads are merged by their entry function: no figure is lost, and memory depends on the
 * live threads and distinct contexts, not on the number of threads.
 */
#include <stdio.h>

#include "harness/event_script.h"
#include "harness/test.h"
#include "snapshot/merge.h"
#include "profile/ended.h"
#include "profile/profile_priv.h"

#define FUNCS 10u

static uint64_t now;

static void send_event(struct profile *p, uint32_t tid, uint8_t type, uint64_t frame, uint64_t code,
		       uint64_t caller)
{
	struct event e = {.ts = now += 100, .tid = tid, .type = type};

	if (type == PYP_REC_ENTER || type == PYP_REC_LEAVE || type == PYP_REC_YIELD) {
		e.u.call.frame = frame;
		e.u.call.code = code;
		e.u.call.caller = caller;
	}
	profile_event(p, &e);
}

/* A thread runs the function `entry`, which calls FUNCS others, and ends. */
static void short_thread(struct profile *p, uint32_t tid, uint32_t entry)
{
	send_event(p, tid, PYP_REC_ENTER, 0x1000, 0x100 + entry, 0);
	for (uint32_t i = 0; i < FUNCS; i++) {
		send_event(p, tid, PYP_REC_ENTER, 0x2000, 0x200 + i, 0x1000);
		send_event(p, tid, PYP_REC_LEAVE, 0x2000, 0, 0);
	}
	send_event(p, tid, PYP_REC_LEAVE, 0x1000, 0, 0);
	send_event(p, tid, PYP_REC_THREAD_EXIT, 0, 0, 0);
}

static struct snapshot *take(struct profile *p)
{
	struct snapshot *s = snapshot_new();

	cr_assert(s);
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	cr_assert(s->targets);
	s->ntargets = 1;
	s->targets[0].pid = 7;
	assert_ok(profile_snapshot(p, now, 7, s, &s->targets[0]));
	cr_assert(snapshot_valid(s));
	return s;
}

static uint64_t all_calls(const struct snapshot *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		n += s->nodes[i].calls;
	return n;
}

/* Returns the number of ended threads, merged or not. */
static uint64_t ended_threads(const struct snapshot *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		if (!s->threads[i].alive && s->threads[i].root != SNAPSHOT_NONE)
			n += s->threads[i].folded ? s->threads[i].folded : 1;
	return n;
}

/*
 * Checks that each thread's contexts add up to its total, and that its wall time is from its first
 * event to its end.
 */
static void check_sums(const struct snapshot *s, uint64_t wall_each, uint32_t others)
{
	uint64_t wall = 0;

	for (uint32_t t = 0; t < s->nthreads; t++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < s->nnodes; i++)
			if (s->nodes[i].thread == t)
				sum += s->nodes[i].self[SNAPSHOT_WALL];
		cr_expect_eq(sum, s->threads[t].total[SNAPSHOT_WALL]);
		wall += s->threads[t].alive ? 0 : sum;
	}
	cr_expect_eq(wall, wall_each * (ended_threads(s) - others));
}

Test(ended, a_hundred_thousand)
{
	const uint32_t threads = 100000;
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint32_t places = 0;

	for (uint32_t i = 0; i < threads; i++) {
		short_thread(p, 100 + i % 30000, 0);
		if (i == 1000)
			places = p->rb.tree.n;
	}
	cr_expect_eq(p->rb.tree.n, places, "%u places, %u after 1,000 threads", p->rb.tree.n,
		     places);
	cr_expect_leq(p->threads.n, ENDED_APART + 2);
	cr_expect_eq(profile_counts(p).threads, threads);
	cr_expect_eq(profile_counts(p).truncated, 0);
	cr_expect_eq(profile_counts(p).nodes, (ENDED_APART + 1) * (FUNCS + 1));
	s = take(p);
	cr_expect_eq(s->nthreads, ENDED_APART + 1);
	cr_expect_eq(ended_threads(s), threads);
	cr_expect_eq(all_calls(s), (uint64_t)threads * (FUNCS + 1));
	check_sums(s, 100 * (2 * FUNCS + 2), 0);
}

/*
 * Threads of three entry functions alternate with a live one, so that nodes of the tree are reused.
 */
Test(ended, places_are_used_again)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint64_t old_calls = 0, rows = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		uint64_t frame = 0x9000 + 0x10 * (uint64_t)i;

		short_thread(p, 100 + i, i % 3);
		/* one frame deeper each time, always another function */
		send_event(p, 1, PYP_REC_ENTER, frame, 0x5000 + i, i ? frame - 0x10 : 0);
		old_calls++;
	}
	for (uint32_t i = 0; i < p->rb.tree.n; i++)
		cr_assert(p->rb.tree.parents[i] == NODE_NONE || p->rb.tree.parents[i] < i);
	s = take(p);
	cr_expect_eq(all_calls(s), 5000ull * (FUNCS + 1) + old_calls);
	cr_expect_eq(ended_threads(s), 5000);
	for (uint32_t i = 0; i < s->nthreads; i++) {
		rows += s->threads[i].folded > 0;
		if (s->threads[i].folded)
			cr_expect(strncmp(s->threads[i].entry, "<unknown 0x10", 13) == 0);
	}
	cr_expect_eq(rows, 3);
}

/* Code 0x100 to 0x103: what threading.py runs before a thread's function; ctx: its file */
static int threading_names(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	static const char *const names[] = {"_bootstrap", "_bootstrap_inner", "run", "work"};

	(void)announced_ns;
	ret->name = strdup(names[code - 0x100]);
	ret->filename = strdup(code == 0x103 ? "app.py" : ctx);
	return 0;
}

/* The row of threads has the function that they ran inside threading.py, and only there. */
Test(ended, inside_threading)
{
	static char files[][32] = {"/usr/lib/threading.py", "threading.py", "/app/mythreading.py"};

	for (size_t k = 0; k < 3; k++) {
		struct profile *p = profile_new(NULL, threading_names, files[k]);
		struct snapshot *s;
		const char *entry = NULL;

		for (uint32_t tid = 100; tid < 100 + 2 * ENDED_APART; tid++) {
			for (uint64_t i = 0; i < 4; i++)
				send_event(p, tid, PYP_REC_ENTER, 0x1000 + i, 0x100 + i,
					   i ? 0x1000 + i - 1 : 0);
			for (uint64_t i = 4; i-- > 0;)
				send_event(p, tid, PYP_REC_LEAVE, 0x1000 + i, 0, 0);
			send_event(p, tid, PYP_REC_THREAD_EXIT, 0, 0, 0);
		}
		s = take(p);
		for (uint32_t i = 0; i < s->nthreads; i++)
			entry = s->threads[i].folded ? s->threads[i].entry : entry;
		cr_assert_str_eq(entry, k < 2 ? "work" : "_bootstrap", "%s", files[k]);
		snapshot_free(s);
		profile_free(p);
	}
	check_no_leaks();
}

/* More entry functions than rows: the additional ones share one. */
Test(ended, rows_are_bounded)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	for (uint32_t i = 0; i < 4 * ENDED_ROWS; i++) {
		send_event(p, 100 + i, PYP_REC_ENTER, 0x1000, 0x10000 + i, 0);
		send_event(p, 100 + i, PYP_REC_LEAVE, 0x1000, 0, 0);
		send_event(p, 100 + i, PYP_REC_THREAD_EXIT, 0, 0, 0);
	}
	s = take(p);
	cr_expect_eq(s->nthreads, ENDED_ROWS + 1 + ENDED_APART);
	cr_expect_eq(ended_threads(s), 4 * ENDED_ROWS);
	cr_expect_eq(all_calls(s), 4 * ENDED_ROWS);
}

/* At the limit of contexts, merging a thread needs no more contexts than it releases. */
Test(ended, at_the_limit)
{
	static const struct profile_limits limits = {.nodes = (ENDED_APART + 2) * (FUNCS + 1)};
	_cleanup_(profile_freep) struct profile *p = profile_new(&limits, NULL, NULL);

	for (uint32_t i = 0; i < 1000; i++)
		short_thread(p, 100 + i, 0);
	cr_expect_eq(profile_counts(p).truncated, 0);
}

/* The limit applies to the number of live threads; clear removes all ended ones. */
Test(ended, limits_and_clear)
{
	static const struct profile_limits limits = {.threads = 2 * ENDED_APART};
	_cleanup_(profile_freep) struct profile *p = profile_new(&limits, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	for (uint32_t i = 0; i < 1000; i++)
		short_thread(p, 100 + i, i % 5);
	cr_expect_eq(profile_counts(p).truncated, 0);
	send_event(p, 1, PYP_REC_ENTER, 0x1000, 0x100, 0);
	profile_clear(p, now += 100);
	cr_expect_eq(profile_counts(p).threads, 1);
	for (uint32_t i = 0; i < 1000; i++)
		short_thread(p, 100 + i, 0);
	s = take(p);
	cr_expect_eq(ended_threads(s), 1000);
	cr_expect_eq(all_calls(s), 1000 * (FUNCS + 1));
}

/* Merging keeps the shortest and longest activations, and the number of suspensions. */
Test(ended, figures_are_kept)
{
	_cleanup_(event_script_freep) struct event_script *es = event_script_new(NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	char text[256];

	for (int i = 1; i <= 50; i++) {
		snprintf(text, sizeof(text),
			 "T%d +10 enter 0x10 f\nT%d +%d enter 0x20 g 0x10\nT%d +%d yield 0x20\n"
			 "T%d +5 leave 0x10\nT%d +1 exit\n",
			 i, i, i, i, 2 * i, i, i);
		event_script_run(es, text);
	}
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (!s->threads[n->thread].folded || n->func == SNAPSHOT_NONE)
			continue;
		cr_expect_str_eq(s->threads[n->thread].name, "ended threads (34) of f");
		cr_expect_eq(n->calls, 34);
		if (strcmp(s->funcs[n->func].name, "g") == 0) {
			cr_expect_eq(n->yields, 34);
			cr_expect_eq(n->min[SNAPSHOT_WALL], 2);
			cr_expect_eq(n->max[SNAPSHOT_WALL], 68);
			cr_expect_eq(n->self[SNAPSHOT_WALL], 34 * 35);
		} else {
			cr_expect_eq(n->min[SNAPSHOT_WALL], 8);
			cr_expect_eq(n->max[SNAPSHOT_WALL], 34 * 3 + 5);
		}
	}
}

/* A tid is reused at once by another thread. */
Test(ended, numbers_come_again)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	for (uint32_t i = 0; i < 100; i++)
		short_thread(p, 5, 0);
	/* The thread has ended: further events belong to another one. */
	send_event(p, 5, PYP_REC_THREAD_EXIT, 0, 0, 0);
	s = take(p);
	cr_expect_eq(ended_threads(s), 100);
	cr_expect_eq(all_calls(s), 100 * (FUNCS + 1));
}

static uint64_t written, drained; /* positions in the ring */

static void gone(void *ctx, uint32_t tid)
{
	profile_thread_gone(ctx, tid, written, drained);
}

/* The exit events were lost: the OS is asked twice, and no time is added. */
Test(ended, unreported)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	for (uint32_t i = 0; i < 1000; i++) {
		send_event(p, 100 + i, PYP_REC_ENTER, 0x1000, 0x100, 0);
		send_event(p, 100 + i, PYP_REC_LEAVE, 0x1000, 0, 0);
	}
	now += 1000000;
	written = 4096;
	profile_foreach_thread(p, gone, p);
	drained = 4000;
	profile_foreach_thread(p, gone, p);
	cr_expect_eq(p->threads.n, 1001, "their ends may be on their way");
	drained = 4096;
	profile_foreach_thread(p, gone, p);
	cr_expect_eq(p->threads.n, 1 + ENDED_APART + 1);
	s = take(p);
	cr_expect_eq(ended_threads(s), 1000);
	cr_expect_eq(all_calls(s), 1000);
	check_sums(s, 100, 0);
}

/* Merging snapshots merges rows of the same entry function. */
Test(ended, merged)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *a = NULL, *b = NULL, *merged = NULL;
	const struct snapshot *list[2];
	uint32_t rows = 0;

	for (uint32_t i = 0; i < 100; i++)
		short_thread(p, 100 + i, 0);
	a = take(p);
	for (uint32_t i = 0; i < 1000; i++)
		short_thread(p, 300 + i, 0);
	b = take(p);
	list[0] = a;
	list[1] = b;
	assert_ok(snapshot_merge(list, 2, &merged));
	cr_assert(snapshot_valid(merged));
	for (uint32_t i = 0; i < merged->nthreads; i++) {
		if (!merged->threads[i].folded)
			continue;
		rows++;
		cr_expect_eq(merged->threads[i].folded, 1100 + 100 - 2 * ENDED_APART);
		cr_expect_str_eq(merged->threads[i].name,
				 "ended threads (1,168) of <unknown 0x100>");
	}
	cr_expect_eq(rows, 1);
	cr_expect_eq(all_calls(merged), 1200 * (FUNCS + 1));
}

/* Weighted figures from windows, including those of the current window, move with the context. */
Test(ended, in_windows)
{
	static const struct cost cost = {0};
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	double calls = 0;

	profile_in_windows(p, now);
	for (uint32_t w = 0; w < 100; w++) {
		struct evidence_window of = {.cpu_ns = 1u << 20, .cost = &cost, .times = 1};

		profile_begin(p, now);
		profile_limit(p, &(struct profile_limit){1u << 30, &cost, false});
		for (uint32_t i = 0; i < 10; i++)
			short_thread(p, 100 + 10 * w + i, 0);
		of.length_ns = (double)profile_window_end(p, now, 1);
		profile_fold(p, &of);
		profile_gap(p, (uint64_t)of.length_ns);
		now += (uint64_t)of.length_ns;
	}
	cr_expect_leq(p->threads.n, ENDED_APART + 2);
	s = take(p);
	cr_expect_eq(ended_threads(s), 1000);
	/* Each window represents itself and the gap before it; the first one has no gap. */
	for (uint32_t i = 0; i < p->evidence.n; i++)
		calls += p->evidence.nodes[i].calls;
	cr_expect_geq(calls, 1990 * (FUNCS + 1));
	cr_expect_leq(calls, 2010 * (FUNCS + 1));
}

/* Counts are replaced by the next reading, so ended threads are merged only after the final one. */
Test(ended, counted)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	for (uint32_t id = 1; id <= 2; id++)
		profile_event(p, &(struct event){.type = PYP_REC_CODE_ID,
						 .u.code = {.id = id, .code = 0x100 + id}});
	for (uint32_t i = 0; i < 1000; i++) {
		const struct call_count calls[] = {
			{.tid = 1, .caller = PYP_COUNT_OUTSIDE, .callee = 1, .calls = i + 1},
			{.tid = 100 + i,
			 .caller = PYP_COUNT_OUTSIDE,
			 .callee = 2,
			 .calls = 3,
			 .final = true},
		};

		profile_set_calls(p, calls, 2);
		send_event(p, 100 + i, PYP_REC_THREAD_EXIT, 0, 0, 0);
	}
	cr_expect_leq(p->threads.n, ENDED_APART + 4);
	s = take(p);
	cr_expect_eq(ended_threads(s), 1000);
	cr_expect_eq(all_calls(s), 1000 + 3000);
}
