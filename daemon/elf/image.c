// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opening an ELF file and accessing its contents: see image.h. libelf parses headers, on a private
 * copy of the file's parts that are used; contents are only accessed through length-checked views of it.
 */
#include "elf/image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/abi.h"
#include "elf/image_priv.h"
#include "elf/parts.h"

static int malformed(struct diag *diag, const struct image *img, const char *what)
{
	return diag_set(diag, -ENOEXEC, PYP_EXIT_UNTRACEABLE, "",
			"'%s' is not a usable ELF file: %s", img->name, what);
}

const uint8_t *image_bytes(const struct image *img, uint64_t offset, uint64_t n)
{
	if (offset > img->size || n > img->size - offset)
		return NULL;
	return img->data + offset;
}

/* Where an image is read from: a file, which the target may change meanwhile, or memory. */
struct source {
	int fd; /* -1: memory */
	const uint8_t *bytes;
};

static int read_part(const struct source *src, uint8_t *data, size_t at, size_t size)
{
	const size_t end = at + size;

	if (src->fd < 0) {
		memcpy(data + at, src->bytes + at, size);
		return 0;
	}
	while (at < end) {
		ssize_t n = pread(src->fd, data + at, end - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Read what is parsed of a file of this size; the rest of data stays 0. */
static int read_parts(const struct source *src, uint8_t *data, size_t size)
{
	struct parts parts;
	struct part names;
	int r = read_part(src, data, 0, size < PARTS_HEAD ? size : PARTS_HEAD);

	if (r < 0)
		return r;
	parts_find(data, size, &parts);
	for (unsigned int i = 0; i < parts.n && r == 0; i++)
		r = read_part(src, data, parts.v[i].at, parts.v[i].size);
	if (r < 0)
		return r;
	parts_names(data, size, &names);
	return read_part(src, data, names.at, names.size);
}

static int add_segment(struct image *img, const GElf_Phdr *ph, struct diag *diag)
{
	const struct image_segment *prev;
	struct image_segment *seg;
	uint64_t end;

	if (ph->p_memsz == 0)
		return 0;
	if (img->nsegments == IMAGE_MAX_SEGMENTS)
		return malformed(diag, img, "too many segments");
	if (ph->p_filesz > ph->p_memsz || __builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end))
		return malformed(diag, img, "a segment has an invalid size");
	if (!image_bytes(img, ph->p_offset, ph->p_filesz))
		return malformed(diag, img, "it is truncated");
	prev = img->nsegments ? &img->segments[img->nsegments - 1] : NULL;
	if (prev && ph->p_vaddr < prev->vaddr + prev->memsz)
		return malformed(diag, img, "segments overlap or are out of order");

	seg = &img->segments[img->nsegments++];
	seg->vaddr = ph->p_vaddr;
	seg->offset = ph->p_offset;
	seg->filesz = ph->p_filesz;
	seg->memsz = ph->p_memsz;
	seg->exec = ph->p_flags & PF_X;
	seg->write = ph->p_flags & PF_W;
	return 0;
}

/* There should be one; if there are more, the last one is used. */
static void set_dynamic(struct image *img, const GElf_Phdr *ph)
{
	img->dynamic = image_bytes(img, ph->p_offset, ph->p_filesz);
	img->dynamic_size = img->dynamic ? ph->p_filesz : 0;
}

static int read_segments(struct image *img, struct diag *diag)
{
	size_t n;

	if (elf_getphdrnum(img->elf, &n))
		return malformed(diag, img, "its program headers are out of bounds");
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		int err = 0;

		if (!gelf_getphdr(img->elf, (int)i, &ph))
			return malformed(diag, img, "its program headers are out of bounds");
		if (ph.p_type == PT_LOAD)
			err = add_segment(img, &ph, diag);
		else if (ph.p_type == PT_NOTE)
			image_read_note(img, &ph);
		else if (ph.p_type == PT_DYNAMIC)
			set_dynamic(img, &ph);
		else if (ph.p_type == PT_GNU_EH_FRAME)
			img->unwind = ph.p_vaddr;
		if (err)
			return err;
	}
	return img->nsegments ? 0 : malformed(diag, img, "it has no loadable segments");
}

static int read_headers(struct image *img, struct diag *diag)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return malformed(diag, img, "libelf is too old");
	img->elf = elf_memory((char *)img->data, img->size);
	if (!img->elf || elf_kind(img->elf) != ELF_K_ELF || !gelf_getehdr(img->elf, &img->ehdr))
		return malformed(diag, img, "no ELF header");
	if (img->ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    img->ehdr.e_ident[EI_DATA] != ELFDATA2LSB || img->ehdr.e_machine != ABI_ELF_MACHINE)
		return malformed(diag, img, "it is not for " ABI_NAME);
	if (img->ehdr.e_type != ET_EXEC && img->ehdr.e_type != ET_DYN)
		return malformed(diag, img, "it is neither a program nor a shared library");
	return 0;
}

static int image_open(const struct source *src, size_t size, const char *name, struct image **ret,
		      struct diag *diag)
{
	_cleanup_(image_freep) struct image *img = calloc(1, sizeof(*img));
	int err;

	if (!img)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", name);
	img->data = calloc(1, size);
	img->size = size;
	img->name = strdup(name);
	if (!img->data || !img->name)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", name);
	err = read_parts(src, img->data, size);
	if (err)
		return diag_errno(diag, -err, "cannot read '%s'", name);

