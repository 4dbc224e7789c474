// SPDX-License-Identifier: BSD-2-Clause
/*
 * Damaged interpreters: truncated, or with one byte changed in their headers, their tables or their
 * code. The planner refuses them, or each site of its plan is an instruction boundary of the
 * damaged file. It never crashes.
 *
 * Plans contain file offsets, and the kernel puts its breakpoint at exactly that offset, whatever
 * headers and tables contain; so boundaries are file offsets, too. They come from objdump, which is
 * independent of the planner: a sweep through all code of the undamaged file. Damage outside of
 * code does not move them. A changed byte in code changes one instruction and, if its length
 * changes, perhaps the following ones, until both disassemblies agree again. In that range, the
 * boundaries are those that objdump sees when it disassembles the damaged bytes from the start of
 * the changed instruction, as a processor would. The range ends at the start of the next function
 * according to the file's unwind tables, because a processor gets there by a call and not from the
 * padding before it.
 */
#include <elf.h>
#include <stddef.h>
#include <unistd.h>

#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/plans.h"
#include "harness/test.h"
#include "plan/plan.h"
#include "python/layout.h"

/* For all interpreters together; times EVERY, if plans_every() */
#define FLIPS	    120u /* a third of each kind */
#define TRUNCATIONS 20u
#define MISLED	    40u /* number of changed entries of the opcode table */
#define EVERY	    4u
#define FUNCTION    2
#define INTERVAL    192u /* by then both disassemblies have the same boundaries again */

struct corpus {
	const struct interpreter *py;
	const struct layout *layout;
	uint8_t *data, *copy;
	size_t size;
	uint8_t *starts; /* per byte of the file: 1 at instruction starts, FUNCTION at functions */
	struct plan plan;
	uint64_t table; /* file offset of the opcode table; 0: none */
	uint32_t seed;
	unsigned int refused, planned;
};

/* ---- the undamaged file ------------------------------------------------------------------ */

/* Mark the instruction starts in objdump's output; vaddr - bias is the file offset. */
static void mark_starts(uint8_t *starts, size_t size, const char *command, uint64_t bias)
{
	FILE *f = popen(command, "re");
	char line[512];

	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		char *end;
		uint64_t v = strtoull(line, &end, 16);

		if (line[0] == ' ' && *end == ':' && !strstr(end, "(bad)") && v - bias < size)
			starts[v - bias] = 1;
	}
	cr_assert_eq(pclose(f), 0, "%s", command);
}

/* Functions according to the unwind tables, which debuggers and exceptions use */
static void mark_functions(struct corpus *c, const struct image *img)
{
	char command[600], line[512];
	FILE *f;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames '%s'", c->py->file);
	f = popen(command, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		const char *pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
		uint64_t offset;

		if (pc && image_offset(img, strtoull(pc + 3, NULL, 16), &offset) == 0 &&
		    offset < c->size && c->starts[offset])
			c->starts[offset] = FUNCTION;
	}
	cr_assert_eq(pclose(f), 0, "%s", command);
}

static void find_starts(struct corpus *c, const struct image *img)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(img, &seg);
	char command[1200];

	c->starts = calloc(1, c->size);
	cr_assert(c->starts);
	for (unsigned int i = 0; i < n; i++) {
		if (!seg[i].exec)
			continue;
		snprintf(command, sizeof(command),
			 "objdump -d --no-show-raw-insn --start-address=0x%llx "
			 "--stop-address=0x%llx '%s'",
			 (unsigned long long)seg[i].vaddr,
			 (unsigned long long)(seg[i].vaddr + seg[i].filesz), c->py->file);
		mark_starts(c->starts, c->size, command, seg[i].vaddr - seg[i].offset);
	}
	mark_functions(c, img);
}

/*
 * Returns the file offset of the address of an opcode's handler; in a position-independent file,
 * the relocation has it.
 */
