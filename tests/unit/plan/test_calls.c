// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of the search for calls of C functions (plan/native.h), on programs of the made-up
 * instruction set (harness/toy.h): forms that known compilers do not generate, and what is refused.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/test.h"
#include "harness/toy.h"
#include "plan/native.h"
#include "python/layout.h"

#define SP    TOY_SP
#define FP    TOY_FP
#define ZERO  TOY_ZERO
#define FRAME TOY_FRAME
#define R(r)  insn_bit(r)

static struct toy_rig rig;
static struct native n;
static struct native_callees callees;
static bool full; /* see harness/toy.h */

#define OPEN(code_, ...) open_native(&(struct toy_program){TOY_CODE_OF(code_), __VA_ARGS__})

static void open_native(const struct toy_program *program)
{
	toy_open(&rig, program);
	native_callees_init(&rig.p, &callees);
	n = (struct native){.p = rig.p, .callees = &callees};
	assert_ok(native_code_open(&n));
	for (uint32_t i = 0; i < n.p.cfg.n; i++)
		n.starts[i] = n.p.cfg.v[i].root;
	n.frame = NULL;
	if (n.p.layout->model != LAYOUT_FRAME_OBJECT)
		assert_ok(native_frame_find(&n));
}

static void close_native(void)
{
	native_code_close(&n);
	toy_close(&rig);
}

static void end(void)
{
	close_native();
	check_no_leaks();
}

static uint32_t node(unsigned int at)
{
	const uint32_t i = toy_node(&rig, at);

	cr_assert_neq(i, CFG_NONE, "instruction %u", at);
	return i;
}

/* ---- a function's code ---------------------------------------------------------------------- */

Test(code, the_frame_pointer_or_a_register)
{
	static const struct {
		uint8_t insn[4];
		bool frame;
	} v[] = {
		{{TOY_MOV, FP, SP}, true},	{{TOY_LEA, FP, SP, 16}, true},
		{{TOY_LOAD, FP, SP, 8}, false}, {{TOY_MOV, FP, 5}, false},
		{{TOY_LEA, FP, 5, 16}, false},	{{TOY_POP, FP}, false},
		{{TOY_MOV, 5, SP}, false},	{{TOY_STORE, FP, SP, 8}, false},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		uint8_t code[][4] = {{TOY_NOP}, {0}, {TOY_OPAQUE}, {TOY_RET}};

		memcpy(code[1], v[i].insn, 4);
		OPEN(code);
		cr_expect_eq(n.arch.fp, v[i].frame ? FP : INSN_REGS_MAX - 1, "%zu", i);
		cr_expect(n.machine == &toy_arch && n.p.cfg.arch == &n.arch);
		close_native();
	}
	check_no_leaks();
}

static void expect_preds(unsigned int at, int a, int b)
{
	const uint32_t from = n.pred_start[node(at)], to = n.pred_start[node(at) + 1];
	const int want[2] = {a, b};

	cr_assert_eq(to - from, (a >= 0) + (b >= 0), "%u: %u", at, to - from);
	for (uint32_t k = from; k < to; k++)
		cr_expect(toy_at(&rig, n.preds[k]) == want[0] ||
				  toy_at(&rig, n.preds[k]) == want[1],
			  "%u: %d", at, toy_at(&rig, n.preds[k]));
	cr_expect(to - from < 2 || n.preds[from] != n.preds[from + 1], "%u", at);
}

Test(code, predecessors)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(2)}, /* 0 */
		{TOY_BEQ, 0, TOY_TO(2)},  /* 1: both edges */
		{TOY_CBNZ, 9, TOY_TO(0)}, /* 2 */
		{TOY_RET},		  /* 3 */
	};

	OPEN(code);
	expect_preds(0, 2, -1);
	expect_preds(1, 0, -1);
	expect_preds(2, 0, 1);
	expect_preds(3, 2, -1);
	end();
}

/* ---- locations of the frame before 3.11 ----------------------------------------------------- */

static int find_frame(const uint8_t (*code)[4], size_t size, const struct toy_handler h[2])
{
	struct toy_program program = {.code = code, .n = size, .layout = layout_find(3, 8)};

	memcpy(program.handler, h, 2 * sizeof(*h));
	open_native(&program);
	return native_frame_find(&n);
}

Test(frame, is_kept_by_all_opcodes)
{
	uint8_t code[][4] = {
		{TOY_MOV, 16, 0},	  /* 0: the frame is the first argument */
		{TOY_MOV, 17, 0},	  /* 1 */
		{TOY_STORE, 0, SP, 8},	  /* 2 */
		{TOY_STORE, 0, SP, 16},	  /* 3 */
		{TOY_CBNZ, 9, TOY_TO(7)}, /* 4: two dispatches */
		{TOY_MOV, 0, 9},	  /* 5 */
		{TOY_BR, 9},		  /* 6 */
		{TOY_MOV, 18, 0},	  /* 7 */
		{TOY_MOV, 0, 9},	  /* 8 */
		{TOY_BR, 9},		  /* 9 */
		{TOY_MOV, 16, 5},	  /* 10: changes this one */
		{TOY_NOP},		  /* 11 */
		{TOY_BR, 9},		  /* 12 */
		{TOY_MOV, 5, 17},	  /* 13 */
		{TOY_BR, 9},		  /* 14 */
	};
	static const struct toy_handler h[2] = {{1, 10}, {2, 13}};

	assert_ok(find_frame(code, 15, h));
	cr_expect_eq(n.frame[node(10)].regs, R(17));
	cr_expect_eq(n.frame[node(14)].regs, R(17) | R(5));
	cr_expect_eq(n.frame[node(0)].regs, R(0));
	close_native();
	/* The only register that has it at both changes, and slots are unknown then. */
	memcpy(code[1], (const uint8_t[4]){TOY_NOP}, 4);
	cr_expect_eq(find_frame(code, 15, h), -ENOEXEC);
	cr_expect(strstr(n.p.missing, "its location changes"));
	close_native();
	/* One dispatch: the second slot, as the first changes, too */
	memcpy(code[4], (const uint8_t[4]){TOY_NOP}, 4);
	memcpy(code[13], (const uint8_t[4]){TOY_STORE, 9, SP, 8}, 4);
	assert_ok(find_frame(code, 15, h));
	cr_expect_eq(n.frame[node(10)].regs, 0);
	cr_expect(n.frame[node(10)].nslots == 1 && flow_in_slot(&n.frame[node(10)], SP, 16));
	close_native();
	memcpy(code[11], (const uint8_t[4]){TOY_STORE, 9, SP, 16}, 4);
	cr_expect_eq(find_frame(code, 15, h), -ENOEXEC);
	end();
}

/* ---- origins of a value --------------------------------------------------------------------- */

/* The instructions that set a register before another one, as text: "1 4"; "unknown" */
static const char *defs(unsigned int at, int reg)
{
	static char text[128];
	uint32_t v[NATIVE_DEFS];
	bool found[64] = {false};
	int count = native_defs(&n, node(at), reg, v);

	if (count < 0)
		return "unknown";
	for (int i = 0; i < count; i++)
		found[toy_at(&rig, v[i])] = true;
	text[0] = '\0';
	for (int i = 0; i < 64; i++)
		if (found[i])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
				 text[0] ? " " : "", i);
	return text;
}

Test(origins, over_copies_and_slots)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(5)},  /* 0 */
		{TOY_LOAD, 5, 16, 8},	   /* 1 */
		{TOY_MOV, 6, 5},	   /* 2 */
		{TOY_MOV, 18, 6},	   /* 3 */
		{TOY_B, 0, TOY_TO(8)},	   /* 4 */
		{TOY_ADD, 6, 7},	   /* 5 */
		{TOY_MOV4, 18, 6},	   /* 6: half of it is no copy */
		{TOY_CALL, 0, TOY_TO(0)},  /* 7: changes 6, not 18 */
		{TOY_STORE, 18, SP, 16},   /* 8 */
		{TOY_STORE, 9, SP, 24},	   /* 9: another slot */
		{TOY_STORE, 9, SP, 8},	   /* 10 */
		{TOY_STORE, 9, 16, 16},	   /* 11: not the stack */
		{TOY_CALLR, 9},		   /* 12: changes no slot */
		{TOY_LOAD, 10, SP, 16},	   /* 13 */
		{TOY_UNTAG, 10},	   /* 14 */
		{TOY_MOV, 11, SP},	   /* 15: the stack pointer has no other origin */
		{TOY_CBNZ, 9, TOY_TO(14)}, /* 16: a loop */
		{TOY_LOAD, 12, SP, 20},	   /* 17: overlaps both */
		{TOY_LOAD, 13, SP, 8},	   /* 18 */
		{TOY_RET},		   /* 19 */
	};
	uint32_t v[NATIVE_DEFS];
	struct insn_operand op = {
		.type = INSN_OP_MEM, .reg = SP, .index = -1, .bits = 64, .plain = true, .value = 16};

	OPEN(code);
	cr_expect_str_eq(defs(8, 18), "1 6");
	cr_expect_str_eq(defs(3, 6), "1");
	cr_expect_str_eq(defs(7, 6), "5");
	cr_expect_str_eq(defs(8, 6), "1 7");
	cr_expect_str_eq(defs(14, 10), "1 6");
	cr_expect_str_eq(defs(19, 10), "1 6");
	cr_expect_str_eq(defs(19, 11), "15");
	cr_expect_str_eq(defs(19, 12), "unknown");
	cr_expect_str_eq(defs(19, 13), "unknown"); /* 9: set by the caller */
	cr_expect_str_eq(defs(13, 9), "12");
	cr_expect_str_eq(defs(1, 9), "unknown");
	cr_expect_eq(native_operand_defs(&n, node(13), &op, v), 2);
	op.bits = 32;
	cr_expect_eq(native_operand_defs(&n, node(13), &op, v), -1);
	op.bits = 64;
	op.reg = 16;
	cr_expect_eq(native_operand_defs(&n, node(13), &op, v), -1);
	end();
}

