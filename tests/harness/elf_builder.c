// SPDX-License-Identifier: BSD-2-Clause
/* Building tiny ELF files: see elf_builder.h. */
#include "harness/elf_builder.h"

#include "harness/test.h"

#define MAX_SEGMENTS 16

/* A buffer that grows. */
struct bytes {
	uint8_t *p;
	size_t n;
};

struct elf_builder {
	uint16_t type;
	Elf64_Phdr load[MAX_SEGMENTS];
	struct bytes contents[MAX_SEGMENTS];
	unsigned int nload;
	struct bytes syms, strings, rela, jmprel, relr, notes, names;
	uint32_t nundefined;
	uint8_t unwind_header[8];
	uint64_t *starts;
	uint32_t nstarts;
	bool old_hash;
	Elf64_Shdr section;
	char section_name[32];
};

static uint64_t put(struct bytes *b, const void *data, size_t n)
{
	uint64_t at = b->n;

	b->p = realloc(b->p, b->n + n + 1);
	cr_assert_not_null(b->p);
	if (data)
		memcpy(b->p + b->n, data, n);
	else
		memset(b->p + b->n, 0, n);
	b->n += n;
	return at;
}

static void align(struct bytes *b, size_t to)
{
	while (b->n % to)
		put(b, "", 1);
}

static uint32_t put_string(struct elf_builder *b, const char *s)
{
	return (uint32_t)put(&b->strings, s, strlen(s) + 1);
}

struct elf_builder *elf_builder_new(uint16_t type)
{
	struct elf_builder *b = calloc(1, sizeof(*b));

	cr_assert_not_null(b);
	b->type = type;
	put_string(b, "");
	put(&b->syms, NULL, sizeof(Elf64_Sym));
	return b;
}

void elf_builder_segment(struct elf_builder *b, uint64_t vaddr, uint32_t flags, const void *data,
			 size_t size)
{
	Elf64_Phdr *ph = &b->load[b->nload];

	cr_assert(b->nload < MAX_SEGMENTS - 1);
	put(&b->contents[b->nload++], data, size);
	*ph = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = flags, .p_vaddr = vaddr};
	ph->p_filesz = ph->p_memsz = size;
}

void elf_builder_bss(struct elf_builder *b, size_t size)
{
	b->load[b->nload - 1].p_memsz += size;
}

uint32_t elf_builder_symbol(struct elf_builder *b, const char *name, uint64_t vaddr, uint64_t size,
			    unsigned char type)
{
	Elf64_Sym sym = {.st_name = put_string(b, name), .st_value = vaddr, .st_size = size};

	sym.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
	sym.st_shndx = vaddr ? 1 : SHN_UNDEF;
	if (!vaddr)
		b->nundefined++;
	return (uint32_t)(put(&b->syms, &sym, sizeof(sym)) / sizeof(sym));
}

void elf_builder_rela(struct elf_builder *b, uint64_t vaddr, uint32_t type, uint32_t symbol,
		      int64_t addend)
{
	Elf64_Rela r = {vaddr, ELF64_R_INFO((uint64_t)symbol, type), addend};

	put(&b->rela, &r, sizeof(r));
}

void elf_builder_jmprel(struct elf_builder *b, uint64_t vaddr, uint32_t symbol)
{
	Elf64_Rela r = {vaddr, ELF64_R_INFO((uint64_t)symbol, R_X86_64_JUMP_SLOT), 0};

	put(&b->jmprel, &r, sizeof(r));
}

void elf_builder_relr(struct elf_builder *b, uint64_t entry)
{
	put(&b->relr, &entry, sizeof(entry));
}

void elf_builder_note(struct elf_builder *b, uint32_t type, const void *desc, size_t size)
{
	Elf64_Nhdr nh = {4, (uint32_t)size, type};

	put(&b->notes, &nh, sizeof(nh));
	put(&b->notes, "GNU", 4);
	put(&b->notes, desc, size);
	align(&b->notes, 4);
}

void elf_builder_unwind(struct elf_builder *b, const uint8_t header[8], const uint64_t *starts,
			uint32_t n)
{
	memcpy(b->unwind_header, header, 8);
	b->starts = calloc(n + 1, sizeof(*starts));
	cr_assert_not_null(b->starts);
	memcpy(b->starts, starts, n * sizeof(*starts));
	b->nstarts = n;
}