static size_t table_entry(const struct corpus *c, unsigned int opcode)
{
	const Elf64_Rela want = {c->plan.table_vaddr + 8 * opcode, R_X86_64_RELATIVE, 0};
	const uint8_t *rela = memmem(c->data, c->size, &want, offsetof(Elf64_Rela, r_addend));

	return rela ? (size_t)(rela - c->data) + offsetof(Elf64_Rela, r_addend)
		    : c->table + (size_t)8 * opcode;
}

static void corpus_open(struct corpus *c, const struct interpreter *py)
{
	struct diag diag = {0};
	struct image *img;

	*c = (struct corpus){.py = py, .seed = 23u + (uint32_t)py->minor};
	c->layout = interpreter_layout(py);
	c->data = interpreter_read(py, &c->size);
	c->copy = malloc(c->size);
	cr_assert(c->layout && c->copy);
	memcpy(c->copy, c->data, c->size);
	assert_diag_ok(image_open_bytes(c->data, c->size, "test", &img, &diag), &diag);
	assert_diag_ok(plan_build(img, c->layout, &c->plan, &diag), &diag);
	if (c->plan.table_vaddr)
		assert_ok(image_offset(img, c->plan.table_vaddr, &c->table));
	find_starts(c, img);
	image_free(img);
	for (unsigned int k = 0; k < c->plan.nsites; k++)
		cr_assert(c->starts[c->plan.sites[k].offset], "objdump knows the sites");
	for (unsigned int k = 0; k < c->plan.nnative; k++)
		cr_assert(c->starts[c->plan.native[k].offset], "objdump knows the sites");
	for (unsigned int k = 0; k < c->plan.ngc; k++)
		cr_assert(c->starts[c->plan.gc[k].offset], "objdump knows the sites");
}

static void corpus_close(struct corpus *c)
{
	fprintf(stderr, "3.%-3d %u damaged copies refused, %u planned, all on boundaries  %s\n",
		c->py->minor, c->refused, c->planned, c->py->file);
	free(c->starts);
	free(c->copy);
	free(c->data);
}

/* ---- damage ------------------------------------------------------------------------------ */

static uint32_t next_random(struct corpus *c)
{
	c->seed = c->seed * 1664525u + 1013904223u;
	return c->seed >> 8;
}

static bool plan_copy(struct corpus *c, size_t size, struct plan *plan)
{
	struct diag diag = {0};
	struct image *img;
	int r = image_open_bytes(c->copy, size, "test", &img, &diag);

	if (r == 0) {
		r = plan_build(img, c->layout, plan, &diag);
		image_free(img);
	}
	c->refused += r != 0;
	c->planned += r == 0;
	return r == 0;
}

/* The range of file offsets in which boundaries may have moved, and its boundaries */
struct interval {
	size_t from, until;
	uint8_t starts[INTERVAL];
};

static void interval_read(const struct corpus *c, size_t at, struct interval *ret)
{
	char path[] = "/tmp/pyprof-damaged.XXXXXX", command[300];
	int fd = mkstemp(path);
	size_t n;

	*ret = (struct interval){.from = at};
	while (!c->starts[ret->from])
		ret->from--;
	n = c->size - ret->from < INTERVAL ? c->size - ret->from : INTERVAL;
	ret->until = at + 1;
	while (ret->until < ret->from + n && c->starts[ret->until] != FUNCTION)
		ret->until++;
	cr_assert(fd >= 0 && write(fd, c->copy + ret->from, n) == (ssize_t)n);
	close(fd);
	snprintf(command, sizeof(command),
		 "objdump -D -b binary -m i386:x86-64 --no-show-raw-insn '%s'", path);
	mark_starts(ret->starts, INTERVAL, command, 0);
	unlink(path);
}

static bool is_code(const struct corpus *c, size_t at)
{
	for (size_t i = at; i + 16 > at && i > 0; i--)
		if (c->starts[i])
			return true;
	return false;
}