Test(origins, of_the_first_register)
{
	static const uint8_t code[][4] = {
		{TOY_LOAD, 0, 16, 8}, {TOY_NOP}, {TOY_MOV, 5, 0}, {TOY_RET}};

	OPEN(code);
	cr_expect_str_eq(defs(3, 5), "0");
	cr_expect_str_eq(defs(2, 0), "0");
	end();
}

Test(origins, unknown)
{
	static const uint8_t code[][4] = {
		{TOY_LOAD, 5, 16, 8},	 /* 0 */
		{TOY_STORE, 5, SP, 16},	 /* 1 */
		{TOY_LOAD, 6, SP, 16},	 /* 2 */
		{TOY_ADDSP, 8},		 /* 3 */
		{TOY_LOAD, 7, SP, 8},	 /* 4: the stack pointer has moved */
		{TOY_STORE4, 5, SP, 36}, /* 5 */
		{TOY_STORE, 5, SP, 40},	 /* 6 */
		{TOY_LOAD, 8, SP, 40},	 /* 7 */
		{TOY_LOAD, 9, SP, 32},	 /* 8: the store of 32 bits is behind it, half of it */
		{TOY_LOAD, 10, SP, 48},	 /* 9 */
		{TOY_STORE, SP, SP, 56}, /* 10 */
		{TOY_LOAD, 11, SP, 56},	 /* 11: the stack pointer itself */
		{TOY_OPAQUE},		 /* 12 */
		{TOY_RET},		 /* 13 */
	};

	OPEN(code);
	cr_expect_str_eq(defs(3, 6), "0");
	cr_expect_str_eq(defs(5, 7), "unknown");
	cr_expect_str_eq(defs(9, 8), "0");
	cr_expect_str_eq(defs(9, 9), "unknown");
	cr_expect_str_eq(defs(12, 11), "unknown");
	cr_expect_str_eq(defs(13, 5), "unknown");
	end();
}

/* Where the frame pointer is one, its slots may be the stack pointer's. */
Test(origins, two_bases_of_slots)
{
	static const uint8_t code[][4] = {
		{TOY_MOV, FP, SP},	/* 0 */
		{TOY_LOAD, 5, 16, 8},	/* 1 */
		{TOY_STORE, 5, FP, 16}, /* 2 */
		{TOY_LOAD, 6, FP, 16},	/* 3 */
		{TOY_STORE, 9, SP, 64}, /* 4 */
		{TOY_LOAD, 7, FP, 16},	/* 5 */
		{TOY_MOV, 8, FP},	/* 6 */
		{TOY_RET},		/* 7 */
	};
	static const uint8_t general[][4] = {
		{TOY_MOV, FP, 9},	/* 0 */
		{TOY_LOAD, 5, 16, 8},	/* 1 */
		{TOY_STORE, 5, SP, 16}, /* 2 */
		{TOY_STORE, 9, FP, 16}, /* 3: any memory, which is no slot */
		{TOY_LOAD, 6, SP, 16},	/* 4 */
		{TOY_LOAD, 7, FP, 16},	/* 5: an origin */
		{TOY_RET},		/* 6 */
	};

	OPEN(code);
	cr_expect_str_eq(defs(4, 6), "1");
	cr_expect_str_eq(defs(6, 7), "unknown");
	cr_expect_str_eq(defs(7, 8), "6");
	close_native();
	OPEN(general);
	cr_expect_str_eq(defs(5, 6), "1");
	cr_expect_str_eq(defs(6, 7), "5");
	end();
}

/* A register that this many paths set */
static int defs_of_paths(unsigned int paths)
{
	uint8_t code[64][4] = {{0}};
	uint32_t v[NATIVE_DEFS];
	unsigned int size = 0;
	const unsigned int last = 3 * paths;
	int ret;

	for (unsigned int i = 0; i < paths; i++) {
		memcpy(code[size], (const uint8_t[4]){TOY_CBNZ, 9, TOY_TO(size + 3)}, 4);
		memcpy(code[size + 1], (const uint8_t[4]){TOY_LOAD, 5, 16, (uint8_t)i}, 4);
		memcpy(code[size + 2], (const uint8_t[4]){TOY_B, 0, TOY_TO(last)}, 4);
		size += 3;
	}
	memcpy(code[size - 3], (const uint8_t[4]){TOY_NOP}, 4);
	memcpy(code[size++], (const uint8_t[4]){TOY_RET}, 4);
	open_native(&(struct toy_program){.code = code, .n = size});
	ret = native_defs(&n, node(last), 5, v);
	close_native();
	return ret;
}

Test(origins, have_a_greatest_number)
{
	cr_expect_eq(defs_of_paths(3), 3);
	cr_expect_eq(defs_of_paths(NATIVE_DEFS), NATIVE_DEFS);
	cr_expect_eq(defs_of_paths(NATIVE_DEFS + 1), -1);
	check_no_leaks();
}

/* ---- constants ------------------------------------------------------------------------------ */

static uint64_t constant(unsigned int at, int reg)
{
	const struct insn_operand op = {.type = INSN_OP_REG, .bits = 64, .reg = (int16_t)reg};
	uint64_t ret = 0;

	return native_constant(&n, node(at), &op, &ret) ? ret : 0;
}

Test(constants, in_registers)
{
	static const uint8_t code[][4] = {
		{TOY_ADDR, 5, TOY_TO_DATA(1)},	 /* 0 */
		{TOY_LOADG, 6, TOY_TO_DATA(0)},	 /* 1 */
		{TOY_CBNZ, 9, TOY_TO(6)},	 /* 2 */
		{TOY_MOV, 7, 5},		 /* 3 */
		{TOY_MOV, 8, 6},		 /* 4 */
		{TOY_B, 0, TOY_TO(8)},		 /* 5 */
		{TOY_ADDR, 7, TOY_TO_DATA(1)},	 /* 6 */
		{TOY_ADDR, 8, TOY_TO_DATA(1)},	 /* 7 */
		{TOY_LOAD, 10, 16, 8},		 /* 8 */
		{TOY_ADD, 11, 5},		 /* 9 */
		{TOY_LOADG, 12, TOY_TO(0x8000)}, /* 10: nothing is there */
		{TOY_LEA, 13, 16, 8},		 /* 11 */
		{TOY_RET},			 /* 12 */
	};
	static const uint64_t data[] = {0x1234, 0x5678};

	OPEN(code, TOY_DATA_OF(data));
	cr_expect_eq(constant(12, 5), TOY_DATA + 8);
	cr_expect_eq(constant(12, 6), 0x1234);
	cr_expect_eq(constant(12, 7), TOY_DATA + 8);
	cr_expect_eq(constant(12, 8), 0); /* one of two */
	cr_expect_eq(constant(12, 10), 0);
	cr_expect_eq(constant(12, 11), 0);
	cr_expect_eq(constant(12, 12), 0);
	cr_expect_eq(constant(12, 13), 0);
	cr_expect_eq(constant(12, 9), 0);
	cr_expect_eq(constant(12, -1), 0);
	end();
}

Test(constants, in_operands)
{
	static const uint8_t code[][4] = {{TOY_RET}};
	static const uint64_t data[] = {0x1234};
	const struct insn_operand at = {.type = INSN_OP_MEM,
					.reg = -1,
					.index = -1,
					.bits = 64,
					.has_address = true,
					.address = TOY_DATA};
	struct insn_operand op = at;
	uint64_t value;

	OPEN(code, TOY_DATA_OF(data));
	cr_expect(native_constant(&n, 0, &op, &value) && value == 0x1234);
	op.bits = 32;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op = at;
	op.reg = 0;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op = at;
	op.index = 0;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op = at;
	op.has_address = false;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op = at;
	op.address = TOY_DATA + 4096;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op = (struct insn_operand){
		.type = INSN_OP_IMM, .reg = -1, .has_address = true, .address = 0x99};
	cr_expect(native_constant(&n, 0, &op, &value) && value == 0x99);
	op.has_address = false;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	op.type = INSN_OP_OTHER;
	cr_expect_not(native_constant(&n, 0, &op, &value));
	end();
}

/* ---- destinations and sites ----------------------------------------------------------------- */

Test(follow, nothing_is_known_around_the_roots)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(3)}, /* 0 */
		{TOY_MOV, 6, 5},	  /* 1: the root */
		{TOY_NOP},		  /* 2 */
		{TOY_NOP},		  /* 3: reached around it */
		{TOY_RET},		  /* 4 */
	};
	struct flow_state *st;
	struct flow_root root = {.regs = R(5)};

	OPEN(code);
	root.node = node(1);
	assert_ok(native_follow(&n, &root, 1, &st));
	cr_expect(!st[node(0)].reached && !st[node(3)].reached && !st[node(4)].reached);
	cr_expect(st[node(1)].reached && st[node(2)].reached);
	cr_expect_eq(st[node(2)].regs, R(5) | R(6));
	free(st);
	n.starts[0] = 0;
	assert_ok(native_follow(&n, &root, 1, &st));
	cr_expect(!st[node(0)].reached && st[node(3)].reached && st[node(4)].reached);
	free(st);
	end();
}

