// SPDX-License-Identifier: BSD-2-Clause
/*
 * Plans for collections of the garbage collector, of real interpreters: as many sites that start as
 * stop, emulated, on instruction boundaries according to objdump, with a known generation. If a
 * site is missing, the plan has the reason, and functions are planned as before. Small programs
 * (harness/toy.h) have forms that no known interpreter has. test_damaged.c has randomly damaged
 * interpreters.
 */
#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/plans.h"
#include "harness/test.h"
#include "harness/toy.h"
#include "plan/arch/arch.h"
#include "plan/gc.h"
#include "plan/plan.h"
#include "python/layout.h"

static struct plan plan, whole;

static void plan_of(const void *data, size_t size, const struct layout *l, struct plan *ret)
{
	struct diag diag = {0};
	struct image *img;

	assert_diag_ok(image_open_bytes(data, size, "test", &img, &diag), &diag);
	assert_diag_ok(plan_build(img, l, ret, &diag), &diag);
	image_free(img);
}

static unsigned int count_kind(enum pyp_site_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < plan.ngc; i++)
		n += plan.gc[i].kind == kind;
	return n;
}

static void expect_site(const struct interpreter *py, const struct plan_site *s)
{
	/* arguments: (tstate, phase, generation, ...); before 3.9 without tstate */
	const uint8_t reg = arch_native()->arg[py->minor >= 9 ? 2 : 1];

	cr_expect_eq(s->cost, PLAN_COST_EMULATED, "%s", py->file);
	cr_expect_eq(s->target, plan.gc[0].target, "%s: all call the same", py->file);
	cr_expect(!s->has_cc && !s->deref && !s->has_callable, "%s", py->file);
	cr_expect_eq(s->disp, 0, "%s: the generation is known", py->file);
	cr_expect_eq(s->reg, reg, "%s: generation in register %u", py->file, s->reg);
}

/* objdump, started where the code before the site begins, shows a call there. */
static void expect_boundary(const struct interpreter *py, const struct image *img,
			    const struct plan_site *s)
{
	char cmd[1200], line[512];
	uint64_t start;
	bool seen = false;
	FILE *f;

	assert_ok(image_function_start(img, s->vaddr, &start));
	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx '%s'",
		 (unsigned long long)start, (unsigned long long)s->vaddr + s->len, py->file);
	f = popen(cmd, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		char *end;
		uint64_t at = strtoull(line, &end, 16);

		seen |= line[0] == ' ' && *end == ':' && at == s->vaddr && strstr(end, "call");
	}
	pclose(f);
	cr_expect(seen, "%s: %s at 0x%llx", py->file, s->role, (unsigned long long)s->vaddr);
}

static void expect_plan(const struct interpreter *py, const void *data, size_t size)
{
	struct diag diag = {0};
	struct image *img;

	plan_of(data, size, interpreter_layout(py), &plan);
	cr_expect_str_eq(plan.gc_missing, "", "%s: %s", py->file, plan.gc_missing);
	fprintf(stderr, "3.%-3d start %u, stop %u  %s\n", py->minor, count_kind(PYP_SITE_GC_START),
		count_kind(PYP_SITE_GC_STOP), py->file);
	cr_expect_gt(plan.ngc, 0, "%s", py->file);
	cr_expect_eq(count_kind(PYP_SITE_GC_START), count_kind(PYP_SITE_GC_STOP), "%s", py->file);
	assert_diag_ok(image_open_bytes(data, size, "test", &img, &diag), &diag);
	for (unsigned int i = 0; i < plan.ngc; i++) {
		expect_site(py, &plan.gc[i]);
		expect_boundary(py, img, &plan.gc[i]);
	}
	image_free(img);
}

Test(gc, real_interpreters_are_complete)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = interpreters_find(py);

	for (size_t i = 0; i < n; i++) {
		size_t size;
		void *data;

		if (!interpreter_layout(&py[i]))
			continue;
		data = interpreter_read(&py[i], &size);
		expect_plan(&py[i], data, size);
		free(data);
	}
	check_no_leaks();
}

