// SPDX-License-Identifier: BSD-2-Clause
/* Finding breakpoints that are not in the file: see breaks.h. */
#include "inspect/breaks.h"

#define BREAKPOINT 0xcc
#define PAGE_BYTES 4096u

static bool is_break(uint8_t has, uint8_t file)
{
	return has == BREAKPOINT && file != BREAKPOINT;
}

unsigned int breaks_at_sites(const struct memory *mem, const struct plan *plan, uint64_t bias)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < plan_sites(plan); i++) {
		const struct plan_site *site = plan_site(plan, i);
		uint8_t byte;

		if (memory_read(mem, bias + site->vaddr, &byte, 1) == 0)
			n += is_break(byte, site->bytes[0]);
	}
	return n;
}

bool breaks_is_site(const struct plan *plan, uint64_t bias, uint64_t address)
{
	for (unsigned int i = 0; i < plan_sites(plan); i++)
		if (bias + plan_site(plan, i)->vaddr == address)
			return true;
	return false;
}

/* Returns the number of bytes up to the end of the page, at most left. */
static size_t part_of(uint64_t address, size_t left)
{
	size_t part = PAGE_BYTES - (size_t)(address % PAGE_BYTES);

	return part < left ? part : left;
}

size_t breaks_in_text(const struct memory *mem, const uint8_t *file, size_t size, uint64_t address,
		      uint64_t *out, size_t max)
{
	uint8_t page[PAGE_BYTES];
	size_t found = 0, part;

	for (size_t at = 0; at < size; at += part) {
		part = part_of(address + at, size - at);
		if (memory_read(mem, address + at, page, part) < 0)
			continue;
		for (size_t i = 0; i < part; i++) {
			if (!is_break(page[i], file[at + i]))
				continue;
			if (found < max)
				out[found] = address + at + i;
			found++;
		}
	}
	return found;
}
