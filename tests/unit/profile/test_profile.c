// SPDX-License-Identifier: BSD-2-Clause
/* Profiles, what event scripts do not cover: names, merging, resolving, threads. */
#include "profile/profile.h"

#include <time.h>

#include "harness/numbered.h"
#include "harness/test.h"
#include "profile/profile_priv.h"

static void send_string(struct profile *p, uint64_t code, uint32_t which, unsigned int kind,
			const void *data, uint32_t bytes)
{
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_STRING};

	e.u.string = (struct event_string){
		.code = code, .which = which, .kind = (uint8_t)kind, .bytes = bytes, .data = data};
	profile_event(p, &e);
}

static void send_code(struct profile *p, uint64_t code, int32_t line)
{
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_CODE};

	e.u.code.code = code;
	e.u.code.firstlineno = line;
	profile_event(p, &e);
}

static const struct snapshot_func *only_func(const struct snapshot *s)
{
	cr_assert_eq(s->nfuncs, 1);
	return &s->funcs[0];
}

Test(names, of_all_kinds)
{
	static const uint16_t ucs2[] = {'f', 0x20ac, 0xd800};
	static const uint32_t ucs4[] = {0x1f600, 'x'};
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct snapshot *s;

	send_string(p, 5, PYP_STR_FILENAME, 1, "caf\xe9", 4);
	send_string(p, 5, PYP_STR_NAME, 2, ucs2, sizeof(ucs2));
	send_string(p, 5, PYP_STR_QUALNAME, 4, ucs4, sizeof(ucs4));
	send_code(p, 5, 77);
	profile_send(p, 10, PYP_REC_ENTER, 1, 5, 0);
	s = profile_take(p, 10);
	cr_assert_str_eq(only_func(s)->filename, "caf\xc3\xa9");
	cr_assert_str_eq(only_func(s)->name, "f\xe2\x82\xac\xef\xbf\xbd");
	cr_assert_str_eq(only_func(s)->qualname, "\xf0\x9f\x98\x80x");
	cr_assert_eq(only_func(s)->firstlineno, 77);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

static void send_names(struct profile *p, uint64_t code, const char *name, unsigned int first,
		       unsigned int end)
{
	const char *const strings[] = {
		[PYP_STR_FILENAME] = "a.py", [PYP_STR_NAME] = name, [PYP_STR_QUALNAME] = name};

	for (unsigned int i = first; i < end; i++)
		send_string(p, code, i, 1, strings[i], (uint32_t)strlen(strings[i]));
}

static void send_late(struct profile *p, uint64_t code, const char *name)
{
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_CODE, .arg = PYP_CODE_LATE};

	send_names(p, code, name, 0, name ? 2 : 1);
	e.u.code.code = code;
	e.u.code.firstlineno = 9;
	profile_event(p, &e);
	profile_send(p, 20, PYP_REC_CODE_FREE, 1, code, 0);
}

/* Calls that were recorded without a name have it from then on. */
Test(names, that_come_when_the_code_is_freed)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct snapshot *s;

	send_code(p, 8, 0);
	send_code(p, 16, 0);
	profile_send(p, 10, PYP_REC_ENTER, 1, 8, 0);
	profile_send(p, 11, PYP_REC_ENTER, 2, 16, 1);
	send_late(p, 16, "g");
	send_late(p, 8, NULL);
	s = profile_take(p, 30);
	cr_assert_eq(s->nfuncs, 2);
	for (uint32_t i = 0; i < 2; i++) {
		bool named = s->funcs[i].firstlineno == 9;

		cr_assert_str_eq(s->funcs[i].name, named ? "g" : "<unreadable>");
		cr_assert_str_eq(s->funcs[i].filename, named ? "a.py" : "<unreadable>");
	}
	cr_assert_neq(s->funcs[0].firstlineno, s->funcs[1].firstlineno);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* By the flags of their code; their frames' entries say that they can be suspended. */
