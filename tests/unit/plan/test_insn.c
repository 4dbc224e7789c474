// SPDX-License-Identifier: BSD-2-Clause
/* The cost of a probe on an instruction, and the control flow after it. */
#include "harness/test.h"
#include "plan/arch/arch.h"

struct insn_case {
	const char *text;
	uint8_t code[15];
	uint8_t len;
	enum insn_probe probe;
	enum insn_flow flow;
};

/*
 * Classes as measured on 6.18 and according to the oldest kernels' sources; if they differ, the
 * more expensive one.
 */
static const struct insn_case cases[] = {
	{"nop", {0x90}, 1, INSN_EMULATED, INSN_NEXT},
	{"xchg ax, ax", {0x66, 0x90}, 2, INSN_FORBIDDEN, INSN_NEXT},
	{"nop3", {0x0f, 0x1f, 0x00}, 3, INSN_FORBIDDEN, INSN_NEXT},
	{"nop5", {0x0f, 0x1f, 0x44, 0x00, 0x00}, 5, INSN_FORBIDDEN, INSN_NEXT},
	{"nop10", {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, INSN_FORBIDDEN, INSN_NEXT},
	{"push rbp", {0x55}, 1, INSN_EMULATED, INSN_NEXT},
	{"push rax", {0x50}, 1, INSN_EMULATED, INSN_NEXT},
	{"push rdi", {0x57}, 1, INSN_EMULATED, INSN_NEXT},
	{"pop rax", {0x58}, 1, INSN_FORBIDDEN, INSN_NEXT},
	{"push r8", {0x41, 0x50}, 2, INSN_EMULATED, INSN_NEXT},
	{"push r15", {0x41, 0x57}, 2, INSN_EMULATED, INSN_NEXT},
	{"pop r8", {0x41, 0x58}, 2, INSN_FORBIDDEN, INSN_NEXT},
	{"push rax with REX.W", {0x48, 0x50}, 2, INSN_FORBIDDEN, INSN_NEXT},
	{"push rbp with a size prefix", {0x66, 0x55}, 2, INSN_FORBIDDEN, INSN_NEXT},
	{"pop rbp", {0x5d}, 1, INSN_FORBIDDEN, INSN_NEXT},
	{"jmp rel8", {0xeb, 0x10}, 2, INSN_EMULATED, INSN_JMP},
	{"jmp rel32", {0xe9, 0, 1, 0, 0}, 5, INSN_EMULATED, INSN_JMP},
	{"jo rel8", {0x70, 0x10}, 2, INSN_EMULATED, INSN_JCC},
	{"je rel8", {0x74, 0x10}, 2, INSN_EMULATED, INSN_JCC},
	{"jg rel8", {0x7f, 0x10}, 2, INSN_EMULATED, INSN_JCC},
	{"jo rel32", {0x0f, 0x80, 0, 1, 0, 0}, 6, INSN_EMULATED, INSN_JCC},
	{"jne rel32", {0x0f, 0x85, 0, 1, 0, 0}, 6, INSN_EMULATED, INSN_JCC},
	{"jg rel32", {0x0f, 0x8f, 0, 1, 0, 0}, 6, INSN_EMULATED, INSN_JCC},
	{"call rel32", {0xe8, 0, 1, 0, 0}, 5, INSN_EMULATED, INSN_CALL},
	{"call rel32 with REX", {0x48, 0xe8, 0, 1, 0, 0}, 6, INSN_FORBIDDEN, INSN_CALL},
	{"je rel32 with REX", {0x48, 0x0f, 0x84, 0, 1, 0, 0}, 7, INSN_FORBIDDEN, INSN_JCC},
	{"jrcxz", {0xe3, 0x10}, 2, INSN_FORBIDDEN, INSN_JCC},
	{"outsd", {0x6f}, 1, INSN_FORBIDDEN, INSN_NEXT},
	{"mov al, 1", {0xb0, 0x01}, 2, INSN_STEPPED, INSN_NEXT},
	{"add al, 1", {0x04, 0x01}, 2, INSN_STEPPED, INSN_NEXT},
	{"test eax, 1", {0xa9, 1, 0, 0, 0}, 5, INSN_STEPPED, INSN_NEXT},
	{"xchg eax, ecx", {0x91}, 1, INSN_FORBIDDEN, INSN_NEXT},
	{"movzx ecx, word [rax+1]", {0x0f, 0xb7, 0x88, 1, 0, 0, 0}, 7, INSN_STEPPED, INSN_NEXT},
	{"mov ax, bx", {0x66, 0x89, 0xd8}, 3, INSN_STEPPED, INSN_NEXT},
	{"imul eax, ecx", {0x0f, 0xaf, 0xc1}, 3, INSN_FORBIDDEN, INSN_NEXT},
	{"lea rax, [rdi+8]", {0x48, 0x8d, 0x47, 0x08}, 4, INSN_STEPPED, INSN_NEXT},
	{"bnd jmp", {0xf2, 0xe9, 0, 1, 0, 0}, 6, INSN_FORBIDDEN, INSN_JMP},
	{"call rax", {0xff, 0xd0}, 2, INSN_FORBIDDEN, INSN_CALL_IND},
	{"jmp rax", {0xff, 0xe0}, 2, INSN_FORBIDDEN, INSN_JMP_IND},
	{"notrack jmp rax", {0x3e, 0xff, 0xe0}, 3, INSN_FORBIDDEN, INSN_JMP_IND},
	{"ret", {0xc3}, 1, INSN_FORBIDDEN, INSN_RET},
	{"ud2", {0x0f, 0x0b}, 2, INSN_FORBIDDEN, INSN_STOP},
	{"int3", {0xcc}, 1, INSN_FORBIDDEN, INSN_STOP},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, 4, INSN_STEPPED, INSN_NEXT},
	{"mov rax, rbx", {0x48, 0x89, 0xd8}, 3, INSN_STEPPED, INSN_NEXT},
	{"lock add", {0xf0, 0x83, 0x00, 0x01}, 4, INSN_FORBIDDEN, INSN_NEXT},
	{"mov rax, fs:0", {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, 9, INSN_FORBIDDEN, INSN_NEXT},
	{"movups", {0x0f, 0x11, 0x00}, 3, INSN_FORBIDDEN, INSN_NEXT},
	{"vmovdqu", {0xc5, 0xfe, 0x6f, 0x00}, 4, INSN_FORBIDDEN, INSN_NEXT},
	{"syscall", {0x0f, 0x05}, 2, INSN_FORBIDDEN, INSN_NEXT},
	{"loop", {0xe2, 0x10}, 2, INSN_FORBIDDEN, INSN_JCC},
};

Test(insn, classes)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct insn_case *c = &cases[i];
		struct insn in;

		cr_assert(arch_x86_64.decode(c->code, sizeof(c->code), 0x1000, &in), "%s", c->text);
		cr_assert_eq(in.len, c->len, "%s: length %u", c->text, in.len);
		cr_assert_eq((int)in.probe, (int)c->probe, "%s: class %u", c->text, in.probe);
		cr_assert_eq((int)in.flow, (int)c->flow, "%s: flow %u", c->text, in.flow);
	}
}

