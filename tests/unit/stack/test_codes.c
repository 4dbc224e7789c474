// SPDX-License-Identifier: BSD-2-Clause
/* Announcements of code objects become functions; names that are missing are asked for. */
#include "stack/codes.h"

#include <errno.h>

#include "harness/test.h"
#include "snapshot/snapshot.h"

#define F 0x1000u /* addresses of code objects */
#define G 0x2000u
#define H 0x3000u

/* What a target's memory contains; NULL: nothing. */
struct asked {
	const char *filename, *name, *qualname;
	uint32_t flags;
	unsigned int n;
	uint64_t code, ts;
};

static struct asked asked;
static struct codes *codes;

static char *copy_of(const char *str)
{
	return str ? strdup(str) : NULL;
}

static int resolve(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	struct asked *a = ctx;

	a->n++;
	a->code = code;
	a->ts = announced_ns;
	if (!a->filename && !a->name)
		return -EIO;
	ret->filename = copy_of(a->filename);
	ret->name = copy_of(a->name);
	ret->qualname = copy_of(a->qualname);
	ret->firstlineno = 77;
	ret->flags = a->flags;
	return 0;
}

static void setup(void)
{
	asked = (struct asked){.n = 0};
	codes = calloc(1, sizeof(*codes));
	assert_ok(codes_init(codes, 1000, 1 << 20, resolve, &asked));
}

static void teardown(void)
{
	codes_deinit(codes);
	free(codes);
	check_no_leaks();
}

TestSuite(codes, .init = setup, .fini = teardown);

static void send_string(uint32_t tid, uint64_t code, uint32_t which, const char *str, uint8_t flags)
{
	const struct event_string s = {.code = code,
				       .which = which,
				       .units = (uint32_t)strlen(str),
				       .bytes = (uint32_t)strlen(str),
				       .kind = 1,
				       .flags = flags,
				       .data = (const uint8_t *)str};

	codes_string(codes, tid, &s);
}

/* Strings `first` to before `end` of a code object with this name. */
static void send_names(uint32_t tid, uint64_t code, const char *name, unsigned int first,
		       unsigned int end)
{
	const char *const strings[] = {
		[PYP_STR_FILENAME] = "a.py", [PYP_STR_NAME] = name, [PYP_STR_QUALNAME] = name};

	for (unsigned int i = first; i < end; i++)
		send_string(tid, code, i, strings[i], 0);
}

static void expect(uint64_t code, const char *filename, const char *name, const char *qualname,
		   int32_t line)
{
	struct func_identity id;
	uint32_t func;

	cr_assert(funcs_find(&codes->funcs, code, &func));
	id = funcs_identity(&codes->funcs, func);
	cr_assert_str_eq(id.filename, filename);
	cr_assert_str_eq(id.name, name);
	cr_assert(qualname ? id.qualname && strcmp(id.qualname, qualname) == 0 : !id.qualname);
	cr_assert_eq(id.firstlineno, line);
}

static uint32_t flags_of(uint64_t code)
{
	uint32_t func;

	cr_assert(funcs_find(&codes->funcs, code, &func));
	return codes->funcs.list[func].flags;
}

static bool is_known(uint64_t code)
{
	uint32_t func;

	return funcs_find(&codes->funcs, code, &func);
}

Test(codes, announced)
{
	send_names(1, F, "f", 0, 3);
	send_names(2, G, "g", 0, 2);
	cr_assert_eq(codes->npending, 2);
	codes_code(codes, 5, 2, G, 20, 7);
	codes_code(codes, 6, 1, F, 10, 3);
	expect(F, "a.py", "f", "f", 10);
	expect(G, "a.py", "g", NULL, 20);
	cr_assert(flags_of(F) == 3 && flags_of(G) == 7);
	cr_assert(!codes->npending && !codes->unreadable && !asked.n);
	/* A number that no string has is ignored, and a string that is repeated replaces the first. */
	send_string(1, H, CODES_STRINGS, "x", 0);
	cr_assert_eq(codes->npending, 0);
	send_names(1, H, "x", 0, 3);
	send_names(1, H, "h", 0, 3);
	codes_code(codes, 7, 1, H, 30, 0);
	expect(H, "a.py", "h", "h", 30);
}

