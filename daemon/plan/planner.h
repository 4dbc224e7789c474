/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The planner's working state, shared by its parts (private to plan/):
 *
 *   table.c   where the evaluator's opcode table is, and the handlers in it
 *   roles.c   which registers hold the frame when a handler starts
 *   line.c    straight lines of code from a known entry, and the probe site on them
 *   paths.c   questions about paths, asked by every model
 *   models.c  which sites each way of calling and returning needs, and the proof that they are all
 *   frame_object.c   the same for 3.6 to 3.10
 *   tracing.c        3.11: the opcode that stands for all others while a tool traces
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
	uint16_t roles; /* registers that hold the frame when any handler starts */
	struct flow_slot role_slot[FLOW_SLOTS]; /* slots of the stack that do */
	uint8_t nrole_slots;
	struct flow_state *frame; /* where the frame is, per node */
	char missing[sizeof(((struct plan *)0)->missing)];
};

/* Remember what is missing (the first one stays) and return -ENOEXEC. */
int planner_missing(struct planner *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The node where opcode's handler starts, or CFG_NONE if the version has no such opcode. */
uint32_t planner_handler(const struct planner *p, int16_t opcode);

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

#define PLAN_BACK_MAX 32 /* how far a branch may be from the comparison it tests */
/*
 * The instruction whose flags the branch at node tests: the nearest one before it that writes them,
 * as long as nothing joins in between. path receives the nodes between (at most PLAN_BACK_MAX).
 */
uint32_t planner_flags_setter(const struct cfg *cfg, uint32_t node, struct insn_full *ret,
			      uint32_t path[PLAN_BACK_MAX], unsigned int *npath);

/* ------------------------------------------------------------------------------------------- */

/* frame_object.c: all sites of LAYOUT_FRAME_OBJECT. */
int frame_object_plan(struct planner *p);
/* tracing.c, for 3.11: frames that start while a tool traces them; yields, after the leaving sites. */
int models_plan_tracing(struct planner *p);
int models_plan_yield_edges(struct planner *p);
/* models.c: all sites of the version's model. */
int models_plan(struct planner *p);
/* Sites that every model has: code objects' deallocation. */
int models_plan_code_free(struct planner *p);

#endif
