// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profile whose probes are limited: waits that are handed over between samples and stretches, samples, and
 * snapshots of all that.
 */
#include <math.h>

#include "accuracy/calls.h"
#include "accuracy/finish.h"
#include "harness/limited.h"
#include "harness/numbered.h"
#include "harness/test.h"
#include "snapshot/merge.h"
#include "snapshot/since.h"
#include "stack/waits.h"

#define SYS_SLEEP 35 /* nanosleep */

/* Waits --------------------------------------------------------------------------------- */

/* Leaves its CPU to sleep, or gets one again. */
static void out(struct profile *p, uint32_t tid)
{
	struct event e = {.ts = limited_now, .tid = tid, .type = PYP_REC_SWITCH_OUT};

	e.u.sw = (struct event_switch){.wait = PYP_WAIT_SYSCALL, .syscall = SYS_SLEEP};
	profile_event(p, &e);
}

static void in(struct profile *p, uint32_t tid)
{
	profile_event(p, &(struct event){.ts = limited_now, .tid = tid, .type = PYP_REC_SWITCH_IN});
}

/* As the daemon does at the beginning of each window; f0 has called f1, which runs or sleeps. */
static void add_initial(struct profile *p, uint32_t tid, bool running)
{
	const struct pyp_chain_frame frames[] = {{0x20, NUMBERED_CODE(1)},
						 {0x10, NUMBERED_CODE(0)}};

	profile_add_initial(p, limited_now,
			    &(struct initial_stack){.tid = tid,
						    .name = "",
						    .running = running,
						    .asked_ns = limited_now,
						    .frames = frames,
						    .n = 2});
}

/* A thread sleeps from one time to another, and a stretch is from 100 to 300. */
static void sleep_beside_a_stretch(uint64_t from, uint64_t to, bool light)
{
	struct profile *p = limited_new();
	struct snapshot *s;
	uint64_t slept = 0;

	profile_gap(p, !light);	 /* else a stretch is all there is, and its times are used */
	limited_sample(p, 1, 1); /* the stack is known */
	for (uint64_t t = 0; t < 500; t += 10, limited_now += 10) {
		if (t == 100) {
			limited_begin(p, 0, false);
			add_initial(p, 1, t < from || t >= to);
		}
		if (t == from)
			out(p, 1);
		if (t == to)
			in(p, 1);
		if (t == 300)
			limited_keep(p, light);
		if (t == 310)
			profile_gap(p, 10);
		if (t > from && t <= to)
			slept += 10;
		/* At any time: nothing is lost, nothing is twice. */
		profile_set_accuracy(p, light, 1, 0);
		s = limited_finished(p);
		cr_assert_eq(limited_column(s, NULL, COLUMN_sleep), slept,
			     "%lu to %lu, at %lu: %lu", from, to, t,
			     limited_column(s, NULL, COLUMN_sleep));
		cr_assert_eq(limited_column(s, NULL, COLUMN_other), 0);
		limited_check_sums(s);
		snapshot_free(s);
	}
	s = limited_finished(p);
	if (from >= 100 && from < 300)
		cr_assert_eq(limited_column(s, "f1", COLUMN_sleep), to - from);
	snapshot_free(s);
	limited_drop(p);
}

Test(limited, waits_are_handed_over)
{
	static const uint64_t waits[][2] = {
		{20, 60},   /* before */
		{20, 200},  /* from before into it */
		{20, 400},  /* all the time of the stretch */
		{150, 200}, /* in it */
		{150, 400}, /* from in it until later */
		{350, 400}, /* later */
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		for (int light = 0; light <= 1; light++)
			sleep_beside_a_stretch(waits[i][0], waits[i][1], light);
}

/* Two stretches with nothing between them, and threads that were not known before. */
Test(limited, waits_in_two_stretches)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_sample(p, 1, 1);
	out(p, 1);
	for (int i = 0; i < 2; i++) {
		limited_now += 100;
		limited_begin(p, 0, false);
		add_initial(p, 1, false);
		limited_now += 50;
		limited_keep(p, true);
	}
	limited_now += 30;
	in(p, 1);
	s = limited_finished(p);
	limited_check_sums(s);
	cr_assert_eq(limited_column(s, NULL, COLUMN_sleep), 2 * 150 + 30);
	snapshot_free(s);
	limited_drop(p);
}

