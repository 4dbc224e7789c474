// SPDX-License-Identifier: BSD-2-Clause
/* Sites of a plan as numbers and as text: see plan.h. build.c makes plans. */
#include "plan/plan.h"

uint64_t plan_cookie(const struct plan_site *s, unsigned int i)
{
	return (uint64_t)s->kind | (uint64_t)s->reg << 4 | (uint64_t)s->deref << 9 |
	       (uint64_t)(i & 0x3f) << 10 | (uint64_t)(i >> 6 & 3) << 30 |
	       (uint64_t)s->restarts << 28 | (uint64_t)s->if_unequal << 29 |
	       (uint64_t)s->has_cc << 16 | (uint64_t)s->cc << 17 | (uint64_t)s->taken << 21 |
	       (uint64_t)s->has_flag << 22 | (uint64_t)s->flag_reg << 23 |
	       (uint64_t)(uint32_t)s->disp << 32;
}

const char *plan_kind_name(enum pyp_site_kind kind)
{
	static const char *const names[] = {
		[PYP_SITE_ENTER] = "enter",	    [PYP_SITE_THROW] = "throw",
		[PYP_SITE_LEAVE] = "leave",	    [PYP_SITE_YIELD] = "yield",
		[PYP_SITE_CODE_FREE] = "code-free", [PYP_SITE_C_ENTER] = "c-enter",
		[PYP_SITE_C_LEAVE] = "c-leave",	    [PYP_SITE_C_INSTANT] = "c-instant",
		[PYP_SITE_GC_START] = "gc-start",   [PYP_SITE_GC_STOP] = "gc-stop",
	};

	return kind < sizeof(names) / sizeof(*names) && names[kind] ? names[kind] : "?";
}

const char *plan_cost_name(enum plan_cost cost)
{
	return cost == PLAN_COST_EMULATED ? "emulated" : "single-stepped";
}
