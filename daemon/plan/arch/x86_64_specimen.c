// SPDX-License-Identifier: BSD-2-Clause
/* One instruction of each class, for x86-64: see specimen.h. */
#include "plan/arch/specimen.h"

#define SPECIMEN(name, before, insn, after)                                                        \
	void specimen_fn_##name(const void *arg);                                                  \
	extern const char specimen_insn_##name[];                                                  \
	__asm__(".text\n"                                                                          \
		".globl specimen_fn_" #name ", specimen_insn_" #name "\n"                          \
		".type specimen_fn_" #name ", @function\n"                                         \
		"specimen_fn_" #name ":\n" before "specimen_insn_" #name ":\n" insn after          \
		"	ret\n")

#define SPECIMENS(set)                                                                             \
	SPECIMEN(set##_nop, "", "	nop\n", "");                                               \
	SPECIMEN(set##_jump, "	test %rdi, %rdi\n", "	jz 1f\n1:\n", "");                         \
	SPECIMEN(set##_push, "", "	push %rbx\n", "	pop %rbx\n");                              \
	SPECIMEN(set##_call, "", "	call 1f\n", "	ret\n1:\n");                               \
	SPECIMEN(set##_step, "", "	mov %rdi, %rax\n", "")

SPECIMENS(0);
SPECIMENS(1);
SPECIMENS(2);

enum specimen_class { CLASS_NOP, CLASS_JUMP, CLASS_PUSH, CLASS_CALL, CLASS_STEP, CLASSES };

#define ROW(name)                                                                                  \
	{                                                                                          \
		specimen_fn_##name, specimen_insn_##name                                           \
	}
#define ROWS(set)                                                                                  \
	{                                                                                          \
		ROW(set##_nop), ROW(set##_jump), ROW(set##_push), ROW(set##_call), ROW(set##_step) \
	}

static const struct specimen specimens[SPECIMEN_SETS][CLASSES] = {ROWS(0), ROWS(1), ROWS(2)};

const uint8_t specimen_reg = 7; /* rdi */

static enum specimen_class class_of(const uint8_t *code, bool stepped)
{
	uint8_t b = code[0];

	if (stepped)
		return CLASS_STEP;
	if (b == 0x41) /* REX.B */
		b = code[1];
	if (b >= 0x50 && b <= 0x57)
		return CLASS_PUSH;
	if (b == 0xe8)
		return CLASS_CALL;
	return b == 0x90 ? CLASS_NOP : CLASS_JUMP;
}

const struct specimen *specimen_like(unsigned int set, const uint8_t *code, bool stepped)
{
	return &specimens[set][class_of(code, stepped)];
}
