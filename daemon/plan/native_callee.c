// SPDX-License-Identifier: BSD-2-Clause
/*
 * Analyzes callees: which functions call one of their arguments, and the origin of an indirect
 * call's pointer. Exported functions are known by name. Others, which compilers clone and rename,
 * are recognized by code: they load the argument's type, and from that tp_call or
 * tp_vectorcall_offset, or pass the argument to a function that does.
 *
 * Source: CPython v3.6.15 to v3.15.2, Objects/call.c, Include/cpython/abstract.h.
 */
#include "plan/native.h"

#include <errno.h>
#include <string.h>

#define CALLEE_MAX   2000u /* limit of instructions of an analyzed function */
#define CALLEE_DEPTH 3u

/* ---- functions known by name ------------------------------------------------------------- */

#define NOT_CALLED -1
#define METHOD	   -2 /* calls a C function in a PyMethodDef; the caller has tested the type */

static const struct {
	const char *name;
	uint8_t from, until; /* minor versions */
	int8_t arg;
} known[] = {
	{"PyObject_Vectorcall", 0, 99, 0},
	{"_PyObject_Vectorcall", 0, 99, 0},
	{"PyObject_VectorcallDict", 0, 99, 0},
	{"_PyObject_VectorcallTstate", 0, 99, 1},
	/* 3.6, 3.7: CALL_FUNCTION_EX uses PyCFunction_Call for C functions */
	{"PyObject_Call", 0, 7, NOT_CALLED},
	{"PyObject_Call", 8, 99, 0},
	{"_PyObject_Call", 0, 99, 1},
	{"_PyObject_MakeTpCall", 0, 8, 0},
	{"_PyObject_MakeTpCall", 9, 99, 1},
	{"PyVectorcall_Call", 0, 99, 0},
	{"PyCFunction_Call", 0, 99, 0},
	{"_PyCFunction_FastCallDict", 0, 99, 0},
	{"_PyCFunction_FastCallKeywords", 0, 99, 0},
	{"_PyMethodDescr_FastCallKeywords", 0, 99, 0},
	{"_PyObject_FastCallDict", 0, 99, 0},
	{"_PyObject_FastCallDictTstate", 0, 99, 1},
	{"_Py_VectorCall_StackRefSteal", 15, 99, 0},
	{"_Py_VectorCallInstrumentation_StackRefSteal", 15, 99, 0},
	{"_Py_BuiltinCallFast_StackRef", 15, 99, METHOD},
	{"_Py_BuiltinCallFastWithKeywords_StackRef", 15, 99, METHOD},
	{"_PyCallMethodDescriptorFast_StackRef", 15, 99, METHOD},
	{"_PyCallMethodDescriptorFastWithKeywords_StackRef", 15, 99, METHOD},
	{"_PyFunction_FastCallKeywords", 0, 99, NOT_CALLED},
	{"_PyFunction_FastCallDict", 0, 99, NOT_CALLED},
	{"_PyFunction_Vectorcall", 0, 99, NOT_CALLED},
	/* 3.6, 3.7: C functions get here only from within a bound method */
	{"_PyObject_FastCallKeywords", 0, 7, NOT_CALLED},
	{"_Py_CheckRecursiveCall", 0, 99, NOT_CALLED},
	{"_PyEval_CallTracing", 0, 99, NOT_CALLED},
	/* these create an exception object */
	{"PyErr_Format", 0, 99, NOT_CALLED},
	{"_PyErr_Format", 0, 99, NOT_CALLED},
	{"PyErr_FormatV", 0, 99, NOT_CALLED},
	{"PyErr_SetNone", 0, 99, NOT_CALLED},
	{"_PyErr_SetNone", 0, 99, NOT_CALLED},
	{"PyErr_SetObject", 0, 99, NOT_CALLED},
	{"_PyErr_SetObject", 0, 99, NOT_CALLED},
	{"PyErr_SetString", 0, 99, NOT_CALLED},
	{"_PyErr_SetString", 0, 99, NOT_CALLED},
};

#define KNOWN (sizeof(known) / sizeof(*known))

_Static_assert(KNOWN <= NATIVE_KNOWN, "all known functions fit");