static void check_site(const struct corpus *c, const struct plan_site *s, const struct interval *in,
		       size_t at)
{
	bool moved = s->offset >= in->from && s->offset < in->until;

	cr_assert_lt(s->offset, c->size);
	cr_expect(moved ? in->starts[s->offset - in->from] : c->starts[s->offset],
		  "%s: byte %zu: %s at 0x%llx is no boundary", c->py->file, at, s->role,
		  (unsigned long long)s->offset);
	cr_expect(memcmp(c->copy + s->offset, s->bytes, s->len) == 0);
}

/* at: offset of the changed byte of code; SIZE_MAX: none */
static void check_sites(const struct corpus *c, const struct plan *plan, size_t at)
{
	struct interval in = {SIZE_MAX, 0, {0}};

	if (at != SIZE_MAX)
		interval_read(c, at, &in);
	for (unsigned int k = 0; k < plan->nsites; k++)
		check_site(c, &plan->sites[k], &in, at);
	for (unsigned int k = 0; k < plan->nnative; k++)
		check_site(c, &plan->native[k], &in, at);
	for (unsigned int k = 0; k < plan->ngc; k++)
		check_site(c, &plan->gc[k], &in, at);
	cr_expect(!plan->nnative == (plan->native_missing[0] != 0));
	cr_expect(!plan->ngc == (plan->gc_missing[0] != 0));
}

static const struct plan_site *some_site(struct corpus *c)
{
	if (c->plan.ngc && next_random(c) % 4 == 0)
		return &c->plan.gc[next_random(c) % c->plan.ngc];
	if (c->plan.nnative && next_random(c) % 2)
		return &c->plan.native[next_random(c) % c->plan.nnative];
	return &c->plan.sites[next_random(c) % c->plan.nsites];
}

/*
 * Headers: the first page, and the last one, which has the section headers. Tables: the opcode
 * table and those of the dynamic linker. Code: half of it near the sites, half anywhere.
 */
static size_t choose(struct corpus *c, unsigned int kind)
{
	const size_t first_page = c->size < 4096 ? c->size : 4096;
	size_t at;

	switch (kind) {
	case 0:
		at = next_random(c) % first_page;
		return next_random(c) % 4 ? at : c->size - 1 - at;
	case 1:
		if (c->table && next_random(c) % 2)
			return table_entry(c, next_random(c) % 256) + next_random(c) % 8;
		/* .dynsym, .dynstr, .gnu.hash, relocations: before the code */
		for (at = 0; at < c->size && !c->starts[at]; at++)
			;
		return next_random(c) % (at ? at : c->size);
	default:
		if (next_random(c) % 2)
			return some_site(c)->offset - 64 + next_random(c) % 80;
		do
			at = (size_t)next_random(c) << 4 ^ next_random(c);
		while (at >= c->size || !is_code(c, at));
		return at;
	}
}

static void flip(struct corpus *c, unsigned int kind)
{
	size_t at = choose(c, kind);
	struct plan plan;

	c->copy[at] ^= (uint8_t)(1 + next_random(c) % 255);
	if (plan_copy(c, c->size, &plan))
		check_sites(c, &plan, is_code(c, at) ? at : SIZE_MAX);
	c->copy[at] = c->data[at];
}

/* The plan must not contain anything beyond the end. */
static void truncate_at(struct corpus *c, size_t size)
{
	struct plan plan;

	if (!plan_copy(c, size, &plan))
		return;
	check_sites(c, &plan, SIZE_MAX);
	for (unsigned int k = 0; k < plan.nsites; k++)
		cr_expect(plan.sites[k].offset + plan.sites[k].len <= size, "%s: cut off at %zu",
			  c->py->file, size);
}

