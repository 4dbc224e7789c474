// SPDX-License-Identifier: BSD-2-Clause
/* elf/image on files made for the test. */
#include "elf/image.h"

#include <errno.h>
#include <sys/mman.h>

#include "harness/elf_builder.h"
#include "harness/test.h"

#define CODE 0x1000
#define DATA 0x20000

static const uint8_t code[256] = {0x90, 0xc3};

/* Returns a builder with a code segment (256 bytes at CODE) and a data segment (zeros at DATA). */
static struct elf_builder *builder(uint16_t type, size_t data_size)
{
	struct elf_builder *b = elf_builder_new(type);

	elf_builder_segment(b, CODE, PF_R | PF_X, code, sizeof(code));
	elf_builder_segment(b, DATA, PF_R | PF_W, NULL, data_size);
	return b;
}

static struct image *open_built(struct elf_builder *b)
{
	struct diag diag = {0};
	struct image *img = NULL;
	size_t size;
	_cleanup_free_ void *data = elf_builder_finish(b, &size);

	assert_diag_ok(image_open_bytes(data, size, "built", &img, &diag), &diag);
	return img;
}

Test(image, segments_and_views)
{
	struct elf_builder *b = builder(ET_DYN, 64);
	_cleanup_(image_freep) struct image *img = NULL;
	const struct image_segment *seg;
	const uint8_t *p;
	uint64_t v;

	elf_builder_bss(b, 32);
	img = open_built(b);
	cr_assert(image_segments(img, &seg) == 3);
	cr_assert(seg[0].vaddr == CODE && seg[0].exec && !seg[0].write);
	cr_assert(seg[1].vaddr == DATA && seg[1].write && seg[1].memsz == 96);
	cr_assert(!image_is_exec(img));
	p = image_view(img, CODE, 256);
	cr_assert_not_null(p);
	assert_bytes_eq(p, code, 256);
	cr_assert_null(image_view(img, CODE, 257));
	cr_assert_null(image_view(img, CODE - 1, 1));
	cr_assert_null(image_view(img, DATA + 64, 1), "memory without file bytes");
	cr_assert_null(image_view(img, CODE + 1, SIZE_MAX));
	cr_assert(image_view_max(img, DATA + 60, &p) == 4);
	assert_ok(image_offset(img, CODE + 5, &v));
	cr_assert(v == seg[0].offset + 5);
	assert_ok(image_vaddr(img, seg[0].offset + 5, &v));
	cr_assert(v == CODE + 5);
	assert_err(image_offset(img, 0x5000, &v), -ENOENT);
	assert_err(image_vaddr(img, 1u << 30, &v), -ENOENT);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

static void check_symbols(bool old_hash)
{
	struct elf_builder *b = builder(ET_DYN, 64);
	_cleanup_(image_freep) struct image *img = NULL;
	struct image_symbol sym;

	if (old_hash)
		elf_builder_old_hash(b);
	elf_builder_symbol(b, "undefined", 0, 0, STT_FUNC);
	elf_builder_symbol(b, "function", CODE + 16, 8, STT_FUNC);
	elf_builder_symbol(b, "object", DATA + 8, 4, STT_OBJECT);
	elf_builder_symbol(b, "tls", 4, 4, STT_TLS);
	elf_builder_name(b, DT_SONAME, "libbuilt.so.1");
	elf_builder_name(b, DT_NEEDED, "libother.so");
	elf_builder_name(b, DT_NEEDED, "libpython3.99.so");
	img = open_built(b);
	assert_ok(image_symbol(img, "function", &sym));
	cr_assert(sym.vaddr == CODE + 16 && sym.size == 8 && sym.func);
	cr_assert_str_eq(sym.name, "function");
	assert_ok(image_symbol(img, "object", &sym));
	cr_assert(sym.vaddr == DATA + 8 && !sym.func);
	assert_err(image_symbol(img, "undefined", &sym), -ENOENT);
	assert_err(image_symbol(img, "functio", &sym), -ENOENT);
	assert_err(image_symbol(img, "tls", &sym), -ENOENT);
	cr_assert_str_eq(image_soname(img), "libbuilt.so.1");
	cr_assert_str_eq(image_needed(img, "libpython"), "libpython3.99.so");
	cr_assert_null(image_needed(img, "libc"));
	image_free(TAKE_PTR(img));
}

Test(image, symbols)
{
	check_symbols(false);
	check_symbols(true);
	check_no_leaks();
}

Test(image, relocations)
{
	struct elf_builder *b = builder(ET_DYN, 1024);
	_cleanup_(image_freep) struct image *img = NULL;
	uint32_t undefined, defined;
	uint64_t v;

	undefined = elf_builder_symbol(b, "undefined", 0, 0, STT_FUNC);
	defined = elf_builder_symbol(b, "defined", CODE + 32, 8, STT_FUNC);
	/* Not in ascending order: the image sorts them for the search. */
	elf_builder_rela(b, DATA + 64, R_X86_64_RELATIVE, 0, CODE + 3);
	elf_builder_rela(b, DATA + 8, R_X86_64_RELATIVE, 0, CODE + 1);
	elf_builder_rela(b, DATA + 16, R_X86_64_64, defined, 2);
	elf_builder_rela(b, DATA + 24, R_X86_64_64, undefined, 2);
	elf_builder_rela(b, DATA + 32, R_X86_64_GLOB_DAT, defined, 0);
	img = open_built(b);
	assert_ok(image_pointer(img, DATA + 64, &v));
	cr_assert(v == CODE + 3);
	assert_ok(image_pointer(img, DATA + 8, &v));
	cr_assert(v == CODE + 1);
	assert_ok(image_pointer(img, DATA + 16, &v));
	cr_assert(v == CODE + 34);
	assert_ok(image_pointer(img, DATA + 24, &v));
	cr_assert(v == 0, "of another file: what the file has");
	assert_ok(image_pointer(img, DATA + 32, &v));
	cr_assert(v == CODE + 32);
	assert_ok(image_pointer(img, DATA, &v));
	cr_assert(v == 0);
	assert_err(image_pointer(img, 0x7000000, &v), -ENOENT);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

Test(image, relr)
{
	struct elf_builder *b = elf_builder_new(ET_DYN);
	_cleanup_(image_freep) struct image *img = NULL;
	uint64_t words[80], v;

	for (size_t i = 0; i < 80; i++)
		words[i] = i == 70 ? 0 : CODE + i;
	elf_builder_segment(b, CODE, PF_R | PF_X, code, sizeof(code));
	elf_builder_segment(b, DATA, PF_R | PF_W, words, sizeof(words));
	elf_builder_relr(b, DATA);
	elf_builder_relr(b, 1 | 1u << 1 | 1ull << 63); /* DATA + 8 and DATA + 8 * 63 */
	elf_builder_relr(b, 1 | 1u << 1);	       /* DATA + 8 * 64 */
	elf_builder_relr(b, 0x7000000);		       /* an address outside of the file */
	img = open_built(b);
	for (size_t i = 0; i < 80; i++) {
		assert_ok(image_pointer(img, DATA + 8 * i, &v));
		cr_assert(v == words[i]);
	}
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

/* The results of image_code_pointer_runs(). */
struct runs {
	unsigned int n;
	uint64_t vaddr[4];
	size_t size[4];
	uint64_t first[4];
};

static int note_run(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n)
{
	struct runs *r = ctx;

	r->vaddr[r->n] = vaddr;
	r->size[r->n] = n;
	r->first[r->n] = targets[0];
	return ++r->n == 4 ? 77 : 0;
}

Test(image, runs_in_relocations)
{
	struct elf_builder *b = builder(ET_DYN, 4096);
	_cleanup_(image_freep) struct image *img = NULL;
	struct runs r = {0};

	for (unsigned int i = 0; i < 20; i++)
		elf_builder_rela(b, DATA + 8 + 8 * i, R_X86_64_RELATIVE, 0, CODE + i);
	for (unsigned int i = 0; i < 9; i++) /* too short */
		elf_builder_rela(b, DATA + 400 + 8 * i, R_X86_64_RELATIVE, 0, CODE + i);
	for (unsigned int i = 0; i < 40; i++) /* the first half points to data */
		elf_builder_rela(b, DATA + 800 + 8 * i, R_X86_64_RELATIVE, 0,
				 (i < 20 ? DATA : CODE) + i);
	img = open_built(b);
	assert_ok(image_code_pointer_runs(img, 10, note_run, &r));
	cr_assert(r.n == 2);
	cr_assert(r.vaddr[0] == DATA + 8 && r.size[0] == 20 && r.first[0] == CODE);
	cr_assert(r.vaddr[1] == DATA + 800 + 160 && r.size[1] == 20 && r.first[1] == CODE + 20);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

Test(image, runs_in_words)
{
	struct elf_builder *b = elf_builder_new(ET_EXEC);
	_cleanup_(image_freep) struct image *img = NULL;
	uint64_t words[64] = {0};
	struct runs r = {0};

	for (size_t i = 0; i < 30; i++)
		words[5 + i] = CODE + i;
	words[20] = CODE + sizeof(code); /* one byte beyond the code */
	elf_builder_segment(b, CODE, PF_R | PF_X, code, sizeof(code));
	elf_builder_segment(b, DATA, PF_R, words, sizeof(words));
	img = open_built(b);
	cr_assert(image_is_exec(img));
	assert_ok(image_code_pointer_runs(img, 10, note_run, &r));
	cr_assert(r.n == 2);
	cr_assert(r.vaddr[0] == DATA + 40 && r.size[0] == 15);
	cr_assert(r.vaddr[1] == DATA + 168 && r.size[1] == 14);
	r.n = 3;
	cr_assert(image_code_pointer_runs(img, 10, note_run, &r) == 77, "stops on request");
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

/* Writes jmp *disp(%rip) that refers to the slot. */
static void put_stub(uint8_t *p, size_t prefix, uint64_t vaddr, uint64_t slot)
{
	int32_t disp = (int32_t)(slot - (vaddr + prefix + 6));

	p[prefix] = 0xff;
	p[prefix + 1] = 0x25;
	memcpy(p + prefix + 2, &disp, 4);
}

Test(image, plt_names)
{
	struct elf_builder *b = elf_builder_new(ET_DYN);
	_cleanup_(image_freep) struct image *img = NULL;
	static const uint8_t endbr64_bnd[5] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2};
	uint8_t plt[64] = {0};
	uint32_t malloc_sym, free_sym;

	put_stub(plt, 0, CODE, DATA + 8);
	memcpy(plt + 16, endbr64_bnd, 5);
	put_stub(plt + 16, 5, CODE + 16, DATA + 16);
	put_stub(plt + 32, 0, CODE + 32, DATA + 24); /* no such slot */
	put_stub(plt + 60 - 6 + 4, 0, CODE, DATA);   /* cut off below */
	elf_builder_segment(b, CODE, PF_R | PF_X, plt, 62);
	elf_builder_segment(b, DATA, PF_R | PF_W, NULL, 64);
	malloc_sym = elf_builder_symbol(b, "malloc", 0, 0, STT_FUNC);
	free_sym = elf_builder_symbol(b, "free", 0, 0, STT_FUNC);
	elf_builder_jmprel(b, DATA + 8, malloc_sym);
	elf_builder_rela(b, DATA + 16, R_X86_64_GLOB_DAT, free_sym, 0);
	img = open_built(b);
	cr_assert_str_eq(image_plt_name(img, CODE), "malloc");
	cr_assert_str_eq(image_plt_name(img, CODE + 16), "free");
	cr_assert_null(image_plt_name(img, CODE + 32));
	cr_assert_null(image_plt_name(img, CODE + 48));
	cr_assert_null(image_plt_name(img, CODE + 58));
	cr_assert_null(image_plt_name(img, 0));
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

Test(image, notes)
{
	struct elf_builder *b = builder(ET_DYN, 64);
	_cleanup_(image_freep) struct image *img = NULL;
	const uint32_t property[4] = {GNU_PROPERTY_X86_FEATURE_1_AND, 4,
				      GNU_PROPERTY_X86_FEATURE_1_IBT, 0};
	const uint8_t id[20] = "12345678901234567890";
	uint8_t got[IMAGE_BUILD_ID_MAX];

	elf_builder_note(b, NT_GNU_BUILD_ID, id, sizeof(id));
	elf_builder_note(b, NT_GNU_PROPERTY_TYPE_0, property, sizeof(property));
	img = open_built(b);
	cr_assert(image_build_id(img, got) == 20);
	assert_bytes_eq(got, id, 20);
	cr_assert(image_is_cet(img));
	image_free(TAKE_PTR(img));

	img = open_built(builder(ET_DYN, 64));
	cr_assert(image_build_id(img, got) == 0);
	cr_assert_not(image_is_cet(img));
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

static struct image *open_unwind(const uint8_t header[8], const uint64_t *starts, uint32_t n)
{
	struct elf_builder *b = builder(ET_DYN, 64);

	elf_builder_unwind(b, header, starts, n);
	return open_built(b);
}

Test(image, functions_start)
{
	const uint8_t known[8] = {1, 0x1b, 0x03, 0x3b};
	const uint64_t starts[] = {CODE + 8, CODE + 32, CODE + 64}, mixed[] = {CODE + 64, CODE + 8};
	_cleanup_(image_freep) struct image *img = open_unwind(known, starts, 3);
	uint64_t v;

	assert_ok(image_function_start(img, CODE + 8, &v));
	cr_assert(v == CODE + 8);
	assert_ok(image_function_start(img, CODE + 63, &v));
	cr_assert(v == CODE + 32);
	assert_ok(image_function_start(img, CODE + 200, &v));
	cr_assert(v == CODE + 64);
	v = 7;
	assert_err(image_function_start(img, CODE + 7, &v), -ENOENT);
	cr_assert(v == 7, "untouched on failure");
	image_free(TAKE_PTR(img));

	img = open_unwind(known, mixed, 2);
	assert_ok(image_function_start(img, CODE + 70, &v));
	cr_assert(v == CODE + 64, "the nearest, though they are not in order");
	image_free(TAKE_PTR(img));
	for (int i = 0; i < 4; i++) {
		uint8_t other[8] = {known[0], known[1], known[2], known[3]};

		other[i] = i == 0 ? 2 : 0xff;
		img = open_unwind(other, starts, 3);
		assert_err(image_function_start(img, CODE + 8, &v), -ENODATA);
		image_free(TAKE_PTR(img));
	}
	img = open_built(builder(ET_DYN, 64));
	assert_err(image_function_start(img, CODE + 8, &v), -ENODATA);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

Test(image, unwind_table_is_cut_off)
{
	const uint8_t known[8] = {1, 0x1b, 0x03, 0x3b};
	const uint64_t start = CODE + 8;
	struct elf_builder *b = builder(ET_DYN, 64);
	_cleanup_(image_freep) struct image *img = NULL;
	struct diag diag = {0};
	size_t size;
	uint8_t *data, *table;
	uint64_t v;

	elf_builder_unwind(b, known, &start, 1);
	data = elf_builder_finish(b, &size);
	table = memmem(data, size, known, 4);
	cr_assert_not_null(table);
	memset(table + 8, 0xff, 4); /* far more functions than fit into the table */
	assert_diag_ok(image_open_bytes(data, size, "built", &img, &diag), &diag);
	free(data);
	assert_ok(image_function_start(img, CODE + 9, &v));
	cr_assert(v == CODE + 8);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

Test(image, sections_and_find)
{
	struct elf_builder *b = elf_builder_new(ET_DYN);
	_cleanup_(image_freep) struct image *img = NULL;
	uint64_t v, size;

	elf_builder_segment(b, CODE, PF_R, "needle in a haystack, needle", 28);
	elf_builder_segment(b, DATA, PF_R, "a needle", 8);
	elf_builder_section(b, ".PyRuntime", DATA, 8);
	img = open_built(b);
	assert_ok(image_section(img, ".PyRuntime", &v, &size));
	cr_assert(v == DATA && size == 8);
	assert_err(image_section(img, ".PyRun", &v, &size), -ENOENT);
	assert_err(image_section(img, ".shstrtab", &v, &size), -ENOENT);
	assert_ok(image_find(img, "needle", 6, 0, &v));
	cr_assert(v == CODE);
	assert_ok(image_find(img, "needle", 6, CODE + 1, &v));
	cr_assert(v == CODE + 22);
	assert_ok(image_find(img, "needle", 6, CODE + 23, &v));
	cr_assert(v == DATA + 2);
	assert_err(image_find(img, "needle", 6, DATA + 3, &v), -ENOENT);
	image_free(TAKE_PTR(img));
	check_no_leaks();
}

/* Open a built file after writing a value into it; it must be refused. */
static void assert_refused(size_t at, const void *value, size_t n)
{
	size_t size;
	_cleanup_free_ uint8_t *data = elf_builder_finish(builder(ET_DYN, 64), &size);
	struct image *img = NULL;
	struct diag diag = {0};

	memcpy(data + at, value, n);
	assert_err(image_open_bytes(data, size, "bad", &img, &diag), -ENOEXEC);
	cr_assert(diag.exit == PYP_EXIT_UNTRACEABLE);
	cr_assert_null(img);
}

Test(image, malformed_headers_are_refused)
{
	const size_t ph0 = sizeof(Elf64_Ehdr), ph1 = ph0 + sizeof(Elf64_Phdr);
	const uint64_t huge = UINT64_MAX - 8, low = 0x10;
	const uint16_t rel = ET_REL, arm = EM_AARCH64;
	const uint8_t class32 = ELFCLASS32;

	assert_refused(0, "\177FLE", 4);
	assert_refused(EI_CLASS, &class32, 1);
	assert_refused(offsetof(Elf64_Ehdr, e_type), &rel, 2);
	assert_refused(offsetof(Elf64_Ehdr, e_machine), &arm, 2);
	assert_refused(offsetof(Elf64_Ehdr, e_phoff), &huge, 8);
	assert_refused(ph0 + offsetof(Elf64_Phdr, p_offset), &huge, 8);
	assert_refused(ph0 + offsetof(Elf64_Phdr, p_filesz), &huge, 8);
	assert_refused(ph0 + offsetof(Elf64_Phdr, p_memsz), &huge, 8);
	assert_refused(ph0 + offsetof(Elf64_Phdr, p_memsz), &low, 8);
	assert_refused(ph1 + offsetof(Elf64_Phdr, p_vaddr), &low, 8);
	check_no_leaks();
}

Test(image, two_dynamic_segments)
{
	struct elf_builder *b = builder(ET_DYN, 64);
	const size_t type = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr);
	const uint32_t dynamic = PT_DYNAMIC;
	const uint64_t nowhere = 1u << 30;
	struct image *img = NULL;
	struct image_symbol sym;
	uint8_t *data;
	size_t size;

	elf_builder_symbol(b, "f", CODE, 1, STT_FUNC);
	data = elf_builder_finish(b, &size);
	/* The header of the note, the last one, becomes a second one with an invalid offset. */
	memcpy(data + type, &dynamic, 4);
	memcpy(data + type + offsetof(Elf64_Phdr, p_offset), &nowhere, 8);
	assert_ok(image_open_bytes(data, size, "two", &img, NULL));
	assert_err(image_symbol(img, "f", &sym), -ENOENT);
	cr_assert_null(image_needed(img, "lib"));
	image_free(img);
	free(data);
	check_no_leaks();
}

/* Returns a file in memory with these contents. */
static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

Test(image, may_define)
{
	struct elf_builder *b = builder(ET_DYN, 64);
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_close_ int fd = -1, text = file_of("#!/bin/sh\n", 10);
	size_t size;

	elf_builder_symbol(b, "undefined", 0, 0, STT_FUNC);
	for (unsigned int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		elf_builder_symbol(b, name, CODE + i, 1, STT_FUNC);
	}
	data = elf_builder_finish(b, &size);
	fd = file_of(data, size);
	cr_assert(image_may_define(fd, "f0"));
	cr_assert(image_may_define(fd, "f19"));
	cr_assert_not(image_may_define(fd, "f20"));
	cr_assert_not(image_may_define(fd, "undefined"));
	cr_assert_not(image_may_define(text, "f0"));
	for (size_t cut = 0; cut < size; cut += 7) {
		assert_ok(ftruncate(fd, (off_t)(size - cut)));
		image_may_define(fd, "f19");
	}
	freep(&data);
	data = NULL;
	check_no_leaks();
}

Test(image, files_that_are_none)
{
	_cleanup_close_ int empty = file_of("", 0);
	struct image *img = NULL;
	struct diag diag = {0};
	int pipes[2];

	assert_ok(pipe(pipes));
	assert_err(image_open_fd(pipes[0], "pipe", &img, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_UNTRACEABLE);
	assert_err(image_open_fd(empty, "empty", &img, NULL), -ENOEXEC);
	assert_err(image_open_fd(-1, "bad", &img, NULL), -EBADF);
	assert_err(image_open_bytes("", 0, "empty", &img, NULL), -ENOEXEC);
	close(pipes[0]);
	close(pipes[1]);
	check_no_leaks();
}