/* In windows, waits go on as between them. */
Test(limited, waits_in_windows)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_sample(p, 1, 1);
	out(p, 1);
	limited_now += 100;
	limited_begin(p, 1000, false);
	add_initial(p, 1, false);
	limited_now += 50;
	in(p, 1);
	limited_enter(p, 1, 20, 0x30, 2, 0x20);
	limited_leave(p, 1, 20, 0x30);
	out(p, 1);
	limited_now += 30;
	s = limited_finished(p);
	limited_check_sums(s);
	cr_assert_eq(limited_column(s, NULL, COLUMN_sleep), 150 + 30);
	snapshot_free(s);
	limited_end(p);
	profile_gap(p, 10);
	limited_now += 10;
	in(p, 1);
	cr_assert(limited_seen(p, 1).cpu == 20 && limited_seen(p, 2).cpu == 20);
	s = limited_finished(p);
	limited_check_sums(s);
	cr_assert_eq(limited_column(s, NULL, COLUMN_sleep), 150 + 40);
	cr_assert_eq(limited_column(s, NULL, COLUMN_other) +
			     limited_column(s, NULL, COLUMN_runnable),
		     0);
	snapshot_free(s);
	/* After the end, nothing goes on. */
	out(p, 1);
	limited_now += 7;
	profile_end(p, limited_now);
	limited_now += 100;
	in(p, 1);
	s = limited_finished(p);
	cr_assert_eq(limited_column(s, NULL, COLUMN_sleep), 150 + 40 + 7);
	snapshot_free(s);
	limited_drop(p);
}

/* Samples ------------------------------------------------------------------------------- */

/* Samples show all times but those of light stretches, whose own they are. */
Test(limited, samples)
{
	struct profile *p = limited_new();
	struct snapshot_windows w = {0};
	struct snapshot *s;
	uint64_t beside = 0;

	limited_sample(p, 1, 1); /* between windows */
	limited_begin(p, 100, false);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_sample(p, 1, 1); /* in one */
	limited_now += 90;
	limited_end(p);
	for (int light = 0; light <= 1; light++) {
		limited_begin(p, 0, false);
		limited_enter(p, 1, 10, 0x10, 0, 0);
		limited_enter(p, 1, 10, 0x20, 1, 0x10);
		for (int i = 0; i < 4 + light; i++)
			limited_sample(p, 1, 1); /* in a stretch */
		limited_leave(p, 1, 700, 0x20);
		limited_leave(p, 1, 10, 0x10);
		limited_keep(p, light);
		profile_gap(p, 100);
	}
	profile_windows(p, &w);
	cr_assert(w.samples == 2 + 4 + 5 && profile_samples(p) == 2 + 4 + 5);
	s = limited_take(p);
	cr_assert_eq(limited_sums(s, "f1").rest_cpu, (2 + 4) * LIMITED_PERIOD);
	cr_assert(limited_sums(s, "f1").cpu == 700 && limited_sums(s, "f1").calls == 1);
	cr_assert_eq(limited_sums(s, "f1").rest_calls, 1, "without its time");
	for (uint32_t f = 0; f < s->targets[0].beside.trace.n; f++)
		beside += s->targets[0].beside.trace.of[f];
	cr_assert(beside == 5 && s->targets[0].beside.trace.outside == 0);
	cr_assert_eq(s->targets[0].windows.samples, 11);
	assert_ok(snapshot_finish(s, false));
	limited_check_sums(s);
	cr_assert_eq(limited_sums(s, "f1").cpu, 700 + 6 * LIMITED_PERIOD);
	for (uint32_t f = 0; f < s->nfuncs; f++)
		if (strcmp(s->funcs[f].name, "f1") == 0)
			for (int k = SNAPSHOT_TOT_CPU; k < SNAPSHOT_FIGURES; k++)
				cr_assert_float_eq(snapshot_error(&s->funcs[f],
								  (enum snapshot_figure)k),
						   sqrt((6 + 0.7)) * LIMITED_PERIOD, 1e-6);
	snapshot_free(s);
	limited_drop(p);
}