/* Nothing is planned for collections, and everything else as before. */
static void expect_missing(const struct interpreter *py, const void *data, size_t size)
{
	plan_of(data, size, interpreter_layout(py), &plan);
	cr_expect_eq(plan.ngc, 0, "%s", py->file);
	cr_expect_neq(plan.gc_missing[0], '\0', "%s", py->file);
	cr_expect_eq(plan.nsites, whole.nsites);
	cr_expect_eq(memcmp(plan.sites, whole.sites, sizeof(plan.sites)), 0, "%s", py->file);
	cr_expect_eq(plan.nnative, whole.nnative, "%s", py->file);
}

/* Replace the first character of all copies of the text, which end with NUL. */
static void replace(uint8_t *data, size_t size, const char *text, char first)
{
	const size_t n = strlen(text) + 1;
	uint8_t *at = data;

	while ((at = memmem(at, size - (size_t)(at - data), text, n)))
		*at = (uint8_t)first;
}

static void damage(const struct interpreter *py, uint8_t *data, size_t size)
{
	const struct layout *l = interpreter_layout(py);
	uint8_t *copy = malloc(size);

	cr_assert(copy);
	plan_of(data, size, l, &whole);
	memcpy(copy, data, size);
	replace(copy, size, "stop", 'S');
	expect_missing(py, copy, size);
	memcpy(copy, data, size);
	replace(copy, size, "{sisnsn}", '(');
	replace(copy, size, "{sisnsnsd}", '(');
	replace(copy, size, "{sisnsnsnsd}", '(');
	expect_missing(py, copy, size);
	/* A call to another address */
	memcpy(copy, data, size);
	copy[whole.gc[whole.ngc - 1].offset + 1] ^= 1;
	expect_missing(py, copy, size);
	free(copy);
}

Test(gc, what_is_missing_is_named)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = plans_few(py);

	for (size_t i = 0; i < n; i++) {
		size_t size;
		uint8_t *data;

		data = interpreter_read(&py[i], &size);
		damage(&py[i], data, size);
		free(data);
	}
	check_no_leaks();
}

/* ---- small programs ------------------------------------------------------------------------- */

static struct toy_rig rig;

#define START  TOY_TO_DATA(0)
#define STOP   TOY_TO_DATA(1)
#define FORMAT TOY_TO_DATA(2)

/* PyGC_Collect calls what collects (5), and that the function with the callbacks (14). */
static const uint8_t collector[][4] = {
	{TOY_RET},		   /* 0 */
	{TOY_MOV, 5, 6},	   /* 1: PyGC_Collect */
	{TOY_CALL, 0, TOY_TO(5)},  /* 2 */
	{TOY_RET},		   /* 3 */
	{TOY_NOP},		   /* 4 */
	{TOY_MOV, 2, 7},	   /* 5 */
	{TOY_ADDR, 1, START},	   /* 6 */
	{TOY_CALL, 0, TOY_TO(14)}, /* 7 */
	{TOY_CALLR, 9},		   /* 8 */
	{TOY_NOP},		   /* 9 */
	{TOY_ADDR, 1, STOP},	   /* 10 */
	{TOY_CALL, 0, TOY_TO(14)}, /* 11 */
	{TOY_RET},		   /* 12 */
	{TOY_NOP},		   /* 13 */
	{TOY_MOV4, 16, 2},	   /* 14: the third argument is the generation */
	{TOY_ADDR, 0, FORMAT},	   /* 15 */
	{TOY_MOV4, 2, 16},	   /* 16 */
	{TOY_B, 0, TOY_TO(18)},	   /* 17 */
	{TOY_CALL, 0, TOY_TO(20)}, /* 18 */
	{TOY_RET},		   /* 19 */
	{TOY_RET},		   /* 20 */
	{TOY_RET},		   /* 21: another function */
	{TOY_NOP},		   /* 22 */
	{TOY_RET},		   /* 23 */
};

