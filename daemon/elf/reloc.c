// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dynamic relocations: the words that the dynamic linker writes, and their values. In a
 * position-independent interpreter the opcode table exists only as relocations. They also give PLT
 * stubs their names.
 */
#include <errno.h>
#include <string.h>

#include "base/abi.h"
#include "elf/image_priv.h"

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR	  36
#endif

/* Make room for one more than n entries. Returns v, possibly moved, or NULL with *err set. */
static void *grow(void *v, size_t *room, size_t n, size_t size, int *err)
{
	size_t want = *room ? 2 * *room : 1024;
	void *p;

	*err = 0;
	if (n < *room)
		return v;
	*err = -E2BIG;
	if (n >= IMAGE_MAX_RELOCS)
		return NULL;
	*err = -ENOMEM;
	p = reallocarray(v, want, size);
	if (!p)
		return NULL;
	*err = 0;
	*room = want;
	return p;
}

static int add_reloc(struct image *img, uint64_t vaddr, uint64_t value)
{
	struct image_reloc *v;
	int err;

	v = grow(img->relocs, &img->relocs_room, img->nrelocs, sizeof(*v), &err);
	if (err)
		return err;
	img->relocs = v;
	v[img->nrelocs++] = (struct image_reloc){vaddr, value};
	return 0;
}

static int add_slot(struct image *img, uint64_t vaddr, uint32_t symbol)
{
	struct image_slot *v;
	int err;

	v = grow(img->slots, &img->slots_room, img->nslots, sizeof(*v), &err);
	if (err)
		return err;
	img->slots = v;
	v[img->nslots++] = (struct image_slot){vaddr, symbol};
	return 0;
}

static int add_rela(struct image *img, const Elf64_Rela *r)
{
	uint32_t type = ELF64_R_TYPE(r->r_info), index = (uint32_t)ELF64_R_SYM(r->r_info);
	bool slot = type == ABI_RELOC_GLOB_DAT || type == ABI_RELOC_JUMP_SLOT;
	Elf64_Sym sym;
	int err;

	if (type == ABI_RELOC_RELATIVE)
		return add_reloc(img, r->r_offset, (uint64_t)r->r_addend);
	if (!slot && type != ABI_RELOC_ABSOLUTE)
		return 0;
	err = slot ? add_slot(img, r->r_offset, index) : 0;
	if (err || image_symbol_at(img, index, &sym) || !image_symbol_defined(&sym) ||
	    ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC)
		return err;
	return add_reloc(img, r->r_offset, sym.st_value + (slot ? 0 : (uint64_t)r->r_addend));
}

/* Read the table of DT_RELA or DT_JMPREL, ignoring parts outside of the file. */
static int read_rela(struct image *img, int64_t tag, int64_t size_tag)
{
	const uint8_t *p = NULL;
	uint64_t vaddr, size;
	size_t room;
	Elf64_Rela r;

	if (image_dynamic_value(img, tag, &vaddr) || image_dynamic_value(img, size_tag, &size))
		return 0;
	room = image_view_max(img, vaddr, &p);
	if (size > room)
		size = room;
	for (; size >= sizeof(r); p += sizeof(r), size -= sizeof(r)) {
		int err;

		memcpy(&r, p, sizeof(r));
		err = add_rela(img, &r);
		if (err)
			return err;
	}
	return 0;
}

/* RELR relocates in place: the addend is the word's present value. */
static int add_relr(struct image *img, uint64_t vaddr)
{
	const uint8_t *p = image_view(img, vaddr, 8);
	uint64_t value;

	if (!p)
		return 0;
	memcpy(&value, p, 8);
	return add_reloc(img, vaddr, value);
}

/*
 * RELR: an even entry is an address to relocate, and the next word becomes current. An odd entry is
 * a bitmap of the next 63 words.
 */
static int read_relr(struct image *img)
{
	const uint8_t *p = NULL;
	uint64_t vaddr, size, entry, where = 0;
	size_t room;
	int err;

	if (image_dynamic_value(img, DT_RELR, &vaddr) || image_dynamic_value(img, DT_RELRSZ, &size))
		return 0;
	room = image_view_max(img, vaddr, &p);
	if (size > room)
		size = room;
	for (; size >= 8; p += 8, size -= 8) {
		memcpy(&entry, p, 8);
		if (!(entry & 1)) {
			err = add_relr(img, entry);
			if (err)
				return err;
			where = entry + 8;
			continue;
		}
		for (unsigned int bit = 1; bit < 64; bit++, where += 8) {
			err = entry >> bit & 1 ? add_relr(img, where) : 0;
			if (err)
				return err;
		}
	}
	return 0;
}

/* Both structures start with the address. */
static int by_vaddr(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	return (x > y) - (x < y);
}