/* What hits took in heavy stretches, whose times are not used, is not subtracted from those of light ones. */
Test(limited, hits_in_heavy_stretches)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	for (int light = 0; light <= 1; light++) {
		limited_begin(p, 0, false);
		for (int i = 0; i < (light ? 1 : 1000); i++) {
			limited_enter(p, 1, 10, 0x10, 0, 0);
			limited_leave(p, 1, light ? 700 : 50, 0x10);
		}
		limited_keep(p, light);
		profile_gap(p, 100);
	}
	s = limited_take(p);
	s->targets[0].cost = (struct cost){.known = true, .before = {20, 20}, .after = {20, 20}};
	s->targets[0].cost_scale = 1;
	assert_ok(snapshot_finish(s, false));
	limited_check_sums(s);
	cr_assert_eq(limited_sums(s, "f0").calls, 1001);
	cr_assert_eq(limited_sums(s, "f0").cpu, 700 - 40);
	snapshot_free(s);
	limited_drop(p);
}

/* They count from the moment on at which observing began, and not after its end. */
Test(limited, samples_outside)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	struct snapshot_windows w = {0};

	limited_now = 1000;
	profile_in_windows(p, limited_now);
	profile_end(p, limited_now);
	limited_sample(p, 1, 1);
	profile_windows(p, &w);
	cr_assert(w.samples == 0 && profile_samples(p) == 0);
	profile_in_windows(p, limited_now);
	limited_sample(p, 1, 1);
	profile_windows(p, &w);
	cr_assert(w.samples == 1 && profile_samples(p) == 1);
	limited_drop(p);
}

/* Windows show how a function's samples are divided between itself and the C functions that it calls. */
Test(limited, samples_of_functions_that_call_c)
{
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_METHOD};
	struct profile *p = limited_new();
	struct snapshot *s;
	uint64_t rest = 0, of_f = 0;

	e.u.method = (struct event_method){.method = 0x7000,
					   .kind = PYP_METHOD_FUNCTION,
					   .name = "len",
					   .type = "",
					   .module = ""};
	profile_event(p, &e);
	limited_begin(p, 1000, false);
	limited_enter(p, 1, 0, 0x10, 0, 0);
	limited_enter(p, 1, 0, 0x20, 1, 0x10);
	limited_now += 90;
	limited_c_call(p, PYP_REC_C_ENTER, 0x20);
	limited_now += 290;
	limited_c_call(p, PYP_REC_C_LEAVE, 0x20);
	limited_leave(p, 1, 0, 0x20);
	limited_end(p);
	for (int i = 0; i < 8; i++)
		limited_sample(p, 1, 1);
	s = limited_take(p);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		rest += s->rest[i].cpu;
		of_f += limited_is_named(s, i, "f1") ? s->rest[i].cpu : 0;
	}
	cr_assert(rest == 8 * LIMITED_PERIOD && of_f == 2 * LIMITED_PERIOD, "%lu of %lu", of_f,
		  rest);
	snapshot_free(s);
	limited_drop(p);
}

/* Snapshots ----------------------------------------------------------------------------- */

/* Two windows with 5 calls of f1 in 1 us, half of it in f1, and 9 us after each; 5 of 10 samples are in f1. */
static void windowed(struct profile *p)
{
	for (int k = 0; k < 2; k++) {
		limited_begin(p, 1000, false);
		limited_enter(p, 1, 0, 0x10, 0, 0);
		for (int i = 0; i < 5; i++) {
			limited_enter(p, 1, 100, 0x20, 1, 0x10);
			limited_leave(p, 1, 100, 0x20);
		}
		limited_end(p);
		profile_own_cpu(p, 10000);
		profile_gap(p, 9000);
		limited_now += 9000;
	}
	for (unsigned int i = 0; i < 10; i++)
		limited_sample(p, 1, 1 + i % 2);
}

