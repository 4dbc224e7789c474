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
	bool one_function; /* the same one frees code */
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
	data[256 + 6] = g->at[g->one_function ? CLEAR_AND_POP : DEALLOC]; /* tp_dealloc */
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

Test(toy, an_instruction_has_one_site)
{
	struct program *g = calloc(1, sizeof(*g));
	struct diag diag = {0};
	struct plan plan;

	cr_assert(g);
	g->one_function = true;
	cr_expect_eq(plan_program(g, &toy_arch, &plan, &diag), -ENOEXEC);
	cr_expect_str_eq(plan.missing, "FrameClearAndPop and code_dealloc (the same instruction)");
	free(g);
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

/* ---- the table ------------------------------------------------------------------------------ */

static struct toy_rig rig;

#define ENTRIES 256

/*
 * A table with this number of the commonest entry, and of different ones. The words before it are
 * pointers to code as well.
 */
static void fill(uint64_t *data, unsigned int before, unsigned int commonest, unsigned int unique)
{
	for (unsigned int i = 0; i < before; i++)
		data[i] = CODE;
	for (unsigned int i = 0; i < ENTRIES; i++)
		data[before + i] = i < commonest ? CODE + 8
						 : CODE + 16 + 8 * ((i - commonest) % (unique - 1));
}

/* The entry has `refs` references to the table; each handler has one, up to this number. */
static int find_table(const uint64_t *data, unsigned int at, unsigned int refs,
		      unsigned int handlers)
{
	uint8_t code[2 + 2 * ENTRIES][4];

	for (unsigned int i = 0; i < 2 + 2 * ENTRIES; i++)
		memcpy(code[i], (const uint8_t[4]){i % 2 ? TOY_BR : TOY_NOP, 9}, 4);
	if (refs)
		memcpy(code[0], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO_DATA(at)}, 4);
	for (unsigned int i = 0; i < handlers; i++)
		memcpy(code[4 + 2 * i], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO_DATA(at)}, 4);
	toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code), .data = data, .ndata = 300});
	return table_find(&rig.p);
}

static void expect_table(int r, uint64_t vaddr)
{
	if (vaddr) {
		assert_ok(r);
		cr_expect_eq(rig.plan.table_vaddr, vaddr);
		cr_expect_eq(rig.p.handler[0], CODE + 8);
		cr_expect(rig.p.has_table);
	} else {
		assert_err(r, -ENOEXEC);
		cr_expect(strstr(rig.p.missing, "opcode table (no dispatch found)"));
		cr_expect(!rig.p.has_table && !rig.plan.table_vaddr);
	}
	toy_close(&rig);
}

Test(table, its_shape)
{
	static const struct {
		unsigned int commonest, unique;
		bool found;
	} v[] = {
		{16, 80, true},	 {15, 80, false}, {150, 80, true},  {151, 80, false},
		{50, 79, false}, {50, 200, true}, {120, 137, true},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		uint64_t data[300] = {0};

		fill(data, 0, v[i].commonest, v[i].unique);
		expect_table(find_table(data, 0, 1, 0), v[i].found ? DATA : 0);
	}
	check_no_leaks();
}

Test(table, its_entries)
{
	const uint64_t end = CODE + 4 * (2 + 2 * ENTRIES);
	uint64_t data[300] = {0};

	fill(data, 0, 50, 100);
	data[255] = end - 4;
	expect_table(find_table(data, 0, 1, 0), DATA);
	data[255] = end;
	expect_table(find_table(data, 0, 1, 0), 0);
	data[255] = CODE;
	data[0] = CODE - 4;
	expect_table(find_table(data, 0, 1, 0), 0);
	data[0] = DATA;
	expect_table(find_table(data, 0, 1, 0), 0);
	check_no_leaks();
}

