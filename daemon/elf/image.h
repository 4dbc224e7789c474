/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts of an ELF file: segments, dynamic symbols, relocations, build-id. The file belongs to the
 * target and is hostile: it is first copied to memory, so that it cannot change; every offset and
 * count is checked; sizes are capped. libelf parses the headers; contents are accessed through
 * length-checked copies and views.
 *
 * Only x86-64 little-endian ET_EXEC and ET_DYN files are accepted. Symbols and relocations come
 * from the dynamic segment, as for the dynamic linker; section headers are only used for optional
 * data.
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

/* Read the parts of the file fd (which is not kept) that a process maps, and its headers, or copy
 * those of the bytes. *ret is owned by the caller. */
int image_open_fd(int fd, const char *name, struct image **ret, struct diag *diag);
int image_open_bytes(const void *data, size_t size, const char *name, struct image **ret,
		     struct diag *diag);
void image_free(struct image *img);
DEFINE_FREEP(struct image, image_free)

/*
 * Returns whether the file fd may define the dynamic symbol `name`; false also if it is not a
 * supported ELF file. Needs only a few reads, to select the files to open.
 */
bool image_may_define(int fd, const char *name);

/* Loadable segments (PT_LOAD), in file order. */
unsigned int image_segments(const struct image *img, const struct image_segment **ret);
bool image_is_exec(const struct image *img); /* ET_EXEC: no load bias */
bool image_is_cet(const struct image *img);  /* .note.gnu.property declares IBT support */

/* Copy the build-id; returns its length (0: none). */
size_t image_build_id(const struct image *img, uint8_t out[IMAGE_BUILD_ID_MAX]);

/* A view of the n file bytes at a virtual address, or NULL if they are not all in one segment's
 * file part. It is valid as long as the image. */
const uint8_t *image_view(const struct image *img, uint64_t vaddr, size_t n);
/* The same, returning the number of bytes up to the end of the segment's file part (0:
 * unmapped). */
size_t image_view_max(const struct image *img, uint64_t vaddr, const uint8_t **ret);

/* The pointer at vaddr, relocated without load bias: the addend of a relative relocation (RELA or
 * RELR) if there is one, else the file's bytes. -ENOENT: unmapped. */
int image_pointer(const struct image *img, uint64_t vaddr, uint64_t *ret);

/* Virtual address to file offset and back. -ENOENT: no file bytes. */
int image_offset(const struct image *img, uint64_t vaddr, uint64_t *ret);
int image_vaddr(const struct image *img, uint64_t offset, uint64_t *ret);

/* The dynamic symbol with exactly this name. -ENOENT: none. */
int image_symbol(const struct image *img, const char *name, struct image_symbol *ret);

/* DT_SONAME, or NULL; the first DT_NEEDED with this prefix, or NULL. */
const char *image_soname(const struct image *img);
const char *image_needed(const struct image *img, const char *prefix);

/* If the code at vaddr is a PLT stub (jmp *GOT, with or without endbr64), the symbol name of its
 * GOT slot; else NULL. */
const char *image_plt_name(const struct image *img, uint64_t vaddr);

/*
 * Find runs of at least `min` consecutive 8-byte words that, relocated, point into executable
 * segments: candidates for the opcode dispatch table. Calls fn for each run in address order until
 * it returns non-zero, and returns that value.
 */
typedef int (*image_run_fn)(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n);
int image_code_pointer_runs(const struct image *img, size_t min, image_run_fn fn, void *ctx);

/* Start of the function (or part of a split function) at or before vaddr, from the unwind table.
 * -ENODATA: no usable table; -ENOENT: no function starts before vaddr. */
int image_function_start(const struct image *img, uint64_t vaddr, uint64_t *ret);
/* Also the end: the next function's start, or the segment's end. Same errors. */
int image_function_range(const struct image *img, uint64_t vaddr, uint64_t *ret_start,
			 uint64_t *ret_end);

/* Start and size of a section (".PyRuntime"). -ENOENT: no such section, or no section headers. */
int image_section(const struct image *img, const char *name, uint64_t *vaddr, uint64_t *size);

/* The first occurrence of a byte string in any segment's file part, at or after `from`. */
int image_find(const struct image *img, const void *needle, size_t n, uint64_t from, uint64_t *ret);

#endif