/* Calls of f1 are scaled by the samples; of f2, windows have shown nothing. */
Test(limited, calls_by_samples)
{
	struct profile *p = limited_new();
	struct snapshot *s;
	struct limited_sums f1;

	windowed(p);
	profile_set_stretches(p, 300);
	cr_assert_eq(limited_seen(p, 1).calls, 5 * (1 + 4.5) + 5 * (4.5 + 1));
	s = limited_take(p);
	f1 = limited_sums(s, "f1");
	cr_assert(f1.calls == 0 && f1.cpu == 0, "nothing is exact");
	cr_assert_eq(f1.rest_cpu, 5 * LIMITED_PERIOD);
	cr_assert(f1.rest_calls > 0 && limited_sums(s, "f2").rest_calls == 0);
	cr_assert(s->targets[0].windows.sampled && s->targets[0].windows.n == 2);
	cr_assert(s->targets[0].windows.seen_cpu_ns == 2000 + 300 &&
		  s->targets[0].windows.all_cpu_ns == 20000 + 300);
	assert_ok(snapshot_finish(s, false));
	cr_assert_eq(limited_sums(s, "f1").calls, f1.rest_calls);
	for (uint32_t f = 0; f < s->nfuncs; f++)
		if (strcmp(s->funcs[f].name, "f1") == 0)
			cr_assert_gt(snapshot_error(&s->funcs[f], SNAPSHOT_CALLS), 0);
	limited_check_sums(s);
	snapshot_free(s);
	limited_drop(p);
}

static double factor_of(struct profile *p, double times, const struct cost *cost)
{
	struct snapshot *s = snapshot_new();
	double calls;

	profile_set_accuracy(p, true, times, 0.1);
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->ntargets = 1;
	s->targets[0].pid = 7;
	s->targets[0].cost = cost_scaled(cost, times);
	s->targets[0].estimate.period_ns = LIMITED_PERIOD;
	assert_ok(profile_snapshot(p, limited_now, 7, s, s->targets));
	calls = (double)limited_sums(s, "f1").rest_calls;
	snapshot_free(s);
	return calls / limited_seen(p, 1).calls;
}

/* Hits take twice the cost given to folds. What the target's cost says of it does not count once more. */
Test(limited, hits_that_took_longer)
{
	const struct cost cost = {.known = true, .before = {100, 100}, .after = {100, 100}};
	struct profile *p = limited_new();
	double got, all, intervals = 0;
	struct calls_row rows[2] = {{.cpu = 0}};

	for (int k = 0; k < 2; k++) {
		limited_begin(p, 100000000, false);
		limited_enter(p, 1, 0, 0x10, 0, 0);
		for (int i = 0; i < 1000; i++) {
			limited_enter(p, 1, 2000, 0x20, 1, 0x10);
			limited_leave(p, 1, 3000, 0x20);
		}
		limited_now += 1;
		profile_fold(
			p, &(struct evidence_window){(double)profile_window_end(p, limited_now, 1),
						     INFINITY, &cost, 2});
		profile_gap(p, 10000000);
	}
	for (int i = 0; i < 100000; i++)
		limited_sample(p, 1, 1);
	/* f0 and f1; samples are all of f1 */
	for (uint32_t i = 0; i < p->evidence.n; i++) {
		const struct evidence_node *n = &p->evidence.nodes[i];
		const uint32_t func = p->rb.tree.nodes[i].func;
		const bool of_f1 = func != SNAPSHOT_NONE &&
				   strcmp(profile_func(p, func).name, "f1") == 0;

		if (func == SNAPSHOT_NONE || func_is_pseudo(func))
			continue;
		rows[of_f1].cpu += n->cpu;
		rows[of_f1].taken += n->taken;
		rows[of_f1].intervals += n->calls;
		rows[of_f1].samples += (double)n->samples;
		intervals += of_f1 ? n->calls : 0;
	}
	rows[0].intervals += intervals;
	got = factor_of(p, 2, &cost);
	all = calls_estimate(&p->evidence,
			     &(struct calls_given){rows, 2, 200, 2, 0.1, LIMITED_PERIOD})
		      .factor;
	/* All samples are in one context, which windows have seen less than that. Twice the cost once more: 2.6 times. */
	cr_assert(got > all && got < 1.5 * all, "%g of %g", got, all);
	limited_drop(p);
}

