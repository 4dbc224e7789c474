/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data flow over a control-flow graph: the registers and stack slots that hold a given value (the
 * current frame, the throwflag argument) at each instruction, on every path to it. A must-analysis:
 * states of paths are intersected, so its results are proven.
 */
#ifndef PYPROF_PLAN_FLOW_H
#define PYPROF_PLAN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/cfg.h"

#define FLOW_SLOTS 4

/* A stack slot: memory at base + disp. base is the stack or frame pointer. */
struct flow_slot {
	uint8_t base;
	int32_t disp;
};

/* Locations of the value just before an instruction */
struct flow_state {
	insn_regs regs; /* registers that hold the value */
	uint8_t nslots;
	bool reached; /* false: no path leads here */
	struct flow_slot slot[FLOW_SLOTS];
};

/* Returns whether memory at base + disp holds the value. */
bool flow_in_slot(const struct flow_state *s, int base, int64_t disp);

/* A starting point: before node, these registers and slots hold the value. */
struct flow_root {
	uint32_t node;
	insn_regs regs;
	const struct flow_slot *slot;
	uint8_t nslots;
};

/*
 * Solve for all nodes. Returns an array, calloc'd and owned by the caller, or NULL if out of
 * memory. bits: width of the value, 64 (a pointer: only whole moves copy it) or 32 (an int: 32-bit
 * moves copy it, too).
 */
struct flow_state *flow_solve(const struct cfg *cfg, const struct flow_root *roots, size_t n,
			      unsigned int bits);

#endif