/* Change the address of a handler that sites depend on, perhaps to the middle of an instruction. */
static void mislead(struct corpus *c)
{
	const struct layout_opcodes *op = &c->layout->op;
	const struct layout_calls *calls = &c->layout->calls;
	const int16_t known[] = {op->resume,
				 op->resume_quick,
				 op->resume_check,
				 op->return_value,
				 op->instrumented_resume,
				 op->do_tracing,
				 op->yield_value,
				 op->instrumented_yield_value,
				 op->resume_check_jit,
				 calls->generic[0],
				 calls->generic[1],
				 calls->function[0] ? calls->function[0] : LAYOUT_NO_OPCODE,
				 calls->cached[0] ? calls->cached[0] : LAYOUT_NO_OPCODE};
	int16_t opcode;
	struct plan plan;
	size_t at;

	do
		opcode = known[next_random(c) % (sizeof(known) / sizeof(*known))];
	while (opcode == LAYOUT_NO_OPCODE);
	at = table_entry(c, (unsigned int)opcode) + next_random(c) % 3;
	c->copy[at] ^= (uint8_t)(1 + next_random(c) % 255);
	if (plan_copy(c, c->size, &plan))
		check_sites(c, &plan, SIZE_MAX);
	c->copy[at] = c->data[at];
}

/* ------------------------------------------------------------------------------------------ */

/* Has the file a table of all symbols? Distributions strip it. */
static bool has_symbols(const uint8_t *data, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	memcpy(&eh, data, sizeof(eh));
	for (size_t i = 0; i < eh.e_shnum; i++) {
		cr_assert_leq(eh.e_shoff + (i + 1) * sizeof(sh), size);
		memcpy(&sh, data + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_SYMTAB)
			return true;
	}
	return false;
}

/* What makes a plan take other paths. */
struct kind {
	int minor, abi, type, symbols;
};

static struct kind kind_of(const struct interpreter *py)
{
	size_t size;
	uint8_t *data = interpreter_read(py, &size);
	struct kind k = {.minor = py->minor, .abi = (int)py->abi};
	Elf64_Ehdr eh;

	cr_assert_gt(size, sizeof(eh));
	memcpy(&eh, data, sizeof(eh));
	if (plans_every()) {
		k.type = eh.e_type;
		k.symbols = has_symbols(data, size);
	}
	free(data);
	return k;
}

/*
 * The builds that differ most: one per way of leaving a frame, old and new; if plans_every(), of each
 * one per kind of file. Two releases of a distribution have the same kinds: damage to the second one
 * proves nothing new.
 */
static size_t choose_interpreters(struct interpreter v[INTERPRETERS_MAX])
{
	struct kind kinds[INTERPRETERS_MAX];
	size_t n = interpreters_find(v), kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct kind k;
		size_t known = 0;

		if (v[i].major != 3 || (v[i].minor != 9 && v[i].minor != 11 && v[i].minor < 13))
			continue;
		k = kind_of(&v[i]);
		while (known < kept && memcmp(&kinds[known], &k, sizeof(k)) != 0)
			known++;
		if (known < kept)
			continue;
		kinds[kept] = k;
		v[kept++] = v[i];
	}
	return kept;
}

/* Each interpreter has its share of the damages; this test takes every `parts`th interpreter. */
static void damage(unsigned int part, unsigned int parts)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = choose_interpreters(v);
	const unsigned int times = plans_every() ? EVERY : 1;

	cr_assert(n, "no interpreter to damage");
	for (size_t i = part; i < n; i += parts) {
		struct corpus c;

		corpus_open(&c, &v[i]);
		for (unsigned int k = 0; k < times * FLIPS / n + 1; k++)
			flip(&c, k % 3);
		for (unsigned int k = 0; k < times * TRUNCATIONS / n + 1; k++)
			truncate_at(&c, next_random(&c) % 2 ? c.size / 512 * (next_random(&c) % 512)
							    : c.size - 1 - next_random(&c) % 8192);
		for (unsigned int k = 0; c.table && k < times * MISLED / n + 1; k++)
			mislead(&c);
		corpus_close(&c);
	}
	check_no_leaks();
}

/* Half of the interpreters each, so that two CPUs can run them. */
Test(damaged, one_half)
{
	damage(0, 2);
}

Test(damaged, other_half)
{
	damage(1, 2);
}
