// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts and resumptions of frames, 3.11 and later: the first instruction of a Python function, and
 * the one after each suspension point, is RESUME (or a specialized form). Only throw() takes
 * another path (throw.c). Creating a generator executes none, matching profilers. A handler may be
 * abandoned and run again for the same frame (de-optimization); the stack stage counts such a
 * repeated entry once.
 *
 * Source: CPython v3.11.2 Python/ceval.c; v3.12.1 and v3.13.0 Python/bytecodes.c.
 */
#include "plan/planner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct op_role {
	int16_t opcode;
	const char *role;
};

/* Returns whether the branch at node compares a code object's version with the interpreter's. */
static bool compares_version(const struct planner *p, uint32_t node)
{
	uint16_t offset = p->layout->code_version;
	struct comparison c;
	int64_t disp;
	int base;

	if (!offset || !planner_compared(p, node, &c) || c.in.kind != INSN_COMPARE)
		return false;
	for (int i = 0; i < 2; i++)
		if (c.value[i].bits == 64 && insn_is_mem(&c.value[i], &base, &disp) &&
		    disp == offset)
			return true;
	return false;
}

static uint8_t *resume_sites(const struct planner *p, unsigned int first)
{
	uint8_t *sites = planner_bytes(p);

	for (unsigned int i = first; sites && i < p->plan->nsites; i++)
		sites[cfg_find(&p->cfg, p->plan->sites[i].vaddr)] = 1;
	return sites;
}

/*
 * A RESUME_CHECK that fails becomes a RESUME. *ret: all paths of that pass RESUME's site. (Some
 * compilers generate a copy of RESUME that does not.)
 */
static int check_seen_again(const struct planner *p, uint32_t node, unsigned int first, bool *ret)
{
	const struct cfg_node *n = &p->cfg.v[node];
	_cleanup_free_ uint8_t *sites = resume_sites(p, first), *seen = planner_bytes(p);

	if (!sites || !seen ||
	    cfg_reach(&p->cfg, n->in.cond == INSN_COND_EQUAL ? n->next : n->jump, sites, seen) < 0)
		return -ENOMEM;
	*ret = !planner_any_flow(&p->cfg, seen, true, true);
	return 0;
}

/*
 * A RESUME whose code is out of date updates it and is executed again. If a site is the
 * comparison's own branch, its condition selects the execution that counts.
 */
static int resume_condition(struct planner *p, unsigned int first)
{
	for (unsigned int i = first; i < p->plan->nsites; i++) {
		struct plan_site *s = &p->plan->sites[i];
		uint32_t node = cfg_find(&p->cfg, s->vaddr);
		bool again = true;
		int r = 0;

		s->restarts = p->layout->code_version != 0;
		s->if_unequal = p->cfg.v[node].in.cc != INSN_NO_CC && compares_version(p, node);
		/* INSTRUMENTED_RESUME is not executed again while a tool runs. */
		if (!s->if_unequal || strcmp(s->role, "INSTRUMENTED_RESUME") == 0)
			continue;
		if (strcmp(s->role, "RESUME") != 0)
			r = check_seen_again(p, node, first, &again);
		if (r < 0)
			return r;
		s->restarts = !again;
		s->has_cc = again;
		s->cc = again ? p->cfg.v[node].in.cc : 0;
		s->taken = again && p->cfg.v[node].in.cond == INSN_COND_EQUAL;
	}
	return 0;
}

/* Mark the code after a counted hit of the site. */
static int resume_follow(const struct planner *p, const struct plan_site *s, uint8_t *seen)
{
	const struct cfg_node *node = &p->cfg.v[cfg_find(&p->cfg, s->vaddr)];
	int r = 0;

	if ((!s->has_cc || !s->taken) && node->next != CFG_NONE)
		r = cfg_reach(&p->cfg, node->next, NULL, seen);
	if (r == 0 && (!s->has_cc || s->taken) && node->jump != CFG_NONE)
		r = cfg_reach(&p->cfg, node->jump, NULL, seen);
	return r;
}

/* If one call can hit two of the sites from `first` on, counting is impossible. */
static int resume_once(struct planner *p, unsigned int first)
{
	_cleanup_free_ uint8_t *sites = resume_sites(p, first);

	if (!sites)
		return -ENOMEM;
	for (unsigned int i = first; i < p->plan->nsites; i++) {
		_cleanup_free_ uint8_t *seen = planner_bytes(p);

		/* These builds contain the handler, but no code executes it. */
		if (p->layout->unspecialized && strcmp(p->plan->sites[i].role, "RESUME_CHECK") == 0)
			continue;
		if (!seen || resume_follow(p, &p->plan->sites[i], seen) < 0)
			return -ENOMEM;
		for (uint32_t k = 0; k < p->cfg.n; k++)
			if (seen[k] && sites[k])
				snprintf(p->plan->twice, sizeof(p->plan->twice), "%s",
					 p->plan->sites[i].role);
	}
	return 0;
}

int models_plan_resume(struct planner *p)
{
	const struct layout_opcodes *op = &p->layout->op;
	const struct op_role ops[] = {
		{op->resume, "RESUME"},
		{op->resume_quick, "RESUME_QUICK"},
		{op->resume_check, "RESUME_CHECK"},
		{op->resume_check_jit, "RESUME_CHECK_JIT"},
		{op->instrumented_resume, "INSTRUMENTED_RESUME"},
	};
	const size_t n = sizeof(ops) / sizeof(*ops);
	unsigned int first = p->plan->nsites;
	_cleanup_free_ uint8_t *resume_nodes = planner_bytes(p);
	struct line line[sizeof(ops) / sizeof(*ops)];

	if (!resume_nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		line_build(&p->cfg, planner_handler(p, ops[i].opcode), &(struct line_opts){0},
			   &line[i]);
		for (unsigned int k = 0; k < line[i].n; k++)
			resume_nodes[line[i].v[k]] = 1;
	}
	for (size_t i = 0; i < n; i++) {
		const struct site_want want = {PYP_SITE_ENTER, ops[i].role, p->frame, resume_nodes};

		if (ops[i].opcode == LAYOUT_NO_OPCODE)
			continue;
		if (line_site(p, &line[i], &want) < 0)
			return planner_missing(p, "%s (no probe possible in its handler)",
					       ops[i].role);
	}
	if (resume_condition(p, first) < 0)
		return -ENOMEM;
	return resume_once(p, first);
}
