// SPDX-License-Identifier: BSD-2-Clause
/*
 * stack/watch: the events reported to a watcher, one script each. Whatever happens, and however
 * often the watcher refuses events, they are balanced, in order, and agree with the profile's own
 * counts.
 */
#include "stack/watch.h"

#include <errno.h>

#include "base/wait.h"
#include "harness/event_script.h"
#include "harness/test.h"

/* A watcher that records and checks the reported events. */
struct listener {
	struct profile *p;
	FILE *out; /* NULL: only check */
	uint64_t calls, dropped, reported;
	unsigned int refuse; /* refuse every n-th event; 0: none */
	bool deaf;
	struct {
		uint32_t func[4096], n;
		uint64_t frame[4096];
		uint64_t ts, cpu;
		bool named;
	} t[8];
};

static void check_reported(struct listener *l, const struct watch_event *e)
{
	int step = watch_kind_step(e->kind);

	cr_assert(e->tid < 8);
	cr_assert(e->kind == WATCH_THREAD ||
		  (e->ts >= l->t[e->tid].ts && e->cpu >= l->t[e->tid].cpu));
	l->t[e->tid].ts = e->ts;
	l->t[e->tid].cpu = e->cpu;
	if (e->kind == WATCH_THREAD) {
		cr_assert(e->name && (l->t[e->tid].n == 0 || l->refuse));
		l->t[e->tid].n = 0;
		l->t[e->tid].named = true;
	}
	cr_assert(l->t[e->tid].named);
	if (step > 0) {
		uint32_t n = l->t[e->tid].n++;

		cr_assert(e->caller == (n ? l->t[e->tid].func[n - 1] : WATCH_NO_FUNC));
		l->t[e->tid].func[n] = e->func;
		l->t[e->tid].frame[n] = e->frame;
	} else if (step < 0) {
		uint32_t n = l->t[e->tid].n;

		cr_assert(n > 0);
		cr_assert(e->caller == (n > 1 ? l->t[e->tid].func[n - 2] : WATCH_NO_FUNC));
		cr_assert_eq(l->t[e->tid].func[n - 1], e->func);
		cr_assert_eq(l->t[e->tid].frame[n - 1], e->frame);
		l->t[e->tid].n--;
	} else {
		cr_assert(e->func == WATCH_NO_FUNC && e->caller == WATCH_NO_FUNC && !e->frame);
	}
	l->calls += watch_kind_is_call(e->kind);
	l->dropped += e->kind == WATCH_DROPPED ? e->count : 0;
}

static bool hear(void *ctx, const struct watch_event *e)
{
	struct listener *l = ctx;

	l->reported++;
	if (l->deaf || (l->refuse && l->reported % l->refuse == 0))
		return false;
	check_reported(l, e);
	if (!l->out || e->kind == WATCH_THREAD)
		return true;
	fprintf(l->out, "T%u %llu %s", e->tid, (unsigned long long)e->ts, watch_kind_name(e->kind));
	if (e->func != WATCH_NO_FUNC)
		fprintf(l->out, " %s", profile_func(l->p, e->func).name);
	if (e->count)
		fprintf(l->out, " %llu", (unsigned long long)e->count);
	if (e->raised)
		fputs(" raised", l->out);
	if (e->kind == WATCH_WAIT)
		fprintf(l->out, " %s", wait_name(e->why));
	fputc('\n', l->out);
	return true;
}

static bool hears(void *ctx)
{
	return !((struct listener *)ctx)->deaf;
}

static struct watcher watcher_of(struct listener *l)
{
	return (struct watcher){.fn = hear, .ready = hears, .ctx = l, .until_ns = UINT64_MAX};
}

