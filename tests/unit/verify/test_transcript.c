// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify/transcript: what the program has to do is accepted when it is played back, and whatever is
 * missing, too much, of another kind, of another function or called by another one is not.
 */
#include "verify/transcript.h"

#include "harness/test.h"

#define MAX_EVENTS 60000
#define FRAME(i)   (0x7f0000001000ull + (i)*0x100)
#define CODE(i)	   (0x560000000000ull + (i)*0x200)
#define NAMES	   400

/* Events as a probe would report them. */
struct play {
	struct event v[MAX_EVENTS];
	size_t n;
	char names[NAMES][24];
	bool gone[NAMES];
	uint32_t nnames;
	uint64_t open[64]; /* frames */
	uint32_t depth;
	uint64_t next_frame;
	uint32_t tid;
};

static const struct script_part few[] = {
	{" <wait >one >gen ~gen <one", 1, 0},
	{" >gen ~gen >rec >rec <rec <rec", 2, 0},
	{" >only:11 <only:11 >new <new", 1, 0},
	{" >later <later", 1, 12},
	{" ^gen >leaf !leaf !gen ><x> <<x> -<x>", 1, 0},
	{NULL, 0, 0},
};
static const struct script_part second[] = {{" >worker <worker", 1, 0}, {NULL, 0, 0}};

static struct plan plan = {.nsites = 1, .sites[0].role = "a site"};
static struct play play;

static struct event *add(uint8_t type)
{
	cr_assert_lt(play.n, (size_t)MAX_EVENTS);
	play.v[play.n] = (struct event){.type = type, .tid = play.tid};
	return &play.v[play.n++];
}

/* What a thing of that name is known by; announced when it is new. */
static uint64_t known_by(const char *name, size_t n, bool method)
{
	struct event *e;

	for (uint32_t i = 0; i < play.nnames; i++)
		if (!play.gone[i] && strlen(play.names[i]) == n &&
		    memcmp(play.names[i], name, n) == 0)
			return CODE(i);
	cr_assert_lt(play.nnames, (uint32_t)NAMES);
	memcpy(play.names[play.nnames], name, n);
	play.names[play.nnames][n] = '\0';
	if (method) {
		e = add(PYP_REC_METHOD);
		e->u.method = (struct event_method){.method = CODE(play.nnames),
						    .name = play.names[play.nnames]};
		return CODE(play.nnames++);
	}
	e = add(PYP_REC_STRING);
	e->u.string = (struct event_string){
		.code = CODE(play.nnames),
		.which = PYP_STR_NAME,
		.kind = 1,
		.bytes = (uint32_t)n,
		.units = (uint32_t)n,
		.data = (const uint8_t *)play.names[play.nnames],
	};
	return CODE(play.nnames++);
}

static void enter(uint8_t type, uint64_t code)
{
	struct event *e = add(type);

	e->u.call.frame = FRAME(play.next_frame++);
	e->u.call.code = code;
	e->u.call.caller = play.depth ? play.open[play.depth - 1] : 0;
	play.open[play.depth++] = e->u.call.frame;
}

static void c_event(uint8_t type, uint64_t method)
{
	struct event *e = add(type);

	e->u.c_call.frame = play.open[play.depth - 1];
	e->u.c_call.method = method;
}

static void play_token(const char *at, size_t n)
{
	uint64_t code = known_by(at + 1, n - 1, strchr("()+", *at));

	switch (*at) {
	case '(':
		c_event(PYP_REC_C_ENTER, code);
		break;
	case ')':
		c_event(PYP_REC_C_LEAVE, 0);
		break;
	case '+':
		c_event(PYP_REC_C_INSTANT, code);
		break;
	case '>':
		enter(PYP_REC_ENTER, code);
		break;
	case '^':
		enter(PYP_REC_THROW, code);
		break;
	case '-':
		add(PYP_REC_CODE_FREE)->u.code.code = code;
		/* Another one of the name will be another code object. */
		play.gone[(code - CODE(0)) / 0x200] = true;
		break;
	default:
		add(*at == '~' ? PYP_REC_YIELD : PYP_REC_LEAVE)->u.call.frame =
			play.open[--play.depth];
	}
}

