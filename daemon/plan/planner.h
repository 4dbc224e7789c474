/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The planner's state (private to plan/)
 *
 *   planner.c errors, handlers, arguments, starts of instructions
 *   table.c   the evaluator's opcode table
 *   roles.c   registers that hold the frame when a handler starts
 *   line.c    lines of straight code, and sites on them
 *   paths.c   analysis of paths, for all models
 *   cut.c     instructions that all paths to some places pass exactly once
 *   returns.c ends of frames in the evaluator
 *   models.c  the sites of each calling model, in files listed below
 *   marks.c   instructions that show a program's progress
 *   build.c   the order of planning, and the checks of all sites
 */
#ifndef PYPROF_PLAN_PLANNER_H
#define PYPROF_PLAN_PLANNER_H

#include "elf/image.h"
#include "plan/cfg.h"
#include "plan/flow.h"
#include "plan/plan.h"
#include "python/layout.h"

#define PLAN_OPCODES  256
#define PLAN_LINE_MAX 96

struct planner {
	const struct image *img;
	const struct layout *layout;
	struct plan *plan;
	struct cfg cfg;
	uint64_t entry_vaddr;
	uint32_t entry;			/* node of the evaluator's first instruction */
	uint64_t handler[PLAN_OPCODES]; /* the opcode table */
	bool has_table;
	insn_regs roles; /* registers that hold the frame at the start of each handler */
	struct flow_slot role_slot[FLOW_SLOTS]; /* stack slots that hold it there */
	uint8_t nrole_slots;
	struct flow_state *frame; /* locations of the frame, per node */
	char missing[sizeof(((struct plan *)0)->missing)];
};

