/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probe plan: at which instructions of an interpreter's file the probes go, computed from the
 * file and the version's facts alone. Pure: no I/O, no clock, no global.
 *
 * What a plan guarantees: every offset is the first byte of an instruction that was reached by
 * decoding forward from a proven entry (a dynamic symbol, an opcode handler of the dispatch table,
 * a callee), and is met as well by reading its function straight through, from where the table for
 * unwinding (if there is one) says that it starts; every kind of event the version has is covered on
 * every path the planner can see; at every site the location of the frame is proven by data flow.
 * Otherwise there is no plan, and plan->missing names the site that could not be proven.
 */
#ifndef PYPROF_PLAN_PLAN_H
#define PYPROF_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "pyprof/bpf_abi.h"

struct arch;
struct image;
struct layout;

/* What a hit costs. */
enum plan_cost {
	PLAN_COST_EMULATED, /* nop, push, jmp, jcc, call rel32: the kernel emulates it */
	PLAN_COST_STEPPED,  /* must be single-stepped out of line */
};

struct plan_site {
	uint64_t offset; /* in the file */
	uint64_t vaddr;	 /* as the file's program headers say */
	uint64_t target; /* where it jumps to, or may; 0: nowhere */
	enum pyp_site_kind kind;
	enum plan_cost cost;
	uint8_t reg; /* base register, as in the cookie */
	bool deref;
	int32_t disp;
	bool has_callable; /* C_ENTER, C_INSTANT: what is called is, at the site, in ... */
	uint8_t callable_reg;
	bool callable_deref; /* ... and the next as reg, deref and disp say for the frame */
	int32_t callable_disp;
	bool same_callable; /* C_ENTER, C_INSTANT: it is of one and the same PyMethodDef each time */
	bool has_cc;	    /* counts only under a condition of the branch */
	uint8_t cc;
	bool taken;
	bool has_flag; /* flag_reg's low half is throwflag: not 0 means THROW */
	uint8_t flag_reg;
	bool early;	   /* another site will announce the same */
	bool restarts;	   /* what it announces may be executed once more ... */
	bool if_unequal;   /* ... but only if the comparison before it finds no equality */
	char role[32];	   /* which site of the interpreter this is: "RESUME", "throw", … */
	char insn[64];	   /* its disassembly */
	uint8_t bytes[15]; /* the instruction, from the file */
	uint8_t len;
};

struct plan {
	struct plan_site sites[PYP_MAX_SITES];
	unsigned int nsites;
	uint64_t table_vaddr; /* opcode dispatch table; 0 where the version needs none */
	unsigned int ninsns;  /* instructions decoded */
	char missing[128];    /* why there is no complete plan; "" when complete */
	char twice[32];	      /* a site after which the same call may be seen again; "": none */

	/* Calls of functions written in C: all of them can be seen, or there is no site at all, and
	 * native_missing says why. What is called is tagged in 3.14 and later: its two lowest bits
	 * are to be ignored. */
	struct plan_site native[PYP_MAX_NATIVE_SITES];
	unsigned int nnative;
	char native_missing[128];

	/* Collections of the garbage collector, the same way. reg holds the generation, if disp is not
	 * PYP_GC_NO_GENERATION. */
	struct plan_site gc[PYP_MAX_GC_SITES];
	unsigned int ngc;
	char gc_missing[128];
};

/*
 * Plan the probes for the interpreter in img, whose version layout describes. On success *ret is
 * complete. On failure diag (exit code 5) names the missing site and *ret holds what was found,
 * with ret->missing set, for doctor to print. Returns 0 or a negative errno.
 */
int plan_build(const struct image *img, const struct layout *layout, struct plan *ret,
	       struct diag *diag);

/* The same for a given instruction set: plan_build takes the machine's. */
int plan_build_for(const struct image *img, const struct layout *layout, const struct arch *arch,
		   struct plan *ret, struct diag *diag);

/* All sites by number: those of Python functions, those of C functions, those of the collector. */
static inline unsigned int plan_sites(const struct plan *plan)
{
	return plan->nsites + plan->nnative + plan->ngc;
}

static inline const struct plan_site *plan_site(const struct plan *plan, unsigned int i)
{
	if (i < plan->nsites)
		return &plan->sites[i];
	i -= plan->nsites;
	return i < plan->nnative ? &plan->native[i] : &plan->gc[i - plan->nnative];
}

/* The cookie of site number i. */
uint64_t plan_cookie(const struct plan_site *site, unsigned int i);

const char *plan_kind_name(enum pyp_site_kind kind);
const char *plan_cost_name(enum plan_cost cost);

#endif