static void play_part(const char *at, unsigned int minor)
{
	while (*(at += strspn(at, " "))) {
		size_t n = strcspn(at, " :");
		const char *rest = at + n;
		unsigned long until = 99;

		if (*rest == ':')
			until = strtoul(rest + 1, (char **)&rest, 10);
		if (minor <= until)
			play_token(at, n);
		at = rest;
	}
}

static void play_parts(const struct script_part *p, unsigned int minor)
{
	for (; p->events; p++)
		for (unsigned int i = 0; i < p->times && minor >= p->since; i++)
			play_part(p->events, minor);
}

static struct pyp_chain_frame first_frames[2];

/* The first thread is found in wait(), called by the module; the second starts from nothing. */
static void play_all(const struct script_part *a, const struct script_part *b, unsigned int minor)
{
	struct event *e;

	memset(&play, 0, sizeof(play));
	play.tid = 100;
	first_frames[1] = (struct pyp_chain_frame){FRAME(1000), known_by("<module>", 8, false)};
	first_frames[0] = (struct pyp_chain_frame){FRAME(1001), known_by("wait", 4, false)};
	e = add(PYP_REC_CHAIN);
	e->u.chain =
		(struct event_chain){.count = 2, .flags = PYP_CHAIN_LAST, .frames = first_frames};
	play.open[play.depth++] = FRAME(1000);
	play.open[play.depth++] = FRAME(1001);
	play_parts(a, minor);
	play.tid = 101;
	play.depth = 0;
	play_parts(b, minor);
}

static struct layout layout_of(unsigned int minor)
{
	return *layout_find(3, minor);
}

static bool accepted_as(const struct layout *l, bool whole, char *why, size_t size)
{
	const struct transcript_opts o = {
		.layout = l,
		.plan = &plan,
		.parts = {whole ? NULL : few, whole ? NULL : second},
	};
	_cleanup_(transcript_freep) struct transcript *t = transcript_new(&o);

	cr_assert(t);
	for (size_t i = 0; i < play.n; i++)
		transcript_event(t, &play.v[i]);
	return transcript_right(t, why, size);
}

static bool accepted(unsigned int minor, bool whole, char *why, size_t size)
{
	const struct layout l = layout_of(minor);

	return accepted_as(&l, whole, why, size);
}

Test(transcript, what_must_be)
{
	const struct layout l = layout_of(13);
	const struct transcript_opts o = {.layout = &l, .plan = &plan, .parts = {few, second}};
	_cleanup_(transcript_freep) struct transcript *t = transcript_new(&o);
	const struct transcript_calls *c;
	char why[160] = "";
	size_t n;

	play_all(few, second, 13);
	for (size_t i = 0; i < play.n; i++)
		transcript_event(t, &play.v[i]);
	cr_assert(transcript_right(t, why, sizeof(why)), "%s", why);
	cr_assert_eq(transcript_events(t), 28 + 2);
	cr_assert_eq(transcript_sites(t, 0), 1);
	n = transcript_calls(t, &c);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(c[i].name, "rec") == 0)
			cr_assert(c[i].calls == 4 && c[i].primitive == 2);
		if (strcmp(c[i].name, "gen") == 0)
			cr_assert(c[i].calls == 4 && c[i].primitive == 4);
		if (strcmp(c[i].name, "wait") == 0)
			cr_assert_eq(c[i].calls, 0);
	}
}