void elf_builder_name(struct elf_builder *b, int64_t tag, const char *name)
{
	Elf64_Dyn dyn = {.d_tag = tag, .d_un.d_val = put_string(b, name)};

	put(&b->names, &dyn, sizeof(dyn));
}

void elf_builder_old_hash(struct elf_builder *b)
{
	b->old_hash = true;
}

void elf_builder_section(struct elf_builder *b, const char *name, uint64_t vaddr, uint64_t size)
{
	snprintf(b->section_name, sizeof(b->section_name), "%s", name);
	b->section = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC};
	b->section.sh_addr = vaddr;
	b->section.sh_size = size;
}

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

/* One bucket with all defined symbols; a filter that accepts everything. */
static void put_gnu_hash(struct elf_builder *b, struct bytes *out)
{
	uint32_t n = (uint32_t)(b->syms.n / sizeof(Elf64_Sym)), first = 1 + b->nundefined;
	uint32_t head[4] = {1, first, 1, 5}, bucket = first < n ? first : 0;
	uint64_t bloom = UINT64_MAX;

	put(out, head, sizeof(head));
	put(out, &bloom, sizeof(bloom));
	put(out, &bucket, sizeof(bucket));
	for (uint32_t i = first; i < n; i++) {
		Elf64_Sym sym;
		uint32_t h;

		memcpy(&sym, b->syms.p + i * sizeof(sym), sizeof(sym));
		h = gnu_hash((char *)b->strings.p + sym.st_name) & ~1u;
		h |= i + 1 == n;
		put(out, &h, sizeof(h));
	}
}

static void put_old_hash(struct elf_builder *b, struct bytes *out)
{
	uint32_t head[3] = {1, (uint32_t)(b->syms.n / sizeof(Elf64_Sym)), 0};

	put(out, head, sizeof(head));
}

static void put_dyn(struct bytes *dynamic, int64_t tag, uint64_t val)
{
	Elf64_Dyn dyn = {.d_tag = tag, .d_un.d_val = val};

	put(dynamic, &dyn, sizeof(dyn));
}

/* Append a part to the builder's segment. Returns its address. */
static uint64_t place(struct bytes *meta, const struct bytes *part)
{
	align(meta, 8);
	return ELF_BUILDER_META + put(meta, part->p ? part->p : (const void *)"", part->n);
}

static void place_table(struct bytes *meta, struct bytes *dynamic, const struct bytes *part,
			int64_t tag, int64_t size_tag)
{
	if (!part->n)
		return;
	put_dyn(dynamic, tag, place(meta, part));
	put_dyn(dynamic, size_tag, part->n);
}

/* The unwind table; its entries are relative to its address. */
static void put_unwind(struct elf_builder *b, struct bytes *meta, Elf64_Phdr *ph)
{
	align(meta, 8);
	ph->p_vaddr = ELF_BUILDER_META + put(meta, b->unwind_header, sizeof(b->unwind_header));
	put(meta, &b->nstarts, sizeof(b->nstarts));
	for (uint32_t i = 0; i < b->nstarts; i++) {
		int32_t entry[2] = {(int32_t)(b->starts[i] - ph->p_vaddr), 0};

		put(meta, entry, sizeof(entry));
	}
	ph->p_filesz = ph->p_memsz = ELF_BUILDER_META + meta->n - ph->p_vaddr;
}