/* The script before watching, the script during it, and the expected events. */
static void expect(const char *before, const char *script, uint64_t from, uint64_t until,
		   const char *expected)
{
	struct event_script *es = event_script_new(NULL);
	struct listener l = {.p = event_script_profile(es)};
	struct watcher w = watcher_of(&l);
	char *text = NULL;
	size_t n;

	w.from_ns = from;
	w.until_ns = until;
	event_script_run(es, before);
	l.out = open_memstream(&text, &n);
	assert_ok(profile_keep_waits(l.p));
	assert_ok(profile_watch(l.p, &w));
	assert_err(profile_watch(l.p, &w), -EBUSY);
	event_script_run(es, script);
	profile_unwatch(l.p, until);
	fclose(l.out);
	cr_assert_str_eq(text, expected, "%s\n--- gives\n%s--- not\n%s", script, text, expected);
	free(text);
	event_script_free(es);
	check_no_leaks();
}

Test(watch, calls_and_returns)
{
	expect("", "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2; T1 +5 leave 1", 0, 2000,
	       "T1 1000 call f\nT1 1005 call g\nT1 1010 return g\nT1 1015 return f\n");
}

Test(watch, what_runs_at_both_ends)
{
	expect("T1 enter 1 f; T1 +5 enter 2 g 1; T2 enter 9 h", "T1 +5 leave 2; T1 +5 enter 3 g 1",
	       1006, 1020,
	       "T1 1006 open f\nT1 1006 open g\nT2 1006 open h\n"
	       "T1 1010 return g\nT1 1015 call g\n"
	       "T1 1020 close g\nT1 1020 close f\nT2 1020 close h\n");
}

Test(watch, the_window)
{
	/* before the window, in it, after it */
	expect("", "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2; T1 +5 leave 1", 1003, 1012,
	       "T1 1003 call f\nT1 1005 call g\nT1 1010 return g\nT1 1012 close f\n");
}

/* An event at its end is in it; a frame pushed before it is there from its beginning on. */
Test(watch, ends_of_the_window)
{
	expect("", "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2; T1 +1 leave 1", 1005, 1010,
	       "T1 1005 call f\nT1 1005 call g\nT1 1010 return g\nT1 1010 close f\n");
	expect("", "T1 enter 1 f; T1 +1 exit", 0, 1000, "T1 1000 call f\nT1 1000 close f\n");
}

Test(watch, exceptions)
{
	expect("",
	       "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 leave 2 raised\n"
	       "T1 +1 enter 2 g 1; T1 +1 leave 2 raised; T1 +1 leave 1",
	       0, 1010,
	       "T1 1000 call f\nT1 1001 call g\nT1 1002 call h\nT1 1003 unwind h\n"
	       "T1 1003 return g raised\nT1 1004 call g\nT1 1005 return g raised\n"
	       "T1 1006 return f\n");
}

/* They are reported like Python functions. */
Test(watch, c_functions_and_collections)
{
	expect("",
	       "T1 enter 1 f; T1 +1 c-enter 1 len; T1 +1 c-leave 1; T1 +1 c-instant 1 abs\n"
	       "T1 +1 gc-start 0 1; T1 +1 gc-stop 0; T1 +1 gc-stop 0; T1 +1 leave 1",
	       0, 2000,
	       "T1 1000 call f\nT1 1001 call <built-in method len>\n"
	       "T1 1002 return <built-in method len>\nT1 1003 call <built-in method abs>\n"
	       "T1 1003 return <built-in method abs>\nT1 1004 call <gc generation 0>\n"
	       "T1 1005 return <gc generation 0>\nT1 1007 return f\n");
}

/* Waits that end, with their reasons; one whose end was not reported ends with the next event. */
Test(watch, waits)
{
	expect("",
	       "T1 enter 1 f; T1 +5 out lock; T1 +90 in; T1 +1 out sleep; T1 +20 enter 2 g 1\n"
	       "T1 +1 leave 2; T1 +1 leave 1",
	       0, 2000,
	       "T1 1000 call f\nT1 1095 wait lock\nT1 1116 wait sleep\nT1 1116 call g\n"
	       "T1 1117 return g\nT1 1118 return f\n");
}

