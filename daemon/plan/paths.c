// SPDX-License-Identifier: BSD-2-Clause
/* Questions about paths through the evaluator, asked by every model: see planner.h. */
#include "plan/planner.h"

#include <errno.h>
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

static bool writes_flags(const struct insn_full *in)
{
	const ZydisAccessedFlags *f = in->zi.cpu_flags;

	return f && (f->modified | f->set_0 | f->set_1 | f->undefined);
}

uint32_t planner_flags_setter(const struct cfg *cfg, uint32_t node, struct insn_full *ret,
			      uint32_t path[PLAN_BACK_MAX], unsigned int *npath)
{
	uint32_t i = node;

	for (*npath = 0; *npath < PLAN_BACK_MAX; (*npath)++) {
		uint32_t prev = cfg->v[i].only_pred;

		if (prev == CFG_NONE || cfg->v[i].root || cfg->v[prev].in.flow != INSN_NEXT ||
		    !cfg_full(cfg, prev, ret))
			return CFG_NONE;
		if (writes_flags(ret))
			return prev;
		path[*npath] = prev;
		i = prev;
	}
	return CFG_NONE;
}

void planner_lead_to(const struct planner *p, const uint8_t *stop, uint8_t *mark)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = p->cfg.n; i-- > 0;) {
			const struct cfg_node *node = &p->cfg.v[i];

			if (mark[i] || (stop && stop[i]) ||
			    !((node->next != CFG_NONE && mark[node->next]) ||
			      (node->jump != CFG_NONE && mark[node->jump])))
				continue;
			mark[i] = 1;
			changed = true;
		}
	}
}

int planner_edge_site(struct planner *p, uint32_t node, bool taken, enum pyp_site_kind kind,
		      const char *role)
{
	unsigned int before = p->plan->nsites;
	int r;

	if (p->cfg.v[node].in.flow != INSN_JCC || p->cfg.v[node].in.probe != INSN_EMULATED)
		return -ENOENT;
	r = site_add(p, &p->cfg, node, kind, role, &p->frame[node]);
	if (r < 0 || p->plan->nsites == before)
		return r < 0 ? r : -ENOENT;
	p->plan->sites[before].has_cc = true;
	p->plan->sites[before].cc = p->cfg.v[node].in.cc;
	p->plan->sites[before].taken = taken;
	return 0;
}
