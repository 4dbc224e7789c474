/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to the files of elf/.
 *
 * Invariants after a successful open: segments are sorted and do not overlap, their file parts lie
 * in data; the string table ends with NUL; relocs and slots are sorted by address.
 */
#ifndef PYPROF_ELF_IMAGE_PRIV_H
#define PYPROF_ELF_IMAGE_PRIV_H

#include <gelf.h>

#include "elf/image.h"

/* Maximum number of relocations and PLT slots; a libpython has some 20,000. */
#define IMAGE_MAX_RELOCS (4u << 20)

/* A word that the dynamic linker writes, and its value without load bias */
struct image_reloc {
	uint64_t vaddr, value;
};

/* A GOT slot and its dynamic symbol */
struct image_slot {
	uint64_t vaddr;
	uint32_t symbol;
};

struct image {
	char *name;
	uint8_t *data;
	size_t size;
	Elf *elf; /* parsed from data */
	GElf_Ehdr ehdr;
	bool cet;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	size_t build_id_len;
	struct image_segment segments[IMAGE_MAX_SEGMENTS];
	unsigned int nsegments;

	/* from PT_DYNAMIC */
	const uint8_t *dynamic;
	size_t dynamic_size;
	uint64_t unwind; /* address of PT_GNU_EH_FRAME; 0: none */
	uint64_t symtab; /* 0: none */
	uint32_t nsymbols;
	const char *strings;
	size_t strings_size;
	uint32_t *index, *chain; /* see symbol.c; NULL without symbols */
	uint32_t index_mask;

	struct image_reloc *relocs;
	size_t nrelocs, relocs_room;
	struct image_slot *slots;
	size_t nslots, slots_room;
};

/* Bytes [offset, offset + n) of the file, or NULL */
const uint8_t *image_bytes(const struct image *img, uint64_t offset, uint64_t n);

/* Steps of opening; those that can fail set diag, or return -ENOMEM */
void image_read_note(struct image *img, const GElf_Phdr *ph);
int image_read_dynamic(struct image *img);
int image_index_symbols(struct image *img);
int image_read_relocs(struct image *img, struct diag *diag);

/* The value of a DT_ entry. -ENOENT: none. */
int image_dynamic_value(const struct image *img, int64_t tag, uint64_t *ret);
/* Entry i of the dynamic symbol table. -ENOENT: out of range. */
int image_symbol_at(const struct image *img, uint32_t i, Elf64_Sym *ret);
/* A string of the dynamic string table, or NULL */
const char *image_string(const struct image *img, uint64_t offset);
/* Returns whether the symbol is defined at an address in this image. */
bool image_symbol_defined(const Elf64_Sym *sym);

#endif
