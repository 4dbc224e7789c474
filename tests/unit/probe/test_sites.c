// SPDX-License-Identifier: BSD-2-Clause
/* Looking up sites by address: all sites are found, and no other address. */
#include "probe/sites.h"

#include <errno.h>

#include "harness/test.h"

static struct pyp_site_entry table[PYP_SITE_SLOTS];

/* The same search as in the BPF program */
static uint64_t find(uint64_t address, uint64_t factor)
{
	const struct pyp_site_entry *e = &table[PYP_SITE_SLOT(address, factor)];

	return e->address == address ? e->cookie : 0;
}

static struct plan plan_of(unsigned int n, uint64_t spacing)
{
	struct plan plan = {.nsites = n};

	for (unsigned int i = 0; i < n; i++)
		plan.sites[i] = (struct plan_site){.offset = 0x1000 + i * spacing,
						   .vaddr = 0x401000 + i * spacing,
						   .kind = PYP_SITE_ENTER};
	return plan;
}

Test(sites, offsets_cookies_addresses)
{
	struct plan plan = plan_of(3, 17);
	struct probe_sites s = probe_sites_of(&plan, 0x7f0000000000, PROBE_SITES_ALL);

	cr_assert_eq(s.n, 3);
	cr_assert_eq(s.offsets[2], 0x1000 + 34);
	cr_assert_eq(s.addresses[2], 0x7f0000401000 + 34);
	cr_assert_eq(PYP_COOKIE_SITE(s.cookies[2]), 2);
	cr_assert_eq(PYP_COOKIE_KIND(s.cookies[2]), PYP_SITE_ENTER);
}

/* The maximum number of sites, for any load address and any distance between them */
Test(sites, every_one_has_a_slot)
{
	const uint64_t spacings[] = {1, 2, 16, 4096, 1 << 20};

	for (size_t k = 0; k < sizeof(spacings) / sizeof(*spacings); k++)
		for (uint64_t bias = 0; bias < 50; bias++) {
			struct plan plan = plan_of(PYP_MAX_SITES, spacings[k]);
			struct probe_sites s =
				probe_sites_of(&plan, bias * 0x1234567000, PROBE_SITES_ALL);
			__u64 factor = 0;

			assert_ok(probe_sites_table(&s, table, &factor));
			for (unsigned int i = 0; i < s.n; i++) {
				cr_assert_eq(find(s.addresses[i], factor), s.cookies[i]);
				cr_assert_eq(find(s.addresses[i] + (UINT64_C(1) << 40), factor), 0);
			}
		}
}

static uint64_t marks_at(const struct probe_traps *t, uint64_t address)
{
	uint64_t marks = 0;
	int n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].address == address) {
			marks = t->v[i].flags;
			n++;
		}
	cr_assert_leq(n, 1, "twice");
	return marks;
}

/* A jump of two bytes, and a push of one byte directly before it */
Test(sites, traps)
{
	const struct plan plan = {.nsites = 2,
				  .sites = {{.vaddr = 0x101, .len = 2, .target = 0x200},
					    {.vaddr = 0x100, .len = 1}}};
	struct probe_traps t;

	probe_traps_of(&plan, 0x1000, PROBE_SITES_ALL, NULL, 0, &t);
	cr_assert_eq(t.n, 5);
	cr_assert_eq(marks_at(&t, 0x1100), PYP_TRAP_KERNEL);
	cr_assert_eq(marks_at(&t, 0x1101), PYP_TRAP_KERNEL | PYP_TRAP_USER);
	cr_assert_eq(marks_at(&t, 0x1102), PYP_TRAP_KERNEL);
	cr_assert_eq(marks_at(&t, 0x1103), PYP_TRAP_KERNEL | PYP_TRAP_USER);
	cr_assert_eq(marks_at(&t, 0x1200), PYP_TRAP_KERNEL | PYP_TRAP_USER);
}

/* Marks of a plan whose sites have no traps: only those that are attached */
Test(sites, traps_of_marks)
{
	static const uint8_t attached[] = {2, 0};
	struct plan plan = plan_of(3, 0);
	struct probe_traps t;

	plan.nmarks = 3;
	plan.marks[0] = (struct plan_mark){.vaddr = 0x500, .len = 6, .target = 0x700};
	plan.marks[1] = (struct plan_mark){.vaddr = 0x600, .len = 1};
	plan.marks[2] = (struct plan_mark){.vaddr = 0x506, .len = 1};
	probe_traps_of(&plan, 0x1000, 0, attached, 2, &t);
	cr_assert_eq(t.n, 5);
	cr_assert_eq(marks_at(&t, 0x1500), PYP_TRAP_KERNEL);
	cr_assert_eq(marks_at(&t, 0x1501), PYP_TRAP_KERNEL);
	cr_assert_eq(marks_at(&t, 0x1506), PYP_TRAP_KERNEL | PYP_TRAP_USER);
	cr_assert_eq(marks_at(&t, 0x1507), PYP_TRAP_KERNEL | PYP_TRAP_USER);
	cr_assert_eq(marks_at(&t, 0x1700), PYP_TRAP_KERNEL | PYP_TRAP_USER);
}

