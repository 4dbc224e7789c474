// SPDX-License-Identifier: BSD-2-Clause
/* The made-up instruction set, and programs of it: see toy.h. */
#include "harness/toy.h"

#include "harness/elf_builder.h"
#include "harness/test.h"
#include "plan/plan.h"
#include "python/layout.h"

/* ---- the instruction set ----------------------------------------------------------------- */

static uint64_t word(const uint8_t *code)
{
	return TOY_CODE + 4 * (uint64_t)(code[2] | code[3] << 8);
}

static bool toy_decode(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret)
{
	static const uint8_t flow[TOY_OPS] = {
		[TOY_B] = INSN_JMP,	     [TOY_BEQ] = INSN_JCC,	  [TOY_BNE] = INSN_JCC,
		[TOY_BLT] = INSN_JCC,	     [TOY_CBNZ] = INSN_JCC,	  [TOY_CALL] = INSN_CALL,
		[TOY_CALLR] = INSN_CALL_IND, [TOY_CALLM] = INSN_CALL_IND, [TOY_RET] = INSN_RET,
		[TOY_BR] = INSN_JMP_IND,     [TOY_STOP] = INSN_STOP,
	};
	static const uint8_t cond[TOY_OPS] = {
		[TOY_BEQ] = INSN_COND_EQUAL,
		[TOY_BNE] = INSN_COND_UNEQUAL,
		[TOY_CBNZ] = INSN_COND_UNEQUAL,
	};
	static const uint8_t cc[TOY_OPS] = {[TOY_BEQ] = 1, [TOY_BLT] = 2, [TOY_CBNZ] = INSN_NO_CC};
	static const uint8_t probe[TOY_OPS] = {
		[TOY_NOP] = 1,	[TOY_PUSH] = 1, [TOY_B] = 1,	[TOY_BEQ] = 1,	 [TOY_BNE] = 1,
		[TOY_BLT] = 1,	[TOY_CBNZ] = 1, [TOY_CALL] = 1, [TOY_RET] = 2,	 [TOY_BR] = 2,
		[TOY_STOP] = 2, [TOY_ADDR] = 2, [TOY_POP] = 2,	[TOY_CALLR] = 2, [TOY_CALLM] = 2,
	};
	static const uint8_t class[] = {INSN_STEPPED, INSN_EMULATED, INSN_FORBIDDEN};

	if (max < 4 || !code[0] || code[0] >= TOY_OPS)
		return false;
	*ret = (struct insn){
		.vaddr = vaddr,
		.len = 4,
		.flow = flow[code[0]],
		.probe = class[probe[code[0]]],
		.cond = cond[code[0]],
		.cc = cc[code[0]],
	};
	if (ret->flow == INSN_JMP || ret->flow == INSN_JCC || ret->flow == INSN_CALL)
		ret->target = word(code);
	return true;
}

static struct insn_operand imm_op(int64_t v, uint16_t bits)
{
	return (struct insn_operand){
		.type = INSN_OP_IMM, .reg = -1, .index = -1, .bits = bits, .value = v};
}

static struct insn_operand reg_op(uint8_t r, uint16_t bits)
{
	if (r == TOY_ZERO)
		return imm_op(0, bits);
	return (struct insn_operand){
		.type = INSN_OP_REG, .reg = (int16_t)r, .index = -1, .bits = bits};
}

static struct insn_operand mem_op(const uint8_t *code, uint16_t bits)
{
	return (struct insn_operand){.type = INSN_OP_MEM,
				     .reg = (int16_t)code[2],
				     .index = -1,
				     .bits = bits,
				     .plain = true,
				     .value = code[3]};
}

static struct insn_operand indexed_op(const uint8_t *code)
{
	return (struct insn_operand){.type = INSN_OP_MEM,
				     .reg = (int16_t)code[2],
				     .index = (int16_t)code[3],
				     .bits = 64};
}

/* The address bc, or what is there */
static struct insn_operand word_op(const uint8_t *code, uint8_t type)
{
	return (struct insn_operand){.type = type,
				     .reg = -1,
				     .index = -1,
				     .bits = 64,
				     .has_address = true,
				     .address = word(code)};
}