Test(site, once_per_instruction)
{
	static const uint8_t code[][4] = {{TOY_RET},	   {TOY_NOP}, {TOY_NOP},
					  {TOY_MOV, 5, 6}, {TOY_NOP}, {TOY_BR, 9}};
	struct flow_state at = {.reached = true, .regs = R(3) | R(7)};
	const struct plan_site *s = rig.plan.native;

	OPEN(code, .handler = {{1, 1}});
	assert_ok(native_site(&n, node(1), PYP_SITE_C_ENTER, "role", &at));
	cr_assert_eq(rig.plan.nnative, 1);
	cr_expect(s[0].has_callable && s[0].callable_reg == 3 && !s[0].callable_deref);
	cr_expect(s[0].reg == FRAME && !s[0].deref && s[0].kind == PYP_SITE_C_ENTER);
	cr_expect_eq(toy_site_at(&s[0]), 1);
	/* The same site again, from another opcode */
	rig.plan.native[0].same_callable = true;
	assert_ok(native_site(&n, node(1), PYP_SITE_C_ENTER, "other", &at));
	cr_expect(rig.plan.nnative == 1 && !s[0].same_callable);
	/* Another event or callable */
	assert_err(native_site(&n, node(1), PYP_SITE_C_INSTANT, "role", &at), -EEXIST);
	assert_err(native_site(&n, node(1), PYP_SITE_C_ENTER, "role", NULL), -EEXIST);
	at = (struct flow_state){.reached = true, .nslots = 1, .slot = {{SP, 3}}};
	assert_err(native_site(&n, node(1), PYP_SITE_C_ENTER, "role", &at), -EEXIST);
	assert_ok(native_site(&n, node(2), PYP_SITE_C_ENTER, "role", &at));
	cr_expect(s[1].callable_deref && s[1].callable_reg == SP && s[1].callable_disp == 3);
	at.slot[0].disp = 4;
	assert_err(native_site(&n, node(2), PYP_SITE_C_ENTER, "role", &at), -EEXIST);
	at.slot[0] = (struct flow_slot){FP, 3};
	assert_err(native_site(&n, node(2), PYP_SITE_C_ENTER, "role", &at), -EEXIST);
	/* The callable is unknown, or the frame, or the kernel does not emulate it. */
	at.nslots = 0;
	assert_err(native_site(&n, node(4), PYP_SITE_C_ENTER, "role", &at), -ENOENT);
	at.regs = R(3);
	at.reached = false;
	assert_err(native_site(&n, node(4), PYP_SITE_C_ENTER, "role", &at), -ENOENT);
	assert_err(native_site(&n, node(3), PYP_SITE_C_LEAVE, "role", NULL), -ENOENT);
	n.frame[node(4)].regs = 0;
	assert_err(native_site(&n, node(4), PYP_SITE_C_LEAVE, "role", NULL), -ENOENT);
	n.frame[node(4)].regs = R(FRAME);
	rig.plan.nsites = 2;
	rig.plan.sites[1].vaddr = TOY_CODE + 16;
	assert_err(native_site(&n, node(4), PYP_SITE_C_LEAVE, "role", NULL), -EEXIST);
	rig.plan.nsites = 1;
	rig.plan.nnative = PYP_MAX_NATIVE_SITES - 1;
	assert_ok(native_site(&n, node(4), PYP_SITE_C_LEAVE, "role", NULL));
	cr_expect(!s[PYP_MAX_NATIVE_SITES - 1].has_callable);
	rig.plan.native[PYP_MAX_NATIVE_SITES - 1].vaddr = 0;
	assert_err(native_site(&n, node(4), PYP_SITE_C_LEAVE, "role", NULL), -E2BIG);
	end();
}

/* ---- callees -------------------------------------------------------------------------------- */

Test(callee, known_by_name)
{
	static const uint8_t code[][4] = {{TOY_RET}, {TOY_RET}, {TOY_RET}, {TOY_RET}};
	const uint64_t first = TOY_CODE + 12, call = TOY_CODE, tp_call = TOY_CODE + 4,
		       method = TOY_PLT, stub = TOY_PLT + 16, foreign = TOY_PLT + 32,
		       other = TOY_PLT + 48;

	OPEN(code,
	     .symbol = {{"PyObject_Vectorcall", first},
			{"PyObject_Call", call},
			{"_PyObject_MakeTpCall", tp_call},
			{"PyCFunction_Type", TOY_DATA},
			{"PyMethodDescr_Type", TOY_DATA + 8}},
	     .plt = {"_Py_BuiltinCallFast_StackRef", "PyErr_SetNone", "PyAny_Call", "strlen"});
	cr_expect_eq(callees.function_type, TOY_DATA);
	cr_expect_eq(callees.descriptor_type, TOY_DATA + 8);
	rig.layout.minor = 7;
	cr_expect_eq(native_called_argument(&n, call), -1);
	rig.layout.minor = 8;
	cr_expect_eq(native_called_argument(&n, call), 0);
	cr_expect_eq(native_called_argument(&n, tp_call), 0);
	rig.layout.minor = 9;
	cr_expect_eq(native_called_argument(&n, tp_call), 1);
	cr_expect_eq(native_called_argument(&n, TOY_CODE + 8), -1);
	rig.layout.minor = 14;
	cr_expect_not(native_calls_method(&n, method));
	rig.layout.minor = 15;
	cr_expect(native_calls_method(&n, method));
	cr_expect_eq(native_called_argument(&n, method), -1);
	cr_expect_not(native_calls_method(&n, stub));
	cr_expect_not(native_calls_method(&n, call));
	cr_expect_not(native_calls_method(&n, TOY_CODE + 8));
	cr_expect_null(native_unknown_caller(&n, method));
	cr_expect_null(native_unknown_caller(&n, stub));
	cr_expect_null(native_unknown_caller(&n, other));
	cr_expect_null(native_unknown_caller(&n, TOY_CODE + 8));
	cr_expect_str_eq(native_unknown_caller(&n, foreign), "PyAny_Call");
	cr_expect_eq(native_called_argument(&n, foreign), -1);
	cr_expect(native_is_named(&n, first) && native_is_named(&n, call) &&
		  native_is_named(&n, other));
	cr_expect_eq(native_called_argument(&n, first), 0);
	cr_expect_not(native_is_named(&n, TOY_CODE + 8));
	cr_expect_not(native_is_named(&n, 0));
	end();
}

Test(callee, names_that_indicate_a_call)
{
	static const uint8_t code[][4] = {{TOY_RET}};

	OPEN(code, .plt = {"PyAny_Vectorcall", "PyAnyFastCall", "PyAnyCall", "_Call"});
	cr_expect_str_eq(native_unknown_caller(&n, TOY_PLT), "PyAny_Vectorcall");
	cr_expect_str_eq(native_unknown_caller(&n, TOY_PLT + 16), "PyAnyFastCall");
	cr_expect_null(native_unknown_caller(&n, TOY_PLT + 32));
	cr_expect_str_eq(native_unknown_caller(&n, TOY_PLT + 48), "_Call");
	end();
}

#define TP_CALL	      128
#define TP_VECTORCALL 56

/* The argument that the function of these instructions, and of what it calls at 20, 30 and 40, calls */
static int called(const uint8_t (*code)[4], size_t size)
{
	uint8_t all[64][4] = {{TOY_RET}};
	const struct {
		unsigned int at;
		uint8_t insn[3][4];
	} more[] = {
		{20, {{TOY_MOV, 1, 5}, {TOY_CALL, 0, TOY_TO(30)}, {TOY_RET}}},
		{30, {{TOY_MOV, 0, 1}, {TOY_CALL, 0, TOY_TO(40)}, {TOY_RET}}},
		{40, {{TOY_LOAD, 6, 0, 8}, {TOY_CALLM, 0, 6, TP_CALL}, {TOY_RET}}},
		{50, {{TOY_CALL, 0, TOY_TO(30)}, {TOY_RET}, {TOY_RET}}},
	};
	int ret;

	memcpy(all[1], code, size * 4);
	for (size_t i = 0; i < 4; i++)
		memcpy(all[more[i].at], more[i].insn, sizeof(more[i].insn));
	open_native(&(struct toy_program){TOY_CODE_OF(all), .plt = {"PyObject_Vectorcall"}});
	ret = native_called_argument(&n, TOY_CODE + 4);
	/* The second time from what is remembered, which is only what was asked for */
	cr_expect_eq(callees.n, 1);
	cr_expect_eq(native_called_argument(&n, TOY_CODE + 4), ret);
	cr_expect_eq(callees.n, 1);
	callees.v[0].arg = 2;
	cr_expect_eq(native_called_argument(&n, TOY_CODE + 4), 2);
	cr_expect_eq(native_called_argument(&n, TOY_CODE + 4 * 30), 1);
	callees.v[1].arg = 2;
	cr_expect_eq(native_called_argument(&n, TOY_CODE + 4 * 30), 2);
	close_native();
	return ret;
}

#define CALLED(...)                                                                                \
	called((const uint8_t[][4]){__VA_ARGS__}, sizeof((const uint8_t[][4]){__VA_ARGS__}) / 4)

Test(callee, known_by_its_code)
{
	/* tp_call or tp_vectorcall_offset of an argument's type */
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 8}, {TOY_LOAD, 6, 5, TP_CALL}, {TOY_RET}), 0);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 1, 8}, {TOY_LOAD, 6, 5, TP_VECTORCALL}, {TOY_RET}), 1);
	cr_expect_eq(CALLED({TOY_MOV, 7, 2}, {TOY_LOAD, 5, 7, 8}, {TOY_CALLM, 0, 5, TP_CALL},
			    {TOY_RET}),
		     2);
	cr_expect_eq(CALLED({TOY_CMPM4, 0, 5, TP_CALL}, {TOY_LOAD, 5, 1, 8},
			    {TOY_CMPM, 9, 5, TP_CALL}, {TOY_RET}),
		     1);
	/* Another object, field, slot or register */
	cr_expect_eq(CALLED({TOY_LOAD, 5, 3, 8}, {TOY_LOAD, 6, 5, TP_CALL}, {TOY_RET}), -1);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 16}, {TOY_LOAD, 6, 5, TP_CALL}, {TOY_RET}), -1);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 8}, {TOY_LOAD, 6, 5, 120}, {TOY_RET}), -1);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 8}, {TOY_LOAD, 6, 9, TP_CALL}, {TOY_RET}), -1);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 8}, {TOY_MOV, 5, 9}, {TOY_LOAD, 6, 5, TP_CALL},
			    {TOY_RET}),
		     -1);
	cr_expect_eq(CALLED({TOY_LOAD, 5, 0, 8}, {TOY_STOP}), -1);
	check_no_leaks();
}

