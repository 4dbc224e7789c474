// SPDX-License-Identifier: BSD-2-Clause
/*
 * The GIL is found by the switch interval that the program has set; in 3.6, where it is not in one
 * structure, by its symbols. Impossible answers are refused.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/elf_builder.h"
#include "harness/interpreters.h"
#include "harness/test.h"
#include "inspect/answer.h"
#include "inspect/inspect.h"
#include "inspect/gils.h"
#include "plan/gil.h"

#define INTERVAL 1234 /* microseconds */

static const char program[] = "import signal, sys\n"
			      "sys.setswitchinterval(0.001234)\n"
			      "print('ready')\n"
			      "signal.pause()\n";

static void check_process(const struct interpreter *it)
{
	struct pyp_gil_range v[PYP_GIL_RANGES];
	struct python *py = NULL;
	struct target *t = NULL;
	struct diag diag = {0};
	struct memory mem;
	uint64_t interval = 0;
	char line[16];
	int out;
	pid_t pid = interpreter_start(it, program, &out);
	size_t n;

	interpreter_line(out, line, sizeof(line));
	mem = memory_live(pid);
	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_diag_ok(python_discover(t, &py, &diag), &diag);
	gil_find(py->image, &py->layout, &py->gil);
	n = gils_read(py, &mem, v);
	if (it->minor == 6) {
		cr_expect_eq(n, 4, "3.6: %zu parts", n);
	} else {
		cr_expect_eq(n, 1, "%s: %zu GILs", it->exe, n);
		(void)memory_read_u64(&mem, v[0].start, &interval);
		cr_expect_eq(interval, INTERVAL, "%s: %llu at %llx", it->exe,
			     (unsigned long long)interval, (unsigned long long)v[0].start);
	}
	python_free(py);
	target_free(t);
	interpreter_end(pid, out);
}

Test(gils, real_processes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		if (v[i].major == 3)
			check_process(&v[i]);
	check_no_leaks();
}

/*
 * Two interpreters that share a GIL, and one with its own; the list of interpreters is hostile: it
 * is circular.
 */
Test(gils, interpreters)
{
	uint64_t mem[512] = {0};
	const uint64_t base = 0x10000, a = base + 256, b = base + 512, gil = base + 1024,
		       own = base + 2048;
	struct memory m = memory_buffer(mem, sizeof(mem), base);
	struct pyp_gil_range v[PYP_GIL_RANGES];
	struct python py = {.runtime = base, .gil.interp = 16};

	py.layout.runtime_interpreters_head = 8;
	py.layout.interp_next = 8;
	mem[1] = a;
	mem[(a - base) / 8 + 1] = b;
	mem[(b - base) / 8 + 1] = a;
	mem[(a - base) / 8 + 2] = gil;
	mem[(b - base) / 8 + 2] = own;
	mem[(gil - base) / 8] = 5000;
	mem[(own - base) / 8] = 5000;
	cr_assert_eq(gils_read(&py, &m, v), 2);
	cr_assert(v[0].start == gil && v[1].start == own);
	cr_assert(v[0].gil == 0 && v[1].gil == 1);
	mem[(b - base) / 8 + 2] = gil;
	cr_assert_eq(gils_read(&py, &m, v), 1);
	/* A structure without a switch interval is not a GIL. */
	mem[(gil - base) / 8] = 0;
	cr_assert_eq(gils_read(&py, &m, v), 0);
}

Test(gils, impossible_answers)
{
	struct pyp_gil_range v[PYP_GIL_RANGES + 1] = {{0x1000, 208, 0}, {0x2000, 208, 1}}, out[16];

	cr_assert_eq(answer_decode_gils(v, 0, out), 0);
	cr_assert_eq(out[0].size, 0);
	cr_assert_eq(answer_decode_gils(v, 2 * sizeof(*v), out), 2);
	cr_assert(out[1].start == 0x2000 && !out[2].size);
	assert_err(answer_decode_gils(v, sizeof(v), out), -EPROTO);
	assert_err(answer_decode_gils(v, sizeof(*v) + 1, out), -EPROTO);
	v[1].gil = PYP_GIL_RANGES;
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
	v[1] = (struct pyp_gil_range){0x2000, 1 << 20, 0};
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
	v[1] = (struct pyp_gil_range){UINT64_MAX - 8, 8, 0};
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
}

