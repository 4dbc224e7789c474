// SPDX-License-Identifier: BSD-2-Clause
/* The planner's working state: see planner.h. */
#include "plan/planner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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
