/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A made-up instruction set for tests of the planner: fixed-length instructions, 31 registers,
 * comparisons of registers, and branches that compare, as in AArch64; comparisons of memory and
 * calls through memory, as in x86-64. And small programs of it, in an ELF image with what
 * the planner knows about them.
 *
 *   static const uint8_t code[][4] = {{TOY_CBNZ, 2, TOY_TO(2)}, {TOY_NOP}, {TOY_RET}};
 *   toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code)});
 *   ...
 *   toy_close(&rig);
 */
#ifndef PYPROF_TESTS_HARNESS_TOY_H
#define PYPROF_TESTS_HARNESS_TOY_H

#include <stddef.h>
#include <stdint.h>

#include "plan/arch/arch.h"
#include "plan/planner.h"

/* Addresses of code, data and PLT stubs; branches and addresses refer to words after the first. */
#define TOY_CODE 0x400000ull
#define TOY_DATA 0x410000ull
#define TOY_PLT	 0x418000ull

/* Operands b and c of a branch to instruction n, and of references to data word n and stub n */
#define TOY_TO(n)      (uint8_t)(n), (uint8_t)((n) >> 8)
#define TOY_TO_DATA(n) TOY_TO((TOY_DATA - TOY_CODE) / 4 + 2 * (n))
#define TOY_TO_PLT(n)  TOY_TO((TOY_PLT - TOY_CODE) / 4 + 4 * (n))

/*
 * Four bytes: the operation, then registers and constants: a, b and c, or a and a 16-bit constant
 * bc, the number of a word after TOY_CODE
 */
enum toy_op {
	TOY_NOP = 1,
	TOY_MOV,   /* a = b */
	TOY_MOV4,  /* the same, 32 bits */
	TOY_LOAD,  /* a = [b + c], 64 bits */
	TOY_LOADB, /* the same, 8 bits */
	TOY_LOADX, /* a = [b + register c] */
	TOY_LOADF, /* a = [b + 16 c] */
	TOY_LOADG, /* a = [bc] */
	TOY_STORE, /* [b + c] = a, 64 bits; a == ZERO: 0 */
	TOY_STORE4,
	TOY_ADDR,  /* a = bc */
	TOY_LEA,   /* a = b + c */
	TOY_PUSH,  /* a */
	TOY_POP,   /* a */
	TOY_ADDSP, /* the stack pointer += a, signed */
	TOY_ALIGN, /* the stack pointer changes by an unknown distance */
	TOY_ADD,   /* a += b, and flags */
	TOY_UNTAG, /* a &= -4 */
	TOY_AND,   /* a &= b, 8 bits */
	TOY_OR,	   /* a |= b, 8 bits */
	TOY_SEQ,   /* a = 1 if equal, else 0, 8 bits */
	TOY_SNE,   /* if unequal */
	TOY_CMP,   /* compare a with b, 64 bits */
	TOY_CMPI,  /* compare a with the constant bc, 32 bits */
	TOY_CMPB,  /* compare a with the constant b, signed, 8 bits */
	TOY_CMPA,  /* compare a with the address bc */
	TOY_CMPM,  /* compare [b + c] with a, 64 bits */
	TOY_CMPM4, /* compare [b + c] with the constant a, 32 bits */
	TOY_CMPM1, /* the same, 8 bits */
	TOY_TEST,  /* compare a & b with 0, 32 bits */
	TOY_B,	   /* jump to bc */
	TOY_BEQ,   /* ... if equal */
	TOY_BNE,
	TOY_BLT,
	TOY_CBNZ, /* ... if a, 32 bits, is not 0 */
	TOY_CALL,
	TOY_CALLR, /* call the address in a */
	TOY_CALLM, /* call the address in [b + c] */
	TOY_RET,
	TOY_BR,	    /* jump to the address in a */
	TOY_STOP,   /* trap */
	TOY_PAD,    /* landing pad */
	TOY_OPAQUE, /* unknown operands */
	TOY_OPS,
};

enum { TOY_FP = 29, TOY_SP = 30, TOY_ZERO = 31 };

/* Without a search for branches, without which nobody knows who calls a function */
extern const struct arch toy_arch;

size_t toy_find_branch(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t target);

#define TOY_HANDLERS 32

#define TOY_FRAME 20 /* the register with the frame at the start of each handler */

struct toy_handler {
	int16_t opcode;
	unsigned int at; /* instruction */
};

struct toy_program {
	const uint8_t (*code)[4];
	size_t n;
	const uint64_t *data;
	size_t ndata;
	struct {
		const char *name;
		uint64_t vaddr;
	} symbol[8];
	const char *plt[4];	   /* names of the stubs */
	const unsigned int *start; /* instructions where functions start; NULL: unknown */
	unsigned int nstarts;
	const struct layout *layout; /* NULL: 3.13 */
	/*
	 * More code behind it, the handler of opcode 254: then the graph has no room for another
	 * instruction, so that a loop that goes too far is noticed with sanitizers.
	 */
	bool full;
	const struct arch *arch;		  /* NULL: toy_arch */
	struct toy_handler handler[TOY_HANDLERS]; /* opcode 0 ends the list */
};

#define TOY_CODE_OF(v)	 .code = (v), .n = sizeof(v) / sizeof(*(v))
#define TOY_STARTS_OF(v) .start = (v), .nstarts = sizeof(v) / sizeof(*(v))
#define TOY_DATA_OF(v)	 .data = (v), .ndata = sizeof(v) / sizeof(*(v))

struct toy_rig {
	struct image *img;
	struct layout layout; /* p.layout */
	struct plan plan;     /* p.plan */
	struct planner p;     /* its code is explored from instruction 0, the entry, and handlers */
};

/* Replaces an instruction: the operation and three bytes, of which TOY_TO() makes two */
void toy_change(uint8_t (*code)[4], unsigned int at, enum toy_op op, int a, int b, int c);

struct image *toy_image(const struct toy_program *program);
/*
 * The frame is in TOY_FRAME at handlers (before 3.11 nowhere), and in the register of its argument
 * at the entry.
 */
void toy_open(struct toy_rig *r, const struct toy_program *program);
void toy_close(struct toy_rig *r);
/* The node of an instruction */
uint32_t toy_node(const struct toy_rig *r, unsigned int at);
/* The instruction of a node, or of the site; -1: none */
int toy_at(const struct toy_rig *r, uint32_t node);
int toy_site_at(const struct plan_site *s);

#endif
