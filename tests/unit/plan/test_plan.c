// SPDX-License-Identifier: BSD-2-Clause
/*
 * Plans of real interpreters: complete, on instruction boundaries according to an independent
 * disassembler, emulated if the build allows. test_damaged.c has damaged ones.
 */
#include <unistd.h>

#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/test.h"
#include "plan/arch/arch.h"
#include "plan/plan.h"
#include "python/layout.h"

static int plan_of(const void *data, size_t size, const struct layout *l, struct plan *plan,
		   struct diag *diag)
{
	struct image *img;
	int r = image_open_bytes(data, size, "test", &img, diag);

	if (r < 0)
		return r;
	r = plan_build(img, l, plan, diag);
	image_free(img);
	return r;
}

static unsigned int count_kind(const struct plan *plan, enum pyp_site_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < plan->nsites; i++)
		n += plan->sites[i].kind == kind;
	return n;
}

static void expect_complete(const struct interpreter *py, const struct layout *l,
			    const struct plan *plan)
{
	cr_expect_str_eq(plan->missing, "");
	cr_expect_eq(count_kind(plan, PYP_SITE_CODE_FREE), 1, "%s", py->file);
	cr_expect_geq(count_kind(plan, PYP_SITE_ENTER), 1, "%s", py->file);
	cr_expect_geq(count_kind(plan, PYP_SITE_LEAVE), 1, "%s", py->file);
	if (l->model != LAYOUT_FRAME_OBJECT) {
		cr_expect_geq(count_kind(plan, PYP_SITE_YIELD), 1, "%s", py->file);
		cr_expect_geq(count_kind(plan, PYP_SITE_THROW), 1, "%s", py->file);
	}
}

/*
 * Returns whether objdump sees an instruction start at vaddr when it disassembles a range around
 * it.
 */
static bool objdump_agrees(const char *file, const struct plan_site *s)
{
	char cmd[1200], line[512], want[32];
	bool found = false;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx '%s'",
		 (unsigned long long)s->vaddr, (unsigned long long)s->vaddr + s->len, file);
	snprintf(want, sizeof(want), "%llx:\t", (unsigned long long)s->vaddr);
	f = popen(cmd, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, want) && !strstr(line, "(bad)");
	pclose(f);
	return found;
}

/*
 * Returns whether, according to objdump, no instruction follows that the kernel emulates, up to a
 * jump through a register.
 */
static bool only_stepped_to_dispatch(const char *file, const struct plan_site *s)
{
	static const char *const emulated[] = {"j", "call", "push", "nop"};
	bool over = false, found = false;
	char cmd[1200], line[512];
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx '%s'",
		 (unsigned long long)s->vaddr, (unsigned long long)s->vaddr + 256, file);
	f = popen(cmd, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		const char *insn = strstr(line, ":\t");

		if (line[0] != ' ' || !insn || over)
			continue;
		insn += strspn(insn, ":\t");
		over = strncmp(insn, "jmp ", 4) == 0 && strchr(insn, '*');
		for (size_t i = 0; !over && i < sizeof(emulated) / sizeof(*emulated); i++)
			found |= strncmp(insn, emulated[i], strlen(emulated[i])) == 0;
	}
	pclose(f);
	return over && !found;
}

/*
 * No site is single-stepped, except YIELD_VALUE of 3.13, which in all known builds is a sequence of
 * moves that ends in the jump to the next instruction's handler.
 */
static void expect_emulated(const struct interpreter *py, const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];

		if (s->cost == PLAN_COST_EMULATED)
			continue;
		cr_expect(py->minor == 13 && strcmp(s->role, "YIELD_VALUE") == 0,
			  "%s: %s is single-stepped", py->file, s->role);
		cr_expect(only_stepped_to_dispatch(py->file, s),
			  "%s: %s has an instruction that the kernel emulates", py->file, s->role);
	}
}

/* Marks are instructions of their own, which the kernel emulates, and there are enough to choose from. */
static void expect_marks(const struct interpreter *py, const void *data, size_t size,
			 const struct plan *plan)
{
	_cleanup_(image_freep) struct image *img = NULL;
	struct diag diag = {0};

	assert_diag_ok(image_open_bytes(data, size, "test", &img, &diag), &diag);
	cr_expect_geq(plan->nmarks, 60, "%s: %u marks", py->file, plan->nmarks);
	for (unsigned int i = 0; i < plan->nmarks; i++) {
		const struct plan_mark *m = &plan->marks[i];
		const uint8_t *code = NULL;
		size_t max = image_view_max(img, m->vaddr, &code);
		struct insn in;
		uint64_t offset;

		for (unsigned int k = 0; k < plan_sites(plan); k++)
			cr_expect_neq(plan_site(plan, k)->offset, m->offset, "%s", py->file);
		for (unsigned int k = 0; k < i; k++)
			cr_expect_neq(plan->marks[k].offset, m->offset, "%s", py->file);
		cr_expect(max && arch_native()->decode(code, max, m->vaddr, &in) &&
				  in.probe == INSN_EMULATED && in.len == m->len &&
				  in.target == m->target,
			  "%s: 0x%llx", py->file, (unsigned long long)m->vaddr);
		cr_expect(image_offset(img, m->vaddr, &offset) == 0 && offset == m->offset);
	}
}