void native_callees_init(const struct planner *p, struct native_callees *ret)
{
	struct image_symbol sym;

	*ret = (struct native_callees){0};
	for (size_t i = 0; i < KNOWN; i++)
		if (image_symbol(p->img, known[i].name, &sym) == 0)
			ret->known[i] = sym.vaddr;
	if (image_symbol(p->img, "PyCFunction_Type", &sym) == 0)
		ret->function_type = sym.vaddr;
	if (image_symbol(p->img, "PyMethodDescr_Type", &sym) == 0)
		ret->descriptor_type = sym.vaddr;
}

static int known_find(const struct native *n, uint64_t vaddr)
{
	const uint8_t minor = n->p.layout->minor;
	const char *plt = image_plt_name(n->p.img, vaddr);

	for (size_t i = 0; i < KNOWN; i++) {
		bool same = plt ? strcmp(plt, known[i].name) == 0
				: vaddr && n->callees->known[i] == vaddr;

		if (same && minor >= known[i].from && minor <= known[i].until)
			return (int)i;
	}
	return -1;
}

bool native_calls_method(const struct native *n, uint64_t vaddr)
{
	int k = known_find(n, vaddr);

	return k >= 0 && known[k].arg == METHOD;
}

bool native_is_named(const struct native *n, uint64_t vaddr)
{
	return image_plt_name(n->p.img, vaddr) || known_find(n, vaddr) >= 0;
}

const char *native_unknown_caller(const struct native *n, uint64_t vaddr)
{
	const char *plt = image_plt_name(n->p.img, vaddr);

	if (!plt || known_find(n, vaddr) >= 0)
		return NULL;
	return strstr(plt, "Vectorcall") || strstr(plt, "_Call") || strstr(plt, "FastCall") ? plt
											    : NULL;
}

/* ---- functions recognized by code -------------------------------------------------------- */

static int called_argument(const struct native *n, uint64_t vaddr, unsigned int depth);

/* Returns whether a call slot is loaded through a register that holds an object's type. */
static bool uses_call_slot(const struct native *n, const struct cfg *cfg, uint32_t from, int type)
{
	const struct flow_root root = {from, insn_bit(type)};
	const struct layout *l = n->p.layout;
	_cleanup_free_ struct flow_state *st = flow_solve(cfg, &root, 1, 64);

	for (uint32_t i = 0; st && i < cfg->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		if (!st[i].reached || !st[i].regs || !cfg_full(cfg, i, &in))
			continue;
		for (int k = 0; k < in.nexplicit; k++)
			if (insn_is_mem(&in.op[k], &base, &disp) && (st[i].regs & insn_bit(base)) &&
			    (disp == l->type_call ||
			     (l->type_vectorcall && disp == l->type_vectorcall)))
				return true;
	}
	return false;
}

/*
 * Returns whether the call or jump at node i passes the value as the argument that its callee
 * calls.
 */
static bool passes_on(const struct native *n, const struct cfg *cfg, uint32_t i,
		      const struct flow_state *st, unsigned int depth)
{
	const struct cfg_node *node = &cfg->v[i];
	insn_regs args = 0;
	int arg;

	if (node->in.flow != INSN_CALL && !node->tail)
		return false;
	for (int k = 0; k < NATIVE_ARGS; k++)
		args |= insn_bit(cfg->arch->arg[k]);
	if (!(st->regs & args))
		return false;
	arg = called_argument(n, node->in.target, depth + 1);
	return arg >= 0 && (st->regs & insn_bit(cfg->arch->arg[arg]));
}

static bool calls_argument(const struct native *n, const struct cfg *cfg, uint32_t entry,
			   unsigned int arg, unsigned int depth)
{
	const struct flow_root root = {entry, insn_bit(cfg->arch->arg[arg])};
	_cleanup_free_ struct flow_state *st = flow_solve(cfg, &root, 1, 64);
	struct insn_full in;
	int type, base;
	int64_t disp;

	for (uint32_t i = 0; st && i < cfg->n; i++) {
		if (!st[i].reached || !st[i].regs)
			continue;
		if (passes_on(n, cfg, i, &st[i], depth))
			return true;
		if (cfg_full(cfg, i, &in) && insn_is_load(&in, &type, &base, &disp) &&
		    disp == n->p.layout->bpf.object_type && (st[i].regs & insn_bit(base)) &&
		    cfg->v[i].next != CFG_NONE && uses_call_slot(n, cfg, cfg->v[i].next, type))
			return true;
	}
	return false;
}