	err = read_headers(img, diag);
	if (err)
		return err;
	err = read_segments(img, diag);
	if (err)
		return err;
	if (image_read_dynamic(img) < 0)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", name);
	err = image_read_relocs(img, diag);
	if (err)
		return err;

	*ret = TAKE_PTR(img);
	return 0;
}

int image_open_fd(int fd, const char *name, struct image **ret, struct diag *diag)
{
	const struct source src = {.fd = fd};
	struct stat st;

	if (fstat(fd, &st))
		return diag_errno(diag, errno, "cannot read '%s'", name);
	if (!S_ISREG(st.st_mode))
		return diag_set(diag, -EINVAL, PYP_EXIT_UNTRACEABLE, "",
				"'%s' is not a regular file", name);
	if (st.st_size <= 0 || (uint64_t)st.st_size > IMAGE_MAX_SIZE)
		return diag_set(diag, st.st_size <= 0 ? -ENOEXEC : -EFBIG, PYP_EXIT_UNTRACEABLE, "",
				"'%s' is %s to be an interpreter", name,
				st.st_size <= 0 ? "too small" : "too large");
	return image_open(&src, (size_t)st.st_size, name, ret, diag);
}

int image_open_bytes(const void *data, size_t size, const char *name, struct image **ret,
		     struct diag *diag)
{
	const struct source src = {.fd = -1, .bytes = data};

	if (size == 0 || size > IMAGE_MAX_SIZE)
		return diag_set(diag, size ? -EFBIG : -ENOEXEC, PYP_EXIT_UNTRACEABLE, "",
				"'%s' is not a usable ELF file: its size is %zu", name, size);
	return image_open(&src, size, name, ret, diag);
}

void image_free(struct image *img)
{
	if (!img)
		return;
	elf_end(img->elf);
	free(img->slots);
	free(img->relocs);
	free(img->chain);
	free(img->index);
	free(img->data);
	free(img->name);
	free(img);
}

unsigned int image_segments(const struct image *img, const struct image_segment **ret)
{
	*ret = img->segments;
	return img->nsegments;
}

bool image_is_exec(const struct image *img)
{
	return img->ehdr.e_type == ET_EXEC;
}

bool image_is_cet(const struct image *img)
{
	return img->cet;
}

size_t image_build_id(const struct image *img, uint8_t out[IMAGE_BUILD_ID_MAX])
{
	memcpy(out, img->build_id, img->build_id_len);
	return img->build_id_len;
}

/* The segment with vaddr in its file part, or NULL. */
static const struct image_segment *segment_at(const struct image *img, uint64_t vaddr)
{
	for (unsigned int i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->filesz)
			return seg;
	}
	return NULL;
}

size_t image_view_max(const struct image *img, uint64_t vaddr, const uint8_t **ret)
{
	const struct image_segment *seg = segment_at(img, vaddr);

	if (!seg)
		return 0;
	*ret = img->data + seg->offset + (vaddr - seg->vaddr);
	return seg->filesz - (vaddr - seg->vaddr);
}

const uint8_t *image_view(const struct image *img, uint64_t vaddr, size_t n)
{
	const uint8_t *p = NULL;

	return image_view_max(img, vaddr, &p) >= n ? p : NULL;
}

int image_offset(const struct image *img, uint64_t vaddr, uint64_t *ret)
{
	const struct image_segment *seg = segment_at(img, vaddr);

	if (!seg)
		return -ENOENT;
	*ret = seg->offset + (vaddr - seg->vaddr);
	return 0;
}

int image_vaddr(const struct image *img, uint64_t offset, uint64_t *ret)
{
	for (unsigned int i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (offset >= seg->offset && offset - seg->offset < seg->filesz) {
			*ret = seg->vaddr + (offset - seg->offset);
			return 0;
		}
	}
	return -ENOENT;
}

int image_section(const struct image *img, const char *name, uint64_t *vaddr, uint64_t *size)
{
	GElf_Shdr names, sh;
	size_t strndx, want = strlen(name) + 1;
	Elf_Scn *scn = NULL;

	if (elf_getshdrstrndx(img->elf, &strndx) ||
	    !gelf_getshdr(elf_getscn(img->elf, strndx), &names))
		return -ENOENT;
	while ((scn = elf_nextscn(img->elf, scn))) {
		const uint8_t *p;

		if (!gelf_getshdr(scn, &sh) || sh.sh_name > names.sh_size ||
		    names.sh_size - sh.sh_name < want || names.sh_offset > UINT64_MAX - sh.sh_name)
			continue;
		p = image_bytes(img, names.sh_offset + sh.sh_name, want);
		if (!p || memcmp(p, name, want) != 0 || !(sh.sh_flags & SHF_ALLOC))
			continue;
		*vaddr = sh.sh_addr;
		*size = sh.sh_size;
		return 0;
	}
	return -ENOENT;
}

int image_find(const struct image *img, const void *needle, size_t n, uint64_t from, uint64_t *ret)
{
	for (unsigned int i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];
		const uint8_t *start = img->data + seg->offset, *hit;
		uint64_t skip = from > seg->vaddr ? from - seg->vaddr : 0;

		if (skip >= seg->filesz)
			continue;
		hit = memmem(start + skip, seg->filesz - skip, needle, n);
		if (!hit)
			continue;
		*ret = seg->vaddr + (uint64_t)(hit - start);
		return 0;
	}
	return -ENOENT;
}
