// SPDX-License-Identifier: BSD-2-Clause
/* Conversion of a plan's sites: see sites.h. */
#include "probe/sites.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * For the maximum number of sites about one factor in ten works; a usual plan needs nine attempts.
 */
#define TRIES 100000u

/*
 * The kernel sets breakpoints in this order, some 30 us each, and the hits of a window that are not recorded yet
 * delay the target: those of calls and returns come last.
 */
static int turn_of(const struct plan_site *site)
{
	return site->kind == PYP_SITE_ENTER ? 2 : site->kind == PYP_SITE_LEAVE;
}

struct probe_sites probe_sites_of(const struct plan *plan, uint64_t bias, unsigned int kinds)
{
	const bool whole = (kinds & PROBE_SITES_PYTHON) == PROBE_SITES_PYTHON;
	struct probe_sites s = {0};

	for (int turn = 0; turn <= 2; turn++)
		for (uint32_t i = 0; i < plan_sites(plan); i++) {
			const struct plan_site *site = plan_site(plan, i);

			if (!(kinds & 1u << site->kind) || (!whole && site->early) ||
			    turn_of(site) != turn)
				continue;
			s.offsets[s.n] = site->offset;
			s.cookies[s.n] = plan_cookie(site, i);
			s.addresses[s.n++] = bias + site->vaddr;
		}
	return s;
}

static void add_trap(struct probe_traps *t, uint64_t address, uint64_t flags)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].address == address) {
			t->v[i].flags |= flags;
			return;
		}
	t->v[t->n++] = (struct probe_trap){address, flags};
}

/*
 * The kernel reports a breakpoint by its address and, initially, by the address of the byte after it.
 * target: of a branch; 0: none
 */
static void add_traps(struct probe_traps *t, uint64_t bias, uint64_t vaddr, uint8_t len,
		      uint64_t target)
{
	add_trap(t, bias + vaddr, PYP_TRAP_KERNEL);
	add_trap(t, bias + vaddr + 1, PYP_TRAP_KERNEL);
	add_trap(t, bias + vaddr + len, PYP_TRAP_KERNEL | PYP_TRAP_USER);
	if (target)
		add_trap(t, bias + target, PYP_TRAP_KERNEL | PYP_TRAP_USER);
}

void probe_traps_of(const struct plan *plan, uint64_t bias, unsigned int kinds,
		    const uint8_t *marks, uint32_t n, struct probe_traps *ret)
{
	ret->n = 0;
	for (uint32_t i = 0; i < plan_sites(plan); i++) {
		const struct plan_site *site = plan_site(plan, i);

		if (kinds & 1u << site->kind)
			add_traps(ret, bias, site->vaddr, site->len, site->target);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct plan_mark *m = &plan->marks[marks[i]];

		add_traps(ret, bias, m->vaddr, m->len, m->target);
	}
}

void probe_native_sites(const struct plan *plan, struct pyp_native_site ret[PYP_ALL_SITES])
{
	memset(ret, 0, PYP_ALL_SITES * sizeof(*ret));
	for (uint32_t i = 0; i < plan_sites(plan); i++) {
		const struct plan_site *site = plan_site(plan, i);

		ret[i] = (struct pyp_native_site){
			.disp = site->callable_disp,
			.reg = site->callable_reg,
			.deref = site->callable_deref,
			.same = site->same_callable,
		};
	}
}

static bool fill(const struct probe_sites *s, struct pyp_site_entry *table, uint64_t factor)
{
	memset(table, 0, PYP_SITE_SLOTS * sizeof(*table));
	for (uint32_t i = 0; i < s->n; i++) {
		struct pyp_site_entry *e = &table[PYP_SITE_SLOT(s->addresses[i], factor)];

		if (e->address)
			return false;
		*e = (struct pyp_site_entry){s->addresses[i], s->cookies[i]};
	}
	return true;
}

int probe_sites_table(const struct probe_sites *sites, struct pyp_site_entry table[PYP_SITE_SLOTS],
		      __u64 *ret_factor)
{
	uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);

	for (uint32_t i = 0; i < sites->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (sites->addresses[i] == sites->addresses[k])
				return -EEXIST;
	for (unsigned int i = 0; i < TRIES; i++) {
		if (fill(sites, table, factor)) {
			*ret_factor = factor;
			return 0;
		}
		factor = factor * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		factor |= 1;
	}
	return -EEXIST;
}