Test(callee, known_by_what_it_calls)
{
	/* Function 40 calls its first argument, 30 its second, 20 another. */
	cr_expect_eq(CALLED({TOY_CALL, 0, TOY_TO(40)}, {TOY_RET}), 0);
	cr_expect_eq(CALLED({TOY_CALL, 0, TOY_TO(30)}, {TOY_RET}), 1);
	cr_expect_eq(CALLED({TOY_MOV, 0, 2}, {TOY_CALL, 0, TOY_TO(40)}, {TOY_RET}), 2);
	cr_expect_eq(CALLED({TOY_MOV, 0, 9}, {TOY_CALL, 0, TOY_TO(40)}, {TOY_RET}), -1);
	cr_expect_eq(CALLED({TOY_MOV, 1, 9}, {TOY_CALL, 0, TOY_TO(20)}, {TOY_RET}), -1);
	/* It is the fourth, which is too deep. */
	cr_expect_eq(CALLED({TOY_CALL, 0, TOY_TO(50)}, {TOY_RET}), -1);
	/* By name; a jump there is a call. */
	cr_expect_eq(CALLED({TOY_MOV, 0, 1}, {TOY_CALL, 0, TOY_TO_PLT(0)}, {TOY_RET}), 1);
	cr_expect_eq(CALLED({TOY_MOV, 0, 1}, {TOY_B, 0, TOY_TO_PLT(0)}), 1);
	cr_expect_eq(CALLED({TOY_MOV, 0, 9}, {TOY_B, 0, TOY_TO_PLT(0)}), 1 - 2);
	cr_expect_eq(CALLED({TOY_CALL, 0, TOY_TO_PLT(1)}, {TOY_RET}), -1);
	check_no_leaks();
}

/* No function has more than this many instructions, with the last. */
static int called_after(unsigned int nops)
{
	static uint8_t code[2100][4];
	unsigned int size = 1;
	int ret;

	memcpy(code[0], (const uint8_t[4]){TOY_RET}, 4);
	while (size <= nops)
		memcpy(code[size++], (const uint8_t[4]){TOY_NOP}, 4);
	memcpy(code[size++], (const uint8_t[4]){TOY_LOAD, 5, 0, 8}, 4);
	memcpy(code[size++], (const uint8_t[4]){TOY_CALLM, 0, 5, TP_CALL}, 4);
	memcpy(code[size++], (const uint8_t[4]){TOY_RET}, 4);
	open_native(&(struct toy_program){.code = code, .n = size});
	ret = native_called_argument(&n, TOY_CODE + 4);
	close_native();
	return ret;
}

Test(callee, is_not_long)
{
	cr_expect_eq(called_after(1997), 0);
	cr_expect_eq(called_after(1998), -1);
	check_no_leaks();
}

Test(callee, types_without_vectorcall)
{
	static const uint8_t code[][4] = {{TOY_LOAD, 5, 0, 8},
					  {TOY_LOAD, 6, 5, 0},
					  {TOY_LOADX, 7, 1, 2},
					  {TOY_CALLR, 7},
					  {TOY_RET}};
	uint32_t loads[NATIVE_DEFS];
	int nloads;

	OPEN(code);
	cr_expect_eq(native_through_of(&n, node(3), loads, &nloads), NATIVE_VECTORCALL);
	cr_expect(nloads == 1 && loads[0] == node(2));
	rig.layout.type_vectorcall = 0;
	cr_expect_eq(native_called_argument(&n, TOY_CODE), -1);
	cr_expect_eq(native_through_of(&n, node(3), loads, &nloads), NATIVE_UNKNOWN);
	end();
}

/* ---- indirect calls ------------------------------------------------------------------------- */

/* The origin of the pointer that the call at instruction 5 calls; *nloads: see native_through_of() */
static enum native_through through(const uint8_t (*code)[4], int *nloads)
{
	static const uint64_t data[] = {TOY_CODE + 4 * 10, TOY_CODE + 4 * 40};
	uint8_t all[64][4] = {{0}};
	struct layout l = *layout_find(3, 13);
	uint32_t loads[NATIVE_DEFS];
	enum native_through ret;

	l.type_descr_get = 200;
	memcpy(all, code, 6 * sizeof(*all));
	memcpy(all[6], (const uint8_t[4]){TOY_RET}, 4);
	memcpy(all[10], (const uint8_t[4]){TOY_RET}, 4);
	memcpy(all[40], (const uint8_t[4]){TOY_LOAD, 5, 0, 8}, 4);
	memcpy(all[41], (const uint8_t[4]){TOY_CALLM, 0, 5, TP_CALL}, 4);
	memcpy(all[42], (const uint8_t[4]){TOY_RET}, 4);
	OPEN(all, TOY_DATA_OF(data), .layout = &l);
	ret = native_through_of(&n, node(5), loads, nloads);
	for (int i = 0; i < *nloads; i++)
		cr_expect_lt(toy_at(&rig, loads[i]), 5);
	close_native();
	return ret;
}

#define NOPS                                                                                       \
	{TOY_NOP}, {TOY_NOP},                                                                      \
	{                                                                                          \
		TOY_NOP                                                                            \
	}

static void expect_through(enum native_through want, int want_loads, const uint8_t (*code)[4])
{
	int nloads = -2;

	cr_expect_eq(through(code, &nloads), want, "%u %u %u", code[5][0], code[5][1], code[5][3]);
	cr_expect_eq(nloads, want_loads, "%d loads", nloads);
}

#define THROUGH(want, loads, ...) expect_through(want, loads, (const uint8_t[][4]){__VA_ARGS__})