Test(insn, branch_targets_and_conditions)
{
	const uint8_t back[] = {0x75, 0xfe}, far[] = {0x0f, 0x8e, 0xf6, 0xff, 0xff, 0xff};
	const uint8_t equal[] = {0x48, 0x0f, 0x84, 0, 0, 0, 0}, bnd[] = {0xf2, 0x75, 0x7f};
	const uint8_t call[] = {0xe8, 0, 1, 0, 0}, next[] = {0x48, 0x89, 0xd8};
	struct insn in;

	cr_assert(arch_x86_64.decode(back, sizeof(back), 0x1000, &in));
	cr_assert_eq(in.target, 0x1000);
	cr_assert_eq(in.cc, 5);
	cr_assert_eq(in.cond, INSN_COND_UNEQUAL);
	cr_assert(arch_x86_64.decode(far, sizeof(far), 0x2000, &in));
	cr_assert_eq(in.target, 0x2006 - 10);
	cr_assert_eq(in.cc, 0xe);
	cr_assert_eq(in.cond, INSN_COND_OTHER);
	/* Behind a prefix (REX, bnd) the opcode is the same. */
	cr_assert(arch_x86_64.decode(equal, sizeof(equal), 0x2000, &in));
	cr_assert(in.target == 0x2007 && in.cc == 4 && in.cond == INSN_COND_EQUAL);
	cr_assert(arch_x86_64.decode(bnd, sizeof(bnd), 0x2000, &in));
	cr_assert(in.target == 0x2003 + 0x7f && in.cc == 5 && in.cond == INSN_COND_UNEQUAL);
	cr_assert(arch_x86_64.decode(call, sizeof(call), 0x2000, &in));
	cr_assert(in.target == 0x2105 && !in.cc && !in.cond);
	cr_assert(arch_x86_64.decode(next, sizeof(next), 0x2000, &in));
	cr_assert(!in.target && !in.cc && !in.cond);
}

