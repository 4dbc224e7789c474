// SPDX-License-Identifier: BSD-2-Clause
/*
 * The opcode dispatch table: 256 consecutive pointers to code, in which one handler (for undefined
 * opcodes) occurs many times. Builds without computed gotos use a switch, whose table may contain
 * 32-bit distances from itself. Proof that such a run of entries is the evaluator's table:
 *
 *   1.  The evaluator's first dispatch, reached from its entry by direct branches only, contains
 *       the table's address (x86-64: in a rip-relative lea, or as displacement of the dispatching
 *       load).
 *   2.  If the first dispatch is a switch (3.10 and earlier): the handlers in the table contain its
 *       address, at their ends.
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

#define UNKNOWN_MIN                                                                                \
	16u /* minimum and maximum count of the handler for undefined opcodes: 29 to 130 */
#define UNKNOWN_MAX    150u /* 3.6 has about 130 */
#define UNIQUE_MIN     80u  /* number of different handlers: 3.6 has 119, 3.13 has 212 */
#define REFERENCES_MIN 16u  /* instructions in the handlers that refer to the table */
#define RUN_TRIES      8u   /* candidates tried within one run of pointers */

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

/* Count the most frequent target and the different targets in the table. */
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

static bool table_is_plausible(const uint64_t t[PLAN_OPCODES])
{
	unsigned int commonest, unique;

	table_shape(t, &commonest, &unique);
	return commonest >= UNKNOWN_MIN && commonest <= UNKNOWN_MAX && unique >= UNIQUE_MIN;
}

static bool read_pointers(const struct image *img, uint64_t vaddr, uint64_t t[PLAN_OPCODES])
{
	if (vaddr & 7)
		return false;
	for (unsigned int i = 0; i < PLAN_OPCODES; i++)
		if (image_pointer(img, vaddr + 8 * i, &t[i]) < 0 || !is_code(img, t[i]))
			return false;
	return true;
}

/* Distances from the table's beginning. */
static bool read_distances(const struct image *img, uint64_t vaddr, uint64_t t[PLAN_OPCODES])
{
	if (vaddr & 3)
		return false;
	for (unsigned int i = 0; i < PLAN_OPCODES; i += 2) {
		uint64_t two;

		if (image_pointer(img, vaddr + 4 * i, &two) < 0)
			return false;
		t[i] = vaddr + (uint64_t)(int64_t)(int32_t)two;
		t[i + 1] = vaddr + (uint64_t)(int64_t)(int32_t)(two >> 32);
		if (!is_code(img, t[i]) || !is_code(img, t[i + 1]))
			return false;
	}
	return true;
}

static bool table_read(const struct image *img, uint64_t vaddr, uint64_t t[PLAN_OPCODES])
{
	return (read_pointers(img, vaddr, t) || read_distances(img, vaddr, t)) &&
	       table_is_plausible(t);
}

static void table_take(struct planner *p, uint64_t vaddr, const uint64_t t[PLAN_OPCODES])
{
	memcpy(p->handler, t, sizeof(p->handler));
	p->has_table = true;
	p->plan->table_vaddr = vaddr;
}

/* Method 1: a constant in the code reachable from the entry. */
static int table_from_entry(struct planner *p)
{
	uint64_t found = 0, t[PLAN_OPCODES];

	for (uint32_t i = 0; i < p->cfg.n; i++) {
		struct insn_full in;
		uint64_t vaddr;

		if (!cfg_full(&p->cfg, i, &in))
			continue;
		for (int k = 0; k < in.nexplicit; k++) {
			if (!insn_const_address(&in.op[k], &vaddr) || vaddr == found ||
			    !table_read(p->img, vaddr, t))
				continue;
			if (found)
				return planner_missing(p,
						       "opcode table (two candidates: 0x%llx, "
						       "0x%llx)",
						       (unsigned long long)found,
						       (unsigned long long)vaddr);
			found = vaddr;
			table_take(p, vaddr, t);
		}
	}
	return 0;
}

/* Count the instructions reachable from the handlers that refer to the table. */
static int table_references(const struct planner *p, uint64_t table, const uint64_t *t,
			    unsigned int *ret)
{
	struct cfg cfg = {.img = p->img, .arch = p->cfg.arch};
	int r = cfg_explore(&cfg, t, PLAN_OPCODES);

	*ret = 0;
	for (uint32_t i = 0; i < cfg.n && r == 0; i++) {
		struct insn_full in;
		uint64_t vaddr;

		if (!cfg_full(&cfg, i, &in))
			continue;
		for (int k = 0; k < in.nexplicit; k++)
			*ret += insn_const_address(&in.op[k], &vaddr) && vaddr == table;
	}
	cfg_deinit(&cfg);
	return r == -E2BIG ? 0 : r;
}

static int table_try_run(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n)
{
	struct planner *p = ctx;
	unsigned int tried = 0, refs;

	for (size_t i = 0; i + PLAN_OPCODES <= n && tried < RUN_TRIES; i++) {
		int r;

		if (!table_is_plausible(targets + i))
			continue;
		tried++;
		r = table_references(p, vaddr + 8 * i, targets + i, &refs);
		if (r < 0)
			return r;
		if (refs < REFERENCES_MIN)
			continue;
		table_take(p, vaddr + 8 * i, targets + i);
		return 1;
	}
	return 0;
}

int table_find(struct planner *p)
{
	int r = table_from_entry(p);

	if (r == 0 && !p->has_table)
		r = image_code_pointer_runs(p->img, PLAN_OPCODES, table_try_run, p);
	if (r < 0)
		return r;
	return p->has_table ? 0 : planner_missing(p, "opcode table (no dispatch found)");
}