Test(transcript, versions_differ)
{
	char why[160] = "";

	for (unsigned int minor = 6; minor <= 15; minor++) {
		play_all(few, second, minor);
		/* Before 3.11 there are no yields: they are ends. */
		for (size_t i = 0; i < play.n && minor < 11; i++)
			if (play.v[i].type == PYP_REC_YIELD)
				play.v[i].type = PYP_REC_LEAVE;
		cr_assert(accepted(minor, false, why, sizeof(why)), "3.%u: %s", minor, why);
		cr_assert(!accepted(minor < 12 ? 12 : 11, false, why, sizeof(why)),
			  "3.%u passes for another version", minor);
	}
}

/* The program itself: all of it has to be there. */
Test(transcript, the_whole_program)
{
	char why[160] = "";

	for (unsigned int minor = 11; minor <= 15; minor++) {
		play_all(script_main, script_worker, minor);
		cr_assert(accepted(minor, true, why, sizeof(why)), "3.%u: %s", minor, why);
	}
	cr_assert_gt(play.n, (size_t)20000);
	play.n--;
	cr_assert(!accepted(15, true, why, sizeof(why)));
	cr_assert(strstr(why, "worker and all later events are missing"), "%s", why);
}

/* Code objects that the collector frees: some, each once, whenever and in whichever thread. */
Test(transcript, code_freed_late)
{
	const struct layout *l = layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED);
	char why[160] = "";
	struct event freed;
	size_t n = 0;

	play_all(few, second, 13);
	cr_assert(accepted_as(l, false, why, sizeof(why)), "%s", why);
	for (size_t i = 0; i < play.n; i++)
		if (play.v[i].type == PYP_REC_CODE_FREE)
			freed = play.v[i];
		else
			play.v[n++] = play.v[i];
	cr_assert_eq(n, play.n - 1);
	play.n = n;
	cr_assert(!accepted_as(l, false, why, sizeof(why)));
	cr_assert_str_eq(why, "no code object was seen to be freed");
	play.v[play.n++] = freed;
	play.v[n].tid = 101;
	cr_assert(accepted_as(l, false, why, sizeof(why)), "%s", why);
	cr_assert(!accepted(13, false, why, sizeof(why)));
	for (size_t i = 0; i < n; i++)
		if (play.v[i].type == PYP_REC_STRING && play.v[i].u.string.bytes == 4 &&
		    memcmp(play.v[i].u.string.data, "leaf", 4) == 0)
			freed.u.code.code = play.v[i].u.string.code;
	play.v[play.n++] = freed;
	cr_assert(!accepted_as(l, false, why, sizeof(why)));
	cr_assert_str_eq(why, "the code of leaf was seen to be freed, and had not ended");
}

/* All of the program, when nothing is freed before its end. */
Test(transcript, the_whole_program_freed_late)
{
	const struct layout *l = layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED);
	static struct event freed[NAMES];
	size_t n = 0, nfreed = 0;
	char why[160] = "";

	play_all(script_main, script_worker, 13);
	for (size_t i = 0; i < play.n; i++)
		if (play.v[i].type == PYP_REC_CODE_FREE)
			freed[nfreed++] = play.v[i];
		else
			play.v[n++] = play.v[i];
	cr_assert_gt(nfreed, 100u);
	memcpy(&play.v[n], freed, nfreed * sizeof(*freed));
	cr_assert(accepted_as(l, true, why, sizeof(why)), "%s", why);
}

static void expect_refused(const char *what, size_t i)
{
	char why[160] = "";

	cr_expect(!accepted(13, false, why, sizeof(why)), "%s event %zu", what, i);
	cr_expect(why[0]);
}

static bool is_event(uint8_t type)
{
	return (type >= PYP_REC_ENTER && type <= PYP_REC_YIELD) || type == PYP_REC_CODE_FREE;
}

