// SPDX-License-Identifier: BSD-2-Clause
/* The parts of ELF files that are read: enough to parse them, and never much more than the file. */
#include "elf/parts.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "elf/image.h"
#include "harness/elf_builder.h"
#include "harness/test.h"

#define DEBUG (1u << 20)

/* A file with one segment, a section name, and `extra` bytes that belong to neither. */
static uint8_t *made(size_t extra, size_t *size)
{
	struct elf_builder *b = elf_builder_new(ET_DYN);
	uint8_t *data, *longer;
	size_t n;

	elf_builder_segment(b, 0x1000, PF_R | PF_X, "code", 4);
	elf_builder_symbol(b, "f", 0x1000, 4, STT_FUNC);
	elf_builder_section(b, ".PyRuntime", 0x1000, 4);
	data = elf_builder_finish(b, &n);
	longer = calloc(1, n + extra);
	cr_assert_not_null(longer);
	memcpy(longer, data, n);
	memset(longer + n, 'd', extra);
	free(data);
	*size = n + extra;
	return longer;
}

static size_t sum(const struct parts *p)
{
	size_t n = 0;

	for (unsigned int i = 0; i < p->n; i++)
		n += p->v[i].size;
	return n;
}

static bool has(const struct parts *p, size_t at)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (at >= p->v[i].at && at - p->v[i].at < p->v[i].size)
			return true;
	return false;
}

Test(parts, debugging_information_is_left_out)
{
	_cleanup_(image_freep) struct image *img = NULL;
	struct image_symbol sym;
	uint64_t at, n;
	size_t size;
	_cleanup_free_ uint8_t *data = made(DEBUG, &size);
	struct parts p;

	parts_find(data, size, &p);
	cr_assert_lt(sum(&p), size - DEBUG + 3 * PARTS_HEAD);
	cr_assert(has(&p, 0) && !has(&p, size - 1));
	assert_ok(image_open_bytes(data, size, "made", &img, NULL));
	assert_ok(image_symbol(img, "f", &sym));
	assert_ok(image_section(img, ".PyRuntime", &at, &n));
	image_free(TAKE_PTR(img));
	free(TAKE_PTR(data));
	check_no_leaks();
}

/* From a file, the same parts are read as from memory. */
Test(parts, of_a_file)
{
	char path[] = "/tmp/pyprof-parts.XXXXXX";
	int fd = mkstemp(path);
	_cleanup_(image_freep) struct image *img = NULL;
	const uint8_t *code;
	uint64_t at, n;
	size_t size;
	_cleanup_free_ uint8_t *data = made(DEBUG, &size);

	cr_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	unlink(path);
	assert_ok(image_open_fd(fd, "made", &img, NULL));
	close(fd);
	code = image_view(img, 0x1000, 4);
	cr_assert(code && memcmp(code, "code", 4) == 0);
	assert_ok(image_section(img, ".PyRuntime", &at, &n));
	image_free(TAKE_PTR(img));
	free(TAKE_PTR(data));
	check_no_leaks();
}

static void assert_whole(const uint8_t *data, size_t size)
{
	struct parts p;

	parts_find(data, size, &p);
	cr_assert(p.n == 1 && p.v[0].at == 0 && p.v[0].size == size);
}

Test(parts, unusual_files_are_whole)
{
	const uint16_t many = PN_XNUM, entry = 8;
	const uint64_t beyond = PARTS_HEAD;
	size_t size;
	_cleanup_free_ uint8_t *data = made(2 * PARTS_HEAD, &size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)data, own = *e;

	assert_whole((const uint8_t *)"", 0);
	assert_whole(data, sizeof(*e) - 1);
	e->e_phnum = many;
	assert_whole(data, size);
	*e = own;
	e->e_phentsize = entry;
	assert_whole(data, size);
	*e = own;
	e->e_phoff = beyond;
	assert_whole(data, size);
	*e = own;
	e->e_ident[EI_CLASS] = ELFCLASS32;
	assert_whole(data, size);
	free(TAKE_PTR(data));
	check_no_leaks();
}

/* Headers that name the whole file again and again do not make us read it again and again. */
Test(parts, are_bounded)
{
	const size_t size = 4 * PARTS_HEAD;
	_cleanup_free_ uint8_t *data = calloc(1, size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)data;
	Elf64_Phdr *ph = (Elf64_Phdr *)(data + sizeof(*e));
	struct parts p;

	cr_assert_not_null(data);
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_phoff = sizeof(*e);
	e->e_phentsize = sizeof(*ph);
	e->e_phnum = PARTS_MAX - 1;
	for (unsigned int i = 0; i < e->e_phnum; i++)
		ph[i] = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = UINT64_MAX};
	assert_whole(data, size);
	for (unsigned int i = 0; i < e->e_phnum; i++)
		ph[i] = (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = UINT64_MAX - 1, .p_filesz = 9};
	parts_find(data, size, &p);
	cr_assert_eq(sum(&p), PARTS_HEAD, "what is beyond the end has no part");
	free(TAKE_PTR(data));
	check_no_leaks();
}