#define COLLECTOR (sizeof(collector) / 4)

static struct arch search_arch;

static void plan_collector(const uint8_t (*code)[4], bool search, unsigned int nstarts)
{
	static const uint64_t texts[] = {
		0x7472617473,	    /* start */
		0x706f7473,	    /* stop */
		0x7d6e736e7369737b, /* {sisnsn} */
		0,
	};
	static const unsigned int starts[] = {0, 1, 5, 14, 20, 21};

	search_arch = toy_arch;
	search_arch.find_branch = search ? toy_find_branch : NULL;
	toy_open(&rig, &(struct toy_program){.code = code,
					     .n = COLLECTOR,
					     TOY_DATA_OF(texts),
					     .start = nstarts ? starts : NULL,
					     .nstarts = nstarts,
					     .arch = &search_arch,
					     .symbol = {{"PyGC_Collect", TOY_CODE + 4}}});
	assert_ok(gc_plan(&rig.p));
}

static void expect_gc(unsigned int i, int at, enum pyp_site_kind kind, int reg, int32_t disp)
{
	const struct plan_site *s = &rig.plan.gc[i];

	cr_assert_lt(i, rig.plan.ngc, "%s", rig.plan.gc_missing);
	cr_expect_eq(toy_site_at(s), at);
	cr_expect(s->kind == kind && s->reg == reg && s->disp == disp, "%u: %d %u %d", i, s->kind,
		  s->reg, s->disp);
	cr_expect_str_eq(s->role,
			 kind == PYP_SITE_GC_START ? "collection starts" : "collection stops");
}

static void expect_two(int start, int stop, int reg, int32_t disp)
{
	cr_expect_eq(rig.plan.ngc, 2, "%s", rig.plan.gc_missing);
	expect_gc(0, start, PYP_SITE_GC_START, reg, disp);
	expect_gc(1, stop, PYP_SITE_GC_STOP, reg, disp);
	cr_expect_str_eq(rig.plan.gc_missing, "");
	toy_close(&rig);
}

static void expect_no_gc(const char *missing)
{
	cr_expect_eq(rig.plan.ngc, 0);
	cr_expect(strstr(rig.plan.gc_missing, missing), "%s", rig.plan.gc_missing);
	cr_expect_str_eq(rig.p.missing, "");
	toy_close(&rig);
}

Test(collector, with_and_without_a_search)
{
	uint8_t code[COLLECTOR][4];

	plan_collector(collector, true, 6);
	expect_two(7, 11, 2, 0);
	plan_collector(collector, false, 6);
	expect_two(7, 11, 2, 0);
	/* It ends with a jump to the function. */
	memcpy(code, collector, sizeof(code));
	toy_change(code, 11, TOY_B, 0, 14, 0);
	plan_collector(code, true, 6);
	expect_two(7, 11, 2, 0);
	/* The generation is another argument, or unknown. */
	toy_change(code, 16, TOY_MOV4, 2, 1, 0);
	plan_collector(code, true, 6);
	expect_two(7, 11, 1, 0);
	toy_change(code, 16, TOY_MOV, 2, 9, 0);
	plan_collector(code, true, 6);
	expect_two(7, 11, 0, PYP_GC_NO_GENERATION);
	/* The function jumps to itself; that starts no collection. */
	memcpy(code, collector, sizeof(code));
	toy_change(code, 19, TOY_B, 0, 14, 0);
	plan_collector(code, true, 6);
	expect_two(7, 11, 0, PYP_GC_NO_GENERATION);
	check_no_leaks();
}