/* Distances of 32 bits from the table, which is at any word */
Test(table, of_a_switch)
{
	for (unsigned int at = 0; at < 2; at++) {
		uint64_t data[300] = {0}, target[ENTRIES];
		int32_t distance[ENTRIES];
		uint8_t code[2 + 2 * ENTRIES][4] = {{0}};

		fill(target, 0, 50, 100);
		target[255] = CODE + 4;
		for (unsigned int i = 0; i < ENTRIES; i++)
			distance[i] = (int32_t)(target[i] - (DATA + 4 * at));
		memcpy((uint8_t *)data + 4 * at, distance, sizeof(distance));
		for (unsigned int i = 0; i < 2 + 2 * ENTRIES; i++)
			code[i][0] = TOY_RET;
		memcpy(code[0], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO((DATA - CODE) / 4 + at)}, 4);
		memcpy(code[1], (const uint8_t[4]){TOY_BR, 9}, 4);
		toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(data)});
		assert_ok(table_find(&rig.p));
		cr_expect_eq(rig.plan.table_vaddr, DATA + 4 * at);
		cr_expect_arr_eq(rig.p.handler, target, sizeof(target));
		toy_close(&rig);
		/* One is no code, in the first or the second half of two. */
		for (unsigned int i = 254; i < 256; i++) {
			memcpy((uint8_t *)data + 4 * (at + i), &(int32_t){64}, 4);
			toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(data)});
			assert_err(table_find(&rig.p), -ENOEXEC);
			toy_close(&rig);
			memcpy((uint8_t *)data + 4 * (at + i), &distance[i], 4);
		}
	}
	check_no_leaks();
}

/* The entry's code refers to two tables, or twice to the same. */
Test(table, two_candidates)
{
	uint8_t code[2 + 2 * ENTRIES][4] = {{0}};
	uint64_t data[2 * ENTRIES];

	fill(data, 0, 50, 100);
	fill(data + ENTRIES, 0, 40, 90);
	for (unsigned int i = 0; i < 2 + 2 * ENTRIES; i++)
		code[i][0] = TOY_RET;
	memcpy(code[0], (const uint8_t[4]){TOY_ADDR, 8, TOY_TO_DATA(0)}, 4);
	memcpy(code[1], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO_DATA(0)}, 4);
	toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(data)});
	expect_table(table_find(&rig.p), DATA);
	memcpy(code[1], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO_DATA(ENTRIES)}, 4);
	toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code), TOY_DATA_OF(data)});
	assert_err(table_find(&rig.p), -ENOEXEC);
	cr_expect_str_eq(rig.p.missing, "opcode table (two candidates: 0x410000, 0x410800)");
	toy_close(&rig);
	check_no_leaks();
}

/* If the entry's code does not refer to it, handlers do: at least 16, and not too far into the run. */
Test(table, of_which_handlers_know)
{
	uint64_t data[300] = {0};

	fill(data, 3, 50, 100);
	expect_table(find_table(data, 3, 0, 16), DATA + 24);
	expect_table(find_table(data, 3, 0, 15), 0);
	expect_table(find_table(data, 3, 0, 0), 0);
	fill(data, 7, 50, 100);
	expect_table(find_table(data, 7, 0, 50), DATA + 56);
	fill(data, 8, 50, 100);
	expect_table(find_table(data, 8, 0, 50), 0);
	/* Shifted so far, it does not look like a table. */
	fill(data, 8, 16, 100);
	data[0] = 0;
	expect_table(find_table(data, 8, 0, 50), DATA + 64);
	check_no_leaks();
}

/* The plan says that the evaluator is missing. */
static void expect_no_evaluator(const struct toy_program *program, const char *missing)
{
	static struct plan plan;
	struct diag diag = {0};
	struct image *img = toy_image(program);

	assert_err(plan_build_for(img, layout_find(3, 13), &toy_arch, &plan, &diag), -ENOEXEC);
	cr_expect_str_eq(plan.missing, missing);
	cr_expect_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	cr_expect(strstr(diag.msg, missing), "%s", diag.msg);
	image_free(img);
}