static void toy_move(const uint8_t *code, struct insn_full *in)
{
	const uint16_t bits = code[0] == TOY_MOV4 || code[0] == TOY_STORE4 ? 32 : 64;

	in->kind = INSN_MOVE;
	in->op[0] = reg_op(code[1], bits);
	switch (code[0]) {
	case TOY_MOV:
	case TOY_MOV4:
		in->op[1] = reg_op(code[2], bits);
		return;
	case TOY_LOADX:
		in->op[1] = indexed_op(code);
		return;
	case TOY_LOADG:
		in->op[1] = word_op(code, INSN_OP_MEM);
		return;
	case TOY_STORE:
	case TOY_STORE4:
		in->op[1] = in->op[0];
		in->op[0] = mem_op(code, bits);
		return;
	default:
		in->op[1] = mem_op(code, code[0] == TOY_LOADB ? 8 : 64);
		if (code[0] == TOY_LOADF)
			in->op[1].value *= 16;
	}
}

static void toy_compare(const uint8_t *code, struct insn_full *in)
{
	in->kind = code[0] == TOY_TEST ? INSN_TEST : INSN_COMPARE;
	in->writes_flags = code[0] != TOY_CBNZ;
	switch (code[0]) {
	case TOY_CMP:
	case TOY_TEST:
		in->op[0] = reg_op(code[1], code[0] == TOY_CMP ? 64 : 32);
		in->op[1] = reg_op(code[2], code[0] == TOY_CMP ? 64 : 32);
		return;
	case TOY_CMPI:
	case TOY_CMPB:
		in->op[0] = reg_op(code[1], code[0] == TOY_CMPI ? 32 : 8);
		in->op[1] = code[0] == TOY_CMPI ? imm_op(code[2] | code[3] << 8, 32)
						: imm_op((int8_t)code[2], 8);
		return;
	case TOY_CMPA:
		in->op[0] = reg_op(code[1], 64);
		in->op[1] = word_op(code, INSN_OP_IMM);
		return;
	case TOY_CMPM:
		in->op[0] = mem_op(code, 64);
		in->op[1] = reg_op(code[1], 64);
		return;
	case TOY_CMPM4:
	case TOY_CMPM1:
		in->op[0] = mem_op(code, code[0] == TOY_CMPM4 ? 32 : 8);
		in->op[1] = imm_op(code[1], code[0] == TOY_CMPM4 ? 32 : 8);
		return;
	default:
		in->op[0] = reg_op(code[1], 32);
		in->op[1] = imm_op(0, 32);
	}
}

static void toy_stack(const uint8_t *code, struct insn_full *in)
{
	in->kind = code[0] == TOY_PUSH ? INSN_PUSH : code[0] == TOY_POP ? INSN_POP : INSN_OTHER;
	if (code[0] == TOY_PUSH || code[0] == TOY_POP)
		in->op[0] = reg_op(code[1], 64);
	in->op[0].written = code[0] == TOY_POP;
	in->writes = insn_bit(TOY_SP);
	in->stack_known = code[0] != TOY_ALIGN;
	in->stack_add = code[0] == TOY_PUSH ? -8 : code[0] == TOY_POP ? 8 : (int8_t)code[1];
}

/* a becomes something else. */
static void toy_compute(const uint8_t *code, struct insn_full *in)
{
	const bool byte = code[0] == TOY_AND || code[0] == TOY_OR || code[0] == TOY_SEQ ||
			  code[0] == TOY_SNE;

	in->op[0] = reg_op(code[1], byte ? 8 : 64);
	in->op[0].written = true;
	in->writes_flags = code[0] == TOY_ADD || code[0] == TOY_UNTAG || code[0] == TOY_AND ||
			   code[0] == TOY_OR;
	in->kind = code[0] == TOY_UNTAG || code[0] == TOY_AND ? INSN_AND
		   : code[0] == TOY_OR			      ? INSN_OR
		   : code[0] == TOY_SEQ || code[0] == TOY_SNE ? INSN_SET
							      : INSN_OTHER;
	in->cond = code[0] == TOY_SEQ	? INSN_COND_EQUAL
		   : code[0] == TOY_SNE ? INSN_COND_UNEQUAL
					: INSN_COND_OTHER;
	if (code[0] == TOY_ADDR || code[0] == TOY_LEA) {
		in->op[1] = code[0] == TOY_ADDR ? word_op(code, INSN_OP_MEM) : mem_op(code, 64);
		in->op[1].computed = true;
	} else if (code[0] == TOY_UNTAG) {
		in->op[1] = imm_op(-4, 64);
	} else if (in->kind != INSN_SET) {
		in->op[1] = reg_op(code[2], byte ? 8 : 64);
	}
}

