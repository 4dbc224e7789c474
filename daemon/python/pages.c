// SPDX-License-Identifier: BSD-2-Clause
/* A cache of a target's pages: see pages.h. */
#include "python/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE	4096u
#define PAGES	4096u
#define NO_PAGE 1u /* not the address of a page */

struct pages {
	const struct memory *mem;
	uint64_t reads, max_reads;
	uint64_t tags[PAGES];
	uint8_t data[PAGES][PAGE];
};

struct pages *pages_new(const struct memory *mem, uint64_t max_reads)
{
	struct pages *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->mem = mem;
	p->reads = 0;
	p->max_reads = max_reads;
	pages_clear(p);
	return p;
}

void pages_free(struct pages *p)
{
	free(p);
}

void pages_clear(struct pages *p)
{
	for (size_t i = 0; i < PAGES; i++)
		p->tags[i] = NO_PAGE;
}

static int count_read(struct pages *p)
{
	return p->reads++ < p->max_reads ? 0 : -E2BIG;
}

static const uint8_t *page_of(struct pages *p, uint64_t page, int *err)
{
	size_t slot = (size_t)(page / PAGE) % PAGES;

	if (p->tags[slot] == page)
		return p->data[slot];
	p->tags[slot] = NO_PAGE;
	*err = count_read(p);
	if (!*err)
		*err = memory_read(p->mem, page, p->data[slot], PAGE);
	if (*err)
		return NULL;
	p->tags[slot] = page;
	return p->data[slot];
}

int pages_read(struct pages *p, uint64_t addr, void *out, size_t n)
{
	uint8_t *to = out;

	if (addr > UINT64_MAX - n || n > PAGE)
		return -EFAULT;
	while (n) {
		uint64_t page = addr & ~(uint64_t)(PAGE - 1);
		size_t at = (size_t)(addr - page), part = PAGE - at < n ? PAGE - at : n;
		int err = 0;
		const uint8_t *data = page_of(p, page, &err);

		/* A test's buffer may end within a page. */
		if (!data && err != -E2BIG)
			err = memory_read(p->mem, addr, to, part);
		if (err)
			return err;
		if (data)
			memcpy(to, data + at, part);
		addr += part;
		to += part;
		n -= part;
	}
	return 0;
}

int pages_read_fresh(struct pages *p, uint64_t addr, void *out, size_t n)
{
	for (uint64_t a = addr & ~(uint64_t)(PAGE - 1); a < addr + n; a += PAGE) {
		size_t slot = (size_t)(a / PAGE) % PAGES;

		if (p->tags[slot] == a)
			p->tags[slot] = NO_PAGE;
	}
	return pages_read(p, addr, out, n);
}