/* A direct call or jump, or bytes that look like one, at each offset; the distance counts from its end. */
Test(insn, branches_are_found)
{
	static const struct {
		uint8_t code[8];
		size_t n, found; /* found == n: none */
	} v[] = {
		{{0xe8, 0xfb, 0x0f, 0, 0}, 5, 0},
		{{0xe9, 0xfb, 0x0f, 0, 0}, 5, 0},
		{{0x90, 0xe8, 0xfa, 0x0f, 0, 0}, 6, 1},
		{{0x90, 0xe9, 0xfa, 0x0f, 0, 0}, 6, 1},
		{{0x0f, 0x84, 0xfa, 0x0f, 0, 0}, 6, 0},
		{{0x90, 0x0f, 0x8f, 0xf9, 0x0f, 0, 0}, 7, 1},
		{{0xe8, 0xe8, 0xfa, 0x0f, 0, 0}, 6, 1},
		{{0x0f, 0xe8, 0xfa, 0x0f, 0, 0}, 6, 1},
		{{0xe8, 0xfb, 0x0f, 0, 0}, 4, 4}, /* cut off */
		{{0x0f, 0x84, 0xfa, 0x0f, 0, 0}, 5, 5},
		{{0xe8, 0xfa, 0x0f, 0, 0}, 5, 5}, /* to elsewhere */
		{{0xea, 0xfb, 0x0f, 0, 0}, 5, 5}, /* other opcodes */
		{{0x0f, 0x94, 0xfa, 0x0f, 0, 0}, 6, 6},
		{{0x0f, 0x7f, 0xfa, 0x0f, 0, 0}, 6, 6},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		cr_expect_eq(arch_x86_64.find_branch(v[i].code, v[i].n, 0x1000, 0x2000), v[i].found,
			     "%zu", i);
	/* Backwards */
	cr_expect_eq(arch_x86_64.find_branch((const uint8_t[]){0xe8, 0xfb, 0xef, 0xff, 0xff}, 5,
					     0x2000, 0x1000),
		     0);
}

Test(insn, text)
{
	const uint8_t mov[] = {0x48, 0x89, 0xd8}, none[] = {0x06};
	char text[32] = "x";

	arch_x86_64.format(mov, sizeof(mov), 0x1000, text, sizeof(text));
	cr_expect_str_eq(text, "mov rax, rbx");
	arch_x86_64.format((const uint8_t[]){0xeb, 0x10}, 2, 0x1000, text, sizeof(text));
	cr_expect_str_eq(text, "jmp 0x0000000000001012");
	/* Not an instruction, or not all of it; no room */
	arch_x86_64.format(none, sizeof(none), 0x1000, text, sizeof(text));
	cr_expect_str_eq(text, "");
	text[0] = 'x';
	arch_x86_64.format(mov, 2, 0x1000, text, sizeof(text));
	cr_expect_str_eq(text, "");
	arch_x86_64.format(mov, sizeof(mov), 0x1000, text, 8);
	cr_expect_str_eq(text, "");
}

Test(insn, never_reads_past_the_end)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (uint8_t n = 0; n < cases[i].len; n++) {
			uint8_t *code = malloc(n ? n : 1);
			struct insn in;

			memcpy(code, cases[i].code, n);
			/*
			 * The first n bytes may form a shorter instruction, but its length never
			 * exceeds n.
			 */
			if (arch_x86_64.decode(code, n, 0, &in))
				cr_assert_leq(in.len, n);
			free(code);
		}
	check_no_leaks();
}