/* ---- the code that uses the GIL, x86-64 ----------------------------------------------------- */

#define CODE 0x401000ull
#define TAKE (CODE + 0x100)
#define PLT  (CODE + 0x200)
#define DATA 0x408000ull

struct function {
	uint8_t code[0x300];
	size_t n;
};

#define PUT(f, ...) put(f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put(struct function *f, const uint8_t *code, size_t n)
{
	memcpy(f->code + f->n, code, n);
	f->n += n;
}

/* The opcode's bytes, then the distance to `to` */
static void put_to(struct function *f, const uint8_t *code, size_t n, uint64_t to)
{
	int32_t distance = (int32_t)(to - (CODE + f->n + n + 4));

	put(f, code, n);
	put(f, (const uint8_t *)&distance, sizeof(distance));
}

#define PUT_TO(f, to, ...)                                                                         \
	put_to(f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), to)

/* Two stubs, of pthread_cond_timedwait and another function */
static struct python_gil find_in(struct function *f, const char *symbol, unsigned int minor)
{
	struct elf_builder *b = elf_builder_new(ET_EXEC);
	const uint8_t data[0x100] = {0};
	struct python_gil ret = {0};
	struct layout l = {.major = 3, .minor = (uint8_t)minor};
	struct image *img;
	size_t size;
	void *file;

	f->n = PLT - CODE;
	PUT_TO(f, DATA + 0xf0, 0xff, 0x25);
	f->n = PLT - CODE + 16;
	PUT_TO(f, DATA + 0xf8, 0xff, 0x25);
	elf_builder_jmprel(b, DATA + 0xf0,
			   elf_builder_symbol(b, "pthread_cond_timedwait", 0, 0, STT_FUNC));
	elf_builder_jmprel(b, DATA + 0xf8,
			   elf_builder_symbol(b, "pthread_cond_signal", 0, 0, STT_FUNC));
	elf_builder_segment(b, CODE, PF_R | PF_X, f->code, sizeof(f->code));
	elf_builder_segment(b, DATA, PF_R | PF_W, data, sizeof(data));
	elf_builder_bss(b, 0x100);
	elf_builder_symbol(b, symbol, CODE, 64, STT_FUNC);
	file = elf_builder_finish(b, &size);
	assert_ok(image_open_bytes(file, size, "test", &img, NULL));
	gil_find(img, &l, &ret);
	image_free(img);
	free(file);
	return ret;
}

static struct python_gil interval_of(struct function *f, unsigned int minor)
{
	return find_in(f, "_PyEval_GetSwitchInterval", minor);
}

#define LOAD_RAX(f, to) PUT_TO(f, to, 0x48, 0x8b, 0x05) /* mov rax, [to] */
#define LOAD_RBX(f, to) PUT_TO(f, to, 0x48, 0x8b, 0x1d)
#define CALL(f, to)	PUT_TO(f, to, 0xe8)
#define LEA_RDI(f, to)	PUT_TO(f, to, 0x48, 0x8d, 0x3d)
#define LEA_RSI(f, to)	PUT_TO(f, to, 0x48, 0x8d, 0x35)
#define RET(f)		PUT(f, 0xc3)

static void expect_nothing(struct python_gil gil)
{
	const struct python_gil none = {0};

	cr_expect_eq(memcmp(&gil, &none, sizeof(none)), 0, "at %llx, behind %llx, interp %u",
		     (unsigned long long)gil.at, (unsigned long long)gil.behind, gil.interp);
}

Test(gil, at_an_address)
{
	struct function f = {.n = 0};
	struct python_gil gil;

	PUT(&f, 0x90);
	LOAD_RAX(&f, DATA + 16);
	RET(&f);
	gil = interval_of(&f, 7);
	cr_expect(gil.at == DATA + 16 && !gil.pointer && !gil.behind && !gil.interp);
	gil = interval_of(&f, 11);
	cr_expect_eq(gil.at, DATA + 16);
	expect_nothing(interval_of(&f, 12));
	expect_nothing(find_in(&f, "another", 7));
}

