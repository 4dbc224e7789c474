/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probe plan: the instructions of an interpreter's file to probe, computed only from the file
 * and the version's layout. Pure: no I/O, no clock, no globals.
 *
 * Guarantees: each offset is the first byte of an instruction that was reached by decoding from a
 * proven entry (a dynamic symbol, an opcode handler in the dispatch table, a callee), and that is
 * confirmed by decoding its function linearly from its start in the unwind table, if there is one;
 * each kind of event of the version is covered on all paths in the graph; at each site data flow
 * proves the location of the frame. Otherwise there is no plan, and plan->missing names the site
 * that could not be proven.
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

/* How the kernel executes a probed instruction */
enum plan_cost {
	PLAN_COST_EMULATED, /* nop, push, jmp, jcc, call rel32: the kernel emulates it */
	PLAN_COST_STEPPED,  /* single-stepped out of line */
};

struct plan_site {
	uint64_t offset; /* file offset */
	uint64_t vaddr;	 /* address in the file's program headers */
	uint64_t target; /* branch target; 0: none */
	enum pyp_site_kind kind;
	enum plan_cost cost;
	uint8_t reg; /* base register, as in the cookie */
	bool deref;
	int32_t disp;
	bool has_callable; /* C_ENTER, C_INSTANT: the callable's location is known: */
	uint8_t callable_reg;
	bool callable_deref; /* like reg, deref and disp of the frame */
	int32_t callable_disp;
	bool same_callable; /* C_ENTER, C_INSTANT: it always has the same PyMethodDef */
	bool has_cc;	    /* counts only under a condition of the branch */
	uint8_t cc;
	bool taken;
	bool has_flag; /* the low half of flag_reg is throwflag; THROW if it is not 0 */
	uint8_t flag_reg;
	bool early;	   /* another site will report the same entry */
	bool restarts;	   /* the instruction may execute again and cause a duplicate event ... */
	bool if_unequal;   /* ... but only if the comparison before it finds no equality */
	char role[32];	   /* name in the interpreter: "RESUME", "throw", … */
	char insn[64];	   /* disassembly */
	uint8_t bytes[15]; /* the instruction in the file */
	uint8_t len;
};

/* An instruction that is executed more often the further the program comes; emulated */
struct plan_mark {
	uint64_t offset, vaddr; /* as in struct plan_site */
	uint64_t target;	/* branch target; 0: none */
	uint8_t len;
};

struct plan {
	struct plan_site sites[PYP_MAX_SITES];
	unsigned int nsites;
	uint64_t table_vaddr; /* opcode dispatch table; 0 if not needed */
	unsigned int ninsns;  /* number of instructions decoded */
	char missing[128];    /* why the plan is incomplete; "" if it is complete */
	char twice[32];	      /* a site after which the same call may hit another; "": none */

	/* Sites for C functions: either they cover all calls, or there is none and native_missing
	 * has the reason. Since 3.14 callables are tagged: ignore the two lowest bits. */
	struct plan_site native[PYP_MAX_NATIVE_SITES];
	unsigned int nnative;
	char native_missing[128];

	/*
	 * Sites of garbage collections, likewise. reg holds the generation unless disp is
	 * PYP_GC_NO_GENERATION.
	 */
	struct plan_site gc[PYP_MAX_GC_SITES];
	unsigned int ngc;
	char gc_missing[128];

	/* See plan/marks.c; none is a site. */
	struct plan_mark marks[PYP_MARKS];
	unsigned int nmarks;
};

/*
 * Plan the probes for the interpreter in img, whose version layout describes. Returns 0 or a
 * negative errno. On failure diag (exit code 5) names the missing site, and *ret has the sites
 * found so far, with ret->missing set, for doctor.
 */
int plan_build(const struct image *img, const struct layout *layout, struct plan *ret,
	       struct diag *diag);

/* The same for a given instruction set; plan_build() uses this machine's. */
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

/* The cookie of site i */
uint64_t plan_cookie(const struct plan_site *site, unsigned int i);

const char *plan_kind_name(enum pyp_site_kind kind);
const char *plan_cost_name(enum plan_cost cost);

#endif