Test(table, of_no_evaluator)
{
	uint8_t code[2 + 2 * ENTRIES][4];
	uint64_t data[300] = {0};
	struct toy_program program = {TOY_CODE_OF(code), TOY_DATA_OF(data)};

	fill(data, 0, 50, 100);
	for (unsigned int i = 0; i < 1 + ENTRIES; i++) {
		memcpy(code[2 * i], (const uint8_t[4]){TOY_ADDR, 9, TOY_TO_DATA(0)}, 4);
		memcpy(code[2 * i + 1], (const uint8_t[4]){TOY_BR, 9}, 4);
	}
	expect_no_evaluator(&program, "evaluator (no dynamic symbol _PyEval_EvalFrameDefault)");
	program.symbol[0].name = "_PyEval_EvalFrameDefault";
	program.symbol[0].vaddr = DATA + 8 * 280;
	expect_no_evaluator(&program, "evaluator (its symbol does not refer to code)");
	program.symbol[0].vaddr = CODE;
	expect_no_evaluator(&program, "location of the frame (only 0 handlers vote for it)");
	program.ndata = 200;
	expect_no_evaluator(&program, "opcode table (no dispatch found)");
	check_no_leaks();
}

/* ---- the frame's place in handlers ---------------------------------------------------------- */

/* This many handlers have these two instructions before the store that votes; *r: roles_find(). */
static int find_roles(unsigned int n, const uint8_t before[2][4], const uint8_t vote[4])
{
	struct toy_program program = {0};
	uint8_t code[4 * TOY_HANDLERS + 4][4] = {{TOY_RET}};

	for (unsigned int i = 0; i < n; i++) {
		memcpy(code[4 + 4 * i], before, 8);
		memcpy(code[6 + 4 * i], vote, 4);
		memcpy(code[7 + 4 * i], (const uint8_t[4]){TOY_BR, 9}, 4);
		program.handler[i] = (struct toy_handler){(int16_t)(i + 1), 4 + 4 * i};
	}
	program.code = code;
	program.n = 4 + 4 * n;
	toy_open(&rig, &program);
	rig.p.handler[n + 1] = rig.p.handler[1]; /* one that has voted */
	rig.p.roles = 0;
	return roles_find(&rig.p);
}

#define ROLES(n, before, ...) find_roles(n, before, (const uint8_t[4]){__VA_ARGS__})

static void expect_roles(int r, insn_regs regs, int slot)
{
	assert_ok(r);
	cr_expect_eq(rig.p.roles, regs);
	cr_expect_eq(rig.p.nrole_slots, slot >= 0);
	if (slot >= 0)
		cr_expect(rig.p.role_slot[0].base == TOY_SP && rig.p.role_slot[0].disp == slot);
	toy_close(&rig);
}

static void expect_votes(int r, const char *text)
{
	assert_err(r, -ENOEXEC);
	cr_expect_str_eq(rig.p.missing, text);
	toy_close(&rig);
}

Test(roles, handlers_vote)
{
	static const uint8_t none[2][4] = {{TOY_NOP}, {TOY_NOP}},
			     slot[2][4] = {{TOY_LOAD, 20, TOY_SP, 16}, {TOY_NOP}},
			     late[2][4] = {{TOY_ADDSP, 8}, {TOY_LOAD, 20, TOY_SP, 16}},
			     lost[2][4] = {{TOY_LOAD, 20, TOY_SP, 16}, {TOY_MOV, 20, 5}},
			     loaded[2][4] = {{TOY_LOAD, 20, 5, 16}, {TOY_NOP}},
			     moved[2][4] = {{TOY_NOP}, {TOY_MOV, 20, 5}},
			     opaque[2][4] = {{TOY_NOP}, {TOY_OPAQUE}};
	const char *const nobody = "location of the frame (only 0 handlers vote for it)";

	cr_assert_eq(layout_find(3, 13)->bpf.frame_instr, 56);
	expect_roles(ROLES(10, none, TOY_STORE, 10, 20, 56), insn_bit(20), -1);
	expect_roles(ROLES(10, none, TOY_STORE, 10, 0, 56), insn_bit(0), -1);
	expect_roles(ROLES(10, moved, TOY_STORE, 10, 21, 56), insn_bit(21), -1);
	expect_roles(ROLES(10, slot, TOY_STORE, 10, 20, 56), 0, 16);
	expect_roles(ROLES(10, slot, TOY_STORE, 10, 21, 56), insn_bit(21), -1);
	expect_votes(ROLES(9, none, TOY_STORE, 10, 20, 56),
		     "location of the frame (only 9 handlers vote for it)");
	expect_votes(ROLES(9, slot, TOY_STORE, 10, 20, 56),
		     "location of the frame (only 9 handlers vote for it)");
	expect_votes(ROLES(10, late, TOY_STORE, 10, 20, 56), nobody);
	expect_votes(ROLES(10, lost, TOY_STORE, 10, 20, 56), nobody);
	expect_votes(ROLES(10, loaded, TOY_STORE, 10, 20, 56), nobody);
	expect_votes(ROLES(10, moved, TOY_STORE, 10, 20, 56), nobody);
	expect_votes(ROLES(10, opaque, TOY_STORE, 10, 21, 56), nobody);
	expect_votes(ROLES(10, none, TOY_STORE, 10, 20, 48), nobody);
	expect_votes(ROLES(10, none, TOY_STORE, 10, TOY_SP, 56), nobody);
	expect_votes(ROLES(10, none, TOY_STORE, ZERO, 20, 56), nobody);
	expect_votes(ROLES(10, none, TOY_STORE4, 10, 20, 56), nobody);
	check_no_leaks();
}