Test(insn, constants)
{
	const uint8_t rip[] = {0x48, 0x8d, 0x3d, 0x10, 0, 0, 0}; /* lea rdi, [rip+0x10] */
	const uint8_t abs[] = {0x48, 0x8b, 0x04, 0xc5, 0x00, 0xaf, 0x73, 0}; /* [rax*8+0x73af00] */
	const uint8_t mov[] = {0xb8, 0x00, 0x10, 0x40, 0};		     /* mov eax, 0x401000 */
	const uint8_t based[] = {0x48, 0x8b, 0x47, 0x10}; /* mov rax, [rdi+0x10] */
	const uint8_t jmp[] = {0xeb, 0x10};
	struct insn_full in;
	uint64_t v;

	cr_assert(arch_x86_64.decode_full(rip, sizeof(rip), 0x1000, &in));
	cr_assert(insn_const_address(&in.op[1], &v));
	cr_assert_eq(v, 0x1000 + 7 + 0x10);
	cr_assert(arch_x86_64.decode_full(abs, sizeof(abs), 0x1000, &in));
	cr_assert(insn_const_address(&in.op[1], &v));
	cr_assert_eq(v, 0x73af00);
	cr_assert_not(insn_const_address(&in.op[0], &v));
	cr_assert(!in.op[1].plain && !in.op[1].computed && in.op[1].index == -1);
	cr_assert(arch_x86_64.decode_full(mov, sizeof(mov), 0x1000, &in));
	cr_assert(insn_const_address(&in.op[1], &v) && v == 0x401000);
	cr_assert(arch_x86_64.decode_full(based, sizeof(based), 0x1000, &in));
	cr_assert_not(insn_const_address(&in.op[1], &v));
	cr_assert(in.op[1].value == 0x10 && in.op[1].plain);
	/* The target of a branch is no operand. */
	cr_assert(arch_x86_64.decode_full(jmp, sizeof(jmp), 0x1000, &in));
	cr_assert_not(insn_const_address(&in.op[0], &v));
}

Test(insn, operands)
{
	const uint8_t indexed[] = {0x48, 0x8b, 0x04, 0x07}, /* mov rax, [rdi+rax] */
		scaled[] = {0x48, 0x8b, 0x04, 0x47},	    /* mov rax, [rdi+rax*2] */
		tls[] = {0x64, 0x48, 0x8b, 0x40, 0x08},	    /* mov rax, fs:[rax+8] */
		stack[] = {0x4c, 0x8b, 0x7d, 0x08},	    /* mov r15, [rbp+8] */
		lea[] = {0x48, 0x8d, 0x47, 0x08},	    /* lea rax, [rdi+8] */
		movups[] = {0x0f, 0x11, 0x00},		    /* movups [rax], xmm0 */
		xchg[] = {0x48, 0x87, 0xfe}, clc[] = {0xf8}, stc[] = {0xf9}, /* xchg rsi, rdi */
		byte[] = {0x88, 0xe0};					     /* mov al, ah */
	struct insn_full in;
	int64_t disp;
	int reg, base;

	cr_assert(arch_x86_64.decode_full(indexed, sizeof(indexed), 0x1000, &in));
	cr_assert(in.op[1].reg == 7 && in.op[1].index == 0 && !in.op[1].plain && !in.op[1].value);
	cr_assert(in.nexplicit == 2 && in.vaddr == 0x1000 && in.op[0].written && !in.op[1].written);
	cr_assert(arch_x86_64.decode_full(scaled, sizeof(scaled), 0x1000, &in));
	cr_assert(in.op[1].reg == 7 && in.op[1].index == -1 && !in.op[1].plain);
	cr_assert(arch_x86_64.decode_full(tls, sizeof(tls), 0x1000, &in));
	cr_assert(!insn_is_load(&in, &reg, &base, &disp) && in.op[1].reg == 0);
	cr_assert(arch_x86_64.decode_full(stack, sizeof(stack), 0x1000, &in));
	cr_assert(insn_is_load(&in, &reg, &base, &disp) && reg == 15 && base == 5 && disp == 8);
	cr_assert(arch_x86_64.decode_full(lea, sizeof(lea), 0x1000, &in));
	cr_assert(in.op[1].computed && in.op[1].type == INSN_OP_MEM && in.kind == INSN_OTHER);
	cr_assert(!in.writes_flags && !in.landing_pad && !in.stack_known &&
		  in.writes == insn_bit(0));
	/* Vector registers are not general ones. */
	cr_assert(arch_x86_64.decode_full(movups, sizeof(movups), 0x1000, &in));
	cr_assert(in.op[1].type == INSN_OP_REG && in.op[1].reg == -1 && in.op[0].reg == 0);
	cr_assert(arch_x86_64.decode_full(xchg, sizeof(xchg), 0x1000, &in));
	cr_assert_eq(in.writes, insn_bit(6) | insn_bit(7));
	cr_assert(insn_writes_reg(&in, 6) && !insn_writes_reg(&in, 5) && !in.writes_flags);
	/* They only clear or set a flag. */
	cr_assert(arch_x86_64.decode_full(clc, sizeof(clc), 0x1000, &in) && in.writes_flags);
	cr_assert(arch_x86_64.decode_full(stc, sizeof(stc), 0x1000, &in) && in.writes_flags);
	cr_assert(arch_x86_64.decode_full(byte, sizeof(byte), 0x1000, &in));
	cr_assert(in.op[0].reg == 0 && in.op[1].reg == 0 && in.op[0].bits == 8 && in.writes == 1);
	cr_assert_not(arch_x86_64.decode_full(byte, 1, 0x1000, &in));
}