static int analyze_callee(const struct native *n, uint64_t vaddr, unsigned int depth)
{
	struct cfg cfg = {.img = n->p.img, .arch = n->machine};
	int ret = -1;

	if (cfg_explore(&cfg, &vaddr, 1) == 0 && cfg.n <= CALLEE_MAX && cfg_link(&cfg) == 0)
		for (unsigned int arg = 0; arg < NATIVE_ARGS && ret < 0; arg++)
			if (calls_argument(n, &cfg, cfg_find(&cfg, vaddr), arg, depth))
				ret = (int)arg;
	cfg_deinit(&cfg);
	return ret;
}

static int called_argument(const struct native *n, uint64_t vaddr, unsigned int depth)
{
	struct native_callees *c = n->callees;
	int k = known_find(n, vaddr), ret;

	if (k >= 0)
		return known[k].arg >= 0 ? known[k].arg : -1;
	if (image_plt_name(n->p.img, vaddr))
		return -1;
	for (unsigned int i = 0; i < c->n; i++)
		if (c->v[i].vaddr == vaddr)
			return c->v[i].arg;
	if (depth >= CALLEE_DEPTH || c->n == NATIVE_CALLEES)
		return -1;
	ret = analyze_callee(n, vaddr, depth);
	if (depth == 0 && c->n < NATIVE_CALLEES)
		c->v[c->n++] = (struct native_callee){vaddr, (int8_t)ret};
	return ret;
}

int native_called_argument(const struct native *n, uint64_t vaddr)
{
	return called_argument(n, vaddr, 0);
}

/* ---- indirect calls ---------------------------------------------------------------------- */

/*
 * Returns whether op is an address in the file. For shared libraries, a register may hold its base.
 */
static bool constant_place(const struct native *n, uint32_t node, const struct insn_operand *op,
			   uint64_t *ret)
{
	struct insn_operand reg = {.type = INSN_OP_REG, .bits = 64};
	int64_t disp;
	int base;

	if (insn_const_address(op, ret))
		return true;
	if (!insn_is_mem(op, &base, &disp) || base == n->arch.sp)
		return false;
	reg.reg = (int16_t)base;
	if (!native_constant(n, node, &reg, ret))
		return false;
	*ret += (uint64_t)disp;
	return true;
}

/* Classify the pointer that the instruction at node loads from op. */
static enum native_through through_memory(const struct native *n, uint32_t node,
					  const struct insn_operand *op)
{
	const struct layout *l = n->p.layout;
	uint64_t address, target;
	int64_t disp;
	int base;

	if (op->type != INSN_OP_MEM)
		return NATIVE_UNKNOWN;
	if (constant_place(n, node, op, &address))
		return image_pointer(n->p.img, address, &target) == 0 &&
				       native_called_argument(n, target) >= 0
			       ? NATIVE_UNKNOWN
			       : NATIVE_HARMLESS;
	if (l->type_vectorcall && op->bits == 64 && op->reg >= 0 && op->index >= 0 && !op->value)
		return NATIVE_VECTORCALL;
	if (!insn_is_mem(op, &base, &disp) || base == n->arch.sp)
		return NATIVE_UNKNOWN;
	if (disp == l->method_meth)
		return NATIVE_METHOD;
	if (disp == l->type_dealloc || disp == l->type_descr_get || disp == l->ts_profilefunc ||
	    disp == l->ts_tracefunc)
		return NATIVE_HARMLESS;
	return NATIVE_UNKNOWN;
}

enum native_through native_through_of(const struct native *n, uint32_t call,
				      uint32_t loads[NATIVE_DEFS], int *nloads)
{
	enum native_through ret = NATIVE_UNKNOWN;
	struct insn_full in;

	*nloads = 0;
	if (!cfg_full(&n->p.cfg, call, &in))
		return NATIVE_UNKNOWN;
	*nloads = native_operand_defs(n, call, &in.op[0], loads);
	if (*nloads <= 0 && in.op[0].type != INSN_OP_REG) {
		*nloads = 0;
		return through_memory(n, call, &in.op[0]);
	}
	for (int i = 0; i < *nloads; i++) {
		enum native_through t;

		if (!cfg_full(&n->p.cfg, loads[i], &in) || in.kind != INSN_MOVE)
			return NATIVE_UNKNOWN;
		t = through_memory(n, loads[i], &in.op[1]);
		if (i && t != ret)
			return NATIVE_UNKNOWN;
		ret = t;
	}
	return ret;
}