/* Strings that could not be read are asked for, those that could be are kept. */
Test(codes, unreadable)
{
	asked = (struct asked){.filename = "there.py", .name = "t", .qualname = "C.t"};
	for (uint32_t which = 0; which < 3; which++) {
		static const char *const sent[] = {"a.py", "f", "C.f"};

		for (uint32_t i = 0; i < 3; i++)
			send_string(1, F + which, i, sent[i],
				    i == which ? PYP_STRING_UNREADABLE : 0);
		codes_code(codes, 5, 1, F + which, 10, 0);
	}
	expect(F, "there.py", "f", "C.f", 10);
	cr_assert(asked.ts == 5 && asked.n == 2 && asked.code == F + 1);
	expect(F + 1, "a.py", "t", "C.f", 10);
	/* Not all code objects have a qualified name. */
	expect(F + 2, "a.py", "f", NULL, 10);
	cr_assert_eq(codes->unreadable, 0);
	/* Nothing was announced at all. */
	codes_code(codes, 5, 1, G, 20, 0);
	expect(G, "there.py", "t", "C.t", 20);
	cr_assert_eq(asked.n, 3);
}

Test(codes, unreadable_for_good)
{
	send_string(1, F, PYP_STR_NAME, "f", 0);
	codes_code(codes, 5, 1, F, 10, 0);
	expect(F, "<unreadable>", "f", NULL, 10);
	cr_assert_eq(codes->unreadable, 1);
	send_string(1, G, PYP_STR_FILENAME, "a.py", 0);
	codes_code(codes, 5, 1, G, 20, 0);
	expect(G, "a.py", "<unreadable>", NULL, 20);
	cr_assert_eq(codes->unreadable, 2);
	codes_code(codes, 5, 1, H, 30, 0);
	expect(H, "<unreadable>", "<unreadable>", NULL, 30);
	cr_assert_eq(codes->unreadable, 3);
	codes->resolve = NULL;
	codes_code(codes, 5, 1, H + 1, 40, 0);
	cr_assert(codes->unreadable == 4 && asked.n == 3);
}

/* Of strings that did not fit their records, the rest is asked for, if it begins with what is known. */
Test(codes, names_that_were_cut)
{
	static const char *const cut[] = {"abc.", "fu", "C.fu"};

	asked = (struct asked){.filename = "abc.py", .name = "fun", .qualname = "C.fun"};
	for (uint32_t which = 0; which < 3; which++) {
		for (uint32_t i = 0; i < 3; i++)
			send_string(1, F + which, i, cut[i], i == which ? PYP_STRING_TRUNCATED : 0);
		codes_code(codes, 5 + which, 1, F + which, 10, 0);
		cr_assert(asked.n == which + 1 && asked.code == F + which && asked.ts == 5 + which);
	}
	expect(F, "abc.py", "fu", "C.fu", 10);
	expect(F + 1, "abc.", "fun", "C.fu", 10);
	expect(F + 2, "abc.", "fu", "C.fun", 10);
	/* Other memory by now, or none */
	asked.name = "gun";
	for (uint32_t i = 0; i < 3; i++) {
		send_string(1, G + i, PYP_STR_FILENAME, "a.py", 0);
		send_string(1, G + i, PYP_STR_NAME, "fu", PYP_STRING_TRUNCATED);
		codes_code(codes, 5, 1, G + i, 20, 0);
		expect(G + i, "a.py", "fu", NULL, 20);
		if (i == 0)
			asked.name = asked.filename = NULL;
		if (i == 1)
			asked.filename = "a.py";
	}
	/* A string that was cut, and could not be read either */
	asked.name = "g";
	send_string(1, G, PYP_STR_FILENAME, "a.py", 0);
	send_string(1, G, PYP_STR_NAME, "", PYP_STRING_TRUNCATED | PYP_STRING_UNREADABLE);
	codes_code(codes, 5, 1, G, 20, 0);
	expect(G, "a.py", "g", "C.fun", 20);
	codes->resolve = NULL;
	send_string(1, H, PYP_STR_FILENAME, "a.py", PYP_STRING_TRUNCATED);
	send_string(1, H, PYP_STR_NAME, "h", 0);
	codes_code(codes, 5, 1, H, 30, 0);
	expect(H, "a.py", "h", NULL, 30);
}