/* ---- neutral instructions ------------------------------------------------------------------ */

static struct insn_full full(const uint8_t *code, size_t n)
{
	struct insn_full in;

	cr_assert(arch_x86_64.decode_full(code, n, 0x1000, &in));
	return in;
}

Test(insn, moves_of_the_stack_pointer)
{
	const uint8_t push[] = {0x41, 0x54}, pop[] = {0x5d}, sub[] = {0x48, 0x83, 0xec, 0x28},
		      and[] = {0x48, 0x83, 0xe4, 0xf0}, add[] = {0x48, 0x83, 0xc4, 0x28},
		      reg[] = {0x48, 0x01, 0xc4}, less[] = {0x48, 0x29, 0xc4};
	struct insn_full in = full(push, sizeof(push));

	cr_assert(insn_writes_reg(&in, arch_x86_64.sp) && in.stack_known && in.stack_add == -8);
	for (int i = 0; i < in.noperands; i++)
		cr_assert(in.op[i].type != INSN_OP_MEM || !in.op[i].written);
	in = full(pop, sizeof(pop));
	cr_assert(in.stack_known && in.stack_add == 8 && insn_writes_reg(&in, arch_x86_64.fp));
	in = full(sub, sizeof(sub));
	cr_assert(in.stack_known && in.stack_add == -0x28);
	in = full(add, sizeof(add));
	cr_assert(in.stack_known && in.stack_add == 0x28 && in.writes_flags);
	in = full(reg, sizeof(reg)); /* add rsp, rax */
	cr_assert(insn_writes_reg(&in, arch_x86_64.sp) && !in.stack_known && !in.stack_add);
	in = full(less, sizeof(less)); /* sub rsp, rax */
	cr_assert(insn_writes_reg(&in, arch_x86_64.sp) && !in.stack_known);
	in = full(and, sizeof(and));
	cr_assert(insn_writes_reg(&in, arch_x86_64.sp) && !in.stack_known);
}