Test(gil, behind_a_pointer)
{
	struct function f = {.n = 0}, negative = {.n = 0}, first = {.n = 0};
	struct python_gil gil;

	LOAD_RBX(&f, DATA + 16);
	CALL(&f, TAKE);
	PUT(&f, 0x48, 0x8b, 0x43, 0x18); /* mov rax, [rbx+0x18] */
	RET(&f);
	gil = interval_of(&f, 11);
	cr_expect(gil.at == DATA + 16 && gil.pointer && gil.behind == 0x18 && !gil.interp);
	expect_nothing(interval_of(&f, 12));
	LOAD_RAX(&first, DATA + 16);
	PUT(&first, 0x48, 0x8b, 0x00); /* mov rax, [rax] */
	RET(&first);
	gil = interval_of(&first, 8);
	cr_expect(gil.at == DATA + 16 && gil.pointer && gil.behind == 0);
	LOAD_RAX(&negative, DATA + 16);
	PUT(&negative, 0x48, 0x8b, 0x40, 0xf8); /* mov rax, [rax-8] */
	RET(&negative);
	expect_nothing(interval_of(&negative, 8));
}

/* mov rax, [rdi+0x18]; mov rax, [rax+member]; mov rax, [rax+offset] */
static struct python_gil member(unsigned int minor, uint16_t offset, uint8_t of)
{
	struct function f = {.n = 0};

	PUT(&f, 0x48, 0x8b, 0x47, 0x18);
	PUT(&f, 0x48, 0x8b, 0x80, (uint8_t)offset, (uint8_t)(offset >> 8), 0, 0);
	PUT(&f, 0x48, 0x8b, 0x40, of);
	RET(&f);
	return interval_of(&f, minor);
}

Test(gil, in_an_interpreter)
{
	struct function direct = {.n = 0};
	struct python_gil gil = member(12, 0x188, 0);

	cr_expect(gil.interp == 0x188 && !gil.at && !gil.behind && !gil.pointer);
	cr_expect_eq(member(12, 1, 0).interp, 1);
	cr_expect_eq(member(12, 0xffef, 0).interp, 0xffef);
	expect_nothing(member(12, 0xfff0, 0));
	expect_nothing(member(12, 0, 0));
	expect_nothing(member(12, 0x188, 8));
	expect_nothing(member(11, 0x188, 0));
	PUT(&direct, 0x48, 0x8b, 0x47, 0x18, 0x48, 0x8b, 0x00);
	RET(&direct);
	cr_expect_eq(interval_of(&direct, 12).interp, 0x18);
}

/* What is known without a search, or for other versions, is not searched. */
Test(gil, is_not_searched)
{
	const struct layout two = {.major = 2, .minor = 7};
	struct python_gil gil = {.interp = 8}, none = {0};
	const struct layout l = {.major = 3, .minor = 7};

	gil_find(NULL, &l, &gil);
	cr_expect_eq(gil.interp, 8);
	gil_find(NULL, &two, &none);
	expect_nothing(none);
}

/* Each of these ends in a return of an unknown value. */
Test(gil, of_unknown_origin)
{
	static const struct {
		uint8_t code[8], n;
	} after[] = {
		{{0xe8, 0, 0, 0, 0}, 5}, /* call, to the next instruction */
		{{0xff, 0xd3}, 2},	 /* call rbx */
		{{0x31, 0xc0}, 2},	 /* xor eax, eax */
		{{0x8b, 0x00}, 2},	 /* mov eax, [rax] */
		{{0x48, 0x8d, 0x00}, 3}, /* lea rax, [rax] */
		{{0x48, 0x89, 0xd8}, 3}, /* mov rax, rbx */
		{{0x48, 0x8b, 0x04, 0xc5, 0x00, 0x80, 0x40, 0}, 8}, /* mov rax, [rax*8+DATA] */
		{{0x48, 0x8b, 0x04, 0x08}, 4},			    /* mov rax, [rax+rcx] */
		{{0x48, 0x8b, 0x00, 0x48, 0x8b, 0x00}, 6},	    /* two loads */
		{{0xeb, 0x00}, 2}, /* jmp, to the next instruction */
		{{0x74, 0x00}, 2}, /* je */
		{{0x0f, 0x0b}, 2}, /* ud2 */
		{{0x06}, 1},	   /* no instruction */
	};

	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
		struct function f = {.n = 0};

		LOAD_RAX(&f, DATA + 16);
		put(&f, after[i].code, after[i].n);
		RET(&f);
		expect_nothing(interval_of(&f, 9));
	}
}