/* f's announcement, interrupted after `at` of its strings by those of g and of f itself. */
Test(codes, announcements_within_each_other)
{
	for (unsigned int at = 0; at <= 3; at++) {
		codes_forget(codes);
		send_names(1, F, "f", 0, at);
		send_names(1, G, "g", 0, 3);
		codes_code(codes, 5, 1, G, 20, 0);
		send_names(1, F, "f", 0, 3);
		codes_code(codes, 5, 1, F, 10, 1);
		send_names(1, F, "f", at, 3);
		codes_code(codes, 5, 1, F, 10, 2);
		expect(F, "a.py", "f", "f", 10);
		expect(G, "a.py", "g", "g", 20);
		cr_assert(!codes->unreadable && !codes->npending && !asked.n);
		cr_assert_eq(flags_of(F), at ? 1 : 2, "the rest of one is no announcement");
	}
}

/* A rest of an announcement that does not fit the function: the code object is another one. */
Test(codes, rests_of_others)
{
	send_names(1, F, "f", 0, 3);
	codes_code(codes, 5, 1, F, 10, 0);
	send_names(1, F, "f", 1, 3);
	codes_code(codes, 5, 1, F, 11, 0);
	expect(F, "<unreadable>", "f", "f", 11);
	cr_assert_eq(codes->unreadable, 1);
	codes_code(codes, 5, 1, F, 11, 0);
	cr_assert_eq(codes->unreadable, 1, "the end of the same, without its strings");
	for (uint32_t which = 0; which < 3; which++) {
		codes_forget(codes);
		codes->unreadable = 0;
		send_names(1, F, "f", 0, 3);
		codes_code(codes, 5, 1, F, 10, 0);
		send_string(1, F, which, "other", 0);
		codes_code(codes, 5, 1, F, 10, 0);
		cr_assert_eq(codes->unreadable, 1, "string %u", which);
		codes_forget(codes);
		send_names(1, F, "f", 0, 3);
		codes_code(codes, 5, 1, F, 10, 0);
		send_string(1, F, which, "f", PYP_STRING_UNREADABLE);
		codes_code(codes, 5, 1, F, 10, 0);
		cr_assert_eq(codes->unreadable, 2, "string %u", which);
	}
	codes_forget(codes);
	codes->unreadable = 0;
	send_names(1, G, "g", 0, 2);
	codes_code(codes, 5, 1, G, 20, 0);
	send_string(1, G, PYP_STR_QUALNAME, "g", 0);
	codes_code(codes, 5, 1, G, 20, 0);
	cr_assert_eq(codes->unreadable, 1, "it has no qualified name");
	/* Of a function that is not known, the names are missing. */
	codes_forget(codes);
	codes->unreadable = 0;
	send_names(1, G, "g", 0, 1);
	codes_code(codes, 5, 1, G, 20, 0);
	cr_assert_eq(codes->unreadable, 1);
}

