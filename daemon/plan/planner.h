/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The planner's working state, shared by its parts (private to plan/):
 *
 *   planner.c what is missing, handlers, arguments
 *   table.c   where the evaluator's opcode table is, and the handlers in it
 *   roles.c   which registers hold the frame when a handler starts
 *   line.c    straight lines of code from a known entry, and the probe site on them
 *   paths.c   questions about paths, asked by every model
 *   models.c  which sites each way of calling and returning needs: see there for their files
 *   plan.c    the order of it, and the checks that every site passes
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
	insn_regs roles; /* registers that hold the frame when any handler starts */
	struct flow_slot role_slot[FLOW_SLOTS]; /* slots of the stack that do */
	uint8_t nrole_slots;
	struct flow_state *frame; /* where the frame is, per node */
	char missing[sizeof(((struct plan *)0)->missing)];
};

/* Remember what is missing (the first one stays) and return -ENOEXEC. */
int planner_missing(struct planner *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The node where opcode's handler starts, or CFG_NONE if the version has no such opcode. */
uint32_t planner_handler(const struct planner *p, int16_t opcode);

/* The register of the evaluator's argument number `arg` (0: the first), as a bit. */
insn_regs planner_argument(const struct planner *p, unsigned int arg);

/* table.c: fills handler[]; p->cfg must hold what is reached from the entry. */
int table_find(struct planner *p);
/* roles.c: fills roles. */
int roles_find(struct planner *p);

/* line.c ------------------------------------------------------------------------------------ */

/* Instructions that follow each other from one entry, up to the first branch. */
struct line {
	uint32_t v[PLAN_LINE_MAX];
	unsigned int n;
};

struct line_opts {
	bool follow_jumps;  /* go on at the target of an unconditional jump */
	bool through_calls; /* go on behind calls */
};

void line_build(const struct cfg *cfg, uint32_t from, const struct line_opts *o, struct line *ret);

struct site_want {
	enum pyp_site_kind kind;
	const char *role;
	const struct flow_state *where; /* where the pointer wanted is, per node */
	const uint8_t *family; /* nodes from which jumping into the line is harmless; may be NULL */
};

/* The best site on a line: the first emulated instruction at which the pointer is known and which
 * every pass through the line's entry executes exactly once; else the first that can be stepped.
 * Adds it to the plan; -ENOENT if there is none. */
int line_site(struct planner *p, const struct line *line, const struct site_want *want);

/* Add a site at node i; the pointer is in a location of st. -ENOENT if st knows none. Sites that
 * are in the plan already (same place, kind and location) are not added twice. */
int site_add(struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	     const char *role, const struct flow_state *st);

/* Set where the pointer is: the first of st's registers, else of its slots. st must have one. */
void site_locate(struct plan_site *s, const struct flow_state *st);
/* A site as site_add() adds it. */
int site_make(const struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	      const char *role, const struct flow_state *st, struct plan_site *ret);

/* plan.c: reading the code straight on from `at`, does an instruction start at vaddr? */
bool planner_reading_meets(const struct planner *p, uint64_t at, uint64_t vaddr);
/* plan.c: is the first byte of each site, sorted by offset, the start of an instruction? */
int planner_check_boundaries(struct planner *p, const struct plan_site *sites, unsigned int n);

/* paths.c ----------------------------------------------------------------------------------- */

/* A byte for each node, zeroed; NULL if out of memory. The caller frees it. */
uint8_t *planner_bytes(const struct planner *p);
/* Is a node that leaves the evaluator (ret), or one that dispatches, among those seen? */
bool planner_any_flow(const struct cfg *cfg, const uint8_t *seen, bool ret, bool dispatch);
/* cfg_reach() from every handler but that at `skip` and, if wanted, from the evaluator's entry. */
int planner_reach_all(const struct planner *p, bool with_entry, uint32_t skip,
		      const uint8_t *blocked, uint8_t *seen);
/* Mark the nodes that are sites of these kinds (a bit for each). */
void planner_block_sites(const struct planner *p, unsigned int kinds, uint8_t *blocked);

/* Mark everything from which control can get to what is marked, without going through `stop` (may be
 * NULL). */
void planner_lead_to(const struct planner *p, const uint8_t *stop, uint8_t *mark);
/* Add a site at the conditional branch at node, for when it is taken, or for when it is not. -ENOENT:
 * no probe is possible there, or there is one already. */
int planner_edge_site(struct planner *p, uint32_t node, bool taken, enum pyp_site_kind kind,
		      const char *role);

#define PLAN_BACK_MAX 32 /* instructions between a branch and the comparison it tests */

/* What a conditional branch compares. */
struct comparison {
	uint32_t node; /* the instruction that compares */
	struct insn_full in;
	/* Its first two operands; with arch->load_store, instead of a register the memory that the
	 * register was loaded from, where that is known. */
	struct insn_operand value[2];
	insn_regs changed; /* what is written between there (or the load) and the branch */
};

/*
 * What the branch at node compares, if the branch depends on equality: the nearest instruction before
 * it that writes the flags, as long as no other path joins in between. False: not known.
 */
bool planner_compared(const struct planner *p, uint32_t node, struct comparison *ret);
/* Is it operand 0 that is compared with 0? */
bool planner_tests_zero(const struct comparison *c);

/* One file per group of sites. All add sites to the plan and return 0 or a negative errno. ------- */

/* frame_object.c: 3.6 to 3.10, all but code_free. */
int models_plan_frame_object(struct planner *p);
/* resume.c: RESUME and what it specialises into. */
int models_plan_resume(struct planner *p);
/* yield.c */
int models_plan_yield(struct planner *p);
int models_plan_instrumented_yield(struct planner *p);
/* throw.c */
int models_plan_throw(struct planner *p);
/* callees.c: _PyEval_FrameClearAndPop; the deallocation of code objects. */
int models_plan_clear_and_pop(struct planner *p);
int models_plan_code_free(struct planner *p);
/* is_entry.c, for 3.11: returns, and the proof that none is missing. */
int models_plan_is_entry(struct planner *p);
int models_prove_is_entry(struct planner *p);
/* tracing.c, for 3.11: frames that start while a tool traces them; yields, after the leaving sites. */
int models_plan_tracing(struct planner *p);
int models_plan_yield_edges(struct planner *p);

/* models.c: all sites of the version's model. */
int models_plan(struct planner *p);

#endif