/* Any single thing that is wrong is found, wherever it is. */
Test(transcript, every_mistake)
{
	static struct play whole;
	size_t n = 0;

	play_all(few, second, 13);
	whole = play;
	for (size_t i = 0; i < whole.n; i++) {
		if (!is_event(whole.v[i].type))
			continue;
		n++;
		memmove(&play.v[i], &play.v[i + 1], (play.n - i - 1) * sizeof(*play.v));
		play.n--;
		expect_refused("without", i);
		play = whole;
		for (uint8_t type = PYP_REC_ENTER; type <= PYP_REC_YIELD; type++) {
			if (type == whole.v[i].type || whole.v[i].type == PYP_REC_CODE_FREE)
				continue;
			play.v[i].type = type;
			expect_refused("another kind at", i);
			play = whole;
		}
		if (whole.v[i].type != PYP_REC_ENTER)
			continue;
		play.v[i].u.call.caller ^= 0x100;
		expect_refused("another caller at", i);
		play = whole;
		play.v[i].u.call.code = CODE(NAMES);
		expect_refused("a nameless function at", i);
		play = whole;
		play.v[i].u.call.code = CODE(0);
		expect_refused("another function at", i);
		play = whole;
	}
	cr_assert_eq(n, 30u);
}

/* Two events that changed places are found, unless they are alike. */
Test(transcript, another_order)
{
	static struct play whole;

	play_all(few, second, 13);
	whole = play;
	for (size_t i = 0; i + 1 < whole.n; i++) {
		if (!is_event(whole.v[i].type) || !is_event(whole.v[i + 1].type) ||
		    whole.v[i].tid != whole.v[i + 1].tid)
			continue;
		play.v[i] = whole.v[i + 1];
		play.v[i + 1] = whole.v[i];
		expect_refused("another order at", i);
		play = whole;
	}
}

/* What CPython does besides, and is no mistake. */
Test(transcript, habits)
{
	static struct play whole;
	char why[160];

	play_all(few, second, 13);
	whole = play;
	for (size_t i = 0; i < whole.n; i++) {
		if (whole.v[i].type != PYP_REC_ENTER)
			continue;
		/* RESUME_CHECK that falls back: the same entry twice. */
		memmove(&play.v[i + 1], &play.v[i], (play.n - i) * sizeof(*play.v));
		play.n++;
		cr_expect(accepted(13, false, why, sizeof(why)), "twice: %s", why);
		play = whole;
	}
}

/* A debugger's own function may run any number of times, but as a function does. */
Test(transcript, tracers)
{
	static const struct script_part parts[] = {{" <wait >one", 1, 0}, {NULL, 0, 0}};
	const struct layout l = layout_of(13);
	const struct transcript_opts o = {.layout = &l, .plan = &plan, .parts = {parts, NULL}};
	_cleanup_(transcript_freep) struct transcript *t = transcript_new(&o);
	char why[160];

	play_all((const struct script_part[]){{" <wait >one >tracer <tracer >tracer <tracer", 1, 0},
					      {NULL, 0, 0}},
		 (const struct script_part[]){{NULL, 0, 0}}, 13);
	for (size_t i = 0; i < play.n; i++)
		transcript_event(t, &play.v[i]);
	cr_expect(transcript_right(t, why, sizeof(why)), "%s", why);
	transcript_event(t, &play.v[play.n - 1]);
	cr_expect(!transcript_right(t, why, sizeof(why)), "it ended twice");
}

Test(transcript, more_than_there_may_be)
{
	char why[160];

	play_all(few, second, 13);
	play.v[play.n] = play.v[play.n - 1];
	play.v[play.n].tid = 102;
	play.n++;
	cr_expect(!accepted(13, false, why, sizeof(why)));
	cr_expect(strstr(why, "more threads"), "%s", why);
	play_all(few, second, 13);
	for (uint32_t i = 0; i < 600; i++) {
		struct event *e = add(PYP_REC_STRING);

		e->u.string = (struct event_string){.code = CODE(1000 + i),
						    .which = PYP_STR_NAME,
						    .kind = 1,
						    .bytes = 1,
						    .units = 1,
						    .data = (const uint8_t *)"x"};
	}
	cr_expect(!accepted(13, false, why, sizeof(why)));
	cr_expect(strstr(why, "more code objects"), "%s", why);
}