Test(names, kinds_of_coroutines)
{
	static const struct {
		uint32_t flags;
		enum snapshot_coro_kind kind;
	} cases[] = {
		{0, SNAPSHOT_GENERATOR},
		{PYP_CO_COROUTINE, SNAPSHOT_COROUTINE},
		{PYP_CO_ASYNC_GENERATOR, SNAPSHOT_ASYNC_GENERATOR},
		{PYP_CO_ASYNC_GENERATOR | PYP_CO_COROUTINE, SNAPSHOT_ASYNC_GENERATOR},
	};

	for (uint64_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = profile_new(NULL, NULL, NULL);
		struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_CODE};
		struct snapshot *s;

		send_names(p, 8, "f", 0, 2);
		e.u.code.code = 8;
		e.u.code.flags = cases[i].flags;
		profile_event(p, &e);
		e = (struct event){.ts = 10, .tid = 1, .type = PYP_REC_ENTER};
		e.arg = PYP_ENTER_GENERATOR | PYP_ENTER_START;
		e.u.call.frame = 1;
		e.u.call.code = 8;
		profile_event(p, &e);
		if (i == 1)
			profile_ends_are_hidden(p);
		s = profile_take(p, 30);
		cr_assert(s->ncoros == 1 && s->coros[0].kind == cases[i].kind, "%lu", i);
		cr_assert(s->coros[0].pid == 42 && s->coros[0].ends_hidden == (i == 1));
		cr_assert(s->coros[0].started == 1 && s->coros[0].running[SNAPSHOT_WALL] == 20);
		snapshot_free(s);
		profile_free(p);
	}
	check_no_leaks();
}

Test(snapshot, two_profiles_share_functions)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	struct profile *q = profile_new(NULL, numbered_resolve, NULL);
	struct snapshot *s = snapshot_new();
	struct snapshot_target t = {0};

	profile_send(p, 10, PYP_REC_ENTER, 1, NUMBERED_CODE(1), 0);
	profile_send(p, 12, PYP_REC_ENTER, 2, NUMBERED_CODE(2), 1);
	profile_send(q, 10, PYP_REC_ENTER, 1, NUMBERED_CODE(2), 0);
	profile_send(q, 15, PYP_REC_ENTER, 2, NUMBERED_CODE(3), 1);
	assert_ok(profile_snapshot(p, 20, 100, s, &t));
	assert_ok(profile_snapshot(q, 20, 200, s, &t));
	cr_assert(snapshot_valid(s));
	cr_assert_eq(s->nthreads, 2);
	cr_assert_eq(s->nfuncs, 3);
	cr_assert_eq(s->nnodes, 6);
	cr_assert_eq(t.events, 4);
	cr_assert_eq(s->threads[1].pid, 200);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_WALL], 10);
	snapshot_free(s);
	profile_free(p);
	profile_free(q);
	check_no_leaks();
}

/* Adding one process after another ---------------------------------------------------------- */

#define ADDED_FUNCS 20u

static struct profile *profile_of_child(uint32_t child)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);

	profile_keep_columns(p, COLUMN_BIT(COLUMN_vcsw));
	for (uint32_t i = 0; i < ADDED_FUNCS; i++) {
		profile_send(p, 10 + 2 * i, PYP_REC_ENTER, 1,
			     NUMBERED_CODE(child * ADDED_FUNCS + i), 0);
		profile_send(p, 11 + 2 * i, PYP_REC_LEAVE, 1, 0, 0);
	}
	return p;
}

struct added {
	double bytes, seconds;
};

static struct added add_children(uint32_t n)
{
	struct snapshot *s = snapshot_new();
	struct snapshot_target t = {0};
	struct added ret = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct profile *p = profile_of_child(i);
		struct timespec from, to;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		assert_ok(profile_snapshot(p, 1000, 100 + i, s, &t));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		ret.seconds += (double)(to.tv_sec - from.tv_sec) +
			       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
		profile_free(p);
	}
	cr_assert(snapshot_valid(s));
	cr_assert_eq(s->nthreads, n);
	cr_assert_eq(s->nfuncs, n * ADDED_FUNCS);
	ret.bytes = (double)snapshot_bytes(s);
	snapshot_free(s);
	return ret;
}

static void send_sample(struct profile *p, unsigned int func, bool before)
{
	const uint64_t codes[] = {NUMBERED_CODE(func), NUMBERED_CODE(0)};
	struct event e = {.ts = 200, .tid = 1, .type = PYP_REC_SAMPLE};

	e.u.sample = (struct event_sample){.count = 2,
					   .flags = PYP_SAMPLE_LAST,
					   .offset = PYP_SAMPLE_NO_OFFSET,
					   .codes = codes};
	if (before)
		profile_sample_before(p, &e);
	else
		profile_event(p, &e);
}

