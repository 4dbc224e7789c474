// SPDX-License-Identifier: BSD-2-Clause
/* A target with known instructions: see fake_target.h. */
#include "harness/fake_target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "harness/test.h"

#define ARENA_SIZE (8u << 20)

extern const char fake_site_enter[], fake_site_throw[], fake_site_leave[], fake_site_yield[],
	fake_site_code_free[];

/* The kernel emulates push, jmp, jcc, call and nop; all sites use these. */
__asm__(".text\n"
	".globl fake_enter, fake_site_enter\n"
	"fake_enter:\n"
	"	test %rsi, %rsi\n"
	"fake_site_enter:\n"
	"	je 1f\n"
	"1:	ret\n"
	".globl fake_throw, fake_site_throw\n"
	"fake_throw:\n"
	"	mov %rdi, %r8\n"
	"fake_site_throw:\n"
	"	jmp 1f\n"
	"1:	ret\n"
	".globl fake_leave, fake_site_leave\n"
	"fake_leave:\n"
	"	mov %rdi, %rsi\n"
	"fake_site_leave:\n"
	"	push %rbx\n"
	"	pop %rbx\n"
	"	ret\n"
	".globl fake_yield, fake_site_yield\n"
	"fake_yield:\n"
	"	mov %rdi, %r11\n"
	"fake_site_yield:\n"
	"	nop\n"
	"	ret\n"
	".globl fake_code_free, fake_site_code_free\n"
	"fake_code_free:\n"
	"fake_site_code_free:\n"
	"	call 1f\n"
	"	ret\n"
	"1:	ret\n");

/*
 * A frame pointer cannot be stored in rsp: that register's site reads the frame from the stack,
 * above the saved register.
 */
#define REG_FN(n, reg)                                                                             \
	void fake_reg_##n(uint64_t frame);                                                         \
	extern const char fake_site_reg_##n[];                                                     \
	__asm__(".text\n"                                                                          \
		".globl fake_reg_" #n ", fake_site_reg_" #n "\n"                                   \
		"fake_reg_" #n ":\n"                                                               \
		"	push %rdi\n"                                                                     \
		"	push %" #reg "\n"                                                          \
		"	.if " #n " != 4\n"                                                         \
		"	mov %rdi, %" #reg "\n"                                                     \
		"	.endif\n"                                                                        \
		"fake_site_reg_" #n ":\n"                                                          \
		"	nop\n"                                                                           \
		"	.if " #n " == 4\n"                                                         \
		"	add $8, %rsp\n"                                                                  \
		"	.else\n"                                                                         \
		"	pop %" #reg "\n"                                                           \
		"	.endif\n"                                                                        \
		"	pop %rdi\n"                                                                      \
		"	ret\n")

REG_FN(0, rax);
REG_FN(1, rcx);
REG_FN(2, rdx);
REG_FN(3, rbx);
REG_FN(4, rsp);
REG_FN(5, rbp);
REG_FN(6, rsi);
REG_FN(7, rdi);
REG_FN(8, r8);
REG_FN(9, r9);
REG_FN(10, r10);
REG_FN(11, r11);
REG_FN(12, r12);
REG_FN(13, r13);
REG_FN(14, r14);
REG_FN(15, r15);

#define REG_ROW(n)                                                                                 \
	{                                                                                          \
		fake_reg_##n, fake_site_reg_##n                                                    \
	}

static const struct {
	void (*fn)(uint64_t);
	const char *site;
} regs[FAKE_REGS] = {
	REG_ROW(0),  REG_ROW(1),  REG_ROW(2),  REG_ROW(3),  REG_ROW(4),	 REG_ROW(5),
	REG_ROW(6),  REG_ROW(7),  REG_ROW(8),  REG_ROW(9),  REG_ROW(10), REG_ROW(11),
	REG_ROW(12), REG_ROW(13), REG_ROW(14), REG_ROW(15),
};

struct command {
	fake_fn fn;
	uint64_t a, b;
};