static struct plan_site *site_of(struct plan *plan, unsigned int i)
{
	if (i < plan->nsites)
		return &plan->sites[i];
	i -= plan->nsites;
	return i < plan->nnative ? &plan->native[i] : &plan->gc[i - plan->nnative];
}

/* Sites of C functions are numbered after the others, and are only included on request. */
Test(sites, of_c_functions)
{
	struct plan plan = plan_of(PYP_MAX_SITES, 16);
	struct pyp_native_site native[PYP_ALL_SITES];
	struct probe_sites s;

	plan.nnative = 2;
	plan.native[0] = (struct plan_site){.offset = 0x9000,
					    .vaddr = 0x409000,
					    .kind = PYP_SITE_C_ENTER,
					    .has_callable = true,
					    .callable_reg = 12,
					    .callable_deref = true,
					    .callable_disp = -8};
	plan.native[1] =
		(struct plan_site){.offset = 0x9010, .vaddr = 0x409010, .kind = PYP_SITE_C_LEAVE};
	s = probe_sites_of(&plan, 0, PROBE_SITES_PYTHON);
	cr_assert_eq(s.n, PYP_MAX_SITES);
	s = probe_sites_of(&plan, 0, PROBE_SITES_ALL);
	cr_assert_eq(s.n, PYP_MAX_SITES + 2);
	for (uint32_t i = 0; i < s.n; i++) {
		const unsigned int kind = PYP_COOKIE_KIND(s.cookies[i]),
				   site = PYP_COOKIE_SITE(s.cookies[i]);

		cr_assert_eq(site == PYP_MAX_SITES, s.offsets[i] == 0x9000);
		cr_assert_eq(site == PYP_MAX_SITES + 1, kind == PYP_SITE_C_LEAVE);
	}
	probe_native_sites(&plan, native);
	cr_assert(native[PYP_MAX_SITES].reg == 12 && native[PYP_MAX_SITES].deref);
	cr_assert_eq(native[PYP_MAX_SITES].disp, -8);
}

/* Calls and returns come last, as the kernel sets breakpoints one after the other. */
Test(sites, calls_come_last)
{
	static const uint8_t kinds[] = {PYP_SITE_ENTER, PYP_SITE_LEAVE, PYP_SITE_YIELD,
					PYP_SITE_ENTER, PYP_SITE_THROW, PYP_SITE_LEAVE};
	static const uint64_t order[] = {0x1020, 0x1040, 0x1010, 0x1050, 0x1000, 0x1030};
	struct plan plan = {.nsites = sizeof(kinds)};
	struct probe_sites s;

	for (unsigned int i = 0; i < sizeof(kinds); i++)
		plan.sites[i] = (struct plan_site){.offset = 0x1000 + 16 * i, .kind = kinds[i]};
	s = probe_sites_of(&plan, 0, PROBE_SITES_ALL);
	cr_assert_eq(s.n, sizeof(kinds));
	for (uint32_t i = 0; i < s.n; i++)
		cr_assert_eq(s.offsets[i], order[i], "%u", i);
}

/* The maximum number of sites and marks of a plan fits into the kernel's map. */
Test(sites, traps_of_all)
{
	struct plan plan = {
		.nsites = PYP_MAX_SITES, .nnative = PYP_MAX_NATIVE_SITES, .ngc = PYP_MAX_GC_SITES};
	static struct probe_traps t;
	uint8_t marks[PYP_MARKS];

	for (unsigned int i = 0; i < PYP_ALL_SITES; i++)
		*site_of(&plan, i) = (struct plan_site){
			.vaddr = 0x1000 + 16 * i, .len = 6, .target = 0x9000 + 16 * i};
	for (unsigned int i = 0; i < PYP_MARKS; i++) {
		marks[i] = (uint8_t)i;
		plan.marks[i] = (struct plan_mark){
			.vaddr = 0x100000 + 16 * i, .len = 6, .target = 0x200000 + 16 * i};
	}
	probe_traps_of(&plan, 0, PROBE_SITES_ALL, marks, PYP_MARKS, &t);
	cr_assert_eq(t.n, PYP_TRAPS_MAX);
}

Test(sites, two_at_one_place)
{
	struct plan plan = plan_of(2, 0);
	struct probe_sites s = probe_sites_of(&plan, 0, PROBE_SITES_ALL);
	__u64 factor = 0;

	assert_err(probe_sites_table(&s, table, &factor), -EEXIST);
}
