// SPDX-License-Identifier: BSD-2-Clause
/*
 * Plans for calls of C functions, of real interpreters: complete, on instruction boundaries
 * according to objdump, emulated, and disjoint from the sites of Python functions. test_damaged.c
 * has damaged interpreters.
 */
#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/plans.h"
#include "harness/test.h"
#include "harness/toy.h"
#include "plan/own_code.h"
#include "plan/plan.h"
#include "python/layout.h"

static int plan_of(const void *data, size_t size, const struct layout *l, struct plan *plan)
{
	struct diag diag = {0};
	struct image *img;
	int r;

	assert_diag_ok(image_open_bytes(data, size, "test", &img, &diag), &diag);
	r = plan_build(img, l, plan, &diag);
	image_free(img);
	return r;
}

static unsigned int count_kind(const struct plan *plan, enum pyp_site_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < plan->nnative; i++)
		n += plan->native[i].kind == kind;
	return n;
}

/*
 * The numbers in builds whose traces were compared with cProfile; others differ by copies that the
 * compiler made.
 */
static void expect_counts(const struct interpreter *py, const struct plan *plan)
{
	static const struct {
		unsigned int enter, leave;
	} least[] = {
		[6] = {4, 4},	 [7] = {7, 7},	  [8] = {12, 11},  [9] = {10, 10},  [10] = {10, 10},
		[11] = {18, 15}, [12] = {15, 12}, [13] = {14, 14}, [14] = {17, 17}, [15] = {20, 19},
	};
	unsigned int enter = count_kind(plan, PYP_SITE_C_ENTER);
	unsigned int leave = count_kind(plan, PYP_SITE_C_LEAVE);

	fprintf(stderr, "3.%-3d enter %u, instant %u, leave %u  %s\n", py->minor, enter,
		count_kind(plan, PYP_SITE_C_INSTANT), leave, py->file);
	cr_expect_eq(count_kind(plan, PYP_SITE_C_INSTANT), py->minor >= 11);
	if ((size_t)py->minor >= sizeof(least) / sizeof(*least))
		return;
	cr_expect_geq(enter, least[py->minor].enter, "%s", py->file);
	cr_expect_geq(leave, least[py->minor].leave, "%s", py->file);
	cr_expect_leq(enter, least[py->minor].enter + 12, "%s", py->file);
}

static void expect_site(const struct interpreter *py, const struct plan *plan, unsigned int i)
{
	const struct plan_site *s = &plan->native[i];

	cr_expect_eq(s->cost, PLAN_COST_EMULATED, "%s: %s is single-stepped", py->file, s->role);
	cr_expect_eq(s->has_callable, s->kind != PYP_SITE_C_LEAVE, "%s: %s", py->file, s->role);
	cr_expect(!s->has_cc || s->kind != PYP_SITE_C_LEAVE);
	for (unsigned int k = 0; k < plan->nsites; k++)
		cr_expect_neq(plan->sites[k].offset, s->offset, "%s: %s", py->file, s->role);
	for (unsigned int k = 0; k < i; k++)
		cr_expect_lt(plan->native[k].offset, s->offset, "sorted, none twice");
}

/* objdump disassembles the whole range from the first site to the last. */
static void expect_boundaries(const struct interpreter *py, const struct plan *plan)
{
	const struct plan_site *first = plan->native, *last = &plan->native[plan->nnative - 1];
	bool seen[PYP_MAX_NATIVE_SITES] = {false};
	char cmd[1200], line[512];
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx '%s'",
		 (unsigned long long)first->vaddr, (unsigned long long)last->vaddr + last->len,
		 py->file);
	f = popen(cmd, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		char *end;
		uint64_t at = strtoull(line, &end, 16);

		for (unsigned int i = 0; line[0] == ' ' && *end == ':' && i < plan->nnative; i++)
			seen[i] |= plan->native[i].vaddr == at && !strstr(end, "(bad)");
	}
	pclose(f);
	for (unsigned int i = 0; i < plan->nnative; i++)
		cr_expect(seen[i], "%s: %s at 0x%llx", py->file, plan->native[i].role,
			  (unsigned long long)plan->native[i].vaddr);
}

