/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-flow graph of one function's code, found by recursive descent: from roots (entries
 * known to be instruction boundaries) along every direct branch. Calls are not entered; those of
 * functions that never return (by their dynamic names) end a path. Indirect jumps end a path; their
 * targets must be given as roots. Owns its instructions; borrows the image. To be initialised with img
 * and arch, all else zero.
 *
 * Invariants: each instruction starts where control can arrive, or right behind one that falls
 * through; instructions that overlap are all marked as doubtful.
 */
#ifndef PYPROF_PLAN_CFG_H
#define PYPROF_PLAN_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "plan/arch/arch.h"

#define CFG_MAX_INSNS 400000u
#define CFG_NONE      UINT32_MAX
#define CFG_NORETURN  16

struct image;

struct cfg_node {
	struct insn in;
	uint32_t next;	    /* fall-through successor, CFG_NONE: none */
	uint32_t jump;	    /* branch target within the graph, CFG_NONE: none */
	uint32_t preds;	    /* how many edges lead here, roots not counted */
	uint32_t only_pred; /* the predecessor, if preds == 1 */
	bool root;
	bool doubtful; /* overlaps another instruction */
	bool tail;     /* a jump that leaves the function for another one */
};

struct cfg {
	const struct image *img;
	const struct arch *arch;
	struct cfg_node *v;
	uint32_t n, cap;
	uint32_t *hash; /* vaddr → index + 1 */
	uint32_t hash_size;
	uint64_t noreturn[CFG_NORETURN]; /* functions that do not come back */
	unsigned int nnoreturn;
};

/*
 * Explore from roots. More roots may be added by calling it again. -ENOMEM, or -E2BIG if the graph
 * exceeds CFG_MAX_INSNS.
 */
int cfg_explore(struct cfg *cfg, const uint64_t *roots, size_t n);
/* To be called once after the last cfg_explore: fills edges. */
int cfg_link(struct cfg *cfg);
void cfg_deinit(struct cfg *cfg);

/* The node of the instruction that starts at vaddr, or CFG_NONE. */
uint32_t cfg_find(const struct cfg *cfg, uint64_t vaddr);

/* Decode node i in full. */
bool cfg_full(const struct cfg *cfg, uint32_t i, struct insn_full *ret);
/* Disassemble node i into out; "" if that fails. */
void cfg_format(const struct cfg *cfg, uint32_t i, char *out, size_t size);

/*
 * Mark (in seen, one byte per node) everything reachable from node `from`, inclusive, without going
 * through nodes whose byte in `blocked` is set (may be NULL); blocked nodes themselves are not
 * marked. Adds to what is marked already. -ENOMEM.
 */
int cfg_reach(const struct cfg *cfg, uint32_t from, const uint8_t *blocked, uint8_t *seen);

#endif
