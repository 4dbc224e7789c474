// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dynamic symbols by number and by name. The file's own hash tables are not used to find them, as a
 * hostile file may have a table that hides a symbol; names are hashed here. The planner looks names
 * up thousands of times.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/image_priv.h"

/* Names may be long, and overlap: this bounds the time that hashing them takes. */
#define HASHED_MAX 64u
#define NO_SYMBOL  UINT32_MAX

int image_symbol_at(const struct image *img, uint32_t i, Elf64_Sym *ret)
{
	const uint8_t *p;
	uint64_t vaddr;

	if (!img->symtab || __builtin_add_overflow(img->symtab, (uint64_t)i * sizeof(*ret), &vaddr))
		return -ENOENT;
	p = image_view(img, vaddr, sizeof(*ret));
	if (!p)
		return -ENOENT;
	memcpy(ret, p, sizeof(*ret));
	return 0;
}

bool image_symbol_defined(const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
	       ELF64_ST_TYPE(sym->st_info) != STT_TLS;
}

static uint32_t hash_of(const struct image *img, const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < HASHED_MAX && name[i]; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h & img->index_mask;
}

/* The name of a symbol that is defined here, or NULL */
static const char *defined_name(const struct image *img, uint32_t i, Elf64_Sym *ret)
{
	if (image_symbol_at(img, i, ret) || !image_symbol_defined(ret))
		return NULL;
	return image_string(img, ret->st_name);
}

/* Backwards, so that the first one with a name is found first. */
int image_index_symbols(struct image *img)
{
	uint32_t buckets = 1;

	if (!img->nsymbols)
		return 0;
	while (buckets < img->nsymbols)
		buckets *= 2;
	img->index = reallocarray(NULL, buckets, sizeof(*img->index));
	img->chain = reallocarray(NULL, img->nsymbols, sizeof(*img->chain));
	if (!img->index || !img->chain)
		return -ENOMEM;
	img->index_mask = buckets - 1;
	memset(img->index, 0xff, buckets * sizeof(*img->index));
	for (uint32_t i = img->nsymbols; i-- > 0;) {
		Elf64_Sym sym;
		const char *name = defined_name(img, i, &sym);
		uint32_t h;

		if (!name)
			continue;
		h = hash_of(img, name);
		img->chain[i] = img->index[h];
		img->index[h] = i;
	}
	return 0;
}

int image_symbol(const struct image *img, const char *name, struct image_symbol *ret)
{
	uint32_t i = img->nsymbols ? img->index[hash_of(img, name)] : NO_SYMBOL;

	for (; i != NO_SYMBOL; i = img->chain[i]) {
		Elf64_Sym sym;
		const char *s = defined_name(img, i, &sym);

		if (!s || strcmp(s, name) != 0)
			continue;
		*ret = (struct image_symbol){
			.name = s,
			.vaddr = sym.st_value,
			.size = sym.st_size,
			.func = ELF64_ST_TYPE(sym.st_info) == STT_FUNC,
		};
		return 0;
	}
	return -ENOENT;
}