Test(native, real_interpreters_are_complete)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = interpreters_find(py);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&py[i]);
		static struct plan plan;
		size_t size;
		void *data;

		if (!l)
			continue;
		data = interpreter_read(&py[i], &size);
		assert_ok(plan_of(data, size, l, &plan));
		free(data);
		cr_expect_str_eq(plan.native_missing, "", "%s: %s", py[i].file,
				 plan.native_missing);
		if (!plan.nnative)
			continue;
		expect_counts(&py[i], &plan);
		for (unsigned int k = 0; k < plan.nnative; k++)
			expect_site(&py[i], &plan, k);
		expect_boundaries(&py[i], &plan);
	}
	check_no_leaks();
}

static bool is_own(const struct pyp_code_range *own, uint64_t vaddr)
{
	for (unsigned int i = 0; i < PYP_OWN_CODE; i++)
		if (vaddr - own[i].start < own[i].size)
			return true;
	return false;
}

/* The interpreter's own code contains all probes, and none of the C functions that Python calls. */
static void expect_own_code(const struct interpreter *py, const struct layout *l)
{
	static const char *const others[] = {"PyList_Sort", "PyUnicode_Join", "PyDict_New"};
	static struct plan plan;
	struct pyp_code_range own[PYP_OWN_CODE] = {0};
	struct image_symbol sym;
	struct image *img;
	size_t size;
	void *data = interpreter_read(py, &size);

	assert_ok(image_open_bytes(data, size, "test", &img, NULL));
	free(data);
	assert_ok(plan_build(img, l, &plan, NULL));
	cr_expect_gt(own_code_find(img, l, &plan, own), 0, "%s", py->file);
	for (unsigned int i = 0; i < plan.nsites; i++)
		cr_expect_eq(is_own(own, plan.sites[i].vaddr),
			     plan.sites[i].kind != PYP_SITE_CODE_FREE, "%s: %s", py->file,
			     plan.sites[i].role);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect(image_symbol(img, others[i], &sym) < 0 || !is_own(own, sym.vaddr),
			  "%s: %s", py->file, others[i]);
	image_free(img);
}

Test(native, own_code_of_real_interpreters)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = interpreters_find(py);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&py[i]);

		if (l)
			expect_own_code(&py[i], l);
	}
	check_no_leaks();
}

/* As many ranges as functions, each with the instructions from one start to the next */
static void expect_ranges(const struct toy_program *program, const struct layout *l,
			  const struct plan *plan, const unsigned int *functions, unsigned int n)
{
	struct pyp_code_range own[PYP_OWN_CODE] = {{0}};
	_cleanup_(image_freep) struct image *img = toy_image(program);

	cr_assert_eq(own_code_find(img, l, plan, own), n);
	for (unsigned int i = 0; i < n; i++)
		cr_expect(own[i].start == TOY_CODE + 40 * (uint64_t)functions[i] &&
				  own[i].size == 40,
			  "%u: 0x%llx", i, (unsigned long long)own[i].start);
}