/* A thread has few announcements at a time: its first one has lost its end. */
Test(codes, without_an_end)
{
	for (uint64_t i = 0; i < CODES_NESTED; i++)
		send_names(1, F + i, "f", 0, 2);
	for (uint64_t i = 0; i < CODES_NESTED; i++)
		send_names(2, G + i, "g", 0, 2);
	cr_assert_eq(codes->npending, 2 * CODES_NESTED);
	send_names(1, H, "h", 0, 2);
	cr_assert_eq(codes->npending, 2 * CODES_NESTED);
	cr_assert(codes->pending[0].code == F + 1 && codes->pending[0].tid == 1);
	codes_code(codes, 5, 1, F + 1, 10, 0);
	expect(F + 1, "a.py", "f", NULL, 10);
	codes_code(codes, 5, 1, F, 10, 0);
	expect(F, "<unreadable>", "<unreadable>", NULL, 10);
	/* The same address in another thread is another announcement. */
	codes_code(codes, 5, 2, H, 10, 0);
	expect(H, "<unreadable>", "<unreadable>", NULL, 10);
	cr_assert_eq(codes->npending, 2 * CODES_NESTED - 1);
	codes_thread_exit(codes, 2);
	cr_assert_eq(codes->npending, CODES_NESTED - 1);
	for (uint32_t i = 0; i < codes->npending; i++)
		cr_assert_eq(codes->pending[i].tid, 1);
	codes_forget(codes);
	cr_assert(codes->npending == 0 && !is_known(F));
}

Test(codes, in_more_threads_than_there_is_room_for)
{
	for (uint32_t tid = 1; tid <= CODES_PENDING; tid++)
		send_names(tid, F, "f", 0, 2);
	cr_assert(codes->npending == CODES_PENDING && codes->pending[0].tid == 1);
	send_names(CODES_PENDING + 1, F, "f", 0, 2);
	cr_assert(codes->npending == CODES_PENDING && codes->pending[0].tid == 2);
	for (uint32_t i = 0; i < CODES_PENDING; i++)
		cr_assert_eq(codes->pending[i].tid, i + 2);
	codes_code(codes, 5, CODES_PENDING + 1, F, 10, 0);
	expect(F, "a.py", "f", NULL, 10);
}

/* A function without a name gets it when its code object is freed. */
Test(codes, late_names)
{
	codes_code(codes, 5, 1, F, 10, 0);
	codes_code(codes, 5, 1, G, 20, 0);
	send_names(1, H, "h", 0, 2);
	codes_code(codes, 5, 1, H, 30, 0);
	codes_code(codes, 5, 1, H + 1, 40, 0);
	cr_assert_eq(codes->unreadable, 3);
	send_names(1, F, "f", 0, 3);
	codes_late(codes, 1, F, 11, 5);
	expect(F, "a.py", "f", "f", 11);
	cr_assert(flags_of(F) == 5 && codes->unreadable == 2);
	/* Only a part, that of another thread, or none */
	send_names(1, G, "g", 0, 1);
	codes_late(codes, 1, G, 21, 5);
	send_names(1, G, "g", 1, 2);
	codes_late(codes, 1, G, 21, 5);
	send_names(2, G, "g", 0, 2);
	codes_late(codes, 1, G, 21, 5);
	expect(G, "<unreadable>", "<unreadable>", NULL, 20);
	cr_assert(codes->npending == 1 && codes->unreadable == 2 && flags_of(G) == 0);
	/* Names that are known stay, and a code object that is not known stays so. */
	send_names(1, H, "other", 0, 2);
	codes_late(codes, 1, H, 31, 5);
	expect(H, "a.py", "h", NULL, 30);
	send_names(1, H + 2, "other", 0, 2);
	codes_late(codes, 1, H + 2, 31, 5);
	cr_assert(!is_known(H + 2) && codes->unreadable == 2 && codes->npending == 1);
	/* One of both was unreadable. */
	send_string(3, H + 3, PYP_STR_FILENAME, "a.py", 0);
	codes_code(codes, 5, 3, H + 3, 50, 0);
	send_names(3, H + 3, "k", 0, 2);
	codes_late(codes, 3, H + 3, 51, 0);
	expect(H + 3, "a.py", "k", NULL, 51);
	codes_free(codes, F);
	cr_assert(!is_known(F) && is_known(G));
}