/* The present stretch: its times count if it is light, or if there is nothing else. */
Test(limited, an_open_stretch)
{
	for (int windows = 0; windows <= 1; windows++)
		for (int light = 0; light <= 1; light++) {
			const bool counts = light || !windows;
			struct profile *p = limited_new();
			struct snapshot *s;
			uint64_t beside = 0;

			if (windows)
				profile_gap(p, 100);
			limited_begin(p, 0, false);
			limited_enter(p, 1, 10, 0x10, 0, 0);
			limited_enter(p, 1, 10, 0x20, 1, 0x10);
			limited_sample(p, 1, 1);
			limited_leave(p, 1, 300, 0x20);
			limited_now += 50;
			profile_set_accuracy(p, light, 1, 0);
			s = limited_take(p);
			cr_assert(limited_sums(s, "f1").calls == counts &&
				  limited_sums(s, "f0").calls == counts);
			cr_assert(limited_sums(s, "f1").rest_calls == !counts &&
				  limited_sums(s, "f0").rest_calls == !counts);
			cr_assert_eq(limited_sums(s, "f1").cpu, counts ? 300 : 0);
			cr_assert_eq(limited_sums(s, "f0").cpu, counts ? 10 + 50 : 0);
			cr_assert_eq(limited_sums(s, "f1").rest_cpu, counts ? 0 : LIMITED_PERIOD);
			for (uint32_t f = 0; f < s->targets[0].beside.trace.n; f++)
				beside += s->targets[0].beside.trace.of[f];
			cr_assert_eq(beside, counts);
			cr_assert_eq(s->targets[0].windows.sampled, windows);
			assert_ok(snapshot_finish(s, false));
			cr_assert_eq(limited_sums(s, "f1").calls, 1);
			snapshot_free(s);
			limited_drop(p);
		}
}

/* An open window is not in any figure yet. */
Test(limited, an_open_window)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	profile_gap(p, 100);
	limited_begin(p, 1000, false);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_enter(p, 1, 10, 0x20, 1, 0x10);
	limited_leave(p, 1, 30, 0x20);
	limited_now += 50;
	s = limited_finished(p);
	cr_assert(limited_sums(s, "f1").calls == 0 && limited_sums(s, "f1").cpu == 0);
	cr_assert(limited_sums(s, "f0").calls == 0 && limited_sums(s, "f0").cpu == 0);
	limited_check_sums(s);
	snapshot_free(s);
	limited_drop(p);
}

Test(limited, light_is_a_fifth)
{
	const struct cost cost = {.known = true, .before = {10, 10}, .after = {10, 10}};
	struct profile *p = limited_new();

	profile_begin(p, limited_now);
	profile_limit(p, &(struct profile_limit){0, &cost, false});
	for (int i = 0; i < 5; i++) {
		limited_enter(p, 1, 10, 0x10, 0, 0);
		limited_leave(p, 1, 10, 0x10);
	}
	cr_assert(profile_is_light(p, 1000) && !profile_is_light(p, 999));
	limited_drop(p);
}

/* A target that is traced as a whole, and one in windows, in this order or in the other. */
Test(limited, several_targets)
{
	for (int first = 0; first <= 1; first++) {
		struct profile *p = limited_new(), *all = profile_new(NULL, numbered_resolve, NULL);
		struct snapshot *s = snapshot_new(), *alone;
		uint64_t calls, estimated;

		windowed(p);
		profile_begin(all, 1000);
		for (int i = 0; i < 3; i++) {
			profile_send(all, limited_now += 10, PYP_REC_ENTER, 1, NUMBERED_CODE(1), 0);
			profile_send(all, limited_now += 10, PYP_REC_LEAVE, 1, 0, 0);
		}
		alone = limited_take(p);
		estimated = limited_sums(alone, "f1").rest_calls;
		cr_assert_gt(estimated, 0);
		snapshot_free(alone);
		for (int k = 0; k < 2; k++)
			limited_take_into(k == first ? p : all, s, k == first ? 7 : 8);
		calls = limited_sums(s, "f1").calls;
		cr_assert(calls == 3 && limited_sums(s, "f1").rest_calls == estimated);
		cr_assert(s->rest && s->wholes);
		assert_ok(snapshot_finish(s, false));
		cr_assert_eq(limited_sums(s, "f1").calls, 3 + estimated);
		for (uint32_t t = 0; t < s->nthreads; t++)
			if (s->threads[t].pid == 8)
				cr_assert(s->threads[t].total[SNAPSHOT_CPU] > 0 &&
					  s->threads[t].total[SNAPSHOT_CPU] <= 60);
		cr_assert(snapshot_valid(s));
		snapshot_free(s);
		profile_free(all);
		limited_drop(p);
	}
}