/* Another function in the memory of a suspended generator is no resumption. */
Test(watch, memory_of_a_generator_is_used_again)
{
	expect("",
	       "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 yield 2; T1 +1 enter 2 h 1; T1 +1 yield 2\n"
	       "T1 +1 enter 2 g 1; T1 +1 leave 2; T1 +1 enter 2 h 1; T1 +1 leave 2",
	       0, 1010,
	       "T1 1000 call f\nT1 1001 call g\nT1 1002 yield g\nT1 1003 call h\n"
	       "T1 1004 yield h\nT1 1005 call g\nT1 1006 return g\nT1 1007 call h\n"
	       "T1 1008 return h\nT1 1010 close f\n");
}

Test(watch, kinds)
{
	for (int k = 0; k < WATCH_KIND_MAX; k++) {
		const enum watch_kind kind = (enum watch_kind)k;
		const char *name = watch_kind_name(kind);
		bool here = strcmp(name, "call") == 0 || strcmp(name, "resume") == 0 ||
			    strcmp(name, "throw") == 0;
		bool up = here || strcmp(name, "open") == 0 || strcmp(name, "switch-in") == 0;
		bool down = strcmp(name, "return") == 0 || strcmp(name, "yield") == 0 ||
			    strcmp(name, "unwind") == 0 || strcmp(name, "close") == 0 ||
			    strcmp(name, "switch-out") == 0;

		cr_assert_eq(watch_kind_is_call(kind), here, "%s", name);
		cr_assert_eq(watch_kind_step(kind), up ? 1 : down ? -1 : 0, "%s", name);
	}
	cr_assert_str_eq(watch_kind_name(WATCH_KIND_MAX), "?");
}

Test(watch, cpu_time)
{
	struct event_script *es = event_script_new(NULL);
	struct listener l = {.p = event_script_profile(es)};
	struct watcher w = watcher_of(&l);

	event_script_run(es, "T1 enter 1 f; T1 +3 out; T1 +50 in");
	assert_ok(profile_watch(l.p, &w));
	event_script_run(es, "T1 +5 enter 2 g 1; T1 +7 out; T1 +100 in; T1 +5 leave 2");
	cr_assert_eq(l.t[1].cpu, 3 + 5 + 7 + 5);
	event_script_run(es, "clear; T1 +2 leave 1");
	cr_assert_eq(l.t[1].cpu, 22, "it goes on");
	profile_unwatch(l.p, 2000);
	event_script_free(es);
	check_no_leaks();
}

Test(watch, generators)
{
	expect("",
	       "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 yield 2; T1 +1 enter 2 g 1\n"
	       "T1 +1 yield 2; T1 +1 throw 2 g 1; T1 +1 leave 2; T1 +1 enter 2 g 1",
	       0, 1010,
	       "T1 1000 call f\nT1 1001 call g\nT1 1002 yield g\nT1 1003 resume g\n"
	       "T1 1004 yield g\nT1 1005 throw g\nT1 1006 return g\nT1 1007 call g\n"
	       "T1 1010 close g\nT1 1010 close f\n");
}

Test(watch, frames_that_go_without_a_word)
{
	/* g's leave is not observed; f's next call, f's leave, or reuse of g's memory reveals it */
	expect("",
	       "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 1; T1 +1 leave 1\n"
	       "T1 +1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 2 g 1; T1 +1 enter 2 h 1",
	       0, 1010,
	       "T1 1000 call f\nT1 1001 call g\nT1 1002 unwind g\nT1 1002 call h\n"
	       "T1 1003 unwind h\nT1 1003 return f\nT1 1004 call f\nT1 1005 call g\n"
	       "T1 1007 unwind g\nT1 1007 call h\nT1 1010 close h\nT1 1010 close f\n");
}