Test(plan, real_interpreters_are_complete)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = interpreters_find(py);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&py[i]);
		struct diag diag = {0};
		struct plan plan;
		size_t size;
		void *data;

		if (!l)
			continue;
		data = interpreter_read(&py[i], &size);
		assert_diag_ok(plan_of(data, size, l, &plan, &diag), &diag);
		expect_complete(&py[i], l, &plan);
		expect_emulated(&py[i], &plan);
		expect_marks(&py[i], data, size, &plan);
		for (unsigned int k = 0; k < plan.nsites; k++)
			cr_expect(objdump_agrees(py[i].file, &plan.sites[k]), "%s: %s at 0x%llx",
				  py[i].file, plan.sites[k].role,
				  (unsigned long long)plan.sites[k].vaddr);
		free(data);
	}
	check_no_leaks();
}

Test(plan, wrong_version_is_refused)
{
	struct interpreter py[INTERPRETERS_MAX];
	size_t n = interpreters_find(py);

	/*
	 * A 3.11 layout for a 3.12+ file and vice versa: opcode numbers differ, but no site may be
	 * wrong.
	 */
	for (size_t i = 0; i < n; i++) {
		const struct layout *l = layout_find(3, py[i].minor == 11 ? 13 : 11);
		struct diag diag = {0};
		struct plan plan;
		size_t size;
		void *data;

		if (py[i].minor < 11)
			continue;
		data = interpreter_read(&py[i], &size);
		cr_expect_lt(plan_of(data, size, l, &plan, &diag), 0, "%s", py[i].file);
		cr_expect_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
		cr_expect_neq(plan.missing[0], '\0');
		free(data);
	}
}

Test(plan, cookies_say_what_the_site_is)
{
	const struct plan_site s = {
		.kind = PYP_SITE_YIELD,
		.reg = 13,
		.deref = true,
		.disp = -40,
		.has_cc = true,
		.cc = 5,
		.taken = true,
	};
	uint64_t c = plan_cookie(&s, 63);

	cr_assert_eq(PYP_COOKIE_KIND(c), PYP_SITE_YIELD);
	cr_assert_eq(PYP_COOKIE_REG(c), 13);
	cr_assert_eq(PYP_COOKIE_DEREF(c), 1);
	cr_assert_eq(PYP_COOKIE_DISP(c), -40);
	cr_assert_eq(PYP_COOKIE_HAS_CC(c), 1);
	cr_assert_eq(PYP_COOKIE_CC(c), 5);
	cr_assert_eq(PYP_COOKIE_TAKEN(c), 1);
	cr_assert_eq(PYP_COOKIE_SITE(c), 63);
	cr_assert_eq(PYP_COOKIE_HAS_FLAG(c), 0);
	cr_assert_eq(PYP_COOKIE_FLAG_REG(c), 0);
	cr_assert_eq(PYP_COOKIE_RESTARTS(c), 0);
	cr_assert_eq(PYP_COOKIE_UNEQUAL(c), 0);
	cr_assert_eq(plan_cookie(&(struct plan_site){.kind = PYP_SITE_ENTER}, 0), PYP_SITE_ENTER);
}

Test(plan, cookies_have_room_for_each_part)
{
	const struct plan_site flag = {.has_flag = true, .flag_reg = 31},
			       again = {.restarts = true}, unequal = {.if_unequal = true},
			       reg = {.reg = 31};

	cr_assert_eq(plan_cookie(&flag, 0), 63ull << 22);
	cr_assert_eq(plan_cookie(&again, 0), 1ull << 28);
	cr_assert_eq(plan_cookie(&unequal, 0), 1ull << 29);
	cr_assert_eq(plan_cookie(&reg, 0), 31ull << 4);
	for (unsigned int i = 0; i < PYP_ALL_SITES; i++) {
		cr_assert_eq(PYP_COOKIE_SITE(plan_cookie(&reg, i)), i);
		cr_assert_eq(PYP_COOKIE_SITE(plan_cookie(&flag, i)), i);
	}
}

Test(plan, sites_have_numbers_and_names)
{
	static struct plan plan = {.nsites = 2, .nnative = 1, .ngc = 2};

	cr_assert_eq(plan_sites(&plan), 5);
	cr_assert(plan_site(&plan, 0) == &plan.sites[0] && plan_site(&plan, 1) == &plan.sites[1]);
	cr_assert(plan_site(&plan, 2) == &plan.native[0] && plan_site(&plan, 3) == &plan.gc[0]);
	cr_assert(plan_site(&plan, 4) == &plan.gc[1]);
	cr_assert_str_eq(plan_kind_name(PYP_SITE_ENTER), "enter");
	cr_assert_str_eq(plan_kind_name(PYP_SITE_GC_STOP), "gc-stop");
	cr_assert_str_eq(plan_kind_name(0), "?");
	cr_assert_str_eq(plan_kind_name(PYP_SITE_GC_STOP + 1), "?");
	cr_assert_str_eq(plan_cost_name(PLAN_COST_EMULATED), "emulated");
	cr_assert_str_eq(plan_cost_name(PLAN_COST_STEPPED), "single-stepped");
}
