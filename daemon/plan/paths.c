// SPDX-License-Identifier: BSD-2-Clause
/* Analysis of paths through the evaluator, for all models: see planner.h. */
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

/* The node before `node`, decoded, if it is the only predecessor and falls through; else
 * CFG_NONE. */
static uint32_t step_back(const struct cfg *cfg, uint32_t node, struct insn_full *ret)
{
	uint32_t prev = cfg->v[node].only_pred;

	if (prev == CFG_NONE || cfg->v[node].root || cfg->v[prev].in.flow != INSN_NEXT ||
	    !cfg_full(cfg, prev, ret))
		return CFG_NONE;
	return prev;
}

/* Find the comparison whose flags the branch at node tests. */
static bool flags_writer(const struct cfg *cfg, uint32_t node, struct comparison *c)
{
	for (unsigned int n = 0; n < PLAN_BACK_MAX; n++) {
		node = step_back(cfg, node, &c->in);
		if (node == CFG_NONE)
			return false;
		c->node = node;
		if (c->in.writes_flags)
			return true;
		c->changed |= c->in.writes;
	}
	return false;
}

/* Where only registers are compared: replace a register by the memory from which it was loaded. */
static void find_load(const struct cfg *cfg, struct comparison *c, int k)
{
	insn_regs changed = 0;
	uint32_t node = c->node;
	struct insn_full in;

	if (c->value[k].type != INSN_OP_REG)
		return;
	for (unsigned int n = 0; n < PLAN_BACK_MAX; n++) {
		node = step_back(cfg, node, &in);
		if (node == CFG_NONE)
			return;
		changed |= in.writes;
		if (!insn_writes_reg(&in, c->value[k].reg))
			continue;
		if (in.kind != INSN_MOVE || in.op[0].type != INSN_OP_REG ||
		    in.op[1].type != INSN_OP_MEM)
			return;
		c->value[k] = in.op[1];
		c->changed |= changed;
		return;
	}
}

bool planner_compared(const struct planner *p, uint32_t node, struct comparison *ret)
{
	const struct arch *arch = p->cfg.arch;
	const struct insn *in = &p->cfg.v[node].in;
	bool itself;

	if (in->flow != INSN_JCC || in->cond == INSN_COND_OTHER)
		return false;
	ret->changed = 0;
	ret->node = node;
	itself = arch->compare_branch && cfg_full(&p->cfg, node, &ret->in) &&
		 ret->in.kind != INSN_OTHER;
	if (!itself && !flags_writer(&p->cfg, node, ret))
		return false;
	ret->value[0] = ret->in.op[0];
	ret->value[1] = ret->in.op[1];
	for (int k = 0; arch->load_store && k < 2; k++)
		find_load(&p->cfg, ret, k);
	return true;
}

bool planner_set_by(const struct planner *p, uint32_t node, struct comparison *ret)
{
	struct insn_full in;

	ret->changed = 0;
	if (!cfg_full(&p->cfg, node, &in) || in.kind != INSN_SET ||
	    !flags_writer(&p->cfg, node, ret))
		return false;
	ret->value[0] = ret->in.op[0];
	ret->value[1] = ret->in.op[1];
	return true;
}

bool planner_tests_zero(const struct comparison *c)
{
	const struct insn_operand *op = c->in.op;

	if (c->in.kind == INSN_TEST)
		return op[0].type == INSN_OP_REG && op[1].type == INSN_OP_REG &&
		       op[0].bits == op[1].bits && op[0].reg == op[1].reg;
	return c->in.kind == INSN_COMPARE && insn_is_zero(&op[1]);
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

	if (p->cfg.v[node].in.flow != INSN_JCC || p->cfg.v[node].in.probe != INSN_EMULATED ||
	    p->cfg.v[node].in.cc == INSN_NO_CC)
		return -ENOENT;
	r = site_add(p, &p->cfg, node, kind, role, &p->frame[node]);
	if (r < 0 || p->plan->nsites == before)
		return r < 0 ? r : -ENOENT;
	p->plan->sites[before].has_cc = true;
	p->plan->sites[before].cc = p->cfg.v[node].in.cc;
	p->plan->sites[before].taken = taken;
	return 0;
}