/* Half of them vote for one slot, half for another. */
Test(roles, several_slots)
{
	for (unsigned int most = 9; most < 12; most++) {
		struct toy_program program = {0};
		uint8_t code[3 * 20 + 4][4] = {{TOY_RET}};

		for (unsigned int i = 0; i < 20; i++) {
			memcpy(code[4 + 3 * i],
			       (const uint8_t[4]){TOY_LOAD, 20, TOY_SP, i < most ? 16 : 24}, 4);
			memcpy(code[5 + 3 * i], (const uint8_t[4]){TOY_STORE, 10, 20, 56}, 4);
			memcpy(code[6 + 3 * i], (const uint8_t[4]){TOY_BR, 9}, 4);
			program.handler[i] = (struct toy_handler){(int16_t)(i + 1), 4 + 3 * i};
		}
		program.code = code;
		program.n = sizeof(code) / 4;
		toy_open(&rig, &program);
		rig.p.roles = 0;
		assert_ok(roles_find(&rig.p));
		cr_expect_eq(rig.p.roles, 0);
		cr_expect_eq(rig.p.nrole_slots, most == 10 ? 2 : 1);
		cr_expect_eq(rig.p.role_slot[0].disp, most == 9 ? 24 : 16);
		cr_expect(most != 10 || rig.p.role_slot[1].disp == 24);
		toy_close(&rig);
	}
	check_no_leaks();
}

/* ---- marks, and checks of all sites --------------------------------------------------------- */

static void expect_marks(const int *at, unsigned int n)
{
	cr_expect_eq(rig.plan.nmarks, n, "%u marks", rig.plan.nmarks);
	for (unsigned int i = 0; i < n; i++)
		cr_expect(rig.plan.marks[i].vaddr == CODE + 4 * (uint64_t)at[i] &&
				  rig.plan.marks[i].len == 4,
			  "%u", i);
}