/* ---- calls of C functions ---------------------------------------------------------------- */

#define CALLING " >c_f (len )len +append (sorted >c_key <c_key )sorted <c_f >other"

static const struct script_part calling[] = {{CALLING " <other", 2, 0}, {NULL, 0, 0}};
/* The other function calls as well. */
static const struct script_part played[] = {{CALLING " (len )len <other", 2, 0}, {NULL, 0, 0}};

static bool is_c_event(const struct event *e)
{
	return e->type >= PYP_REC_C_ENTER && e->type <= PYP_REC_C_INSTANT;
}

/* Play all but event number `without`; that one as another type, if there is one. */
static bool right_but(size_t without, uint8_t type)
{
	const struct layout l = layout_of(13);
	const struct transcript_opts o = {.layout = &l, .plan = &plan, .parts = {calling, NULL}};
	_cleanup_(transcript_freep) struct transcript *t = transcript_new(&o);
	char why[160];

	for (size_t i = 0; i < play.n; i++) {
		struct event e = play.v[i];

		if (i == without && type)
			e.type = type;
		if (i != without || type)
			transcript_event(t, &e);
	}
	return transcript_right(t, why, sizeof(why));
}

/* What other functions call is not compared: tools and imports call what they like. */
Test(transcript, calls_of_c_functions)
{
	bool compared = false;
	unsigned int n = 0;

	memset(&play, 0, sizeof(play));
	play.tid = 1;
	play_parts(played, 13);
	cr_assert(right_but(SIZE_MAX, 0));
	for (size_t i = 0; i < play.n; i++) {
		const struct event *e = &play.v[i];

		if (e->type == PYP_REC_ENTER)
			compared = strcmp(play.names[(e->u.call.code - CODE(0)) / 0x200],
					  "other") != 0;
		if (!is_c_event(e))
			continue;
		cr_assert_eq(right_but(i, 0), !compared, "event %zu is missing", i);
		n += compared;
	}
	cr_assert_eq(n, 10);
	check_no_leaks();
}

/* list.append is one event or two, but not a call without an end. */
Test(transcript, c_functions_that_are_not_called)
{
	memset(&play, 0, sizeof(play));
	play.tid = 1;
	play_parts(played, 13);
	for (size_t i = 0; i < play.n; i++)
		if (play.v[i].type == PYP_REC_C_INSTANT)
			cr_assert_not(right_but(i, PYP_REC_C_ENTER));
	for (size_t i = play.n; i-- > 0;) {
		if (play.v[i].type != PYP_REC_C_INSTANT)
			continue;
		memmove(&play.v[i + 1], &play.v[i], (play.n - i) * sizeof(play.v[0]));
		play.n++;
		play.v[i].type = PYP_REC_C_ENTER;
		play.v[i + 1].type = PYP_REC_C_LEAVE;
		play.v[i + 1].u.c_call.method = 0;
	}
	cr_assert(right_but(SIZE_MAX, 0));
	check_no_leaks();
}

Test(transcript, c_functions_of_all_versions)
{
	static const struct script_part none[] = {{NULL, 0, 0}};
	char why[160] = "";

	for (unsigned int minor = 6; minor <= 15; minor++) {
		const struct layout l = layout_of(minor);
		const struct transcript_opts o = {
			.layout = &l, .plan = &plan, .parts = {script_builtins, NULL}};
		_cleanup_(transcript_freep) struct transcript *t = transcript_new(&o);

		play_all(script_builtins, none, minor);
		for (size_t i = 0; i < play.n; i++)
			transcript_event(t, &play.v[i]);
		cr_assert(transcript_right(t, why, sizeof(why)), "3.%u: %s", minor, why);
	}
	check_no_leaks();
}
