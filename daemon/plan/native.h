/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where the evaluator enters and leaves calls of C functions (private to plan/). Does not
 * change the plan for Python functions.
 *
 *   native.c         order of the search, checks of all sites
 *   native_code.c    a function's code: frame, origins of values, sites
 *   native_callee.c  callables: which argument a function calls
 *   native_edges.c   where a call becomes certain, and where it has returned
 *   native_generic.c opcodes that call any callable
 *   native_helper.c  functions that make calls for the evaluator
 *   native_typed.c   opcodes that test the type of the callable
 *
 * A call is either direct, to a function that calls one of its arguments (PyObject_Vectorcall):
 * then the call itself is the site. Or it is indirect, through a pointer loaded from the callable:
 * then the sites are the branches on whose edges the call becomes certain. In both cases the call
 * has returned at the first emulated instruction after it. Direct calls of a particular C function,
 * speculated by a compiler from a profile, are not supported; no known build has one.
 */
#ifndef PYPROF_PLAN_NATIVE_H
#define PYPROF_PLAN_NATIVE_H

#include "plan/planner.h"

#define NATIVE_ARGS    3 /* number of a callee's arguments that are analyzed */
#define NATIVE_CALLEES 256
#define NATIVE_DEFS    16
#define NATIVE_KNOWN   40

/* Callees analyzed so far */
struct native_callee {
	uint64_t vaddr;
	int8_t arg; /* number of the argument that it calls; -1: none */
};

struct native_callees {
	struct native_callee v[NATIVE_CALLEES];
	unsigned int n;
	uint64_t known[NATIVE_KNOWN]; /* addresses of functions known by name; 0: not in this
				       * file */
	uint64_t function_type, descriptor_type; /* PyCFunction_Type, PyMethodDescr_Type */
};

/* A function whose calls are searched: the evaluator, or a helper that makes calls for it */
struct native {
	struct planner p; /* cfg: its code; missing: why there are no sites */
	const struct arch *machine;
	struct arch arch; /* adjusted to this function: see native_code_open() */
	struct native_callees *callees;
	struct flow_state *frame;     /* locations of the frame, per node */
	uint32_t *pred_start, *preds; /* predecessors of node i: preds[pred_start[i]] and
				       * following */
	uint8_t *starts;	      /* entry nodes of the code */
	uint8_t *plain;		      /* nodes that other opcodes reach */
	uint8_t *generic;	      /* nodes that only generic calling opcodes reach */
	uint8_t *calls;		      /* calls of C functions with planned sites */
	uint8_t *over;		      /* calls that still need a leaving site */
};

/* native_code.c ------------------------------------------------------------------------------ */

/* Prepare n; p.cfg must be linked. Returns 0 or -ENOMEM. Call native_code_close() in any case. */
int native_code_open(struct native *n);
void native_code_close(struct native *n);

/* Set n->frame for the evaluator. */
int native_frame_find(struct native *n);
/* Set n->frame for a function whose callers hold the frame in these registers. */
int native_frame_from(struct native *n, uint32_t entry, insn_regs regs);

/*
 * The instructions that may have set register reg to its value before node, following copies
 * between registers. Returns their number, at most NATIVE_DEFS; -1: unknown.
 */
int native_defs(const struct native *n, uint32_t node, int reg, uint32_t defs[NATIVE_DEFS]);
/* The same for an operand read at node: a register or a stack slot. */
int native_operand_defs(const struct native *n, uint32_t node, const struct insn_operand *op,
			uint32_t defs[NATIVE_DEFS]);

/* The address in an operand of the instruction at node: a constant, or loaded from a constant place
 * that the dynamic linker fills. */
bool native_constant(const struct native *n, uint32_t node, const struct insn_operand *op,
		     uint64_t *ret);

/* Locations of the value that is at the roots' places; none where a path avoids the roots. *ret is
 * owned by the caller. Returns 0 or -ENOMEM. */
int native_follow(const struct native *n, const struct flow_root *roots, size_t count,
		  struct flow_state **ret);

/* Add a site. callable: locations of the callable, NULL for C_LEAVE. -EEXIST: there is another
 * site at that instruction; -ENOENT: frame or callable unknown there, or no emulated probe is
 * possible. */
int native_site(struct native *n, uint32_t node, enum pyp_site_kind kind, const char *role,
		const struct flow_state *callable);

/* native_callee.c ---------------------------------------------------------------------------- */

void native_callees_init(const struct planner *p, struct native_callees *ret);
/* The number of the argument that the function at vaddr calls; -1: none. */
int native_called_argument(const struct native *n, uint64_t vaddr);
/* The name of an unknown function whose name indicates that it calls a callable; NULL otherwise. */
const char *native_unknown_caller(const struct native *n, uint64_t vaddr);
/*
 * Returns whether the function calls the one in a PyMethodDef, for an opcode that has tested the
 * type of its callable.
 */
bool native_calls_method(const struct native *n, uint64_t vaddr);
/* Returns whether the name of the function at vaddr is known. */
bool native_is_named(const struct native *n, uint64_t vaddr);

/* Origin of an indirect call's pointer */
enum native_through {
	NATIVE_UNKNOWN,
	NATIVE_HARMLESS, /* a type slot that runs no such function, or a constant address */
	NATIVE_VECTORCALL,
	NATIVE_METHOD, /* ml_meth or another field at that offset: see native_through_of() */
};

/* loads: the *nloads instructions that loaded the pointer; 0: it is an operand of the call. */
enum native_through native_through_of(const struct native *n, uint32_t call,
				      uint32_t loads[NATIVE_DEFS], int *nloads);

/* native_edges.c ----------------------------------------------------------------------------- */

/* How to plan a group of calls */
struct native_group {
	const char *role;
	enum pyp_site_kind kind;	   /* kind of the entering sites */
	const uint8_t *within;		   /* nodes whose branches may be sites */
	const struct flow_state *callable; /* locations of the callable, per node */
};

/*
 * Add sites on edges from `open` nodes to other nodes from which a node of `goal` is reachable.
 * Adds their number to *count.
 */
int native_enter_edges(struct native *n, const struct native_group *g, const uint8_t *open,
		       const uint8_t *goal, unsigned int *count);
/* Add sites on the edges after which one of the calls is certain. */
int native_certain_edges(struct native *n, const struct native_group *g, const uint8_t *calls,
			 unsigned int *count);
/* Returns whether other code also executes the first emulated instruction after the call. */
bool native_leave_is_shared(const struct native *n, uint32_t call);
/* Add leaving sites for all calls in n->over. */
int native_leaves(struct native *n);

/* native_generic.c, native_helper.c, native_typed.c ------------------------------------------ */

int native_plan_generic(struct native *n);
/* Add sites for the calls in n->generic. */
int native_plan_calls(struct native *n);
/* Add a site for the direct call at node i, if its callee calls an argument. */
int native_plan_direct(struct native *n, uint32_t i);
/* Add sites in helper functions called in n->generic. */
int native_plan_helpers(struct native *n);
int native_plan_typed(struct native *n);
/* Check that no path from these nodes calls a C function without a site. Does not pass
 * `without`. */
int native_prove(struct native *n, const uint8_t *from, const uint8_t *without, const char *role);

/* native.c ----------------------------------------------------------------------------------- */

/* Set plan->native or native_missing. Returns 0 or -ENOMEM. */
int native_plan(struct planner *p);

/* Mark nodes reachable from the handlers of these opcodes (0 ends the list). */
int native_reach_ops(const struct native *n, const uint8_t *ops, size_t max, uint8_t *seen);

#endif