static void serve(struct fake_target *t, int in, int out)
{
	struct command c;
	char done = 1;

	/* The arena is shared, but each process must touch its pages to map them. */
	for (size_t i = 0; i < ARENA_SIZE; i += 4096)
		*(volatile uint8_t *)(t->arena + i);
	while (read(in, &c, sizeof(c)) == sizeof(c)) {
		if (c.fn)
			c.fn(t, c.a, c.b);
		if (write(out, &done, 1) != 1)
			break;
	}
	_exit(0);
}

void fake_target_start(struct fake_target *t)
{
	int in[2], out[2];

	*t = (struct fake_target){.layout = layout_find(3, 13)};
	cr_assert(t->layout && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	t->arena =
		mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(t->arena != MAP_FAILED);
	t->pid = fork();
	cr_assert(t->pid >= 0);
	if (t->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(in[1]);
		close(out[0]);
		t->pid = getpid();
		serve(t, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	t->to = in[1];
	t->from = out[0];
	snprintf(t->via, sizeof(t->via), "/proc/%d/exe", (int)t->pid);
	fake_target_run(t, NULL, 0, 0);
}

void fake_target_stop(struct fake_target *t)
{
	if (t->pid <= 0) /* not started: 0 would be our own process group */
		return;
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	close(t->to);
	close(t->from);
	munmap(t->arena, ARENA_SIZE);
}

void fake_target_send(struct fake_target *t, fake_fn fn, uint64_t a, uint64_t b)
{
	struct command c = {.fn = fn, .a = a, .b = b};

	cr_assert_eq(write(t->to, &c, sizeof(c)), sizeof(c));
}

void fake_target_run(struct fake_target *t, fake_fn fn, uint64_t a, uint64_t b)
{
	char done;

	fake_target_send(t, fn, a, b);
	cr_assert_eq(read(t->from, &done, 1), 1, "the target died");
}

static void run_enter(struct fake_target *t, uint64_t frame, uint64_t n)
{
	(void)t;
	while (n--)
		fake_enter(frame, 1);
}

static void run_leave(struct fake_target *t, uint64_t frame, uint64_t n)
{
	(void)t;
	while (n--)
		fake_leave(frame);
}

static void run_pairs(struct fake_target *t, uint64_t frame, uint64_t n)
{
	(void)t;
	while (n--) {
		fake_enter(frame, 1);
		fake_leave(frame);
	}
}

static void run_leave_regs(struct fake_target *t, uint64_t frame, uint64_t b)
{
	(void)t;
	(void)b;
	for (unsigned int i = 0; i < FAKE_REGS; i++)
		regs[i].fn(frame);
}

void fake_target_leave_regs(struct fake_target *t, uint64_t frame)
{
	fake_target_run(t, run_leave_regs, frame, 0);
}

void fake_target_enter(struct fake_target *t, uint64_t frame)
{
	fake_target_run(t, run_enter, frame, 1);
}

void fake_target_leave(struct fake_target *t, uint64_t frame)
{
	fake_target_run(t, run_leave, frame, 1);
}

void fake_target_pairs(struct fake_target *t, uint64_t frame, uint64_t n)
{
	fake_target_run(t, run_pairs, frame, n);
}

/* File offset of one of our addresses */
static uint64_t file_offset(const void *addr)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[512];

	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    (uintptr_t)addr >= start && (uintptr_t)addr < end)
			return (uintptr_t)addr - start + offset;
	cr_assert_fail("address is not mapped");
	return 0;
}

static struct plan_site site_at(const char *addr, enum pyp_site_kind kind, uint8_t reg)
{
	return (struct plan_site){
		.offset = file_offset(addr), .vaddr = (uintptr_t)addr, .kind = kind, .reg = reg};
}

void fake_target_plan(struct plan *ret)
{
	struct plan_site *s = ret->sites;

	*ret = (struct plan){.nsites = FAKE_SITES};
	s[FAKE_ENTER] = site_at(fake_site_enter, PYP_SITE_ENTER, 7);
	s[FAKE_ENTER].has_cc = true;
	s[FAKE_ENTER].cc = 4;
	s[FAKE_ENTER].taken = false;
	s[FAKE_THROW] = site_at(fake_site_throw, PYP_SITE_THROW, 8);
	s[FAKE_LEAVE] = site_at(fake_site_leave, PYP_SITE_LEAVE, 6);
	s[FAKE_YIELD] = site_at(fake_site_yield, PYP_SITE_YIELD, 11);
	s[FAKE_YIELD].deref = true;
	s[FAKE_YIELD].disp = FAKE_TS_FRAME;
	s[FAKE_CODE_FREE] = site_at(fake_site_code_free, PYP_SITE_CODE_FREE, 7);
}

void fake_target_reg_plan(struct plan *ret)
{
	*ret = (struct plan){.nsites = FAKE_REGS};
	for (uint8_t i = 0; i < FAKE_REGS; i++)
		ret->sites[i] = site_at(regs[i].site, PYP_SITE_LEAVE, i);
	ret->sites[4].deref = true;
	ret->sites[4].disp = 8;
}

uint8_t fake_site_byte(pid_t pid, const struct plan_site *site)
{
	_cleanup_close_ int fd = -1;
	char path[32];
	uint8_t byte = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && pread(fd, &byte, 1, (off_t)site->vaddr) == 1, "cannot read %s", path);
	return byte;
}

