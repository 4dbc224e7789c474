// SPDX-License-Identifier: BSD-2-Clause
/*
 * The opcode dispatch table. The evaluator's first dispatch is reached from its entry by direct
 * branches alone and names the table's address: as a rip-relative lea, or as the displacement of
 * the dispatching load. So every constant address in that code is tried: the table is the one
 * where 256 consecutive pointers lead into code and repeat as an opcode table does (one handler,
 * for the opcodes that do not exist, stands in it many times).
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

#define UNKNOWN_MIN 16u	 /* how often the handler for undefined opcodes stands in the table: 29-130 */
#define UNKNOWN_MAX 150u /* 3.6 has ~130 */
#define UNIQUE_MIN  80u	 /* different handlers: 3.6 has 119, 3.13 has 212 */

static bool is_code(const struct image *img, uint64_t vaddr)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(img, &seg);

	for (unsigned int i = 0; i < n; i++)
		if (seg[i].exec && vaddr >= seg[i].vaddr && vaddr - seg[i].vaddr < seg[i].filesz)
			return true;
	return false;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How often the commonest target stands in the table, and how many different ones there are. */
static void table_shape(const uint64_t t[PLAN_OPCODES], unsigned int *commonest,
			unsigned int *unique)
{
	uint64_t v[PLAN_OPCODES];
	unsigned int run = 0;

	memcpy(v, t, sizeof(v));
	qsort(v, PLAN_OPCODES, sizeof(*v), by_value);
	*commonest = *unique = 0;
	for (unsigned int i = 0; i < PLAN_OPCODES; i++) {
		run = i && v[i] == v[i - 1] ? run + 1 : 1;
		*unique += run == 1;
		if (run > *commonest)
			*commonest = run;
	}
}

static bool table_read(const struct image *img, uint64_t vaddr, uint64_t t[PLAN_OPCODES])
{
	unsigned int commonest, unique;

	if (vaddr & 7)
		return false;
	for (unsigned int i = 0; i < PLAN_OPCODES; i++)
		if (image_pointer(img, vaddr + 8 * i, &t[i]) < 0 || !is_code(img, t[i]))
			return false;
	table_shape(t, &commonest, &unique);
	return commonest >= UNKNOWN_MIN && commonest <= UNKNOWN_MAX && unique >= UNIQUE_MIN;
}

int table_find(struct planner *p)
{
	uint64_t found = 0, t[PLAN_OPCODES];

	for (uint32_t i = 0; i < p->cfg.n; i++) {
		struct insn_full in;
		uint64_t vaddr;

		if (!cfg_full(&p->cfg, i, &in))
			continue;
		for (int k = 0; k < in.zi.operand_count_visible; k++) {
			if (!insn_const_address(&in, &in.op[k], &vaddr) || vaddr == found ||
			    !table_read(p->img, vaddr, t))
				continue;
			if (found)
				return planner_missing(p, "opcode table (two candidates: 0x%llx, "
							  "0x%llx)",
						       (unsigned long long)found,
						       (unsigned long long)vaddr);
			found = vaddr;
			memcpy(p->handler, t, sizeof(t));
		}
	}
	if (!found)
		return planner_missing(p, "opcode table (no dispatch found in the evaluator)");
	p->has_table = true;
	p->plan->table_vaddr = found;
	return 0;
}