/* Of functions that were traced; f5 was not, so its samples are outside. */
Test(profile, samples_beside_a_trace)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_CODE};
	struct snapshot *s;
	uint32_t at = 0;

	e.u.code.code = NUMBERED_CODE(0);
	e.u.code.firstlineno = 77;
	profile_sample_before(p, &e);
	e.type = PYP_REC_ENTER;
	profile_sample_before(p, &e); /* nothing else is before the trace */
	for (int i = 0; i < 3; i++)
		send_sample(p, 1, true);
	send_sample(p, 5, true);
	profile_is_sampled(p);
	profile_send(p, 100, PYP_REC_ENTER, 1, NUMBERED_CODE(0), 0);
	profile_send(p, 100, PYP_REC_ENTER, 2, NUMBERED_CODE(1), 1);
	for (int i = 0; i < 7; i++)
		send_sample(p, i < 2 ? 5 : 1, false);
	s = profile_take(p, 300);
	cr_assert(s->nfuncs == 2 && s->targets[0].events == 2 && profile_samples(p) == 7);
	while (strcmp(s->funcs[at].name, "f1") != 0)
		at++;
	cr_assert(s->funcs[at].firstlineno == 1 && s->funcs[!at].firstlineno == 77);
	cr_assert(s->targets[0].beside.trace.n == 2 && s->targets[0].beside.before.n == 2);
	cr_assert(s->targets[0].beside.trace.of[at] == 5 &&
		  s->targets[0].beside.trace.of[!at] == 0);
	cr_assert_eq(s->targets[0].beside.trace.outside, 2);
	cr_assert_eq(s->targets[0].beside.before.of[at], 3);
	cr_assert_eq(s->targets[0].beside.before.outside, 1);
	snapshot_free(s);
	/* Those from before stay. */
	profile_clear(p, 400);
	s = profile_take(p, 400);
	cr_assert_eq(s->targets[0].beside.before.of[0] + s->targets[0].beside.before.of[1], 3);
	cr_assert_eq(s->targets[0].beside.trace.of[0] + s->targets[0].beside.trace.of[1], 0);
	cr_assert_eq(s->targets[0].beside.trace.outside, 0);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Of all threads, since the last clear. */
Test(profile, cpu)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint64_t sum = 0;

	profile_begin(p, 1000);
	profile_send(p, 1000, PYP_REC_ENTER, 1, NUMBERED_CODE(0), 0);
	profile_send(p, 1000, PYP_REC_ENTER, 2, NUMBERED_CODE(1), 0);
	profile_send(p, 1300, PYP_REC_LEAVE, 1, 0, 0);
	profile_end(p, 1500);
	s = profile_take(p, 1500);
	for (uint32_t i = 0; i < s->nthreads; i++)
		sum += s->threads[i].total[SNAPSHOT_CPU];
	cr_assert(sum > 0, "%u threads", s->nthreads);
	cr_assert_eq(profile_cpu(p), sum);
	profile_clear(p, 1500);
	cr_assert_eq(profile_cpu(p), 0);
}

/*
 * Memory and time are proportional to the total size, even if each child has different functions.
 */
Test(snapshot, many_profiles_are_linear)
{
	struct added few = add_children(200), many = add_children(1600);

	cr_expect(many.bytes < 24 * few.bytes, "8 times as many take %.1f times the memory",
		  many.bytes / few.bytes);
	cr_expect(many.seconds < 32 * few.seconds, "8 times as many take %.1f times the time",
		  many.seconds / few.seconds);
	check_no_leaks();
}

static void add_functions(struct snapshot *s, unsigned int n)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);
	struct snapshot_target t = {0};

	for (unsigned int i = 0; i < n; i++) {
		profile_send(p, 10 + i, PYP_REC_ENTER, 1, NUMBERED_CODE(i), 0);
		profile_send(p, 10 + i, PYP_REC_LEAVE, 1, 0, 0);
	}
	assert_ok(profile_snapshot(p, 2000, 7, s, &t));
	profile_free(p);
}

/* The index of functions becomes larger when there are some in it. */
Test(snapshot, more_profiles_share_functions)
{
	for (unsigned int n = 100; n <= 250; n += 10) {
		struct snapshot *s = snapshot_new();

		add_functions(s, n);
		add_functions(s, n + 200);
		add_functions(s, n + 200);
		cr_assert_eq(s->nfuncs, n + 200, "%u, not %u", s->nfuncs, n + 200);
		snapshot_free(s);
	}
	check_no_leaks();
}

static void count_thread(void *ctx, uint32_t tid)
{
	uint32_t *sum = ctx;

	*sum += tid;
}

Test(threads, foreach_and_names)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct initial_stack initial = {.tid = 7,
					.name = "a name that is longer than any that fits"};
	struct snapshot *s;
	uint32_t sum = 0;

	profile_begin(p, 5);
	profile_add_initial(p, 6, &initial);
	profile_send(p, 10, PYP_REC_ENTER, 1, 5, 0);
	profile_set_thread_name(p, 1, "main");
	profile_foreach_thread(p, count_thread, &sum);
	cr_assert_eq(sum, 7 + 1);
	s = profile_take(p, 20);
	cr_assert_str_eq(s->threads[0].name, "a name that is longer than any ");
	cr_assert_str_eq(s->threads[1].name, "main");
	cr_assert_eq(s->threads[0].start_ns, 5);
	cr_assert_eq(s->threads[1].end_ns, 20);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}