/* Set p->missing, unless it is set, and return -ENOEXEC. */
int planner_missing(struct planner *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first node of an opcode's handler; CFG_NONE: no such opcode in this version. */
uint32_t planner_handler(const struct planner *p, int16_t opcode);

/* The register of the evaluator's argument `arg`, counted from 0, as a bit */
insn_regs planner_argument(const struct planner *p, unsigned int arg);

/* Returns whether decoding linearly from `at` reaches an instruction that starts at vaddr. */
bool planner_linear_reaches(const struct planner *p, uint64_t at, uint64_t vaddr);
/*
 * Checks that the first byte of each site is the start of an instruction. sites: sorted by offset.
 */
int planner_check_boundaries(struct planner *p, const struct plan_site *sites, unsigned int n);

/* table.c: set handler[]. p->cfg must contain the code reachable from the entry. */
int table_find(struct planner *p);
/* roles.c: set roles and role_slot. */
int roles_find(struct planner *p);

/* line.c ------------------------------------------------------------------------------------ */

/* Successive instructions from an entry to the first branch */
struct line {
	uint32_t v[PLAN_LINE_MAX];
	unsigned int n;
};

struct line_opts {
	bool follow_jumps;  /* continue at the target of an unconditional jump */
	bool through_calls; /* continue after calls */
};

void line_build(const struct cfg *cfg, uint32_t from, const struct line_opts *o, struct line *ret);

struct site_want {
	enum pyp_site_kind kind;
	const char *role;
	const struct flow_state *where; /* locations of the pointer, per node */
	const uint8_t *harmless; /* nodes whose jumps into the line are harmless; may be NULL */
};

/*
 * Add the best site on a line: of the instructions with a known pointer that execute exactly once
 * per entry of the line, the first branch; else the first one that is emulated, else the first one
 * that can be single-stepped. -ENOENT: none.
 */
int line_site(struct planner *p, const struct line *line, const struct site_want *want);

/* Add a site at node i, with a location of the pointer from st. -ENOENT: st has none. Adds no
 * duplicates (same place, kind and location). */
int site_add(struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	     const char *role, const struct flow_state *st);

/* Set the pointer's location: the first of st's registers, else slots. st must have one. */
void site_locate(struct plan_site *s, const struct flow_state *st);
/* Make a site without adding it to the plan. */
int site_make(const struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	      const char *role, const struct flow_state *st, struct plan_site *ret);

/* paths.c ----------------------------------------------------------------------------------- */

/* An array of zeroed bytes, one per node; owned by the caller. NULL if out of memory. */
uint8_t *planner_bytes(const struct planner *p);
/* Returns whether a seen node leaves the evaluator (if ret) or dispatches (if dispatch). */
bool planner_any_flow(const struct cfg *cfg, const uint8_t *seen, bool ret, bool dispatch);
/* cfg_reach() from all handlers but the one at `skip`, and optionally from the evaluator's
 * entry. */
int planner_reach_all(const struct planner *p, bool with_entry, uint32_t skip,
		      const uint8_t *blocked, uint8_t *seen);
/* Mark the nodes of sites of these kinds (bit mask). */
void planner_block_sites(const struct planner *p, unsigned int kinds, uint8_t *blocked);

/* Extend marks to all nodes from which a marked node is reachable without passing `stop` (may be
 * NULL). */
void planner_lead_to(const struct planner *p, const uint8_t *stop, uint8_t *mark);
/* Add a site at the conditional branch at node, for when it is taken or not taken. -ENOENT: no
 * probe possible, or there is a site already. */
int planner_edge_site(struct planner *p, uint32_t node, bool taken, enum pyp_site_kind kind,
		      const char *role);

#define PLAN_BACK_MAX 32 /* maximum number of instructions between comparison and branch */

/* The comparison that a conditional branch tests */
struct comparison {
	uint32_t node; /* the comparing instruction */
	struct insn_full in;
	/* Its first two operands. With arch->load_store, a register is replaced by the memory from
	 * which it was loaded, if known. */
	struct insn_operand value[2];
	insn_regs changed; /* registers written between comparison (or load) and branch */
};

/*
 * Get the comparison of the branch at node, if the branch tests equality: the nearest instruction
 * before it that writes the flags, if no other edge enters in between. False: unknown.
 */
bool planner_compared(const struct planner *p, uint32_t node, struct comparison *ret);
/* Likewise for a SET, without following registers to memory. */
bool planner_set_by(const struct planner *p, uint32_t node, struct comparison *ret);
/* Returns whether operand 0 is compared with 0. */
bool planner_tests_zero(const struct comparison *c);

/* cut.c ------------------------------------------------------------------------------------- */

#define CUT_MAX 128

/*
 * A cut before some nodes, the ends: emulated instructions such that each path to an open end passes
 * exactly one of them, and each of them leads to an open end.
 */
struct cut {
	const uint8_t *ends; /* all of them */
	uint8_t *open;	     /* those that need the cut */
	uint8_t *in;	     /* zeroed; set: nodes in the cut */
	bool direct;	     /* branches only, without calls between them and an end */
	/* The register with the frame, or another value, at an end; -1: none. NULL: end_reg. */
	int (*value_at)(const struct planner *p, uint32_t node);
	int end_reg;
	uint8_t reg[CUT_MAX]; /* set: register with the value, parallel to node[] */
	uint32_t node[CUT_MAX];
	unsigned int n;
};

/* Finds and proves a cut. *ret: false if there is none. Returns 0 or -ENOMEM. */
int cut_find(const struct planner *p, struct cut *c, bool *ret);

/* One file per group of sites. All add sites to the plan and return 0 or a negative errno.
 * ------- */

/* frame_object.c: 3.6 to 3.10, all sites but code_free */
int models_plan_frame_object(struct planner *p);
/* resume.c: RESUME and its specialized forms */
int models_plan_resume(struct planner *p);
/* yield.c */
int models_plan_yield(struct planner *p);
int models_plan_instrumented_yield(struct planner *p);
/* throw.c */
int models_plan_throw(struct planner *p);
/*
 * returns.c: ends of frames before calls of _PyEval_FrameClearAndPop (marked nodes). -ENOENT: none
 * of them or not all can be probed; no site was added.
 */
int returns_plan(struct planner *p, const uint8_t *calls);
/* callees.c: _PyEval_FrameClearAndPop; deallocation of code objects */
int models_plan_clear_and_pop(struct planner *p);
int models_plan_code_free(struct planner *p);
/* is_entry.c, for 3.11: returns, and the proof that none is missing */
int models_plan_is_entry(struct planner *p);
int models_prove_is_entry(struct planner *p);
/* tracing.c, for 3.11: starts of frames while a tool traces; yields (call after the leaving sites
 * were added) */
int models_plan_tracing(struct planner *p);
int models_plan_yield_edges(struct planner *p);

/* models.c: all sites of the version's model */
int models_plan(struct planner *p);
/* marks.c; all sites are known. There may be no marks. */
void marks_plan(struct planner *p);

#endif