static void sort(void *v, size_t n, size_t size)
{
	/* Linkers write them sorted, and qsort would copy megabytes to find out. */
	for (size_t i = 1; i < n; i++)
		if (by_vaddr((char *)v + (i - 1) * size, (char *)v + i * size) > 0) {
			qsort(v, n, size, by_vaddr);
			return;
		}
}

int image_read_relocs(struct image *img, struct diag *diag)
{
	int err;

	if (!img->dynamic)
		return 0;
	err = read_rela(img, DT_RELA, DT_RELASZ);
	if (!err)
		err = read_relr(img);
	if (!err)
		err = read_rela(img, DT_JMPREL, DT_PLTRELSZ);
	if (err)
		return diag_errno(diag, -err, "cannot read the relocations of '%s'", img->name);
	sort(img->relocs, img->nrelocs, sizeof(*img->relocs));
	sort(img->slots, img->nslots, sizeof(*img->slots));
	return 0;
}

int image_pointer(const struct image *img, uint64_t vaddr, uint64_t *ret)
{
	const struct image_reloc *r = NULL;
	const uint8_t *p = image_view(img, vaddr, 8);

	if (img->nrelocs)
		r = bsearch(&vaddr, img->relocs, img->nrelocs, sizeof(*r), by_vaddr);
	if (r) {
		*ret = r->value;
		return 0;
	}
	if (!p)
		return -ENOENT;
	memcpy(ret, p, 8);
	return 0;
}

const char *image_plt_name(const struct image *img, uint64_t vaddr)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	const struct image_slot *slot = NULL;
	const uint8_t *start = NULL, *p;
	size_t left = image_view_max(img, vaddr, &start);
	uint64_t got;
	Elf64_Sym sym;
	int32_t disp;

	p = start;
	if (left >= 4 && memcmp(p, endbr64, 4) == 0) {
		p += 4;
		left -= 4;
	}
	if (left >= 1 && *p == 0xf2) { /* bnd, in PLTs of files built for IBT */
		p++;
		left--;
	}
	if (left < 6 || p[0] != 0xff || p[1] != 0x25) /* jmp *disp(%rip) */
		return NULL;
	memcpy(&disp, p + 2, 4);
	got = vaddr + (uint64_t)(p - start) + 6 + (uint64_t)(int64_t)disp;
	if (img->nslots)
		slot = bsearch(&got, img->slots, img->nslots, sizeof(*slot), by_vaddr);
	if (!slot || image_symbol_at(img, slot->symbol, &sym))
		return NULL;
	return image_string(img, sym.st_name);
}

static bool is_code(const struct image *img, uint64_t vaddr)
{
	for (unsigned int i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->filesz)
			return seg->exec;
	}
	return false;
}

/* Position-independent files: all pointers, and only pointers, are relocations. */
static int runs_of_relocs(const struct image *img, size_t min, image_run_fn fn, void *ctx)
{
	const struct image_reloc *r = img->relocs;
	_cleanup_free_ uint64_t *targets = calloc(img->nrelocs + 1, sizeof(*targets));

	if (!targets)
		return -ENOMEM;
	for (size_t i = 0, n; i < img->nrelocs; i += n ? n : 1) {
		int err;

		for (n = 0; i + n < img->nrelocs; n++) {
			if (r[i + n].vaddr != r[i].vaddr + 8 * n || !is_code(img, r[i + n].value))
				break;
			targets[n] = r[i + n].value;
		}
		err = n >= min && n ? fn(ctx, r[i].vaddr, targets, n) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Position-dependent files: pointers are words in the file. */
static int runs_of_words(const struct image *img, const struct image_segment *seg, size_t min,
			 image_run_fn fn, void *ctx)
{
	uint64_t start = (seg->vaddr + 7) & ~7ull, skew = start - seg->vaddr;
	size_t words = seg->filesz > skew ? (seg->filesz - skew) / 8 : 0;
	const uint8_t *p = img->data + seg->offset + skew;
	_cleanup_free_ uint64_t *targets = calloc(words + 1, sizeof(*targets));

	if (!targets)
		return -ENOMEM;
	for (size_t i = 0, n; i < words; i += n + 1) {
		int err;

		for (n = 0; i + n < words; n++) {
			memcpy(&targets[n], p + 8 * (i + n), 8);
			if (!is_code(img, targets[n]))
				break;
		}
		err = n >= min && n ? fn(ctx, start + 8 * i, targets, n) : 0;
		if (err)
			return err;
	}
	return 0;
}

int image_code_pointer_runs(const struct image *img, size_t min, image_run_fn fn, void *ctx)
{
	if (!image_is_exec(img))
		return runs_of_relocs(img, min, fn, ctx);
	for (unsigned int i = 0; i < img->nsegments; i++) {
		int err = runs_of_words(img, &img->segments[i], min, fn, ctx);

		if (err)
			return err;
	}
	return 0;
}