Test(gil, code_to_its_origin_is_short)
{
	for (int nops = 22; nops < 24; nops++) {
		struct function f = {.n = 0};

		LOAD_RAX(&f, DATA + 16);
		for (int i = 0; i < nops; i++)
			PUT(&f, 0x90);
		RET(&f);
		cr_expect_eq(interval_of(&f, 9).at, nops == 22 ? DATA + 16 : 0, "%d", nops);
	}
}

/* ---- 3.6 ------------------------------------------------------------------------------------ */

#define RESTORE "PyEval_RestoreThread"

/* Takes addresses, and calls a stub. */
static void put_take(struct function *f, uint64_t called)
{
	LEA_RDI(f, DATA + 0x20);
	LEA_RSI(f, CODE + 8);	  /* not writable */
	LEA_RSI(f, DATA + 0x1ff); /* behind the file's part */
	LEA_RSI(f, DATA + 0x200); /* outside */
	LEA_RDI(f, DATA - 1);
	LEA_RDI(f, DATA + 0x20);	/* again */
	LOAD_RAX(f, DATA + 0x30);	/* an access */
	PUT(f, 0xbf, 0, 0x80, 0x40, 0); /* mov edi, DATA */
	PUT(f, 0x48, 0x8d, 0x7e, 0x40); /* lea rdi, [rsi+0x40] */
	CALL(f, called);
	RET(f);
}

Test(gil, parts)
{
	struct function f = {.n = 0}, other = {.n = 0};
	struct python_gil gil;

	put_take(&f, PLT);
	gil = find_in(&f, RESTORE, 6);
	cr_expect(gil.parts[0] == DATA + 0x20 && gil.parts[1] == DATA + 0x1ff);
	cr_expect(gil.parts[2] == DATA && !gil.parts[3]);
	cr_expect(!gil.at && !gil.behind && !gil.pointer && !gil.interp);
	expect_nothing(find_in(&f, RESTORE, 7));
	expect_nothing(find_in(&f, "another", 6));
	put_take(&other, PLT + 16);
	expect_nothing(find_in(&other, RESTORE, 6));
}

Test(gil, parts_of_a_function_that_is_called)
{
	struct function f = {.n = 0};
	struct python_gil gil;

	LEA_RDI(&f, DATA + 0x80);
	CALL(&f, PLT + 16);
	CALL(&f, CODE); /* which does not wait itself */
	CALL(&f, TAKE);
	RET(&f);
	f.n = TAKE - CODE;
	put_take(&f, PLT);
	gil = find_in(&f, RESTORE, 6);
	cr_expect(gil.parts[0] == DATA + 0x20 && gil.parts[1] == DATA + 0x1ff);
	cr_expect(gil.parts[2] == DATA && !gil.parts[3]);
}

/* It has two at least, and a greatest number. */
Test(gil, number_of_parts)
{
	struct function one = {.n = 0}, many = {.n = 0};
	struct python_gil gil;

	CALL(&one, TAKE);
	RET(&one);
	one.n = TAKE - CODE;
	LEA_RDI(&one, DATA + 8);
	CALL(&one, PLT);
	RET(&one);
	expect_nothing(find_in(&one, RESTORE, 6));
	for (unsigned int i = 0; i < PYTHON_GIL_PARTS + 2; i++)
		LEA_RDI(&many, DATA + 8 * i);
	CALL(&many, PLT);
	RET(&many);
	gil = find_in(&many, RESTORE, 6);
	for (unsigned int i = 0; i < PYTHON_GIL_PARTS; i++)
		cr_expect_eq(gil.parts[i], DATA + 8 * i);
	cr_expect(!gil.interp && !gil.pointer);
	check_no_leaks();
}
