// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dynamic segment: symbols and strings as the dynamic linker finds them, so stripped section
 * headers do not matter. The number of symbols is not stored; it is derived from the hash tables.
 */
#include <errno.h>
#include <string.h>

#include "elf/image_priv.h"

int image_dynamic_value(const struct image *img, int64_t tag, uint64_t *ret)
{
	Elf64_Dyn dyn;

	for (size_t at = 0; img->dynamic_size - at >= sizeof(dyn); at += sizeof(dyn)) {
		memcpy(&dyn, img->dynamic + at, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == tag) {
			*ret = dyn.d_un.d_val;
			return 0;
		}
	}
	return -ENOENT;
}

static uint32_t word_at(const uint8_t *p, size_t i)
{
	uint32_t v;

	memcpy(&v, p + 4 * i, 4);
	return v;
}

/* DT_HASH: nbucket, nchain, …; there is one chain entry per symbol. */
static uint32_t count_by_hash(const struct image *img, uint64_t vaddr)
{
	const uint8_t *p = image_view(img, vaddr, 8);

	return p ? word_at(p, 1) : 0;
}

/*
 * DT_GNU_HASH: nbuckets, first hashed symbol, bloom words, shift; the bloom filter; the buckets
 * (first symbol of each chain); the chains, whose last entries have bit 0 set. The highest symbol
 * is the end of the chain with the highest start.
 */
static uint32_t count_by_gnu_hash(const struct image *img, uint64_t vaddr)
{
	const uint8_t *p = NULL;
	size_t words = image_view_max(img, vaddr, &p) / 4;
	uint64_t buckets, chains;
	uint32_t nbuckets, first, last = 0;

	if (words < 4)
		return 0;
	nbuckets = word_at(p, 0);
	first = word_at(p, 1);
	buckets = 4 + 2 * (uint64_t)word_at(p, 2);
	chains = buckets + nbuckets;
	if (chains > words)
		return 0;
	for (uint64_t i = buckets; i < chains; i++)
		if (word_at(p, i) > last)
			last = word_at(p, i);
	if (last < first)
		return first;
	for (uint64_t i = chains + (last - first); i < words; i++, last++)
		if (word_at(p, i) & 1)
			return last + 1;
	return 0;
}

static void read_symbols(struct image *img)
{
	const uint8_t *p = NULL;
	uint64_t hash;
	size_t room;

	if (image_dynamic_value(img, DT_SYMTAB, &img->symtab))
		return;
	if (!image_dynamic_value(img, DT_GNU_HASH, &hash))
		img->nsymbols = count_by_gnu_hash(img, hash);
	if (!img->nsymbols && !image_dynamic_value(img, DT_HASH, &hash))
		img->nsymbols = count_by_hash(img, hash);
	room = image_view_max(img, img->symtab, &p) / sizeof(Elf64_Sym);
	if (img->nsymbols > room)
		img->nsymbols = (uint32_t)room;
}

static void read_strings(struct image *img)
{
	const uint8_t *p = NULL, *end;
	uint64_t vaddr, size;
	size_t room;

	if (image_dynamic_value(img, DT_STRTAB, &vaddr) ||
	    image_dynamic_value(img, DT_STRSZ, &size))
		return;
	room = image_view_max(img, vaddr, &p);
	if (!room)
		return;
	/* Every string must end within the table. */
	end = memrchr(p, 0, size < room ? size : room);
	if (!end)
		return;
	img->strings = (const char *)p;
	img->strings_size = (size_t)(end - p) + 1;
}

int image_read_dynamic(struct image *img)
{
	if (!img->dynamic)
		return 0;
	read_symbols(img);
	read_strings(img);
	return image_index_symbols(img);
}

const char *image_string(const struct image *img, uint64_t offset)
{
	return offset < img->strings_size ? img->strings + offset : NULL;
}

const char *image_soname(const struct image *img)
{
	uint64_t offset;

	return image_dynamic_value(img, DT_SONAME, &offset) ? NULL : image_string(img, offset);
}

const char *image_needed(const struct image *img, const char *prefix)
{
	Elf64_Dyn dyn;

	for (size_t at = 0; img->dynamic_size - at >= sizeof(dyn); at += sizeof(dyn)) {
		const char *s;

		memcpy(&dyn, img->dynamic + at, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		s = dyn.d_tag == DT_NEEDED ? image_string(img, dyn.d_un.d_val) : NULL;
		if (s && strncmp(s, prefix, strlen(prefix)) == 0)
			return s;
	}
	return NULL;
}