/* Without an announcement, a name is asked for at the first use; else it is the address. */
Test(codes, never_announced)
{
	uint32_t func;

	asked = (struct asked){.filename = "there.py", .name = "t", .flags = 9};
	func = codes_func(codes, F);
	expect(F, "there.py", "t", NULL, 77);
	cr_assert(asked.ts == 0 && asked.code == F && flags_of(F) == 9 && !codes->unreadable);
	cr_assert(codes_func(codes, F) == func && asked.n == 1);
	asked.filename = asked.name = NULL;
	func = codes_func(codes, G);
	expect(G, "<unknown>", "<unknown 0x2000>", NULL, 0);
	cr_assert(codes_func(codes, G) == func && asked.n == 2 && codes->unreadable == 1);
	codes->resolve = NULL;
	codes_func(codes, H);
	expect(H, "<unknown>", "<unknown 0x3000>", NULL, 0);
	cr_assert_eq(codes->unreadable, 2);
}

static void expect_method(const struct event_method *m, const char *name)
{
	codes_method(codes, m);
	expect(m->method, SNAPSHOT_NATIVE_FILE, name, NULL, 0);
}

/* C functions have the names that cProfile gives them. */
Test(codes, methods)
{
	struct event_method m = {
		.method = F, .self_type = 0xabc, .name = "len", .type = "", .module = ""};

	expect_method(&m, "<built-in method len>");
	m.module = "builtins";
	expect_method(&m, "<built-in method builtins.len>");
	m.type = "list";
	expect_method(&m, "<method 'len' of 'list' objects>");
	m.type = "";
	m.name = "__new__";
	expect_method(&m, "<built-in method __new__ of type object at 0xabc>");
	m.name = "a\xff>";
	expect_method(&m, "<built-in method builtins.a?>>");
	cr_assert_eq(codes->unreadable, 0);
	m.unreadable = true;
	expect_method(&m, "<built-in method builtins.<unreadable>>");
	cr_assert_eq(codes->unreadable, 1);
}

/* Calls that are single events have a variant of their own, until another function has the address. */
Test(codes, instants)
{
	struct event_method m = {.method = F, .name = "len", .type = "", .module = ""};
	uint32_t whole, instant;

	codes_method(codes, &m);
	whole = codes_func(codes, F);
	instant = codes_instant(codes, F);
	cr_assert_neq(instant, whole);
	cr_assert_eq(codes_instant(codes, F), instant);
	cr_assert(codes->funcs.list[instant].instant && !codes->funcs.list[whole].instant);
	cr_assert_str_eq(funcs_identity(&codes->funcs, instant).name, "<built-in method len>");
	codes_method(codes, &m);
	cr_assert_eq(codes_func(codes, F), whole, "the same, announced again");
	m.name = "abs";
	codes_method(codes, &m);
	cr_assert_neq(codes_func(codes, F), whole);
	cr_assert_str_eq(funcs_identity(&codes->funcs, whole).name, "<built-in method len>");
	cr_assert_str_eq(funcs_identity(&codes->funcs, codes_instant(codes, F)).name,
			 "<built-in method abs>");
}

/* What is beyond the limit is one pseudo function, which is no single event. */
Test(codes, limits)
{
	codes_deinit(codes);
	assert_ok(codes_init(codes, 1, 1 << 20, NULL, NULL));
	send_names(1, F, "f", 0, 2);
	codes_code(codes, 5, 1, F, 10, 0);
	cr_assert_eq(codes_instant(codes, G), FUNC_TRUNCATED);
	cr_assert(!codes->funcs.list[FUNC_TRUNCATED].instant);
}
