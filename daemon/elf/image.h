/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file, read for its facts: segments, dynamic symbols, relocations, build-id. The file
 * belongs to the target and is hostile: it is copied into memory first (so it cannot change or
 * shrink under us), every offset and count is checked, sizes are capped. Parsing of headers is
 * libelf's; every access to contents is a length-checked copy or a checked view.
 *
 * Only x86-64 little-endian ET_EXEC and ET_DYN files are opened. No section headers are needed
 * for anything but nice-to-haves: the dynamic segment is the source of symbols and relocations,
 * as for the dynamic linker.
 */
#ifndef PYPROF_ELF_IMAGE_H
#define PYPROF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define IMAGE_MAX_SIZE	   (512ull << 20)
#define IMAGE_BUILD_ID_MAX 20
#define IMAGE_MAX_SEGMENTS 64

struct image;

struct image_segment {
	uint64_t vaddr, offset, filesz, memsz;
	bool exec, write;
};

/* A dynamic symbol. name points into the image. */
struct image_symbol {
	const char *name;
	uint64_t vaddr;
	uint64_t size;
	bool func;
};

/* Read the whole file behind fd (not kept) or a copy of the bytes. *ret is owned by the caller. */
int image_open_fd(int fd, const char *name, struct image **ret, struct diag *diag);
int image_open_bytes(const void *data, size_t size, const char *name, struct image **ret,
		     struct diag *diag);
void image_free(struct image *img);
DEFINE_FREEP(struct image, image_free)

/* Whether the file behind fd may define the dynamic symbol called name, from a few reads of it:
 * for picking files that are worth opening. False: it does not, or is not an ELF file of ours. */
bool image_may_define(int fd, const char *name);

/* Loadable segments (PT_LOAD), in file order. */
unsigned int image_segments(const struct image *img, const struct image_segment **ret);
bool image_is_exec(const struct image *img); /* ET_EXEC: no load bias */
bool image_is_cet(const struct image *img);  /* its .note.gnu.property promises IBT */

/* Build-id; returns its length (0: none). */
size_t image_build_id(const struct image *img, uint8_t out[IMAGE_BUILD_ID_MAX]);

/* File-backed bytes at a virtual address: a view of n bytes, or NULL if not all are in one
 * segment's file part. The view lives as long as the image. */
const uint8_t *image_view(const struct image *img, uint64_t vaddr, size_t n);
/* As above, how many bytes from vaddr to the end of its segment's file part (0: unmapped). */
size_t image_view_max(const struct image *img, uint64_t vaddr, const uint8_t **ret);

/* A pointer-sized word as it is after relocation without load bias: the addend of a relative
 * relocation at vaddr if there is one (RELA or RELR), else the file's bytes. -ENOENT if unmapped. */
int image_pointer(const struct image *img, uint64_t vaddr, uint64_t *ret);

/* File offset of a virtual address; -ENOENT if it has no file bytes. And back. */
int image_offset(const struct image *img, uint64_t vaddr, uint64_t *ret);
int image_vaddr(const struct image *img, uint64_t offset, uint64_t *ret);

/* The dynamic symbol called name; -ENOENT if there is none. Name binds exactly. */
int image_symbol(const struct image *img, const char *name, struct image_symbol *ret);

/* DT_SONAME, or NULL; the first DT_NEEDED that starts with prefix, or NULL. */
const char *image_soname(const struct image *img);
const char *image_needed(const struct image *img, const char *prefix);

/* If the code at vaddr is a PLT stub (jmp *GOT, with or without endbr64), the name of the symbol
 * its GOT slot is bound to; NULL otherwise. */
const char *image_plt_name(const struct image *img, uint64_t vaddr);

/*
 * Runs of at least `min` consecutive 8-byte words that all point (after relocation) into executable
 * segments: candidates for the opcode dispatch table. fn is called for each run, in address order,
 * until it returns non-zero; that value is returned.
 */
typedef int (*image_run_fn)(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n);
int image_code_pointer_runs(const struct image *img, size_t min, image_run_fn fn, void *ctx);

/* Where the function (or the part of a split one) starts that vaddr is in or behind, by the file's
 * table for unwinding. -ENODATA: it has none that we can read; -ENOENT: none starts before vaddr. */
int image_function_start(const struct image *img, uint64_t vaddr, uint64_t *ret);
/* And where the next one starts, or the segment ends: the same errors. */
int image_function_range(const struct image *img, uint64_t vaddr, uint64_t *ret_start,
			 uint64_t *ret_end);

/* Start and size of section `name` if section headers exist (".PyRuntime"); else -ENOENT. */
int image_section(const struct image *img, const char *name, uint64_t *vaddr, uint64_t *size);

/* First occurrence of a byte string in any segment's file part, from vaddr `from` on. */
int image_find(const struct image *img, const void *needle, size_t n, uint64_t from, uint64_t *ret);

#endif
