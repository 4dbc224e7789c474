// SPDX-License-Identifier: BSD-2-Clause
/* The parts of an ELF file that are read: see parts.h. */
#include "elf/parts.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define PARTS_OVERLAP 2u

/* Adds [at, at + n), clipped to the file: image.c reports what is beyond its end. */
static bool add(struct parts *p, size_t size, uint64_t at, uint64_t n)
{
	if (at >= size || n == 0)
		return true;
	if (p->n == PARTS_MAX)
		return false;
	p->v[p->n].at = at;
	p->v[p->n++].size = n < size - at ? n : size - at;
	return true;
}

static bool find(const uint8_t *head, size_t size, struct parts *p)
{
	const size_t have = size < PARTS_HEAD ? size : PARTS_HEAD;
	size_t sum = 0;
	Elf64_Ehdr e;

	if (have < sizeof(e))
		return false;
	memcpy(&e, head, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phoff > have ||
	    e.e_phnum > (have - e.e_phoff) / sizeof(Elf64_Phdr))
		return false;
	if (!add(p, size, 0, have) || !add(p, size, e.e_shoff, (uint64_t)e.e_shnum * e.e_shentsize))
		return false;
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, head + e.e_phoff + i * sizeof(ph), sizeof(ph));
		if ((ph.p_type == PT_LOAD || ph.p_type == PT_NOTE || ph.p_type == PT_DYNAMIC) &&
		    !add(p, size, ph.p_offset, ph.p_filesz))
			return false;
	}
	/* Notes are in segments as well. But no file is read many times because of its headers. */
	for (unsigned int i = 0; i < p->n; i++)
		sum += p->v[i].size;
	return sum <= PARTS_OVERLAP * size;
}

void parts_find(const uint8_t *head, size_t size, struct parts *ret)
{
	*ret = (struct parts){0};
	if (!find(head, size, ret)) {
		ret->n = 1;
		ret->v[0].at = 0;
		ret->v[0].size = size;
	}
}

void parts_names(const uint8_t *data, size_t size, struct part *ret)
{
	Elf64_Ehdr e;
	Elf64_Shdr sh;

	*ret = (struct part){.at = 0, .size = size};
	if (size < sizeof(e))
		return;
	memcpy(&e, data, sizeof(e));
	if (e.e_shstrndx >= e.e_shnum || e.e_shentsize != sizeof(sh) || e.e_shoff > size ||
	    (size - e.e_shoff) / sizeof(sh) <= e.e_shstrndx)
		return;
	memcpy(&sh, data + e.e_shoff + e.e_shstrndx * sizeof(sh), sizeof(sh));
	if (sh.sh_offset > size)
		return;
	ret->at = sh.sh_offset;
	ret->size = sh.sh_size < size - sh.sh_offset ? sh.sh_size : size - sh.sh_offset;
}
