/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small ELF files in memory: segments that the test defines, and a last one with the dynamic
 * segment, symbols, hash table, relocations and notes. Aborts the test if out of memory.
 *
 *   struct elf_builder *b = elf_builder_new(ET_DYN);
 *   elf_builder_segment(b, 0x1000, PF_R | PF_X, code, sizeof(code));
 *   elf_builder_symbol(b, "f", 0x1000, 16, STT_FUNC);
 *   data = elf_builder_finish(b, &size);    frees b; data is malloc'd
 */
#ifndef PYPROF_TESTS_HARNESS_ELF_BUILDER_H
#define PYPROF_TESTS_HARNESS_ELF_BUILDER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address of the builder's own segment. The test's segments have lower addresses, in ascending
 * order. */
#define ELF_BUILDER_META 0x10000000ull

struct elf_builder;

struct elf_builder *elf_builder_new(uint16_t type);
void elf_builder_segment(struct elf_builder *b, uint64_t vaddr, uint32_t flags, const void *data,
			 size_t size);
/* Add memory after the file contents of the last segment. */
void elf_builder_bss(struct elf_builder *b, size_t size);
/* Returns the symbol's index. Undefined ones (vaddr 0) must come first. */
uint32_t elf_builder_symbol(struct elf_builder *b, const char *name, uint64_t vaddr, uint64_t size,
			    unsigned char type);
void elf_builder_rela(struct elf_builder *b, uint64_t vaddr, uint32_t type, uint32_t symbol,
		      int64_t addend);
void elf_builder_jmprel(struct elf_builder *b, uint64_t vaddr, uint32_t symbol);
void elf_builder_relr(struct elf_builder *b, uint64_t entry);
void elf_builder_note(struct elf_builder *b, uint32_t type, const void *desc, size_t size);
/* An unwind table: the given header (8 bytes: version, encodings, address of the frames), the
 * number of functions, and their starts. */
void elf_builder_unwind(struct elf_builder *b, const uint8_t header[8], const uint64_t *starts,
			uint32_t n);
/* DT_SONAME, DT_NEEDED. */
void elf_builder_name(struct elf_builder *b, int64_t tag, const char *name);
/* Use the old hash table instead of the GNU one. */
void elf_builder_old_hash(struct elf_builder *b);
/* A section header table with one named section. */
void elf_builder_section(struct elf_builder *b, const char *name, uint64_t vaddr, uint64_t size);
void *elf_builder_finish(struct elf_builder *b, size_t *size);

#endif