Test(indirect, fields)
{
	static const struct {
		uint8_t disp;
		enum native_through want;
	} v[] = {
		{8, NATIVE_METHOD},	/* ml_meth */
		{48, NATIVE_HARMLESS},	/* tp_dealloc */
		{200, NATIVE_HARMLESS}, /* tp_descr_get */
		{80, NATIVE_HARMLESS},	/* c_profilefunc */
		{88, NATIVE_HARMLESS},	/* c_tracefunc */
		{0, NATIVE_UNKNOWN},	{128, NATIVE_UNKNOWN}, {56, NATIVE_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		/* An operand of the call, or loaded before */
		THROUGH(v[i].want, 0, NOPS, {TOY_NOP}, {TOY_NOP}, {TOY_CALLM, 0, 7, v[i].disp});
		THROUGH(v[i].want, 1, NOPS, {TOY_LOAD, 6, 7, v[i].disp}, {TOY_MOV, 8, 6},
			{TOY_CALLR, 8});
		THROUGH(v[i].want, 1, NOPS, {TOY_LOAD, 6, 7, v[i].disp}, {TOY_STORE, 6, SP, 16},
			{TOY_CALLM, 0, SP, 16});
	}
	check_no_leaks();
}

Test(indirect, constants)
{
	/* The first function in the data calls nothing, the second its argument. */
	THROUGH(NATIVE_HARMLESS, 1, NOPS, {TOY_NOP}, {TOY_LOADG, 6, TOY_TO_DATA(0)},
		{TOY_CALLR, 6});
	THROUGH(NATIVE_UNKNOWN, 1, NOPS, {TOY_NOP}, {TOY_LOADG, 6, TOY_TO_DATA(1)}, {TOY_CALLR, 6});
	THROUGH(NATIVE_HARMLESS, 1, NOPS, {TOY_NOP}, {TOY_LOADG, 6, TOY_TO(0x8000)},
		{TOY_CALLR, 6});
	/* Relative to a register with an address */
	THROUGH(NATIVE_HARMLESS, 0, NOPS, {TOY_NOP}, {TOY_ADDR, 6, TOY_TO_DATA(0)},
		{TOY_CALLM, 0, 6, 0});
	THROUGH(NATIVE_UNKNOWN, 0, NOPS, {TOY_NOP}, {TOY_ADDR, 6, TOY_TO_DATA(0)},
		{TOY_CALLM, 0, 6, 8});
	THROUGH(NATIVE_UNKNOWN, 1, NOPS, {TOY_ADDR, 6, TOY_TO_DATA(0)}, {TOY_LOAD, 5, 6, 8},
		{TOY_CALLR, 5});
	check_no_leaks();
}

Test(indirect, sums_of_registers)
{
	THROUGH(NATIVE_VECTORCALL, 1, NOPS, {TOY_NOP}, {TOY_LOADX, 6, 0, 17}, {TOY_CALLR, 6});
	THROUGH(NATIVE_VECTORCALL, 1, NOPS, {TOY_NOP}, {TOY_LOADX, 6, 17, 0}, {TOY_CALLR, 6});
	/* Only an address, not what is there */
	THROUGH(NATIVE_UNKNOWN, 1, NOPS, {TOY_NOP}, {TOY_LEA, 6, 7, 8}, {TOY_CALLR, 6});
	check_no_leaks();
}

Test(indirect, several_origins)
{
	THROUGH(NATIVE_METHOD, 2, {TOY_CBNZ, 9, TOY_TO(3)}, {TOY_LOAD, 6, 7, 8},
		{TOY_B, 0, TOY_TO(4)}, {TOY_LOAD, 6, 8, 8}, {TOY_NOP}, {TOY_CALLR, 6});
	THROUGH(NATIVE_UNKNOWN, 2, {TOY_CBNZ, 9, TOY_TO(3)}, {TOY_LOAD, 6, 7, 48},
		{TOY_B, 0, TOY_TO(4)}, {TOY_LOAD, 6, 8, 8}, {TOY_NOP}, {TOY_CALLR, 6});
	/* Computed, set by the caller, or not a pointer on the stack */
	THROUGH(NATIVE_UNKNOWN, 1, NOPS, {TOY_NOP}, {TOY_ADD, 6, 7}, {TOY_CALLR, 6});
	THROUGH(NATIVE_UNKNOWN, 1, NOPS, {TOY_NOP}, {TOY_MOV, 6, SP}, {TOY_CALLR, 6});
	THROUGH(NATIVE_UNKNOWN, -1, NOPS, {TOY_NOP}, {TOY_NOP}, {TOY_CALLR, 6});
	THROUGH(NATIVE_UNKNOWN, 0, NOPS, {TOY_NOP}, {TOY_NOP}, {TOY_CALLM, 0, SP, 8});
	check_no_leaks();
}

/* ---- edges ---------------------------------------------------------------------------------- */

static void expect_native(unsigned int i, int at, enum pyp_site_kind kind, const char *role)
{
	const struct plan_site *s = &rig.plan.native[i];

	cr_assert_lt(i, rig.plan.nnative, "%u sites: %s", rig.plan.nnative,
		     rig.plan.native_missing);
	cr_expect_eq(toy_site_at(s), at, "%u: at %d", i, toy_site_at(s));
	cr_expect_eq(s->kind, kind, "%u: kind %d", i, s->kind);
	cr_expect_str_eq(s->role, role);
	cr_expect_eq(s->has_callable, kind != PYP_SITE_C_LEAVE);
}

static void expect_edge(unsigned int i, int callable, int cc, bool taken)
{
	const struct plan_site *s = &rig.plan.native[i];

	cr_expect_eq(s->callable_reg, callable, "%u: callable %u", i, s->callable_reg);
	cr_expect(s->has_cc && s->cc == cc && s->taken == taken, "%u: %d %u %d", i, s->has_cc,
		  s->cc, s->taken);
}

Test(edges, where_a_call_becomes_certain)
{
	uint8_t code[][4] = {
		{TOY_RET},		   /* 0 */
		{TOY_CMPI, 5, 1},	   /* 1 */
		{TOY_BEQ, 0, TOY_TO(6)},   /* 2: without a call */
		{TOY_CMPI, 6, 1},	   /* 3 */
		{TOY_BNE, 0, TOY_TO(8)},   /* 4: either call */
		{TOY_CALL, 0, TOY_TO(0)},  /* 5 */
		{TOY_CBNZ, 7, TOY_TO(10)}, /* 6: abort */
		{TOY_BR, 9},		   /* 7 */
		{TOY_CALL, 0, TOY_TO(0)},  /* 8 */
		{TOY_BR, 9},		   /* 9 */
		{TOY_STOP},		   /* 10 */
	};
	struct flow_state callable[11];
	uint8_t calls[11] = {0}, within[11];
	const struct native_group g = {"role", PYP_SITE_C_ENTER, within, callable};
	unsigned int count = 7;

	for (int i = 0; i < 11; i++)
		callable[i] = (struct flow_state){.reached = true, .regs = R(17)};
	memset(within, 1, sizeof(within));
	OPEN(code, .handler = {{1, 1}});
	calls[node(5)] = calls[node(8)] = 1;
	assert_ok(native_certain_edges(&n, &g, calls, &count));
	cr_expect_eq(count, 8);
	cr_expect_eq(rig.plan.nnative, 1);
	expect_native(0, 2, PYP_SITE_C_ENTER, "role");
	expect_edge(0, 17, 1, false);
	/* The same again is the same site. */
	assert_ok(native_certain_edges(&n, &g, calls, &count));
	cr_expect(rig.plan.nnative == 1 && count == 9);
	rig.plan.nnative = 0;
	within[node(2)] = 0;
	assert_ok(native_certain_edges(&n, &g, calls, &count));
	cr_expect(rig.plan.nnative == 0 && count == 9);
	/* Only one of the calls counts. */
	within[node(2)] = 1;
	calls[node(5)] = 0;
	assert_ok(native_certain_edges(&n, &g, calls, &count));
	cr_expect_eq(rig.plan.nnative, 1);
	expect_native(0, 4, PYP_SITE_C_ENTER, "role");
	expect_edge(0, 17, 0, true);
	rig.plan.native[0].vaddr = 0;
	rig.plan.nnative = PYP_MAX_NATIVE_SITES;
	assert_err(native_certain_edges(&n, &g, calls, &count), -ENOEXEC);
	cr_expect(strstr(n.p.missing, "more than 96 sites"), "%s", n.p.missing);
	close_native();
	/* A branch whose condition cannot be evaluated */
	memcpy(code[2], (const uint8_t[4]){TOY_CBNZ, 5, TOY_TO(6)}, 4);
	OPEN(code, .handler = {{1, 1}});
	rig.plan.nnative = 0;
	calls[node(5)] = 1;
	assert_err(native_certain_edges(&n, &g, calls, &count), -ENOEXEC);
	cr_expect(strstr(n.p.missing, "role (no site where it becomes certain, 0x400008"), "%s",
		  n.p.missing);
	end();
}

Test(edges, where_a_call_has_returned)
{
	static const uint8_t code[][4] = {
		{TOY_CALL, 0, TOY_TO(0)}, /* 0 */
		{TOY_MOV, 5, 0},	  /* 1 */
		{TOY_NOP},		  /* 2 */
		{TOY_PUSH, 5},		  /* 3: shared */
		{TOY_BEQ, 0, TOY_TO(3)},  /* 4 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 5 */
		{TOY_MOV, 5, 0},	  /* 6: shared */
		{TOY_NOP},		  /* 7 */
		{TOY_BNE, 0, TOY_TO(6)},  /* 8 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 9 */
		{TOY_MOV, 5, 0},	  /* 10 */
		{TOY_BR, 9},		  /* 11 */
	};

	OPEN(code);
	memset(n.frame, 0, n.p.cfg.n * sizeof(*n.frame));
	for (uint32_t i = 0; i < n.p.cfg.n; i++)
		n.frame[i] = (struct flow_state){.reached = true, .regs = R(FRAME)};
	cr_expect_not(native_leave_is_shared(&n, node(0)));
	cr_expect(native_leave_is_shared(&n, node(5)));
	cr_expect(native_leave_is_shared(&n, node(9)));
	n.over[node(0)] = n.over[node(5)] = 1;
	assert_ok(native_leaves(&n));
	cr_expect_eq(rig.plan.nnative, 2);
	expect_native(0, 2, PYP_SITE_C_LEAVE, "returned");
	expect_native(1, 7, PYP_SITE_C_LEAVE, "returned");
	/* Where there is another site, the next one */
	rig.plan.nnative = 0;
	rig.plan.nsites = 1;
	rig.plan.sites[0].vaddr = TOY_CODE + 8;
	n.over[node(5)] = 0;
	assert_ok(native_leaves(&n));
	cr_expect_eq(rig.plan.nnative, 1);
	expect_native(0, 3, PYP_SITE_C_LEAVE, "returned");
	rig.plan.native[0].vaddr = rig.plan.native[1].vaddr = 0;
	rig.plan.nnative = PYP_MAX_NATIVE_SITES;
	assert_err(native_leaves(&n), -ENOEXEC);
	cr_expect(strstr(n.p.missing, "more than 96 sites"), "%s", n.p.missing);
	n.p.missing[0] = '\0';
	rig.plan.nnative = 0;
	n.over[node(9)] = 1;
	assert_err(native_leaves(&n), -ENOEXEC);
	cr_expect(strstr(n.p.missing, "where the call at 0x400024 has returned"), "%s",
		  n.p.missing);
	end();
}

/* ---- opcodes that call anything ------------------------------------------------------------- */

/* 3.13 with these opcodes only: 1 calls, 2 does not, 3 can become the first. */
static int plan_generic(const uint8_t (*code)[4], size_t size, const struct toy_handler h[3])
{
	struct layout l = *layout_find(3, 13);
	struct toy_program program = {.code = code,
				      .n = size,
				      .full = full,
				      .layout = &l,
				      .plt = {"PyObject_Vectorcall", "strlen", "PyAny_Call"}};

	l.calls = (struct layout_calls){.generic = {1}, .related = {3}};
	memcpy(program.handler, h, 3 * sizeof(*h));
	toy_open(&rig, &program);
	return native_plan(&rig.p);
}

/* A call by name (or of a function, by its code), after it an instruction that the kernel emulates */
static const uint8_t generic[][4] = {
	{TOY_RET},		      /* 0 */
	{TOY_MOV, 0, 17},	      /* 1: opcode 1 */
	{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 2 */
	{TOY_MOV, 5, 0},	      /* 3 */
	{TOY_NOP},		      /* 4 */
	{TOY_BR, 9},		      /* 5 */
	{TOY_NOP},		      /* 6: opcode 2 */
	{TOY_BR, 9},		      /* 7 */
	{TOY_LOAD, 5, 1, 8},	      /* 8: calls its second argument */
	{TOY_CALLM, 0, 5, TP_CALL},   /* 9 */
	{TOY_RET},		      /* 10 */
	{TOY_B, 0, TOY_TO(1)},	      /* 11: opcode 3 */
};

#define GENERIC (sizeof(generic) / 4)
#define HANDLERS                                                                                   \
	(const struct toy_handler[3])                                                              \
	{                                                                                          \
		{1, 1}, {2, 6},                                                                    \
		{                                                                                  \
			3, 11                                                                      \
		}                                                                                  \
	}

static void expect_none(const uint8_t (*code)[4], const struct toy_handler h[3],
			const char *missing)
{
	assert_ok(plan_generic(code, GENERIC, h));
	cr_expect_eq(rig.plan.nnative, 0);
	cr_expect(strstr(rig.plan.native_missing, missing), "%s", rig.plan.native_missing);
	cr_expect_str_eq(rig.p.missing, "");
	toy_close(&rig);
}

Test(generic, direct_calls)
{
	uint8_t code[GENERIC][4];

	assert_ok(plan_generic(generic, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 2, PYP_SITE_C_ENTER, "PyObject_Vectorcall");
	expect_native(1, 4, PYP_SITE_C_LEAVE, "returned");
	cr_expect_eq(rig.plan.native[0].callable_reg, 0);
	toy_close(&rig);
	memcpy(code, generic, sizeof(code));
	toy_change(code, 2, TOY_CALL, 0, 8, 0);
	assert_ok(plan_generic(code, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 2, PYP_SITE_C_ENTER, "call");
	cr_expect_eq(rig.plan.native[0].callable_reg, 1);
	toy_close(&rig);
	/* A jump does not return. */
	memcpy(code[2], (const uint8_t[4]){TOY_B, 0, TOY_TO_PLT(0)}, 4);
	assert_ok(plan_generic(code, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 1, "%s", rig.plan.native_missing);
	expect_native(0, 2, PYP_SITE_C_ENTER, "PyObject_Vectorcall");
	/* Another function's sites stay. */
	rig.layout.calls.generic[0] = 0;
	assert_ok(native_plan(&rig.p));
	cr_expect_eq(rig.plan.nnative, 0);
	cr_expect(strstr(rig.plan.native_missing, "unknown for this version"));
	toy_close(&rig);
	check_no_leaks();
}

Test(generic, what_is_missing)
{
	uint8_t code[GENERIC][4];

	memcpy(code, generic, sizeof(code));
	expect_none(code, (const struct toy_handler[3]){{2, 6}, {3, 11}, {4, 1}},
		    "opcode 1 (it has no");
	expect_none(code, (const struct toy_handler[3]){{1, 1}, {2, 1}, {3, 11}},
		    "opcode 1 (it has no");
	memcpy(code[2], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(1)}, 4);
	expect_none(code, HANDLERS, "opcode 1 (its handler calls nothing)");
	/* The call is behind one that might be another. */
	memcpy(code, generic, sizeof(code));
	toy_change(code, 0, TOY_BR, 9, 0, 0);
	memcpy(code[1], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(2)}, 4);
	expect_none(code, HANDLERS, "calls (a call of PyAny_Call at 0x400004)");
	toy_change(code, 1, TOY_CALLR, 18, 0, 0);
	expect_none(code, HANDLERS, "calls (an unknown indirect call at 0x400004)");
	toy_change(code, 4, TOY_MOV, 5, 6, 0);
	toy_change(code, 1, TOY_MOV, 5, 6, 0);
	expect_none(code, HANDLERS, "where the call at 0x400008 has returned");
	/* The frame is unknown at the call. */
	memcpy(code, generic, sizeof(code));
	toy_change(code, 1, TOY_MOV, FRAME, 5, 0);
	expect_none(code, HANDLERS, "site at the call at 0x400008");
	check_no_leaks();
}

/* A harmless indirect call, and one in code of another opcode, which is not for callables. */
Test(generic, other_calls)
{
	uint8_t code[GENERIC][4];

	memcpy(code, generic, sizeof(code));
	toy_change(code, 1, TOY_CALLM, 0, 7, 48);
	assert_ok(plan_generic(code, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	memcpy(code[1], (const uint8_t[4]){TOY_CBNZ, 5, TOY_TO(6)}, 4);
	toy_change(code, 6, TOY_CALLR, 18, 0, 0);
	assert_ok(plan_generic(code, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	memcpy(code[6], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(2)}, 4);
	assert_ok(plan_generic(code, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	/* But a direct call there of a function that calls may call this opcode's callable. */
	memcpy(code[6], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(0)}, 4);
	expect_none(code, HANDLERS, "calls (a call at 0x400018 without a site)");
	check_no_leaks();
}

/* The code calls through a pointer in the callable, if it has one. */
static const uint8_t inlined[][4] = {
	{TOY_RET},		  /* 0 */
	{TOY_LOAD, 5, 17, 8},	  /* 1: opcode 1 */
	{TOY_LOAD, 6, 5, 56},	  /* 2: tp_vectorcall_offset */
	{TOY_LOADX, 7, 6, 17},	  /* 3 */
	{TOY_MOV, 0, 17},	  /* 4 */
	{TOY_CMPI, 7, 0},	  /* 5 */
	{TOY_BEQ, 0, TOY_TO(11)}, /* 6 */
	{TOY_CALLR, 7},		  /* 7 */
	{TOY_MOV, 5, 0},	  /* 8 */
	{TOY_PUSH, 5},		  /* 9 */
	{TOY_BR, 9},		  /* 10 */
	{TOY_BR, 9},		  /* 11 */
	{TOY_BR, 9},		  /* 12: opcodes 2, 3 */
};

#define INLINED (sizeof(inlined) / 4)
#define INLINED_HANDLERS                                                                           \
	(const struct toy_handler[3])                                                              \
	{                                                                                          \
		{1, 1}, {2, 12},                                                                   \
		{                                                                                  \
			3, 12                                                                      \
		}                                                                                  \
	}

Test(generic, inlined_calls)
{
	uint8_t code[INLINED][4];

	assert_ok(plan_generic(inlined, INLINED, INLINED_HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 6, PYP_SITE_C_ENTER, "vectorcall");
	expect_edge(0, 0, 1, false);
	expect_native(1, 9, PYP_SITE_C_LEAVE, "returned");
	toy_close(&rig);
	/* The other register is the callable, and the other edge. */
	memcpy(code, inlined, sizeof(code));
	toy_change(code, 3, TOY_LOADX, 7, 17, 6);
	memcpy(code[6], (const uint8_t[4]){TOY_BNE, 0, TOY_TO(8)}, 4);
	toy_change(code, 7, TOY_BR, 9, 0, 0);
	toy_change(code, 8, TOY_CALLR, 7, 0, 0);
	assert_ok(plan_generic(code, INLINED, INLINED_HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 6, PYP_SITE_C_ENTER, "vectorcall");
	expect_edge(0, 0, 0, true);
	toy_close(&rig);
	/* Neither is the call's argument; it is always called. */
	memcpy(code, inlined, sizeof(code));
	toy_change(code, 4, TOY_MOV, 0, 18, 0);
	assert_ok(plan_generic(code, INLINED, INLINED_HANDLERS));
	cr_expect(strstr(rig.plan.native_missing, "callable of the call at 0x40001c"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	memcpy(code, inlined, sizeof(code));
	toy_change(code, 6, TOY_NOP, 0, 0, 0);
	assert_ok(plan_generic(code, INLINED, INLINED_HANDLERS));
	cr_expect(strstr(rig.plan.native_missing, "vectorcall (never becomes certain)"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	check_no_leaks();
}

/* ---- helpers, before 3.11 ------------------------------------------------------------------- */

/* The evaluator calls through a function at 20. 3.8: the frame is the first argument. */
static int plan_helped(const uint8_t (*code)[4], size_t size)
{
	struct layout l = *layout_find(3, 8);

	l.calls = (struct layout_calls){.generic = {1, 2}};
	toy_open(&rig,
		 &(struct toy_program){.code = code,
				       .n = size,
				       .full = full,
				       .layout = &l,
				       .handler = {{1, 4}, {2, 7}, {3, 11}},
				       .plt = {"PyObject_Vectorcall", "strlen", "PyAny_Call"}});
	return native_plan(&rig.p);
}

static const uint8_t helped[][4] = {
	{TOY_MOV, 20, 0},	      /* 0 */
	{TOY_BR, 9},		      /* 1 */
	{TOY_NOP},		      /* 2 */
	{TOY_NOP},		      /* 3 */
	{TOY_MOV, 21, 20},	      /* 4: opcode 1 */
	{TOY_CALL, 0, TOY_TO(20)},    /* 5 */
	{TOY_BR, 9},		      /* 6 */
	{TOY_MOV, 21, 5},	      /* 7: opcode 2 */
	{TOY_CALL, 0, TOY_TO(20)},    /* 8 */
	{TOY_BR, 9},		      /* 9 */
	{TOY_NOP},		      /* 10 */
	{TOY_MOV, 22, 20},	      /* 11: opcode 3, where the frame is elsewhere at a call */
	{TOY_MOV, 20, 5},	      /* 12 */
	{TOY_CALL, 0, TOY_TO_PLT(1)}, /* 13 */
	{TOY_MOV, 20, 22},	      /* 14 */
	{TOY_BR, 9},		      /* 15 */
	{TOY_NOP},		      /* 16 */
	{TOY_NOP},		      /* 17 */
	{TOY_NOP},		      /* 18 */
	{TOY_NOP},		      /* 19 */
	{TOY_LOAD, 0, 1, 0},	      /* 20: the helper */
	{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 21 */
	{TOY_NOP},		      /* 22 */
	{TOY_RET},		      /* 23 */
	{TOY_LOAD, 0, 1, 0},	      /* 24: another one */
	{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 25 */
	{TOY_NOP},		      /* 26 */
	{TOY_RET},		      /* 27 */
};

#define HELPED (sizeof(helped) / 4)

Test(helper, has_the_sites)
{
	uint8_t code[HELPED][4];

	assert_ok(plan_helped(helped, HELPED));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 21, PYP_SITE_C_ENTER, "PyObject_Vectorcall");
	expect_native(1, 22, PYP_SITE_C_LEAVE, "returned");
	/* Both callers have it there. */
	cr_expect(rig.plan.native[0].reg == 20 && !rig.plan.native[0].deref);
	toy_close(&rig);
	/* One does not, or not surely. */
	memcpy(code, helped, sizeof(code));
	toy_change(code, 7, TOY_MOV, 21, 20, 0);
	toy_change(code, 4, TOY_MOV, 21, 20, 0);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.native[0].reg, 20);
	toy_close(&rig);
	/* Other opcodes' helpers have none. */
	toy_change(code, 13, TOY_CALL, 0, 24, 0);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	expect_native(0, 21, PYP_SITE_C_ENTER, "PyObject_Vectorcall");
	toy_close(&rig);
	/* The helper calls something else, too. */
	memcpy(code, helped, sizeof(code));
	memcpy(code[20], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(2)}, 4);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.nnative, 0);
	cr_expect(strstr(rig.plan.native_missing, "call_function (a call of PyAny_Call"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	/* Nothing shows its return. */
	memcpy(code, helped, sizeof(code));
	toy_change(code, 22, TOY_MOV, 5, 6, 0);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.nnative, 0);
	cr_expect(strstr(rig.plan.native_missing, "where the call at 0x400054 has returned"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	/* It makes no calls. */
	memcpy(code, helped, sizeof(code));
	memcpy(code[21], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(1)}, 4);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.nnative, 0);
	cr_expect(strstr(rig.plan.native_missing, "opcode 1 (its handler calls nothing)"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	check_no_leaks();
}

/* The function calls its argument: the call itself is the site, unless its return is not visible there. */
Test(helper, calls_its_argument)
{
	uint8_t code[HELPED][4];

	memcpy(code, helped, sizeof(code));
	toy_change(code, 20, TOY_MOV, 0, 1, 0);
	toy_change(code, 6, TOY_NOP, 0, 0, 0);
	toy_change(code, 7, TOY_BR, 9, 0, 0);
	toy_change(code, 8, TOY_CALL, 0, 20, 0);
	toy_change(code, 9, TOY_NOP, 0, 0, 0);
	toy_change(code, 10, TOY_BR, 9, 0, 0);
	memcpy(code[3], (const uint8_t[4]){TOY_NOP}, 4);
	assert_ok(plan_helped(code, HELPED));
	cr_expect(strstr(rig.plan.native_missing, "opcode 2 (its handler calls nothing)"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	toy_change(code, 7, TOY_NOP, 0, 0, 0);
	toy_change(code, 6, TOY_CBNZ, 5, 6, 0);
	assert_ok(plan_helped(code, HELPED));
	cr_expect_eq(rig.plan.nnative, 4, "%s", rig.plan.native_missing);
	toy_close(&rig);
	check_no_leaks();
}

/* ---- opcodes for one type of callable ------------------------------------------------------- */

#define FUNCTION   TOY_TO_DATA(0)
#define DESCRIPTOR TOY_TO_DATA(1)

/*
 * Opcode 4 calls anything. 1 calls functions, 2 methods, 3 len, 5 isinstance, 6 is list.append; each
 * becomes opcode 4 if the callable is another one.
 */
static const uint8_t typed[][4] = {
	{TOY_RET},		      /* 0 */
	{TOY_MOV, 0, 17},	      /* 1: opcode 4 */
	{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 2 */
	{TOY_NOP},		      /* 3 */
	{TOY_BR, 9},		      /* 4 */
	{TOY_LOAD, 18, 16, 0},	      /* 5: opcode 1 */
	{TOY_LOAD, 6, 18, 8},	      /* 6 */
	{TOY_CMPA, 6, FUNCTION},      /* 7 */
	{TOY_BNE, 0, TOY_TO(1)},      /* 8 */
	{TOY_LOAD, 7, 18, 16},	      /* 9 */
	{TOY_LOAD, 8, 7, 8},	      /* 10: ml_meth */
	{TOY_CALLR, 8},		      /* 11 */
	{TOY_NOP},		      /* 12 */
	{TOY_BR, 9},		      /* 13 */
	{TOY_LOAD, 18, 16, 0},	      /* 14: opcode 2 */
	{TOY_LOAD, 6, 18, 8},	      /* 15 */
	{TOY_ADDR, 7, DESCRIPTOR},    /* 16 */
	{TOY_CMP, 7, 6},	      /* 17 */
	{TOY_BEQ, 0, TOY_TO(20)},     /* 18 */
	{TOY_B, 0, TOY_TO(1)},	      /* 19 */
	{TOY_LOAD, 7, 18, 16},	      /* 20 */
	{TOY_CALLM, 0, 7, 8},	      /* 21 */
	{TOY_NOP},		      /* 22 */
	{TOY_BR, 9},		      /* 23 */
	{TOY_LOAD, 18, 16, 0},	      /* 24: opcode 3 */
	{TOY_LOADF, 6, 19, 64},	      /* 25: in the interpreter */
	{TOY_CMP, 6, 18},	      /* 26 */
	{TOY_BNE, 0, TOY_TO(1)},      /* 27 */
	{TOY_CALL, 0, TOY_TO_PLT(1)}, /* 28 */
	{TOY_NOP},		      /* 29 */
	{TOY_BR, 9},		      /* 30 */
	{TOY_LOAD, 18, 16, 0},	      /* 31: opcode 5 */
	{TOY_LOADF, 6, 19, 65},	      /* 32 */
	{TOY_CMP, 18, 6},	      /* 33 */
	{TOY_BEQ, 0, TOY_TO(36)},     /* 34 */
	{TOY_B, 0, TOY_TO(1)},	      /* 35 */
	{TOY_CALL, 0, TOY_TO_PLT(1)}, /* 36 */
	{TOY_NOP},		      /* 37 */
	{TOY_BR, 9},		      /* 38 */
	{TOY_LOAD, 18, 16, 0},	      /* 39: opcode 6 */
	{TOY_LOADF, 6, 19, 66},	      /* 40 */
	{TOY_CMP, 6, 18},	      /* 41 */
	{TOY_BNE, 0, TOY_TO(1)},      /* 42 */
	{TOY_NOP},		      /* 43 */
	{TOY_BR, 9},		      /* 44 */
	{TOY_BR, 9},		      /* 45: opcode 7 */
	{TOY_MOV, 5, 6},	      /* 46 */
	{TOY_CALL, 0, TOY_TO_PLT(1)}, /* 47 */
	{TOY_NOP},		      /* 48 */
	{TOY_BR, 9},		      /* 49 */
	{TOY_LOAD, 18, 16, 0},	      /* 50: another opcode 3, which combines two conditions */
	{TOY_LOADF, 6, 19, 64},	      /* 51 */
	{TOY_CMP, 6, 18},	      /* 52 */
	{TOY_SNE, 7},		      /* 53 */
	{TOY_CMPI, 8, 1},	      /* 54 */
	{TOY_SNE, 9},		      /* 55 */
	{TOY_OR, 7, 9},		      /* 56 */
	{TOY_BNE, 0, TOY_TO(1)},      /* 57 */
	{TOY_B, 0, TOY_TO(28)},	      /* 58 */
	{TOY_STOP},		      /* 59 */
};

#define TYPED (sizeof(typed) / 4)

/* len: where opcode 3 begins; tagged: as since 3.14 */
static int plan_tagged(const uint8_t (*code)[4], unsigned int len, bool tagged)
{
	static const uint64_t data[] = {0, 0};
	struct layout l = *layout_find(3, 13);

	l.calls = (struct layout_calls){.generic = {4},
					.function = {1},
					.descriptor = {2},
					.cached = {3, 5},
					.append = 6,
					.related = {7},
					.tagged = tagged};
	toy_open(&rig,
		 &(struct toy_program){
			 .code = code,
			 .n = TYPED,
			 .full = full,
			 TOY_DATA_OF(data),
			 .layout = &l,
			 .handler = {{4, 1}, {1, 5}, {2, 14}, {3, len}, {5, 31}, {6, 39}, {7, 45}},
			 .symbol = {{"PyCFunction_Type", TOY_DATA},
				    {"PyMethodDescr_Type", TOY_DATA + 8}},
			 .plt = {"PyObject_Vectorcall", "strlen", "PyAny_Call"}});
	return native_plan(&rig.p);
}

static int plan_typed(const uint8_t (*code)[4])
{
	return plan_tagged(code, 24, false);
}

static void expect_typed(unsigned int i, int at, const char *role, int cc, bool taken, bool same)
{
	expect_native(i, at, i == 11 ? PYP_SITE_C_INSTANT : PYP_SITE_C_ENTER, role);
	expect_edge(i, 18, cc, taken);
	cr_expect_eq(rig.plan.native[i].same_callable, same, "%u", i);
}

Test(typed, calls_of_functions_and_methods)
{
	static const int leaves[] = {3, 12, 22, 29, 37};

	assert_ok(plan_typed(typed));
	cr_expect_eq(rig.plan.nnative, 11, "%s", rig.plan.native_missing);
	expect_native(0, 2, PYP_SITE_C_ENTER, "PyObject_Vectorcall");
	expect_typed(2, 8, "builtin", 0, false, false);
	expect_typed(4, 18, "method", 1, true, false);
	expect_typed(6, 27, "len", 0, false, true);
	expect_typed(8, 34, "isinstance", 1, true, true);
	expect_native(10, 42, PYP_SITE_C_INSTANT, "list.append");
	expect_edge(10, 18, 0, false);
	cr_expect(rig.plan.native[10].same_callable);
	for (unsigned int i = 0; i < 5; i++)
		expect_native(2 * i + 1, leaves[i], PYP_SITE_C_LEAVE, "returned");
	toy_close(&rig);
	check_no_leaks();
}

/* Between the test and the call is more code. */
Test(typed, the_first_call)
{
	uint8_t code[TYPED][4];
	bool found = false;

	memcpy(code, typed, sizeof(code));
	toy_change(code, 28, TOY_B, 0, 46, 0);
	assert_ok(plan_typed(code));
	cr_expect_eq(rig.plan.nnative, 11, "%s", rig.plan.native_missing);
	for (unsigned int i = 0; i < rig.plan.nnative; i++)
		found |= toy_site_at(&rig.plan.native[i]) == 48 &&
			 rig.plan.native[i].kind == PYP_SITE_C_LEAVE;
	cr_expect(found);
	toy_close(&rig);
	check_no_leaks();
}

/* An edge to where the program aborts is none where the call becomes certain. */
Test(typed, some_paths_abort)
{
	uint8_t code[TYPED][4];

	memcpy(code, typed, sizeof(code));
	toy_change(code, 39, TOY_BEQ, 0, 59, 0);
	toy_change(code, 40, TOY_LOAD, 18, 16, 0);
	toy_change(code, 41, TOY_LOADF, 6, 19, 66);
	toy_change(code, 42, TOY_CMP, 6, 18, 0);
	toy_change(code, 43, TOY_BNE, 0, 1, 0);
	assert_ok(plan_typed(code));
	cr_expect_eq(rig.plan.nnative, 11, "%s", rig.plan.native_missing);
	expect_native(10, 43, PYP_SITE_C_INSTANT, "list.append");
	toy_close(&rig);
	check_no_leaks();
}

/* The branch is at 57, with these instructions before it. */
static const struct plan_site *combined(const uint8_t (*insn)[4])
{
	uint8_t code[TYPED][4];
	const struct plan_site *ret = NULL;

	memcpy(code, typed, sizeof(code));
	memcpy(code[53], insn[0], 4);
	memcpy(code[55], insn[1], 4);
	memcpy(code[56], insn[2], 4);
	memcpy(code[57], insn[3], 4);
	assert_ok(plan_tagged(code, 50, false));
	for (unsigned int i = 0; i < rig.plan.nnative; i++)
		if (toy_site_at(&rig.plan.native[i]) == 57)
			ret = &rig.plan.native[i];
	cr_expect_eq(rig.plan.nnative, ret ? 11 : 0);
	cr_expect(ret || strstr(rig.plan.native_missing, "len (its test decides nothing)"), "%s",
		  rig.plan.native_missing);
	toy_close(&rig);
	return ret;
}

#define COMBINED(...) combined((const uint8_t[][4]){__VA_ARGS__})

/* Jump if (a != b) | c, or if ((a == b) & c) is 0 */
Test(typed, conditions_are_combined)
{
	const struct plan_site *s =
		COMBINED({TOY_SNE, 7}, {TOY_SNE, 9}, {TOY_OR, 7, 9}, {TOY_BNE, 0, TOY_TO(1)});

	cr_expect(s && s->cc == 0 && !s->taken && s->callable_reg == 18);
	s = COMBINED({TOY_SNE, 7}, {TOY_SNE, 9}, {TOY_OR, 9, 7}, {TOY_BNE, 0, TOY_TO(1)});
	cr_expect(s && !s->taken);
	s = COMBINED({TOY_SEQ, 7}, {TOY_SEQ, 9}, {TOY_AND, 7, 9}, {TOY_BEQ, 0, TOY_TO(1)});
	cr_expect(s && s->cc == 1 && !s->taken);
	s = COMBINED({TOY_SEQ, 7}, {TOY_SEQ, 9}, {TOY_TEST, 9, 7}, {TOY_BEQ, 0, TOY_TO(1)});
	cr_expect(s && s->cc == 1 && !s->taken);
	/* The wrong combination; another register's */
	cr_expect_null(
		COMBINED({TOY_SEQ, 7}, {TOY_SNE, 9}, {TOY_OR, 7, 9}, {TOY_BNE, 0, TOY_TO(1)}));
	cr_expect_null(
		COMBINED({TOY_SNE, 7}, {TOY_SEQ, 9}, {TOY_AND, 7, 9}, {TOY_BEQ, 0, TOY_TO(1)}));
	cr_expect_null(
		COMBINED({TOY_SNE, 7}, {TOY_SNE, 9}, {TOY_OR, 9, 9}, {TOY_BNE, 0, TOY_TO(1)}));
	cr_expect_null(
		COMBINED({TOY_MOV, 7, 5}, {TOY_SNE, 9}, {TOY_OR, 7, 9}, {TOY_BNE, 0, TOY_TO(1)}));
	cr_expect_null(
		COMBINED({TOY_SNE, 7}, {TOY_SNE, 9}, {TOY_ADD, 7, 9}, {TOY_BNE, 0, TOY_TO(1)}));
	check_no_leaks();
}

/* Since 3.14 the test is of an untagged copy; the callable is followed from its load. */
Test(typed, tagged_callables)
{
	uint8_t code[TYPED][4];

	memcpy(code, typed, sizeof(code));
	toy_change(code, 5, TOY_LOAD, 17, 16, 0);
	toy_change(code, 6, TOY_MOV, 18, 17, 0);
	toy_change(code, 7, TOY_UNTAG, 18, 0, 0);
	toy_change(code, 8, TOY_LOAD, 6, 18, 8);
	memcpy(code[9], (const uint8_t[4]){TOY_CMPA, 6, FUNCTION}, 4);
	toy_change(code, 10, TOY_BNE, 0, 1, 0);
	toy_change(code, 11, TOY_LOAD, 7, 18, 16);
	toy_change(code, 12, TOY_CALLM, 0, 7, 8);
	toy_change(code, 13, TOY_B, 0, 48, 0);
	assert_ok(plan_tagged(code, 24, true));
	cr_expect_eq(rig.plan.nnative, 11, "%s", rig.plan.native_missing);
	expect_native(2, 10, PYP_SITE_C_ENTER, "builtin");
	expect_edge(2, 17, 0, false);
	toy_close(&rig);
	/* It has another origin: the register that is tested */
	toy_change(code, 5, TOY_ADD, 17, 16, 0);
	assert_ok(plan_tagged(code, 24, true));
	expect_edge(2, 18, 0, false);
	toy_close(&rig);
	toy_change(code, 5, TOY_LOAD, 17, 16, 0);
	assert_ok(plan_tagged(code, 24, false));
	expect_edge(2, 18, 0, false);
	toy_close(&rig);
	check_no_leaks();
}

/* The plan for calls of C functions says what is missing if this instruction is another one. */
Test(typed, what_is_missing)
{
	static const struct {
		unsigned int at;
		uint8_t insn[4];
		const char *missing;
	} v[] = {
		{7, {TOY_CMPA, 6, TOY_TO_DATA(2)}, "guards (no test of a type)"},
		{7, {TOY_TEST, 6, 6}, "guards (no test of a type)"},
		{6, {TOY_LOAD, 6, 18, 16}, "guards (no test of a type)"},
		{6, {TOY_LOAD, 6, SP, 8}, "guards (no test of a type)"},
		{8, {TOY_NOP}, "builtin (never becomes certain)"},
		{10, {TOY_LOAD, 8, 7, 16}, "calls of methods (none found)"},
		{12, {TOY_MOV, 5, 6}, "where the call at 0x40002c has returned"},
		{45, {TOY_B, 0, TOY_TO(8)}, "builtin (no site where it becomes certain"},
		{9, {TOY_CALL, 0, TOY_TO_PLT(2)}, "builtin (a call of PyAny_Call"},
		{16, {TOY_ADDR, 7, TOY_TO_DATA(2)}, "guards (no test of a type)"},
		{20, {TOY_CALLR, 18}, "method (an unknown indirect call at 0x400050)"},
		{25, {TOY_LOADF, 6, 19, 63}, "guards (no test of a function)"},
		{25, {TOY_LOADF, 6, SP, 64}, "guards (no test of a function)"},
		{26, {TOY_CMP, 6, ZERO}, "guards (no test of a function)"},
		{27, {TOY_BLT, 0, TOY_TO(1)}, "len (its test decides nothing)"},
		{28, {TOY_NOP}, "len (calls nothing on some path)"},
		{34, {TOY_NOP}, "isinstance (its test decides nothing)"},
		{42, {TOY_NOP}, "list.append (its test decides nothing)"},
		{42, {TOY_CBNZ, 5, TOY_TO(1)}, "list.append (its test decides nothing)"},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		uint8_t code[TYPED][4];

		memcpy(code, typed, sizeof(code));
		memcpy(code[v[i].at], v[i].insn, 4);
		assert_ok(plan_typed(code));
		cr_expect_eq(rig.plan.nnative, 0, "%zu", i);
		cr_expect(strstr(rig.plan.native_missing, v[i].missing), "%zu: %s", i,
			  rig.plan.native_missing);
		toy_close(&rig);
	}
	check_no_leaks();
}

/* ---- graphs without room -------------------------------------------------------------------- */

Test(full, all_calls)
{
	full = true;
	assert_ok(plan_generic(generic, GENERIC, HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	assert_ok(plan_generic(inlined, INLINED, INLINED_HANDLERS));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	assert_ok(plan_helped(helped, HELPED));
	cr_expect_eq(rig.plan.nnative, 2, "%s", rig.plan.native_missing);
	toy_close(&rig);
	assert_ok(plan_typed(typed));
	cr_expect_eq(rig.plan.nnative, 11, "%s", rig.plan.native_missing);
	toy_close(&rig);
	check_no_leaks();
}