static bool toy_decode_full(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret)
{
	struct insn in;

	if (!toy_decode(code, max, vaddr, &in) || code[0] == TOY_OPAQUE)
		return false;
	*ret = (struct insn_full){.vaddr = vaddr, .noperands = 2, .nexplicit = 2};
	for (int i = 0; i < INSN_OPERANDS; i++)
		ret->op[i].reg = ret->op[i].index = -1;
	ret->landing_pad = code[0] == TOY_PAD;
	if (code[0] >= TOY_MOV && code[0] <= TOY_STORE4)
		toy_move(code, ret);
	else if (code[0] >= TOY_PUSH && code[0] <= TOY_ALIGN)
		toy_stack(code, ret);
	else if (code[0] >= TOY_ADDR && code[0] <= TOY_SNE)
		toy_compute(code, ret);
	else if ((code[0] >= TOY_CMP && code[0] <= TOY_TEST) || code[0] == TOY_CBNZ)
		toy_compare(code, ret);
	else if (code[0] == TOY_CALLR || code[0] == TOY_BR)
		ret->op[0] = reg_op(code[1], 64);
	else if (code[0] == TOY_CALLM)
		ret->op[0] = mem_op(code, 64);
	if (ret->kind == INSN_MOVE)
		ret->op[0].written = true;
	if (ret->op[0].written && ret->op[0].type == INSN_OP_REG)
		ret->writes |= insn_bit(ret->op[0].reg);
	return true;
}

size_t toy_find_branch(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t target)
{
	struct insn in;
	size_t i = (4 - vaddr % 4) % 4;

	for (; i < n; i += 4)
		if (toy_decode(code + i, n - i, vaddr + i, &in) && in.target == target &&
		    (in.flow == INSN_CALL || in.flow == INSN_JMP))
			break;
	return i < n ? i : n;
}

static void toy_format(const uint8_t *code, size_t max, uint64_t vaddr, char *out, size_t size)
{
	(void)vaddr;
	snprintf(out, size, "toy %u", max ? code[0] : 0);
}

const struct arch toy_arch = {
	.name = "toy",
	.nregs = 31,
	.sp = TOY_SP,
	.fp = TOY_FP,
	.arg = {0, 1, 2},
	.result = 0,
	.caller_saved = 0xffff,
	.load_store = true,
	.compare_branch = true,
	.decode = toy_decode,
	.decode_full = toy_decode_full,
	.format = toy_format,
};

/* ---- programs ---------------------------------------------------------------------------- */

/* A stub is jmp *[the word of the stub's number behind the data], 16 bytes. */
static void put_stubs(struct elf_builder *b, const struct toy_program *program, uint64_t slots)
{
	uint8_t stubs[4][16] = {{0}};

	for (unsigned int i = 0; i < 4; i++) {
		int32_t distance = (int32_t)(slots + 8 * i - (TOY_PLT + 16 * i + 6));

		if (!program->plt[i])
			continue;
		stubs[i][0] = 0xff;
		stubs[i][1] = 0x25;
		memcpy(stubs[i] + 2, &distance, sizeof(distance));
		elf_builder_jmprel(b, slots + 8 * i,
				   elf_builder_symbol(b, program->plt[i], 0, 0, STT_FUNC));
	}
	elf_builder_segment(b, TOY_PLT, PF_R | PF_X, stubs, sizeof(stubs));
}

static void put_starts(struct elf_builder *b, const struct toy_program *program)
{
	static const uint8_t header[8] = {1, 0x1b, 0x03, 0x3b};
	uint64_t starts[32];

	cr_assert_leq(program->nstarts, sizeof(starts) / sizeof(*starts));
	for (unsigned int i = 0; i < program->nstarts; i++)
		starts[i] = TOY_CODE + 4 * program->start[i];
	elf_builder_unwind(b, header, starts, program->nstarts);
}

void toy_change(uint8_t (*code)[4], unsigned int at, enum toy_op op, int a, int b, int c)
{
	memcpy(code[at], (const uint8_t[4]){(uint8_t)op, (uint8_t)a, (uint8_t)b, (uint8_t)c}, 4);
}

struct image *toy_image(const struct toy_program *program)
{
	struct elf_builder *b = elf_builder_new(ET_EXEC);
	const uint64_t slots = TOY_DATA + 8 * program->ndata;
	uint64_t *data = calloc(program->ndata + 4, sizeof(*data));
	struct image *img;
	size_t size;
	void *file;