Test(watch, greenlets)
{
	/* two stacks; a call switches back to the first, a return to the second */
	expect("",
	       "T1 enter 1 hub; T1 +1 enter 2 a 1; T1 +1 enter 10 run; T1 +1 enter 11 b 10\n"
	       "T1 +1 enter 3 c 2; T1 +1 leave 11; T1 +1 leave 10; T1 +1 leave 3",
	       0, 1010,
	       "T1 1000 call hub\nT1 1001 call a\n"
	       "T1 1002 switch-out a\nT1 1002 switch-out hub\nT1 1002 call run\n"
	       "T1 1003 call b\n"
	       "T1 1004 switch-out b\nT1 1004 switch-out run\n"
	       "T1 1004 switch-in hub\nT1 1004 switch-in a\nT1 1004 call c\n"
	       "T1 1005 switch-out c\nT1 1005 switch-out a\nT1 1005 switch-out hub\n"
	       "T1 1005 switch-in run\nT1 1005 switch-in b\nT1 1005 return b\n"
	       "T1 1006 return run\n"
	       "T1 1007 switch-in hub\nT1 1007 switch-in a\nT1 1007 switch-in c\n"
	       "T1 1007 return c\n"
	       "T1 1010 close a\nT1 1010 close hub\n");
}

Test(watch, losses)
{
	expect("", "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +5 chain resync 4=h 1=f; T1 enter 5 g 4", 0,
	       1010,
	       "T1 1000 call f\nT1 1001 call g\nT1 1006 lost\nT1 1006 close g\n"
	       "T1 1006 open h\nT1 1006 call g\n"
	       "T1 1010 close g\nT1 1010 close h\nT1 1010 close f\n");
}

Test(watch, first_sight_and_end_of_threads)
{
	expect("", "T1 chain 2=g 1=f; T1 +1 leave 2; T1 +1 exit; T1 +5 enter 1 f", 0, 1010,
	       "T1 1000 open f\nT1 1000 open g\nT1 1001 return g\nT1 1002 close f\n"
	       "T1 1007 call f\nT1 1010 close f\n");
}

Test(watch, tracing_stops_and_goes_on)
{
	expect("", "T1 enter 1 f; +5 end; +5 begin; T1 chain 1=f; T1 +1 leave 1; clear", 0, 1020,
	       "T1 1000 call f\nT1 1005 close f\nT1 1010 open f\nT1 1011 return f\n");
}

Test(watch, clearing_does_not_turn_back_the_clock)
{
	expect("T1 enter 1 f; T1 +10 out; T1 +1 in",
	       "T1 +5 enter 2 g 1; clear; T1 +1 leave 2; T1 +1 leave 1", 1011, 1020,
	       "T1 1011 open f\nT1 1016 call g\nT1 1017 return g\nT1 1018 return f\n");
}

Test(watch, entries_without_a_start_change_nothing)
{
	expect("", "T1 enter 1 f; T1 enter 1 f; T1 leave 7; T1 +1 leave 1", 0, 1010,
	       "T1 1000 call f\nT1 1001 return f\n");
}

Test(watch, a_watcher_that_cannot_listen)
{
	struct event_script *es = event_script_new(NULL);
	struct listener l = {.p = event_script_profile(es)};
	struct watcher w = watcher_of(&l);
	char *text = NULL;
	size_t n;

	l.out = open_memstream(&text, &n);
	assert_ok(profile_watch(l.p, &w));
	event_script_run(es, "T1 enter 1 f; T1 +1 enter 2 g 1");
	l.deaf = true;
	event_script_run(es, "T1 +1 leave 2; T1 +1 enter 3 h 1; T1 +1 enter 4 i 3");
	l.deaf = false;
	event_script_run(es, "T1 +1 leave 4; T1 +1 leave 3");
	cr_assert_eq(profile_watch_counts(l.p).dropped, 4);
	profile_unwatch(l.p, 1010);
	fclose(l.out);
	cr_assert_str_eq(text, "T1 1000 call f\nT1 1001 call g\n"
			       "T1 1005 dropped 4\nT1 1005 close g\nT1 1005 open h\n"
			       "T1 1006 return h\nT1 1010 close f\n");
	free(text);
	event_script_free(es);
	check_no_leaks();
}