Test(marks, one_per_handler)
{
	static const uint8_t code[][4] = {
		{TOY_RET},		   /* 0 */
		{TOY_MOV, 5, 6},	   /* 1 */
		{TOY_CALL, 0, TOY_TO(0)},  /* 2 */
		{TOY_NOP},		   /* 3 */
		{TOY_BR, 9},		   /* 4 */
		{0},			   /* 5 */
		{TOY_NOP},		   /* 6: has a site */
		{TOY_CBNZ, 9, TOY_TO(3)},  /* 7 */
		{TOY_NOP},		   /* 8 */
		{TOY_BR, 9},		   /* 9 */
		{TOY_MOV, 5, 6},	   /* 10: nothing is emulated */
		{TOY_BR, 9},		   /* 11 */
		{TOY_B, 0, TOY_TO_PLT(0)}, /* 12: leaves the evaluator */
	};
	static const unsigned int starts[] = {0, 6}, one[] = {0};
	const int both[] = {2, 7}, more[] = {3, 7}, first[] = {2};
	struct toy_program program = {
		TOY_CODE_OF(code), .plt = {"strlen"}, TOY_STARTS_OF(starts),
		.handler = {{1, 1}, {2, 6}, {3, 10}, {4, 12}, {5, 2}, {6, 7}}};

	toy_open(&rig, &program);
	rig.plan.nsites = 1;
	rig.plan.sites[0].vaddr = CODE + 24;
	marks_plan(&rig.p);
	cr_expect_eq(rig.plan.nmarks, 3);
	cr_expect_eq(rig.plan.marks[2].vaddr, CODE + 12); /* the second after 1's mark */
	rig.plan.nmarks = 0;
	rig.p.handler[5] = 0;
	marks_plan(&rig.p);
	expect_marks(both, 2);
	cr_expect(rig.plan.marks[0].target == CODE && rig.plan.marks[1].target == CODE + 12);
	rig.plan.nmarks = 0;
	rig.p.cfg.v[toy_node(&rig, 2)].doubtful = true;
	marks_plan(&rig.p);
	expect_marks(more, 2);
	toy_close(&rig);
	/* Without a table it is not confirmed. Else the function's start must lead there. */
	program.start = NULL;
	toy_open(&rig, &program);
	rig.p.handler[5] = 0;
	rig.plan.nnative = 1;
	rig.plan.native[0].vaddr = CODE + 24;
	marks_plan(&rig.p);
	expect_marks(both, 2);
	toy_close(&rig);
	program.start = one;
	program.nstarts = 1;
	toy_open(&rig, &program);
	rig.p.handler[5] = 0;
	marks_plan(&rig.p);
	expect_marks(first, 1);
	toy_close(&rig);
	check_no_leaks();
}

Test(boundaries, from_a_functions_start)
{
	static const uint8_t code[][4] = {{TOY_NOP}, {TOY_NOP}, {0},
					  {TOY_NOP}, {TOY_NOP}, {TOY_NOP}};
	static const unsigned int starts[] = {0, 3};
	struct toy_program program = {TOY_CODE_OF(code), TOY_STARTS_OF(starts)};
	struct plan_site sites[3] = {{.role = "a"}, {.role = "b"}, {.role = "c"}};

	toy_open(&rig, &program);
	cr_expect(planner_linear_reaches(&rig.p, CODE, CODE));
	cr_expect(planner_linear_reaches(&rig.p, CODE, CODE + 8));
	cr_expect_not(planner_linear_reaches(&rig.p, CODE, CODE + 6));
	cr_expect_not(planner_linear_reaches(&rig.p, CODE, CODE + 12));
	cr_expect_not(planner_linear_reaches(&rig.p, CODE + 4, CODE));
	cr_expect_not(planner_linear_reaches(&rig.p, CODE + 12, CODE + 28));
	sites[0].vaddr = CODE + 4;
	sites[1].vaddr = CODE + 12;
	sites[2].vaddr = CODE + 20;
	assert_ok(planner_check_boundaries(&rig.p, sites, 3));
	assert_ok(planner_check_boundaries(&rig.p, sites, 0));
	sites[2].vaddr = CODE + 18;
	assert_err(planner_check_boundaries(&rig.p, sites, 3), -ENOEXEC);
	cr_expect_str_eq(rig.p.missing, "c (0x400012 is inside of an instruction)");
	assert_ok(planner_check_boundaries(&rig.p, sites, 2));
	rig.p.missing[0] = '\0';
	sites[1].vaddr = CODE - 4;
	assert_err(planner_check_boundaries(&rig.p, sites, 3), -ENOEXEC);
	cr_expect_str_eq(rig.p.missing, "b (0x3ffffc is inside of an instruction)");
	toy_close(&rig);
	program.start = NULL;
	toy_open(&rig, &program);
	assert_ok(planner_check_boundaries(&rig.p, sites, 3));
	toy_close(&rig);
	check_no_leaks();
}