uint64_t fake_alloc(struct fake_target *t, size_t size, size_t align)
{
	uint64_t addr = ((uintptr_t)t->arena + t->used + align - 1) & ~(align - 1);

	t->used = addr + size - (uintptr_t)t->arena;
	cr_assert(t->used <= ARENA_SIZE);
	return addr;
}

static void put(uint64_t addr, const void *value, size_t size)
{
	memcpy((void *)(uintptr_t)addr, value, size);
}

void fake_put64(uint64_t addr, uint64_t value)
{
	put(addr, &value, sizeof(value));
}

uint64_t fake_str_kind(struct fake_target *t, unsigned int kind, const void *units, size_t n)
{
	const struct pyp_layout *l = &t->layout->bpf;
	uint64_t str = fake_alloc(t, l->str_compact_data + (n + 1) * (kind ? kind : 1), 16);
	uint32_t state = (kind ? kind : 1) << l->str_kind_shift | 1u << (l->str_kind_shift + 3);

	if (!kind)
		state |= 1u << (l->str_kind_shift + 4);
	fake_put64(str + l->str_length, n);
	put(str + l->str_state, &state, sizeof(state));
	put(str + (kind ? l->str_compact_data : l->str_ascii_data), units, n * (kind ? kind : 1));
	return str;
}

uint64_t fake_str(struct fake_target *t, const char *ascii)
{
	return fake_str_kind(t, 0, ascii, strlen(ascii));
}

uint64_t fake_code(struct fake_target *t, const char *file, const char *name, uint32_t flags,
		   int32_t firstlineno)
{
	const struct pyp_layout *l = &t->layout->bpf;
	uint64_t code = fake_alloc(t, 208, 16);
	char qualname[256];

	snprintf(qualname, sizeof(qualname), "Class.%s", name);
	put(code + l->code_flags, &flags, sizeof(flags));
	put(code + l->code_firstlineno, &firstlineno, sizeof(firstlineno));
	fake_put64(code + l->code_filename, fake_str(t, file));
	fake_put64(code + l->code_name, fake_str(t, name));
	fake_put64(code + l->code_qualname, fake_str(t, qualname));
	return code;
}

/* Frames are 256 bytes apart, which differs from the distance of a shim. */
uint64_t fake_frame(struct fake_target *t, uint64_t code, uint64_t previous, uint8_t owner)
{
	const struct pyp_layout *l = &t->layout->bpf;
	uint64_t frame = fake_alloc(t, 256, 64);

	fake_put64(frame + l->frame_code, code);
	fake_put64(frame + l->frame_previous, previous);
	put(frame + l->frame_owner, &owner, 1);
	return frame;
}
