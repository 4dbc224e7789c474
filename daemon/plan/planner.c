// SPDX-License-Identifier: BSD-2-Clause
/* The planner's working state: see planner.h. */
#include "plan/planner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define LINEAR_MAX (2u << 20) /* limit of a function's size */

int planner_missing(struct planner *p, const char *fmt, ...)
{
	va_list ap;

	if (!p->missing[0]) {
		va_start(ap, fmt);
		vsnprintf(p->missing, sizeof(p->missing), fmt, ap);
		va_end(ap);
	}
	return -ENOEXEC;
}

uint32_t planner_handler(const struct planner *p, int16_t opcode)
{
	return opcode < 0 || opcode >= PLAN_OPCODES ? CFG_NONE
						    : cfg_find(&p->cfg, p->handler[opcode]);
}

insn_regs planner_argument(const struct planner *p, unsigned int arg)
{
	return insn_bit(p->cfg.arch->arg[arg]);
}

bool planner_linear_reaches(const struct planner *p, uint64_t at, uint64_t vaddr)
{
	if (vaddr - at > LINEAR_MAX)
		return false;
	while (at < vaddr) {
		const uint8_t *code = NULL;
		size_t max = image_view_max(p->img, at, &code);
		struct insn in;

		if (!max || !p->cfg.arch->decode(code, max, at, &in))
			return false;
		at += in.len;
	}
	return at == vaddr;
}

int planner_check_boundaries(struct planner *p, const struct plan_site *sites, unsigned int n)
{
	uint64_t from = UINT64_MAX, last = 0, start;

	for (unsigned int i = 0; i < n; i++) {
		const struct plan_site *s = &sites[i];
		int r = image_function_start(p->img, s->vaddr, &start);

		/* Without a table (some builds), rely on the graph alone. */
		if (r == -ENODATA)
			return 0;
		/* Continue from the previous site if it is in the same function. */
		if (r < 0 || !planner_linear_reaches(p, start == from ? last : start, s->vaddr))
			return planner_missing(p, "%s (0x%llx is inside of an instruction)",
					       s->role, (unsigned long long)s->vaddr);
		from = start;
		last = s->vaddr;
	}
	return 0;
}