	cr_assert(data);
	if (program->ndata)
		memcpy(data, program->data, program->ndata * sizeof(*data));
	elf_builder_segment(b, TOY_CODE, PF_R | PF_X, program->code, program->n * 4);
	elf_builder_segment(b, TOY_DATA, PF_R | PF_W, data, (program->ndata + 4) * sizeof(*data));
	put_stubs(b, program, slots);
	if (program->start)
		put_starts(b, program);
	for (size_t i = 0; i < sizeof(program->symbol) / sizeof(*program->symbol); i++)
		if (program->symbol[i].name)
			elf_builder_symbol(b, program->symbol[i].name, program->symbol[i].vaddr, 8,
					   STT_FUNC);
	file = elf_builder_finish(b, &size);
	assert_ok(image_open_bytes(file, size, "toy", &img, NULL));
	free(file);
	free(data);
	return img;
}

static void find_frame(struct planner *p)
{
	struct flow_root root[1 + TOY_HANDLERS] = {
		{.node = p->entry, .regs = planner_argument(p, p->layout->arg_frame)}};
	size_t n = 1;

	p->roles = p->layout->model == LAYOUT_FRAME_OBJECT ? 0 : insn_bit(TOY_FRAME);
	for (int16_t op = 0; op < PLAN_OPCODES; op++)
		if (p->roles && p->handler[op])
			root[n++] = (struct flow_root){planner_handler(p, op), p->roles, NULL, 0};
	p->frame = flow_solve(&p->cfg, root, n, 64);
	cr_assert(p->frame);
}

/* The graph grows in powers of two of instructions from this number on. */
#define FULL 8192u

/* The program with so many more instructions; *code is what holds them all. */
static struct toy_program fill_up(const struct toy_program *program, uint8_t (**code)[4])
{
	struct toy_program ret = *program;
	struct toy_handler *h = ret.handler;
	struct toy_rig rig;

	ret.full = false;
	toy_open(&rig, &ret);
	cr_assert_lt(rig.p.cfg.n, FULL);
	ret.n += FULL - rig.p.cfg.n;
	toy_close(&rig);
	*code = calloc(ret.n, sizeof(**code));
	cr_assert(*code);
	memcpy(*code, program->code, program->n * sizeof(**code));
	for (size_t i = program->n; i < ret.n; i++)
		(*code)[i][0] = i + 1 < ret.n ? TOY_NOP : TOY_BR;
	ret.code = *code;
	while (h->opcode)
		h++;
	*h = (struct toy_handler){254, (unsigned int)program->n};
	return ret;
}

static void open_full(struct toy_rig *r, const struct toy_program *program)
{
	uint8_t(*code)[4];
	const struct toy_program filled = fill_up(program, &code);

	toy_open(r, &filled);
	cr_assert_eq(r->p.cfg.n, FULL);
	cr_assert_eq(r->p.cfg.cap, FULL);
	free(code);
}

void toy_open(struct toy_rig *r, const struct toy_program *program)
{
	uint64_t roots[1 + TOY_HANDLERS] = {TOY_CODE};
	size_t n = 1;

	if (program->full) {
		open_full(r, program);
		return;
	}
	memset(r, 0, sizeof(*r));
	r->img = toy_image(program);
	r->layout = program->layout ? *program->layout : *layout_find(3, 13);
	r->p.img = r->p.cfg.img = r->img;
	r->p.layout = &r->layout;
	r->p.plan = &r->plan;
	r->p.cfg.arch = program->arch ? program->arch : &toy_arch;
	r->p.entry_vaddr = TOY_CODE;
	for (const struct toy_handler *h = program->handler; h->opcode; h++)
		r->p.handler[h->opcode] = roots[n++] = TOY_CODE + 4 * h->at;
	assert_ok(cfg_explore(&r->p.cfg, roots, n));
	assert_ok(cfg_link(&r->p.cfg));
	r->p.entry = toy_node(r, 0);
	find_frame(&r->p);
}

void toy_close(struct toy_rig *r)
{
	free(r->p.frame);
	cfg_deinit(&r->p.cfg);
	image_free(r->img);
}

uint32_t toy_node(const struct toy_rig *r, unsigned int at)
{
	return cfg_find(&r->p.cfg, TOY_CODE + 4 * at);
}

int toy_at(const struct toy_rig *r, uint32_t node)
{
	return node == CFG_NONE ? -1 : (int)((r->p.cfg.v[node].in.vaddr - TOY_CODE) / 4);
}

int toy_site_at(const struct plan_site *s)
{
	return (int)((s->vaddr - TOY_CODE) / 4);
}