Test(watch, stacks_too_deep)
{
	const struct profile_limits limits = {.depth = 2};
	struct event_script *es = event_script_new(&limits);
	struct listener l = {.p = event_script_profile(es)};
	struct watcher w = watcher_of(&l);

	assert_ok(profile_watch(l.p, &w));
	event_script_run(es, "T1 enter 1 f; T1 enter 2 f 1; T1 enter 3 f 2; T1 enter 4 f 3\n"
			     "T1 leave 4; T1 leave 3; T1 leave 2; T1 leave 1");
	cr_assert_eq(profile_watch_counts(l.p).truncated, 2);
	cr_assert_eq(l.calls, 2);
	profile_unwatch(l.p, 1010);
	w.until_ns = 1000;
	assert_ok(profile_watch(l.p, &w));
	event_script_run(es, "T1 enter 1 f; T1 enter 2 f 1; T1 enter 3 f 2; T1 +1 enter 4 f 3");
	cr_assert_eq(profile_watch_counts(l.p).truncated, 1, "those of later do not count");
	profile_unwatch(l.p, 1010);
	cr_assert_eq(l.t[1].n, 0);
	event_script_free(es);
	check_no_leaks();
}

/* Random events ------------------------------------------------------------------------------ */

static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 33) % n;
}

static void random_event(struct profile *p, uint64_t *now)
{
	static const uint8_t types[] = {PYP_REC_ENTER, PYP_REC_ENTER, PYP_REC_ENTER,
					PYP_REC_LEAVE, PYP_REC_LEAVE, PYP_REC_YIELD,
					PYP_REC_THROW, PYP_REC_CHAIN, PYP_REC_THREAD_EXIT};
	struct pyp_chain_frame frames[3];
	struct event e = {.tid = 1 + rnd(3), .type = types[rnd(sizeof(types))]};

	if (e.type >= PYP_REC_CHAIN && rnd(20))
		e.type = PYP_REC_ENTER;
	*now += rnd(5);
	e.ts = *now - rnd(3);
	switch (e.type) {
	case PYP_REC_CHAIN:
		for (int i = 0; i < 3; i++)
			frames[i] = (struct pyp_chain_frame){1 + rnd(12), 0x100 + rnd(4)};
		e.u.chain = (struct event_chain){
			.count = rnd(4), .flags = PYP_CHAIN_LAST | (rnd(2) ? PYP_CHAIN_RESYNC : 0)};
		e.u.chain.frames = frames;
		break;
	case PYP_REC_THREAD_EXIT:
		break;
	default:
		e.u.call.frame = 1 + rnd(12);
		e.u.call.code = 0x100 + rnd(4);
		e.u.call.caller = rnd(14);
	}
	profile_event(p, &e);
}

static void random_run(unsigned int seed, unsigned int refuse)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct listener l = {.p = p, .refuse = refuse};
	struct watcher w = watcher_of(&l);
	uint64_t now = 1000, calls = 0;

	rng = 0x9e3779b97f4a7c15ull * (seed + 1);
	profile_begin(p, now);
	for (int i = 0; i < 50; i++)
		random_event(p, &now);
	assert_ok(profile_watch(p, &w));
	for (int i = 0; i < 2000; i++) {
		uint64_t before = profile_counts(p).calls;

		random_event(p, &now);
		calls += profile_counts(p).calls - before;
		if (!rnd(200))
			profile_clear(p, now);
	}
	if (refuse)
		cr_assert(l.dropped > 0 && l.calls < calls);
	l.refuse = 0;
	profile_unwatch(p, now);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(l.t[i].n, 0, "seed %u", seed);
	if (!refuse)
		cr_assert(l.dropped == 0 && l.calls == calls, "seed %u: %llu calls, reported %llu",
			  seed, (unsigned long long)calls, (unsigned long long)l.calls);
	profile_free(p);
}

Test(watch, balanced_whatever_happens)
{
	for (unsigned int seed = 0; seed < 200; seed++)
		random_run(seed, 0);
	check_no_leaks();
}

Test(watch, balanced_however_often_it_cannot_listen)
{
	for (unsigned int seed = 0; seed < 200; seed++)
		random_run(seed, 2 + seed % 50);
	check_no_leaks();
}
