// SPDX-License-Identifier: BSD-2-Clause
/*
 * The planner with a made-up instruction set: with just another back end, it plans a small evaluator
 * of 3.13.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/elf_builder.h"
#include "harness/test.h"
#include "harness/toy.h"
#include "plan/arch/arch.h"
#include "plan/plan.h"
#include "python/layout.h"

/* ---- the evaluator ----------------------------------------------------------------------- */

#define CODE  TOY_CODE
#define DATA  TOY_DATA
#define TYPE  (DATA + 8 * 256)
#define FRAME TOY_FRAME
#define ZERO  TOY_ZERO

enum place {
	CLEAR_AND_POP,
	DEALLOC,
	THROWN,
	UNWIND,
	RESUME,
	RESUME_BRANCH,
	RESUMED,
	CHECK_BRANCH,
	CHECKED,
	INSTRUMENTED,
	YIELD,
	TOOLS,
	YIELD_BRANCH,
	CLEAR_SITE,
	PLACES,
};

struct program {
	const struct layout *l;
	uint8_t code[16384];
	size_t size;
	uint64_t at[PLACES]; /* complete after the first pass, which fills it */
	uint64_t handler[256];
	bool distances; /* the table has distances, as a switch's */
	bool leaky;	/* RETURN_VALUE has a path around the function that ends frames */
	/* Returns: branches before their calls; one has none; they store the instruction after it. */
	bool branches, one_straight, stores_late;
	bool other_caller; /* another function also ends frames */
	uint64_t branch[4];
};

static uint64_t here(const struct program *g)
{
	return CODE + g->size;
}

static void put(struct program *g, enum toy_op op, int a, int b, int c)
{
	const uint8_t insn[4] = {(uint8_t)op, (uint8_t)a, (uint8_t)b, (uint8_t)c};

	cr_assert_leq(g->size + 4, sizeof(g->code));
	memcpy(g->code + g->size, insn, 4);
	g->size += 4;
}

static void put_to(struct program *g, enum toy_op op, int a, uint64_t target)
{
	uint64_t words = target ? (target - CODE) / 4 : 0; /* unknown in the first pass */

	put(g, op, a, (int)(words & 0xff), (int)(words >> 8 & 0xff));
}

static void put_dispatch(struct program *g)
{
	put_to(g, TOY_ADDR, 9, DATA);
	put(g, TOY_BR, 9, 0, 0);
}

/* A handler starts with frame->instr_ptr = next_instr. */
static void put_handler(struct program *g, int16_t opcode)
{
	g->handler[opcode] = here(g);
	put(g, TOY_STORE, 10, FRAME, g->l->bpf.frame_instr);
}

static void put_clear(struct program *g)
{
	put(g, TOY_MOV, 1, FRAME, 0);
	put_to(g, TOY_CALL, 0, g->at[CLEAR_AND_POP]);
}

static void put_functions(struct program *g)
{
	g->at[CLEAR_AND_POP] = here(g);
	put(g, TOY_MOV, 21, 1, 0);
	g->at[CLEAR_SITE] = here(g);
	put(g, TOY_NOP, 0, 0, 0);
	put(g, TOY_LOADB, 5, 21, g->l->bpf.frame_owner);
	put(g, TOY_CMPI, 5, 1, 0);
	put(g, TOY_RET, 0, 0, 0);
	g->at[DEALLOC] = here(g);
	put(g, TOY_NOP, 0, 0, 0);
	put(g, TOY_RET, 0, 0, 0);
	g->at[TOOLS] = here(g);
	put(g, TOY_RET, 0, 0, 0);
	if (!g->other_caller)
		return;
	put_clear(g);
	put(g, TOY_RET, 0, 0, 0);
}

static uint64_t put_entry(struct program *g)
{
	uint64_t entry = here(g);

	put(g, TOY_MOV, FRAME, 1, 0);
	put_to(g, TOY_CBNZ, 2, g->at[THROWN]);
	put_dispatch(g);
	g->at[THROWN] = here(g);
	put(g, TOY_NOP, 0, 0, 0);
	g->at[UNWIND] = here(g);
	put_clear(g);
	put(g, TOY_RET, 0, 0, 0);
	return entry;
}

/* Compare the code's version with the interpreter's. */
static void put_version_check(struct program *g, enum place branch, uint64_t equal)
{
	put(g, TOY_LOAD, 11, FRAME, g->l->bpf.frame_code);
	put(g, TOY_LOAD, 12, 11, g->l->code_version);
	put(g, TOY_LOAD, 13, 19, 0);
	put(g, TOY_CMP, 12, 13, 0);
	g->at[branch] = here(g);
	put_to(g, TOY_BEQ, 0, equal);
}

