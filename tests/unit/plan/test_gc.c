// SPDX-License-Identifier: BSD-2-Clause
/*
 * Plans for collections of the garbage collector, of real interpreters: as many sites that start as
 * stop, emulated, on instruction boundaries according to objdump, with a known generation. If a
 * site is missing, the plan has the reason, and functions are planned as before. test_damaged.c has
 * randomly damaged interpreters.
 */
#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/plans.h"
#include "harness/test.h"
#include "plan/arch/arch.h"
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
