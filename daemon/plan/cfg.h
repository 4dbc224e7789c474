/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-flow graph of one function, built by recursive descent: from roots (known instruction
 * boundaries) along all direct branches. Calls are not entered; calls of functions that never
 * return (known by dynamic name) end a path. Indirect jumps end a path, so their targets must be
 * given as roots. Owns its instructions; borrows the image. Initialize with img and arch, all else
 * zero.
 *
 * Invariants: each instruction starts where control can arrive, or follows one that falls through;
 * overlapping instructions are all marked as doubtful.
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
	uint32_t preds;	    /* number of edges to this node, without roots */
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
	uint64_t noreturn[CFG_NORETURN]; /* addresses of functions that do not return */
	unsigned int nnoreturn;
};

/*
 * Explore from n roots. Further calls add roots. Returns 0, -ENOMEM, or -E2BIG beyond
 * CFG_MAX_INSNS.
 */
int cfg_explore(struct cfg *cfg, const uint64_t *roots, size_t n);
/* Set the edges. Call once after the last cfg_explore(). Returns 0 or -ENOMEM. */
int cfg_link(struct cfg *cfg);
void cfg_deinit(struct cfg *cfg);

/* The node of the instruction that starts at vaddr, or CFG_NONE. */
uint32_t cfg_find(const struct cfg *cfg, uint64_t vaddr);

/* Decode node i with all operands. */
bool cfg_full(const struct cfg *cfg, uint32_t i, struct insn_full *ret);
/* Disassemble node i into out; "" if that fails. */
void cfg_format(const struct cfg *cfg, uint32_t i, char *out, size_t size);

/*
 * Mark in seen (one byte per node) everything reachable from node `from`, itself included, without
 * passing nodes set in `blocked` (may be NULL), which are not marked. Keeps existing marks. Returns
 * 0 or -ENOMEM.
 */
int cfg_reach(const struct cfg *cfg, uint32_t from, const uint8_t *blocked, uint8_t *seen);

#endif