/* 20 functions of 10 instructions; the evaluator is the second. */
Test(native, own_code_of_a_small_program)
{
	static const unsigned int starts[] = {0,   10,	20,  30,  40,  50,  60,	 70,  80,  90,
					      100, 110, 120, 130, 140, 150, 160, 170, 180, 190};
	static const unsigned int want[] = {1, 4, 2, 3, 7, 5}, few[] = {1, 4}, old[] = {1, 6, 5},
				  all[] = {1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	static uint8_t code[200][4];
	static struct plan plan;
	uint64_t data[256] = {[6] = TOY_CODE + 40 * 6};
	struct toy_program program = {TOY_CODE_OF(code), TOY_DATA_OF(data), TOY_STARTS_OF(starts),
				      .symbol = {{"_PyEval_EvalFrameDefault", TOY_CODE + 40},
						 {"_PyEval_Vector", TOY_CODE + 40 * 5 + 4},
						 {"PyFrame_Type", TOY_DATA}}};

	plan.nsites = 3;
	plan.sites[0] = (struct plan_site){.kind = PYP_SITE_LEAVE, .vaddr = TOY_CODE + 40 * 4 + 36};
	plan.sites[1] = (struct plan_site){.kind = PYP_SITE_CODE_FREE, .vaddr = TOY_CODE + 40 * 9};
	plan.sites[2] = (struct plan_site){.kind = PYP_SITE_ENTER, .vaddr = TOY_CODE + 44};
	plan.table_vaddr = TOY_DATA;
	for (unsigned int i = 0; i < 256; i++)
		data[i] = TOY_CODE + 40 * (uint64_t)(i < 100 ? 2 : i < 255 ? 3 : 7);
	expect_ranges(&program, layout_find(3, 13), &plan, want, 6);
	/* No table, and no symbol but the evaluator's */
	plan.table_vaddr = 0;
	program.symbol[1].name = "another";
	expect_ranges(&program, layout_find(3, 13), &plan, few, 2);
	/* Frames that are objects have a destructor. */
	data[6] = TOY_CODE + 40 * 6;
	program.symbol[1].name = "PyFrame_New";
	plan.nsites = 0;
	expect_ranges(&program, layout_find(3, 8), &plan, old, 3);
	/* There is room for 16. */
	plan.table_vaddr = TOY_DATA;
	for (unsigned int i = 0; i < 256; i++)
		data[i] = TOY_CODE + 40 * (uint64_t)(i % 20);
	expect_ranges(&program, layout_find(3, 13), &plan, all, 16);
	/* The table is not all in the file; there is no evaluator, or no table for unwinding. */
	program.ndata = 10;
	expect_ranges(&program, layout_find(3, 13), &plan, all, 10);
	program.nstarts = 0;
	expect_ranges(&program, layout_find(3, 13), &plan, all, 0);
	program.nstarts = 20;
	program.symbol[0].name = "other";
	expect_ranges(&program, layout_find(3, 13), &plan, all, 0);
	check_no_leaks();
}

/*
 * The plan has the reason for missing sites of C functions, and Python functions are planned as
 * before.
 */
static void expect_refused(const struct interpreter *py, const void *data, size_t size,
			   const struct layout *l, const struct plan *whole)
{
	static struct plan plan;

	assert_ok(plan_of(data, size, l, &plan));
	cr_expect_eq(plan.nnative, 0, "%s", py->file);
	cr_expect_neq(plan.native_missing[0], '\0', "%s", py->file);
	cr_expect_eq(plan.nsites, whole->nsites);
	cr_expect_eq(memcmp(plan.sites, whole->sites, sizeof(plan.sites)), 0, "%s", py->file);
}

Test(native, missing_opcodes_are_reported)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = plans_few(py);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&py[i]);
		static struct plan whole;
		struct layout damaged;
		size_t size;
		void *data;

		data = interpreter_read(&py[i], &size);
		assert_ok(plan_of(data, size, l, &whole));
		damaged = *l;
		damaged.calls.generic[1] = (uint8_t)l->op.return_value;
		expect_refused(&py[i], data, size, &damaged, &whole);
		damaged = *l;
		damaged.calls.function[0] = (uint8_t)l->op.return_value;
		expect_refused(&py[i], data, size, &damaged, &whole);
		if (l->calls.append) {
			damaged = *l;
			damaged.calls.append = l->calls.related[0];
			expect_refused(&py[i], data, size, &damaged, &whole);
		}
		free(data);
	}
	check_no_leaks();
}