/* Make the builder's segment, and fill in the other program headers that refer to it. */
static struct bytes make_meta(struct elf_builder *b, Elf64_Phdr *dyn, Elf64_Phdr *note,
			      Elf64_Phdr *unwind)
{
	struct bytes meta = {0}, dynamic = {0}, hash = {0};

	put(&dynamic, b->names.p, b->names.n);
	put_dyn(&dynamic, DT_SYMTAB, place(&meta, &b->syms));
	put_dyn(&dynamic, DT_SYMENT, sizeof(Elf64_Sym));
	if (b->old_hash)
		put_old_hash(b, &hash);
	else
		put_gnu_hash(b, &hash);
	put_dyn(&dynamic, b->old_hash ? DT_HASH : DT_GNU_HASH, place(&meta, &hash));
	place_table(&meta, &dynamic, &b->strings, DT_STRTAB, DT_STRSZ);
	place_table(&meta, &dynamic, &b->rela, DT_RELA, DT_RELASZ);
	place_table(&meta, &dynamic, &b->jmprel, DT_JMPREL, DT_PLTRELSZ);
	place_table(&meta, &dynamic, &b->relr, 36 /* DT_RELR */, 35);
	put_dyn(&dynamic, DT_NULL, 0);
	note->p_vaddr = place(&meta, &b->notes);
	note->p_filesz = note->p_memsz = b->notes.n;
	dyn->p_vaddr = place(&meta, &dynamic);
	dyn->p_filesz = dyn->p_memsz = dynamic.n;
	if (b->starts)
		put_unwind(b, &meta, unwind);
	free(dynamic.p);
	free(hash.p);
	return meta;
}

static void put_sections(struct elf_builder *b, struct bytes *out, Elf64_Ehdr *eh)
{
	Elf64_Shdr names = {.sh_name = 1, .sh_type = SHT_STRTAB};

	if (!b->section_name[0])
		return;
	names.sh_offset = put(out, "\0.shstrtab", 11);
	b->section.sh_name = 11;
	put(out, b->section_name, strlen(b->section_name) + 1);
	names.sh_size = out->n - names.sh_offset;
	align(out, 8);
	eh->e_shoff = put(out, NULL, sizeof(Elf64_Shdr));
	put(out, &b->section, sizeof(b->section));
	put(out, &names, sizeof(names));
	eh->e_shentsize = sizeof(Elf64_Shdr);
	eh->e_shnum = 3;
	eh->e_shstrndx = 2;
}

static void builder_free(struct elf_builder *b)
{
	struct bytes *all[] = {&b->syms, &b->strings, &b->rela, &b->jmprel,
			       &b->relr, &b->notes,   &b->names};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]->p);
	for (unsigned int i = 0; i < b->nload; i++)
		free(b->contents[i].p);
	free(b->starts);
	free(b);
}

void *elf_builder_finish(struct elf_builder *b, size_t *size)
{
	Elf64_Phdr ph[MAX_SEGMENTS + 3] = {{0}}, dyn = {.p_type = PT_DYNAMIC},
				     note = {.p_type = PT_NOTE, .p_align = 4}, unwind = {0};
	Elf64_Ehdr eh = {.e_type = b->type, .e_machine = EM_X86_64, .e_version = EV_CURRENT};
	struct bytes out = {0}, meta;

	meta = make_meta(b, &dyn, &note, &unwind);
	elf_builder_segment(b, ELF_BUILDER_META, PF_R, meta.p, meta.n);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	eh.e_ehsize = sizeof(eh);
	eh.e_phoff = sizeof(eh);
	eh.e_phentsize = sizeof(*ph);
	eh.e_phnum = (uint16_t)(b->nload + 3);
	put(&out, NULL, sizeof(eh) + eh.e_phnum * sizeof(*ph));
	for (unsigned int i = 0; i < b->nload; i++) {
		align(&out, 64);
		ph[i] = b->load[i];
		ph[i].p_offset = put(&out, b->contents[i].p, b->contents[i].n);
	}
	dyn.p_offset = ph[b->nload - 1].p_offset + (dyn.p_vaddr - ELF_BUILDER_META);
	note.p_offset = ph[b->nload - 1].p_offset + (note.p_vaddr - ELF_BUILDER_META);
	if (b->starts) {
		unwind.p_type = PT_GNU_EH_FRAME; /* otherwise an unused header */
		unwind.p_offset = ph[b->nload - 1].p_offset + (unwind.p_vaddr - ELF_BUILDER_META);
	}
	ph[b->nload] = dyn;
	ph[b->nload + 1] = note;
	ph[b->nload + 2] = unwind;
	put_sections(b, &out, &eh);
	memcpy(out.p, &eh, sizeof(eh));
	memcpy(out.p + sizeof(eh), ph, eh.e_phnum * sizeof(*ph));
	*size = out.n;
	free(meta.p);
	builder_free(b);
	return out.p;
}