Test(collector, what_is_missing)
{
	uint8_t code[COLLECTOR][4];

	plan_collector(collector, true, 0);
	expect_no_gc("no table for unwinding");
	/* A call of it by another function, without a phase */
	memcpy(code, collector, sizeof(code));
	toy_change(code, 22, TOY_CALL, 0, 14, 0);
	toy_change(code, 21, TOY_NOP, 0, 0, 0);
	plan_collector(code, true, 6);
	expect_no_gc("phase unknown at 0x400058");
	/* One that no path leads to, but that is an instruction; then its bytes are none. */
	toy_change(code, 21, TOY_RET, 0, 0, 0);
	plan_collector(code, true, 6);
	expect_no_gc("0x400058 is unreachable");
	code[21][0] = 0;
	plan_collector(code, true, 6);
	expect_two(7, 11, 2, 0);
	/* A conditional jump */
	memcpy(code, collector, sizeof(code));
	toy_change(code, 11, TOY_BEQ, 0, 14, 0);
	plan_collector(code, false, 6);
	expect_no_gc("no probe possible");
	/* After a start there is no stop, only before it; then only one of them. */
	memcpy(code, collector, sizeof(code));
	memcpy(code[6], (const uint8_t[4]){TOY_ADDR, 1, STOP}, 4);
	memcpy(code[10], (const uint8_t[4]){TOY_ADDR, 1, START}, 4);
	plan_collector(code, true, 6);
	expect_no_gc("no stop call after 0x40002c");
	memcpy(code[10], (const uint8_t[4]){TOY_ADDR, 1, STOP}, 4);
	plan_collector(code, true, 6);
	expect_no_gc("no start call");
	/* No text, or not as an argument of the call */
	memcpy(code, collector, sizeof(code));
	memcpy(code[15], (const uint8_t[4]){TOY_ADDR, 0, STOP}, 4);
	plan_collector(code, true, 6);
	expect_no_gc("not found from PyGC_Collect");
	memcpy(code[15], (const uint8_t[4]){TOY_ADDR, 1, FORMAT}, 4);
	plan_collector(code, true, 6);
	expect_no_gc("not found from PyGC_Collect");
	memcpy(code, collector, sizeof(code));
	toy_change(code, 18, TOY_CALLR, 5, 0, 0);
	plan_collector(code, true, 6);
	expect_no_gc("not found from PyGC_Collect");
	/* PyGC_Collect leads nowhere. */
	memcpy(code, collector, sizeof(code));
	toy_change(code, 2, TOY_NOP, 0, 0, 0);
	plan_collector(code, true, 6);
	expect_no_gc("not found from PyGC_Collect");
	check_no_leaks();
}

/* The phase is set on the straight code before the call. */
Test(collector, where_the_phase_is_set)
{
	static const struct {
		uint8_t at, insn[4];
	} v[] = {
		{8, {TOY_CBNZ, 9, TOY_TO(10)}}, /* is no problem */
		{9, {TOY_CBNZ, 9, TOY_TO(11)}}, /* around it */
		{10, {TOY_LEA, 1, 9, 8}},	/* computed */
		{10, {TOY_ADDR, 3, STOP}},	/* no argument's register */
		{10, {TOY_OPAQUE}},
		{10, {TOY_CALLR, 9}},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		uint8_t code[COLLECTOR][4];

		memcpy(code, collector, sizeof(code));
		memcpy(code[v[i].at], v[i].insn, 4);
		plan_collector(code, true, 6);
		if (i == 0)
			expect_two(7, 11, 2, 0);
		else
			expect_no_gc("no stop call after 0x40001c");
	}
	check_no_leaks();
}

/* A probe for functions is at one of the calls, or one is inside of an instruction. */
Test(collector, sites_are_apart)
{
	plan_collector(collector, true, 6);
	rig.plan.sites[0] = rig.plan.gc[1];
	rig.plan.nsites = 1;
	rig.plan.ngc = 0;
	assert_ok(gc_plan(&rig.p));
	expect_no_gc("conflicts with site collection stops");
	plan_collector(collector, true, 6);
	rig.plan.native[1] = rig.plan.gc[0];
	rig.plan.nnative = 2;
	rig.plan.ngc = 0;
	assert_ok(gc_plan(&rig.p));
	expect_no_gc("conflicts with site collection starts");
	plan_collector(collector, true, 6);
	rig.plan.ngc = PYP_MAX_GC_SITES - 1;
	assert_ok(gc_plan(&rig.p));
	expect_no_gc("calls of gc.callbacks (too many)");
	check_no_leaks();
}