Test(insn, loads_stores_and_comparisons)
{
	const uint8_t load[] = {0x48, 0x8b, 0x47, 0x10};	     /* mov rax, [rdi+0x10] */
	const uint8_t store[] = {0x48, 0x89, 0x5d, 0xf8};	     /* mov [rbp-8], rbx */
	const uint8_t zero[] = {0x48, 0xc7, 0x40, 0x08, 0, 0, 0, 0}; /* mov qword [rax+8], 0 */
	const uint8_t cmp[] = {0x80, 0x7f, 0x44, 0x00};		     /* cmp byte [rdi+0x44], 0 */
	const uint8_t index[] = {0x48, 0x8b, 0x04, 0xc7};	     /* mov rax, [rdi+rax*8] */
	const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t sete[] = {0x0f, 0x94, 0xc1};  /* sete cl */
	const uint8_t setne[] = {0x0f, 0x95, 0xc0}; /* setne al */
	const uint8_t or [] = {0x08, 0xc1};	    /* or cl, al */
	struct insn_full in = full(load, sizeof(load));
	int64_t disp;
	int reg, base;

	cr_assert(insn_is_load(&in, &reg, &base, &disp) && reg == 0 && base == 7 && disp == 0x10);
	cr_assert(!in.writes_flags && in.writes == insn_bit(0));
	in = full(store, sizeof(store));
	cr_assert(insn_is_store(&in, &base, &disp) && base == 5 && disp == -8 && !in.writes);
	in = full(zero, sizeof(zero));
	cr_assert(insn_is_store(&in, &base, &disp) && insn_is_zero(&in.op[1]));
	in = full(cmp, sizeof(cmp));
	cr_assert(in.kind == INSN_COMPARE && in.writes_flags && in.op[0].bits == 8 &&
		  insn_is_mem(&in.op[0], &base, &disp) && disp == 0x44 && insn_is_zero(&in.op[1]));
	in = full(sete, sizeof(sete));
	cr_assert(in.kind == INSN_SET && in.cond == INSN_COND_EQUAL && !in.writes_flags &&
		  insn_is_reg(&in.op[0], &reg, 8) && reg == 1 && insn_writes_reg(&in, 1));
	in = full(setne, sizeof(setne));
	cr_assert(in.kind == INSN_SET && in.cond == INSN_COND_UNEQUAL);
	in = full(or, sizeof(or));
	cr_assert(in.kind == INSN_OR && in.writes_flags && insn_is_reg(&in.op[1], &reg, 8) &&
		  reg == 0);
	in = full(index, sizeof(index));
	cr_assert_not(insn_is_load(&in, &reg, &base, &disp));
	in = full(endbr, sizeof(endbr));
	cr_assert(in.landing_pad && in.kind == INSN_OTHER);
}

Test(insn, tags_that_are_removed)
{
	const uint8_t one[] = {0x48, 0x83, 0xe6, 0xfe};	   /* and rsi, -2 */
	const uint8_t two[] = {0x49, 0x83, 0xe0, 0xfc};	   /* and r8, -4 */
	const uint8_t more[] = {0x48, 0x83, 0xe6, 0xf8};   /* and rsi, -8 */
	const uint8_t half[] = {0x83, 0xe6, 0xfe};	   /* and esi, -2 */
	const uint8_t memory[] = {0x48, 0x83, 0x26, 0xfe}; /* and qword [rsi], -2 */
	const uint8_t or [] = {0x48, 0x83, 0xce, 0xfe};	   /* or rsi, -2 */
	const uint8_t all[] = {0x48, 0x83, 0xe6, 0xff};	   /* and rsi, -1 */
	const uint8_t reg_[] = {0x48, 0x21, 0xfe};	   /* and rsi, rdi */
	struct insn_full in = full(one, sizeof(one));
	int reg;

	cr_assert(insn_is_untagging(&in, &reg) && reg == 6);
	in = full(two, sizeof(two));
	cr_assert(insn_is_untagging(&in, &reg) && reg == 8);
	in = full(more, sizeof(more));
	cr_assert_not(insn_is_untagging(&in, &reg));
	in = full(half, sizeof(half));
	cr_assert_not(insn_is_untagging(&in, &reg));
	in = full(memory, sizeof(memory));
	cr_assert_not(insn_is_untagging(&in, &reg));
	in = full(or, sizeof(or));
	cr_assert_not(insn_is_untagging(&in, &reg));
	in = full(all, sizeof(all));
	cr_assert_not(insn_is_untagging(&in, &reg));
	in = full(reg_, sizeof(reg_));
	cr_assert_not(insn_is_untagging(&in, &reg));
}
