/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data flow over a control-flow graph: at each instruction, which registers and stack slots are
 * known to hold one particular value (the current frame, the throwflag argument) on every path that
 * leads there. A must-analysis: paths are intersected, so what it says is proven.
 */
#ifndef PYPROF_PLAN_FLOW_H
#define PYPROF_PLAN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/cfg.h"

#define FLOW_SLOTS 4

/* A stack slot: memory at base + disp, base being the stack or the frame pointer. */
struct flow_slot {
	uint8_t base;
	int32_t disp;
};

/* Where the value is, just before an instruction. */
struct flow_state {
	insn_regs regs; /* registers that hold it */
	uint8_t nslots;
	bool reached; /* false: no path leads here */
	struct flow_slot slot[FLOW_SLOTS];
};

/* Is the value known to be in memory at base + disp? */
bool flow_in_slot(const struct flow_state *s, int base, int64_t disp);

/* A starting point: before node, the registers in regs and the slots hold the value. */
struct flow_root {
	uint32_t node;
	insn_regs regs;
	const struct flow_slot *slot;
	uint8_t nslots;
};

/*
 * States for every node (calloc'd, the caller frees), or NULL if out of memory. bits: width of the
 * value, 64 (a pointer: only whole moves keep it) or 32 (an int: narrower moves keep it too).
 */
struct flow_state *flow_solve(const struct cfg *cfg, const struct flow_root *roots, size_t n,
			      unsigned int bits);

#endif
