/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the evaluator enters and leaves calls of functions written in C (private to plan/). Nothing
 * here changes the plan for Python functions.
 *
 *   native.c         the order of it, and the checks that every site passes
 *   native_code.c    a function's code: its frame, where values come from, sites
 *   native_callee.c  what is called, and which argument a callee calls in turn
 *   native_edges.c   where a call becomes certain, and where it is over
 *   native_generic.c opcodes that call anything
 *   native_helper.c  functions that the evaluator leaves its calls to
 *   native_typed.c   opcodes that have tested what they call
 *
 * A call is one of these. Direct: of a function that calls one of its arguments (PyObject_Vectorcall);
 * the call itself is the site. Or indirect, through a pointer that was loaded from the callable: then
 * the sites are the branches over whose edges the call becomes certain. In both cases the call is over
 * at the first emulated instruction behind it. Not known are direct calls of one particular function
 * in C that a compiler has guessed from a profile: no build seen has one.
 */
#ifndef PYPROF_PLAN_NATIVE_H
#define PYPROF_PLAN_NATIVE_H

#include "plan/planner.h"

#define NATIVE_ARGS    3 /* of a callee: those that are looked at */
#define NATIVE_CALLEES 256
#define NATIVE_DEFS    16
#define NATIVE_KNOWN   40

/* Callees that have been looked at. */
struct native_callee {
	uint64_t vaddr;
	int8_t arg; /* number of the argument that it calls; -1: none */
};

struct native_callees {
	struct native_callee v[NATIVE_CALLEES];
	unsigned int n;
	uint64_t known[NATIVE_KNOWN]; /* where those known by name are in this file; 0: not there */
	uint64_t function_type, descriptor_type; /* PyCFunction_Type, PyMethodDescr_Type */
};

/* A function whose calls are sought: the evaluator, or one that it leaves calls to. */
struct native {
	struct planner p; /* cfg: its code; missing: why there can be no sites */
	const struct arch *machine;
	struct arch arch; /* as the function uses it: see native_code_open */
	struct native_callees *callees;
	struct flow_state *frame;     /* where the frame is, per node */
	uint32_t *pred_start, *preds; /* predecessors of node i: preds[pred_start[i]], ... */
	uint8_t *starts;	      /* nodes at which the code is entered */
	uint8_t *plain;		      /* nodes that code for other opcodes reaches */
	uint8_t *generic;	      /* others, that generic opcodes reach */
	uint8_t *calls;		      /* calls of functions in C that sites were planned for */
	uint8_t *over;		      /* those of them that need a leaving site */
};

/* native_code.c ------------------------------------------------------------------------------ */

/* Prepare n, whose p.cfg is linked. -ENOMEM. Free with native_code_close in any case. */
int native_code_open(struct native *n);
void native_code_close(struct native *n);

/* Fill n->frame for the evaluator. */
int native_frame_find(struct native *n);
/* The same for a function that is called while these registers hold the frame. */
int native_frame_from(struct native *n, uint32_t entry, insn_regs regs);

/*
 * The instructions that may have set register reg to the value it has before node. -1: not known.
 * At most NATIVE_DEFS nodes; copies between registers are followed.
 */
int native_defs(const struct native *n, uint32_t node, int reg, uint32_t defs[NATIVE_DEFS]);
/* The same of an operand that is read there: a register, or a slot of the stack. */
int native_operand_defs(const struct native *n, uint32_t node, const struct insn_operand *op,
			uint32_t defs[NATIVE_DEFS]);

/* The address that an operand of the instruction at node is: constant, or loaded from a constant place
 * that the dynamic linker fills in. */
bool native_constant(const struct native *n, uint32_t node, const struct insn_operand *op,
		     uint64_t *ret);

/* Where a value is that is in the roots' places there; nowhere if a way leads around the roots. -ENOMEM.
 * The caller frees *ret. */
int native_follow(const struct native *n, const struct flow_root *roots, size_t count,
		  struct flow_state **ret);

/* Add a site. callable may be NULL (C_LEAVE). -EEXIST: there is another site at that instruction;
 * -ENOENT: frame or callable are not known there, or no emulated probe is possible. */
int native_site(struct native *n, uint32_t node, enum pyp_site_kind kind, const char *role,
		const struct flow_state *callable);

/* native_callee.c ---------------------------------------------------------------------------- */

void native_callees_init(const struct planner *p, struct native_callees *ret);
/* Which of its arguments, an object, does the function at vaddr call? -1: none. */
int native_called_argument(const struct native *n, uint64_t vaddr);
/* Is it a function with a name that says that it calls, but is not known to us? Then the name. */
const char *native_unknown_caller(const struct native *n, uint64_t vaddr);
/* Does it call what a PyMethodDef says, for an opcode that has tested what it calls? */
bool native_calls_method(const struct native *n, uint64_t vaddr);
/* Is the function at vaddr known by a name at all? */
bool native_is_named(const struct native *n, uint64_t vaddr);

/* What an indirect call goes through. */
enum native_through {
	NATIVE_UNKNOWN,
	NATIVE_HARMLESS, /* a slot of a type that runs no such function, a constant address */
	NATIVE_VECTORCALL,
	NATIVE_METHOD, /* ml_meth, or another field there: see native_through_of */
};

/* loads: the instructions that loaded the pointer, *nloads of them (0: it is an operand). */
enum native_through native_through_of(const struct native *n, uint32_t call,
				      uint32_t loads[NATIVE_DEFS], int *nloads);

/* native_edges.c ----------------------------------------------------------------------------- */

/* How a group of calls is planned. */
struct native_group {
	const char *role;
	enum pyp_site_kind kind;	   /* of the entering sites */
	const uint8_t *within;		   /* nodes whose branches count */
	const struct flow_state *callable; /* where what is called is, per node */
};

/*
 * Sites at the edges that lead from `open` nodes to others, from which a node of `goal` can be
 * reached. *count is how many there are.
 */
int native_enter_edges(struct native *n, const struct native_group *g, const uint8_t *open,
		       const uint8_t *goal, unsigned int *count);
/* Sites at the edges over which one of the calls becomes certain. */
int native_certain_edges(struct native *n, const struct native_group *g, const uint8_t *calls,
			 unsigned int *count);
/* Does other code, too, pass the first emulated instruction behind the call? */
bool native_leave_is_shared(const struct native *n, uint32_t call);
/* Leaving sites for all calls in n->over. */
int native_leaves(struct native *n);

/* native_generic.c, native_helper.c, native_typed.c ------------------------------------------------------------ */

int native_plan_generic(struct native *n);
/* Sites for the calls in n->generic. */
int native_plan_calls(struct native *n);
/* A site for the direct call at node i, if its callee calls an argument. */
int native_plan_direct(struct native *n, uint32_t i);
/* Sites in functions that n->generic leaves calls to. */
int native_plan_helpers(struct native *n);
int native_plan_typed(struct native *n);
/* Can a function in C be called on a way from these nodes that passes no call with a site? */
int native_prove(struct native *n, const uint8_t *from, const uint8_t *without, const char *role);

/* native.c ----------------------------------------------------------------------------------- */

/* Fills plan->native, or native_missing. -ENOMEM. */
int native_plan(struct planner *p);

/* Mark what is reached from the handlers of these opcodes (0 ends the list). */
int native_reach_ops(const struct native *n, const uint8_t *ops, size_t max, uint8_t *seen);

#endif
