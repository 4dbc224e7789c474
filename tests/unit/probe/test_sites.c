// SPDX-License-Identifier: BSD-2-Clause
/* Sites by their address: every one is found, nothing else is. */
#include "probe/sites.h"

#include <errno.h>

#include "harness/test.h"

static struct pyp_site_entry table[PYP_SITE_SLOTS];

/* As the BPF program does. */
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

/* As many as there can be, wherever the file is mapped, however close they are. */
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

Test(sites, two_at_one_place)
{
	struct plan plan = plan_of(2, 0);
	struct probe_sites s = probe_sites_of(&plan, 0, PROBE_SITES_ALL);
	__u64 factor = 0;

	assert_err(probe_sites_table(&s, table, &factor), -EEXIST);
}