/* Raw times contain the probes' time where calls were traced; all that is not exact is added as well. */
Test(limited, raw)
{
	for (int raw = 0; raw <= 1; raw++) {
		struct profile *p = limited_new();
		struct snapshot *s;

		limited_begin(p, 0, false);
		for (int i = 0; i < 5; i++) {
			limited_enter(p, 1, 500, 0x10, 0, 0);
			limited_leave(p, 1, 500, 0x10);
		}
		limited_keep(p, true);
		windowed(p);
		s = limited_take(p);
		s->targets[0].cost =
			(struct cost){.known = true, .before = {20, 20}, .after = {20, 20}};
		s->targets[0].cost_scale = 1;
		assert_ok(snapshot_finish(s, raw));
		limited_check_sums(s);
		cr_assert_eq(limited_sums(s, "f1").cpu, 5 * LIMITED_PERIOD, "samples contain none");
		cr_assert(raw ? limited_sums(s, "f0").cpu == 5 * 500
			      : limited_sums(s, "f0").cpu == 5 * (500 - 40));
		cr_assert_gt(limited_sums(s, "f1").calls, 5);
		snapshot_free(s);
		limited_drop(p);
	}
}

/* An interval between two snapshots: the difference of what is exact, and of what is not. */
Test(limited, since)
{
	struct profile *p = limited_new();
	struct snapshot *a, *b, *two[2], *merged;
	uint64_t first, second;

	windowed(p);
	a = limited_take(p);
	limited_begin(p, 0, false);
	limited_enter(p, 1, 500, 0x10, 0, 0);
	limited_leave(p, 1, 500, 0x10);
	limited_keep(p, true);
	windowed(p);
	b = limited_take(p);
	first = limited_sums(a, "f1").rest_calls;
	second = limited_sums(b, "f1").rest_calls;
	cr_assert_gt(second, first);
	two[0] = a;
	two[1] = b;
	assert_ok(snapshot_merge((const struct snapshot *const *)two, 2, &merged));
	assert_ok(snapshot_finish(merged, false));
	cr_assert_eq(limited_sums(merged, "f1").calls, first + second);
	cr_assert_eq(limited_sums(merged, "f1").cpu, (5 + 10) * LIMITED_PERIOD);
	limited_check_sums(merged);
	assert_ok(snapshot_subtract(b, a));
	assert_ok(snapshot_finish(b, false));
	cr_assert_eq(limited_sums(b, "f1").calls, second - first);
	cr_assert_eq(limited_sums(b, "f1").cpu, 5 * LIMITED_PERIOD);
	cr_assert_geq(limited_sums(b, "f0").calls, 1);
	limited_check_sums(b);
	snapshot_free(merged);
	snapshot_free(a);
	snapshot_free(b);
	limited_drop(p);
}

/* A kernel or an interpreter without stacks of waits: nothing is said about waiting, and nothing breaks. */
Test(limited, without_walks)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	struct snapshot *s;

	limited_now = 1000;
	profile_in_windows(p, limited_now);
	out(p, 1);
	limited_now += 100;
	limited_begin(p, 0, false);
	add_initial(p, 1, false);
	limited_now += 50;
	in(p, 1);
	limited_leave(p, 1, 30, 0x20);
	out(p, 1);
	limited_keep(p, true);
	limited_begin(p, 100, true);
	add_initial(p, 1, false);
	limited_now += 10;
	in(p, 1);
	limited_leave(p, 1, 50, 0x10);
	limited_end(p);
	limited_sample(p, 1, 1);
	s = limited_finished(p);
	for (uint32_t i = 0; i < s->nnodes; i++)
		cr_assert_eq(s->nodes[i].self[SNAPSHOT_WALL], s->nodes[i].self[SNAPSHOT_CPU]);
	cr_assert_eq(limited_sums(s, "f1").cpu, 30 + LIMITED_PERIOD);
	snapshot_free(s);
	profile_end(p, limited_now);
	limited_drop(p);
}