/* As many instructions between the first call and the second's argument, or the format and its call */
static bool is_planned(unsigned int back, unsigned int forward)
{
	static uint8_t code[256][4];
	static const uint64_t texts[] = {0x7472617473, 0x706f7473, 0x7d6e736e7369737b, 0};
	unsigned int starts[] = {1, 100}, size = 1;
	bool ret;

	memset(code, 0, sizeof(code));
	toy_change(code, 0, TOY_RET, 0, 0, 0);
	memcpy(code[size++], (const uint8_t[4]){TOY_ADDR, 1, START}, 4);
	toy_change(code, size++, TOY_CALL, 0, 100, 0);
	memcpy(code[size++], (const uint8_t[4]){TOY_ADDR, 1, STOP}, 4);
	for (unsigned int i = 0; i < back; i++)
		toy_change(code, size++, TOY_NOP, 0, 0, 0);
	toy_change(code, size++, TOY_CALL, 0, 100, 0);
	toy_change(code, size, TOY_RET, 0, 0, 0);
	size = 100;
	memcpy(code[size++], (const uint8_t[4]){TOY_ADDR, 0, FORMAT}, 4);
	for (unsigned int i = 0; i < forward; i++)
		toy_change(code, size++, TOY_NOP, 0, 0, 0);
	toy_change(code, size++, TOY_CALL, 0, 200, 0);
	toy_change(code, size, TOY_RET, 0, 0, 0);
	toy_open(&rig,
		 &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(texts), TOY_STARTS_OF(starts),
				       .symbol = {{"PyGC_Collect", TOY_CODE + 4}}});
	assert_ok(gc_plan(&rig.p));
	ret = rig.plan.ngc == 2;
	toy_close(&rig);
	return ret;
}

Test(collector, code_between_is_short)
{
	cr_expect(is_planned(47, 30));
	cr_expect_not(is_planned(48, 30));
	cr_expect_not(is_planned(47, 31));
	check_no_leaks();
}

/* PyGC_Collect reaches it over this many functions. */
static bool is_found(unsigned int functions)
{
	static const uint64_t texts[] = {0x7472617473, 0x706f7473, 0x7d6e736e7369737b, 0};
	uint8_t code[64][4] = {{TOY_RET}};
	unsigned int starts[] = {0, 40}, at = 1;
	bool ret;

	for (unsigned int i = 0; i < functions; i++, at += 2) {
		toy_change(code, at, TOY_CALL, 0, (int)at + 2, 0);
		toy_change(code, at + 1, TOY_RET, 0, 0, 0);
	}
	memcpy(code[at], (const uint8_t[4]){TOY_ADDR, 1, START}, 4);
	toy_change(code, at + 1, TOY_CALL, 0, 40, 0);
	memcpy(code[at + 2], (const uint8_t[4]){TOY_ADDR, 1, STOP}, 4);
	toy_change(code, at + 3, TOY_CALL, 0, 40, 0);
	toy_change(code, at + 4, TOY_RET, 0, 0, 0);
	memcpy(code[40], (const uint8_t[4]){TOY_ADDR, 0, FORMAT}, 4);
	toy_change(code, 41, TOY_CALL, 0, 50, 0);
	toy_change(code, 42, TOY_RET, 0, 0, 0);
	starts[0] = at;
	toy_open(&rig,
		 &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(texts), TOY_STARTS_OF(starts),
				       .symbol = {{"PyGC_Collect", TOY_CODE + 4}}});
	assert_ok(gc_plan(&rig.p));
	ret = rig.plan.ngc == 2;
	toy_close(&rig);
	return ret;
}

Test(collector, is_near)
{
	cr_expect(is_found(0));
	cr_expect(is_found(4));
	cr_expect_not(is_found(5));
	check_no_leaks();
}
