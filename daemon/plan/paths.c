// SPDX-License-Identifier: BSD-2-Clause
/* Questions about paths through the evaluator, asked by every model: see planner.h. */
#include "plan/planner.h"

#include <stdlib.h>

bool planner_any_flow(const struct cfg *cfg, const uint8_t *seen, bool ret, bool dispatch)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		if (!seen[i])
			continue;
		if (ret && (cfg->v[i].in.flow == INSN_RET || cfg->v[i].tail))
			return true;
		if (dispatch && cfg->v[i].in.flow == INSN_JMP_IND && !cfg->v[i].tail)
			return true;
	}
	return false;
}

int planner_reach_all(const struct planner *p, bool with_entry, uint32_t skip,
		      const uint8_t *blocked, uint8_t *seen)
{
	int r = with_entry ? cfg_reach(&p->cfg, p->entry, blocked, seen) : 0;

	for (unsigned int op = 0; op < PLAN_OPCODES && r == 0; op++) {
		uint32_t h = cfg_find(&p->cfg, p->handler[op]);

		if (h != skip)
			r = cfg_reach(&p->cfg, h, blocked, seen);
	}
	return r;
}

uint8_t *planner_bytes(const struct planner *p)
{
	return calloc(p->cfg.n ? p->cfg.n : 1, 1);
}

void planner_block_sites(const struct planner *p, unsigned int kinds, uint8_t *blocked)
{
	for (unsigned int k = 0; k < p->plan->nsites; k++) {
		uint32_t i = cfg_find(&p->cfg, p->plan->sites[k].vaddr);

		if (i != CFG_NONE && (kinds & (1u << p->plan->sites[k].kind)))
			blocked[i] = 1;
	}
}