static void put_resumes(struct program *g)
{
	g->at[RESUME] = here(g);
	put_handler(g, g->l->op.resume);
	put_version_check(g, RESUME_BRANCH, g->at[RESUMED]);
	put_to(g, TOY_CALL, 0, g->at[TOOLS]);
	put_dispatch(g);
	g->at[RESUMED] = here(g);
	put_dispatch(g);
	put_handler(g, g->l->op.resume_check);
	put_version_check(g, CHECK_BRANCH, g->at[CHECKED]);
	put_to(g, TOY_B, 0, g->at[RESUME]);
	g->at[CHECKED] = here(g);
	put_dispatch(g);
	put_handler(g, g->l->op.instrumented_resume);
	g->at[INSTRUMENTED] = here(g);
	put(g, TOY_NOP, 0, 0, 0);
	put_dispatch(g);
}

static void put_yields(struct program *g)
{
	put_handler(g, g->l->op.yield_value);
	g->at[YIELD] = here(g);
	put(g, TOY_NOP, 0, 0, 0);
	put(g, TOY_STORE, ZERO, FRAME, g->l->bpf.frame_previous);
	put_dispatch(g);
	put_handler(g, g->l->op.instrumented_yield_value);
	put_to(g, TOY_CALL, 0, g->at[TOOLS]);
	put(g, TOY_CMPI, 0, 0, 0);
	g->at[YIELD_BRANCH] = here(g);
	put_to(g, TOY_BNE, 0, g->at[UNWIND]);
	put_dispatch(g);
}

static void put_returns(struct program *g)
{
	const int16_t ops[] = {g->l->op.return_value, g->l->op.return_const,
			       g->l->op.instrumented_return_value,
			       g->l->op.instrumented_return_const};

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		put_handler(g, ops[i]);
		if (g->leaky)
			put_to(g, TOY_CBNZ, 11, here(g) + 16);
		g->branch[i] = here(g);
		if (g->branches && !(i == 1 && g->one_straight))
			put_to(g, TOY_CBNZ, 11, here(g) + 8);
		put(g, TOY_STORE, g->stores_late ? 10 : ZERO, FRAME,
		    g->stores_late ? g->l->bpf.frame_instr : 200);
		put_clear(g);
		put_dispatch(g);
	}
}

static uint64_t put_all(struct program *g)
{
	uint64_t entry, unknown;

	g->size = 0;
	put_functions(g);
	entry = put_entry(g);
	unknown = here(g);
	put_dispatch(g);
	memset(g->handler, 0, sizeof(g->handler));
	put_resumes(g);
	put_yields(g);
	put_returns(g);
	for (int16_t op = 0; op < 256; op++) {
		if (g->handler[op])
			continue;
		if (op >= 150 && op < 200) {
			g->handler[op] = unknown;
			continue;
		}
		put_handler(g, op);
		put_dispatch(g);
	}
	return entry;
}

static void make_table(const struct program *g, uint64_t data[256])
{
	int32_t distance[256];

	if (!g->distances) {
		memcpy(data, g->handler, sizeof(g->handler));
		return;
	}
	for (int i = 0; i < 256; i++)
		distance[i] = (int32_t)(g->handler[i] - DATA);
	memcpy(data, distance, sizeof(distance));
}

static int plan_program(struct program *g, const struct arch *arch, struct plan *plan,
			struct diag *diag)
{
	struct elf_builder *b = elf_builder_new(ET_EXEC);
	uint64_t data[256 + 8] = {0}, entry;
	struct image *img;
	size_t size;
	void *file;
	int r;

	g->l = layout_find(3, 13);
	put_all(g);
	entry = put_all(g); /* the second pass, as all addresses are known */
	make_table(g, data);
	data[256 + 6] = g->at[DEALLOC]; /* PyTypeObject.tp_dealloc */
	elf_builder_segment(b, CODE, PF_R | PF_X, g->code, g->size);
	elf_builder_segment(b, DATA, PF_R | PF_W, data, sizeof(data));
	elf_builder_symbol(b, "_PyEval_EvalFrameDefault", entry, 64, STT_FUNC);
	elf_builder_symbol(b, "_PyEval_FrameClearAndPop", g->at[CLEAR_AND_POP], 64, STT_FUNC);
	elf_builder_symbol(b, "PyCode_Type", TYPE, 64, STT_OBJECT);
	file = elf_builder_finish(b, &size);
	assert_diag_ok(image_open_bytes(file, size, "toy", &img, diag), diag);
	r = plan_build_for(img, g->l, arch, plan, diag);
	image_free(img);
	free(file);
	return r;
}

/* ---- tests ------------------------------------------------------------------------------- */

static const struct plan_site *site_at(const struct plan *plan, uint64_t vaddr)
{
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].vaddr == vaddr)
			return &plan->sites[i];
	cr_assert_fail("no site at 0x%llx", (unsigned long long)vaddr);
	return NULL;
}

static void expect_site(const struct plan *plan, uint64_t vaddr, enum pyp_site_kind kind, int reg)
{
	const struct plan_site *s = site_at(plan, vaddr);

	cr_expect_eq(s->kind, kind, "%s", s->role);
	cr_expect_eq(s->reg, reg, "%s: register %u", s->role, s->reg);
	cr_expect(!s->deref, "%s", s->role);
	cr_expect_eq(s->cost, PLAN_COST_EMULATED, "%s", s->role);
	cr_expect_eq(s->len, 4);
}

