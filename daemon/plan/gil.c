// SPDX-License-Identifier: BSD-2-Clause
/*
 * Locates the GIL: see gil.h.
 *
 * 3.7 to 3.12 export _PyEval_GetSwitchInterval, which returns the GIL's first member. The function
 * is straight code. It is followed with, for each register, the origin of its value: loaded from a
 * constant address, from an offset to the pointer stored there, or through pointers at offsets to
 * an unknown pointer, which is the interpreter from 3.12 on.
 *
 * In 3.6 the GIL's condition variables and mutexes are static variables: all addresses of writable
 * memory computed by the function that calls pthread_cond_timedwait for PyEval_RestoreThread.
 */
#include "plan/gil.h"

#include <string.h>

#include "elf/image.h"
#include "plan/cfg.h"
#include "python/python.h"

#define LINE_MAX_INSNS 24
#define OFFSET_MAX     0xfff0 /* limit of the offset of an interpreter's member */

/*
 * The origin of a register's value. AT: loaded from address `at`. BEHIND: loaded from `first` bytes
 * after the address in the pointer at `at`. MEMBER: loaded from an unknown address + first.
 * OF_MEMBER: loaded from `second` bytes after the address in such a member.
 */
struct origin {
	enum { UNKNOWN, AT, BEHIND, MEMBER, OF_MEMBER } kind;
	uint64_t at;	/* AT, BEHIND */
	int64_t first;	/* BEHIND, MEMBER, OF_MEMBER */
	int64_t second; /* OF_MEMBER */
};

static struct origin load(const struct insn_operand *op, const struct origin *regs)
{
	struct origin base = {0};

	if (op->has_address && op->plain)
		return (struct origin){.kind = AT, .at = op->address};
	if (!op->plain || op->reg < 0 || op->reg >= INSN_REGS_MAX)
		return base;
	base = regs[op->reg];
	if (base.kind == AT)
		return (struct origin){.kind = BEHIND, .at = base.at, .first = op->value};
	if (base.kind == UNKNOWN)
		return (struct origin){.kind = MEMBER, .first = op->value};
	if (base.kind == MEMBER)
		return (struct origin){.kind = OF_MEMBER, .first = base.first, .second = op->value};
	if (base.kind == OF_MEMBER)
		return (struct origin){
			.kind = OF_MEMBER, .first = base.second, .second = op->value};
	return (struct origin){0};
}

static void step(const struct insn_full *in, struct origin *regs)
{
	struct origin to = {0};
	int reg = -1;

	if (in->kind == INSN_MOVE && insn_is_reg(&in->op[0], &reg, 64) &&
	    in->op[1].type == INSN_OP_MEM)
		to = load(&in->op[1], regs);
	for (int r = 0; r < INSN_REGS_MAX; r++)
		if (in->writes & insn_bit(r))
			regs[r] = (struct origin){0};
	if (reg >= 0 && reg < INSN_REGS_MAX)
		regs[reg] = to;
}

/* Follows straight code from vaddr to its return. Returns the origin of the returned value. */
static struct origin returned(const struct image *img, const struct arch *arch, uint64_t vaddr)
{
	struct origin regs[INSN_REGS_MAX] = {0};

	for (int i = 0; i < LINE_MAX_INSNS; i++) {
		struct insn_full full;
		const uint8_t *code;
		size_t n = image_view_max(img, vaddr, &code);
		struct insn in;

		if (!n || !arch->decode(code, n, vaddr, &in) ||
		    !arch->decode_full(code, n, vaddr, &full))
			break;
		if (in.flow == INSN_RET)
			return regs[arch->result];
		if (in.flow == INSN_CALL || in.flow == INSN_CALL_IND)
			full.writes |= arch->caller_saved;
		else if (in.flow != INSN_NEXT)
			break;
		step(&full, regs);
		vaddr += in.len;
	}
	return (struct origin){0};
}

