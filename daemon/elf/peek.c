// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks whether a file defines a symbol, as the dynamic linker does: through the GNU hash table,
 * with half a dozen small reads. A process may map hundreds of libraries, some of them huge.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/abi.h"
#include "elf/image.h"

#define PEEK_MAX_DYNAMIC 1024
#define PEEK_MAX_CHAIN	 4096
#define PEEK_MAX_NAME	 128

struct peek {
	int fd;
	unsigned int nphdrs;
	Elf64_Phdr phdrs[IMAGE_MAX_SEGMENTS];
	uint64_t hash, symtab, strtab; /* 0: none */
};

static bool read_at(int fd, uint64_t offset, void *out, size_t n)
{
	return offset <= INT64_MAX && pread(fd, out, n, (off_t)offset) == (ssize_t)n;
}

static bool read_vaddr(const struct peek *pk, uint64_t vaddr, void *out, size_t n)
{
	for (unsigned int i = 0; i < pk->nphdrs; i++) {
		const Elf64_Phdr *ph = &pk->phdrs[i];
		uint64_t at = vaddr - ph->p_vaddr;

		if (ph->p_type == PT_LOAD && vaddr >= ph->p_vaddr && at < ph->p_filesz &&
		    n <= ph->p_filesz - at)
			return read_at(pk->fd, ph->p_offset + at, out, n);
	}
	return false;
}

static bool read_phdrs(struct peek *pk)
{
	Elf64_Ehdr eh;

	if (!read_at(pk->fd, 0, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != ABI_ELF_MACHINE ||
	    eh.e_phentsize != sizeof(*pk->phdrs) || eh.e_phnum > IMAGE_MAX_SEGMENTS)
		return false;
	pk->nphdrs = eh.e_phnum;
	return read_at(pk->fd, eh.e_phoff, pk->phdrs, eh.e_phnum * sizeof(*pk->phdrs));
}

static void read_dynamic(struct peek *pk)
{
	const Elf64_Phdr *ph = NULL;
	Elf64_Dyn dyn;

	for (unsigned int i = 0; i < pk->nphdrs; i++)
		if (pk->phdrs[i].p_type == PT_DYNAMIC)
			ph = &pk->phdrs[i];
	for (unsigned int i = 0; ph && i < PEEK_MAX_DYNAMIC; i++) {
		uint64_t at = i * sizeof(dyn);

		if (at + sizeof(dyn) > ph->p_filesz ||
		    !read_at(pk->fd, ph->p_offset + at, &dyn, sizeof(dyn)) || dyn.d_tag == DT_NULL)
			return;
		if (dyn.d_tag == DT_GNU_HASH)
			pk->hash = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_SYMTAB)
			pk->symtab = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRTAB)
			pk->strtab = dyn.d_un.d_ptr;
	}
}

static bool is_symbol(const struct peek *pk, uint64_t index, const char *name)
{
	char buf[PEEK_MAX_NAME];
	size_t n = strlen(name) + 1;
	Elf64_Sym sym;

	return n <= sizeof(buf) &&
	       read_vaddr(pk, pk->symtab + index * sizeof(sym), &sym, sizeof(sym)) &&
	       sym.st_shndx != SHN_UNDEF && read_vaddr(pk, pk->strtab + sym.st_name, buf, n) &&
	       memcmp(buf, name, n) == 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* The table's layout is described at count_by_gnu_hash() in dynamic.c. */
static bool lookup(const struct peek *pk, const char *name)
{
	struct {
		uint32_t nbuckets, first, nwords, shift;
	} t;
	uint32_t h = gnu_hash(name), i, link;
	uint64_t buckets, chains, bloom;

	if (!read_vaddr(pk, pk->hash, &t, sizeof(t)) || !t.nbuckets || !t.nwords)
		return false;
	buckets = pk->hash + sizeof(t) + 8 * (uint64_t)t.nwords;
	chains = buckets + 4 * (uint64_t)t.nbuckets;
	if (!read_vaddr(pk, pk->hash + sizeof(t) + 8 * (uint64_t)(h / 64 % t.nwords), &bloom, 8) ||
	    !(bloom >> (h & 63) & 1) || !(bloom >> (h >> (t.shift & 31) & 63) & 1) ||
	    !read_vaddr(pk, buckets + 4 * (uint64_t)(h % t.nbuckets), &i, 4) || i < t.first)
		return false;
	for (unsigned int n = 0; n < PEEK_MAX_CHAIN; n++, i++) {
		if (!read_vaddr(pk, chains + 4 * (uint64_t)(i - t.first), &link, 4))
			return false;
		if ((link | 1) == (h | 1) && is_symbol(pk, i, name))
			return true;
		if (link & 1)
			return false;
	}
	return false;
}

bool image_may_define(int fd, const char *name)
{
	struct peek pk = {.fd = fd};

	if (!read_phdrs(&pk))
		return false;
	read_dynamic(&pk);
	if (!pk.symtab || !pk.strtab)
		return false;
	/* With the old hash table only, the caller has to read the whole file. */
	return !pk.hash || lookup(&pk, name);
}