static void expect_condition(const struct plan *plan, uint64_t vaddr, unsigned int cc, bool taken)
{
	const struct plan_site *s = site_at(plan, vaddr);

	cr_expect(s->has_cc && s->cc == cc && s->taken == taken, "%s: %d %u %d", s->role, s->has_cc,
		  s->cc, s->taken);
}

Test(toy, a_small_evaluator_is_planned)
{
	struct program *g = calloc(1, sizeof(*g));
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	assert_diag_ok(plan_program(g, &toy_arch, &plan, &diag), &diag);
	cr_expect_eq(plan.table_vaddr, DATA);
	cr_expect_eq(plan.nsites, 8);
	cr_expect_str_eq(plan.twice, "");
	expect_site(&plan, g->at[RESUME_BRANCH], PYP_SITE_ENTER, FRAME);
	expect_site(&plan, g->at[CHECK_BRANCH], PYP_SITE_ENTER, FRAME);
	expect_site(&plan, g->at[INSTRUMENTED], PYP_SITE_ENTER, FRAME);
	expect_site(&plan, g->at[THROWN], PYP_SITE_THROW, 1);
	expect_site(&plan, g->at[YIELD], PYP_SITE_YIELD, FRAME);
	expect_site(&plan, g->at[YIELD_BRANCH], PYP_SITE_YIELD, FRAME);
	expect_site(&plan, g->at[CLEAR_SITE], PYP_SITE_LEAVE, 1);
	expect_site(&plan, g->at[DEALLOC], PYP_SITE_CODE_FREE, 0);
	/* Both count if the versions are equal, a yield if the tools raised no exception. */
	expect_condition(&plan, g->at[RESUME_BRANCH], 1, true);
	expect_condition(&plan, g->at[CHECK_BRANCH], 1, true);
	expect_condition(&plan, g->at[YIELD_BRANCH], 0, false);
	free(g);
	check_no_leaks();
}

Test(toy, a_switch_is_planned)
{
	struct program *g = calloc(1, sizeof(*g));
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	g->distances = true;
	assert_diag_ok(plan_program(g, &toy_arch, &plan, &diag), &diag);
	cr_expect_eq(plan.table_vaddr, DATA);
	cr_expect_eq(plan.nsites, 8);
	expect_site(&plan, g->at[YIELD], PYP_SITE_YIELD, FRAME);
	free(g);
	check_no_leaks();
}

Test(toy, a_way_round_a_site_is_found)
{
	struct program *g = calloc(1, sizeof(*g));
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	g->leaky = true;
	cr_expect_eq(plan_program(g, &toy_arch, &plan, &diag), -ENOEXEC);
	cr_expect(strstr(plan.missing, "RETURN_VALUE"), "%s", plan.missing);
	free(g);
}

static struct arch searching(void)
{
	struct arch a = toy_arch;

	a.find_branch = toy_find_branch;
	return a;
}

static bool has_site(const struct plan *plan, uint64_t vaddr)
{
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].vaddr == vaddr)
			return true;
	return false;
}

Test(toy, frames_end_in_the_evaluator)
{
	struct program *g = calloc(1, sizeof(*g));
	const struct arch arch = searching();
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	g->branches = true;
	assert_diag_ok(plan_program(g, &arch, &plan, &diag), &diag);
	for (int i = 0; i < 4; i++)
		expect_site(&plan, g->branch[i], PYP_SITE_LEAVE, FRAME);
	expect_site(&plan, g->at[UNWIND] + 4, PYP_SITE_LEAVE, 1); /* the call itself */
	cr_expect(!has_site(&plan, g->at[CLEAR_SITE]));
	cr_expect_eq(plan.nsites, 12);
	free(g);
	check_no_leaks();
}

/* Then frames end where the function that ends them starts. */
Test(toy, frames_do_not_end_in_the_evaluator)
{
	for (int why = 0; why < 5; why++) {
		struct program *g = calloc(1, sizeof(*g));
		const struct arch arch = why == 0 ? toy_arch : searching();
		struct diag diag = {0};
		struct plan plan;

		cr_assert(g);
		g->branches = why != 1;
		g->one_straight = why == 2;
		g->stores_late = why == 3;
		g->other_caller = why == 4;
		assert_diag_ok(plan_program(g, &arch, &plan, &diag), &diag);
		expect_site(&plan, g->at[CLEAR_SITE], PYP_SITE_LEAVE, 1);
		cr_expect_eq(plan.nsites, 8, "case %d: %u", why, plan.nsites);
		free(g);
	}
	check_no_leaks();
}

Test(toy, is_nothing_to_another_back_end)
{
	struct program *g = calloc(1, sizeof(*g));
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	cr_expect_eq(plan_program(g, &arch_x86_64, &plan, &diag), -ENOEXEC);
	free(g);
}