static void find_structure(const struct image *img, const struct layout *l, struct python_gil *ret)
{
	struct image_symbol sym;
	struct origin o;

	if (image_symbol(img, "_PyEval_GetSwitchInterval", &sym))
		return;
	o = returned(img, arch_native(), sym.vaddr);
	if (l->minor < 12 && o.kind == AT) {
		ret->at = o.at;
	} else if (l->minor < 12 && o.kind == BEHIND && o.first >= 0) {
		ret->at = o.at;
		ret->behind = (uint64_t)o.first;
		ret->pointer = true;
	} else if (l->minor >= 12 && o.kind == OF_MEMBER && !o.second && o.first > 0 &&
		   o.first < OFFSET_MAX) {
		ret->interp = (uint16_t)o.first;
	}
}

/* ---- 3.6 --------------------------------------------------------------------------------- */

static bool is_writable(const struct image *img, uint64_t vaddr)
{
	const struct image_segment *v;
	unsigned int n = image_segments(img, &v);

	for (unsigned int i = 0; i < n; i++)
		if (v[i].write && vaddr >= v[i].vaddr && vaddr - v[i].vaddr < v[i].memsz)
			return true;
	return false;
}

static bool calls(const struct image *img, const struct cfg *cfg, const char *name)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		const struct insn *in = &cfg->v[i].in;
		const char *to = in->flow == INSN_CALL ? image_plt_name(img, in->target) : NULL;

		if (to && strcmp(to, name) == 0)
			return true;
	}
	return false;
}

/* Returns whether the instruction computes an address without an access, as for an argument. */
static bool takes_address(const struct insn_full *in, uint64_t *ret)
{
	const struct insn_operand *op = &in->op[1];
	int reg;

	if (op->type != INSN_OP_IMM && !(op->type == INSN_OP_MEM && op->computed))
		return false;
	return insn_is_reg(&in->op[0], &reg, in->op[0].bits) && insn_const_address(op, ret);
}

static void add_part(struct python_gil *gil, uint64_t vaddr)
{
	for (int i = 0; i < PYTHON_GIL_PARTS; i++) {
		if (gil->parts[i] == vaddr)
			return;
		if (!gil->parts[i]) {
			gil->parts[i] = vaddr;
			return;
		}
	}
}

/*
 * Adds the parts that the function uses, if it calls pthread_cond_timedwait, i.e. waits for the
 * GIL.
 */
static bool take_parts(const struct image *img, uint64_t function, struct python_gil *ret)
{
	_cleanup_(cfg_deinit) struct cfg cfg = {.img = img, .arch = arch_native()};
	struct insn_full full;
	uint64_t vaddr;

	if (cfg_explore(&cfg, &function, 1) < 0 || !calls(img, &cfg, "pthread_cond_timedwait"))
		return false;
	for (uint32_t i = 0; i < cfg.n; i++)
		if (cfg_full(&cfg, i, &full) && takes_address(&full, &vaddr) &&
		    is_writable(img, vaddr))
			add_part(ret, vaddr);
	return ret->parts[1] != 0;
}

static void find_parts(const struct image *img, struct python_gil *ret)
{
	_cleanup_(cfg_deinit) struct cfg cfg = {.img = img, .arch = arch_native()};
	struct image_symbol sym;

	if (image_symbol(img, "PyEval_RestoreThread", &sym) ||
	    cfg_explore(&cfg, &sym.vaddr, 1) < 0 || take_parts(img, sym.vaddr, ret))
		return;
	for (uint32_t i = 0; i < cfg.n; i++) {
		struct python_gil parts = {0};

		if (cfg.v[i].in.flow == INSN_CALL && !image_plt_name(img, cfg.v[i].in.target) &&
		    take_parts(img, cfg.v[i].in.target, &parts)) {
			*ret = parts;
			return;
		}
	}
}

void gil_find(const struct image *img, const struct layout *l, struct python_gil *ret)
{
	if (ret->interp || l->major != 3)
		return;
	if (l->minor == 6)
		find_parts(img, ret);
	else
		find_structure(img, l, ret);
}
