// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines of straight code, and sites on them. Each instruction on a line before its first branch
 * executes exactly once per entry of the line, so a probe on any of them counts the entries, unless
 * other code jumps into the line before it.
 */
#include "plan/planner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void line_build(const struct cfg *cfg, uint32_t from, const struct line_opts *o, struct line *ret)
{
	uint32_t i = from;

	ret->n = 0;
	while (i != CFG_NONE && ret->n < PLAN_LINE_MAX) {
		const struct cfg_node *node = &cfg->v[i];

		for (unsigned int k = 0; k < ret->n; k++)
			if (ret->v[k] == i)
				return;
		ret->v[ret->n++] = i;
		switch (node->in.flow) {
		case INSN_NEXT:
			i = node->next;
			break;
		case INSN_CALL:
		case INSN_CALL_IND:
			i = o->through_calls ? node->next : CFG_NONE;
			break;
		case INSN_JMP:
			i = o->follow_jumps ? node->jump : CFG_NONE;
			break;
		default:
			return;
		}
	}
}

/*
 * Returns whether control can reach line[k] other than from the line's previous instruction or from
 * a node in group.
 */
static bool line_joined(const struct cfg *cfg, const struct line *line, unsigned int k,
			const uint8_t *harmless)
{
	uint32_t node = line->v[k];

	if (k == 0 || (cfg->v[node].preds == 1 && !cfg->v[node].root))
		return false;
	if (cfg->v[node].root && !(harmless && harmless[node]))
		return true;
	for (uint32_t i = 0; i < cfg->n; i++) {
		if (cfg->v[i].next != node && cfg->v[i].jump != node)
			continue;
		if (i != line->v[k - 1] && !(harmless && harmless[i]))
			return true;
	}
	return false;
}

static bool is_landing_pad(const struct cfg *cfg, uint32_t i)
{
	struct insn_full in;

	return cfg_full(cfg, i, &in) && in.landing_pad;
}

static bool flow_known(const struct flow_state *st)
{
	return st->reached && (st->regs || st->nslots);
}

/*
 * Returns how much a probe on the instruction costs, for comparison. The kernel emulates pushes and
 * calls by writing to the target's stack: 60 ns more than a branch, which only changes a register
 * (3.12.1 and 3.13.0: 680 to 693 ns and 617 to 625 ns at the same place).
 */
static unsigned int probe_cost(const struct insn *in)
{
	if (in->probe != INSN_EMULATED)
		return 2;
	return in->flow == INSN_JMP || in->flow == INSN_JCC ? 0 : 1;
}

int line_site(struct planner *p, const struct line *line, const struct site_want *want)
{
	uint32_t best = CFG_NONE;

	for (unsigned int k = 0; k < line->n; k++) {
		const struct cfg_node *node = &p->cfg.v[line->v[k]];

		if (line_joined(&p->cfg, line, k, want->harmless))
			break;
		if (node->doubtful || !flow_known(&want->where[line->v[k]]))
			continue;
		/* Processors may check landing pads, so avoid them. */
		if (node->in.probe != INSN_FORBIDDEN &&
		    (best == CFG_NONE || is_landing_pad(&p->cfg, best) ||
		     probe_cost(&node->in) < probe_cost(&p->cfg.v[best].in)))
			best = line->v[k];
	}
	if (best == CFG_NONE)
		return -ENOENT;
	return site_add(p, &p->cfg, best, want->kind, want->role, &want->where[best]);
}

void site_locate(struct plan_site *s, const struct flow_state *st)
{
	s->deref = st->regs == 0;
	if (!s->deref) {
		s->reg = (uint8_t)__builtin_ctz(st->regs);
		return;
	}
	s->reg = st->slot[0].base;
	s->disp = st->slot[0].disp;
}

static bool site_same(const struct plan_site *a, const struct plan_site *b)
{
	return a->vaddr == b->vaddr && a->kind == b->kind && a->reg == b->reg &&
	       a->deref == b->deref && a->disp == b->disp;
}

int site_make(const struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	      const char *role, const struct flow_state *st, struct plan_site *ret)
{
	const struct insn *in = &cfg->v[i].in;
	struct plan_site s = {
		.vaddr = in->vaddr,
		.target = in->target,
		.kind = kind,
		.len = in->len,
	};
	const uint8_t *code;

	if (!flow_known(st) || in->probe == INSN_FORBIDDEN || cfg->v[i].doubtful)
		return -ENOENT;
	s.cost = in->probe == INSN_EMULATED ? PLAN_COST_EMULATED : PLAN_COST_STEPPED;
	site_locate(&s, st);
	code = image_view(p->img, in->vaddr, in->len);
	if (!code || image_offset(p->img, in->vaddr, &s.offset) < 0)
		return -ENOENT;
	memcpy(s.bytes, code, in->len);
	snprintf(s.role, sizeof(s.role), "%s", role);
	cfg_format(cfg, i, s.insn, sizeof(s.insn));
	*ret = s;
	return 0;
}

int site_add(struct planner *p, const struct cfg *cfg, uint32_t i, enum pyp_site_kind kind,
	     const char *role, const struct flow_state *st)
{
	struct plan_site s;
	int r = site_make(p, cfg, i, kind, role, st, &s);

	if (r < 0)
		return r;
	for (unsigned int k = 0; k < p->plan->nsites; k++)
		if (site_same(&p->plan->sites[k], &s))
			return 0;
	if (p->plan->nsites == PYP_MAX_SITES)
		return -E2BIG;
	p->plan->sites[p->plan->nsites++] = s;
	return 0;
}
