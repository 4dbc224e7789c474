// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/version, and the parts of python/discover and python/confirm that read files, on files
 * made for the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "harness/elf_builder.h"
#include "harness/test.h"
#include "python/python.h"

#define CODE	0x1000
#define TEXT	0x20000
#define RUNTIME 0x30000

/* A file that may be an interpreter */
struct recipe {
	const char *evaluator; /* NULL: _PyEval_EvalFrameDefault */
	uint32_t hex;	       /* Py_Version; 0: no such symbol */
	const char *text;      /* contents of the read-only data, NULs as '|' */
	int refers;	   /* offset in text that Py_GetVersion refers to; -1: no such function */
	const char *extra; /* one more symbol */
	const char *needed;
	uint64_t debug[73]; /* _Py_DebugOffsets; [0] = 0: none */
};

static void add_code(struct elf_builder *b, const struct recipe *r)
{
	uint8_t code[128] = {0x53, 0xe8, 1, 2, 3, 4, 0x48, 0x8d, 0x35};
	int32_t disp = (int32_t)(TEXT + (uint64_t)(r->refers < 0 ? 0 : r->refers) - (CODE + 13));

	memcpy(code + 9, &disp, 4);
	elf_builder_segment(b, CODE, PF_R | PF_X, code, sizeof(code));
	if (r->refers >= 0)
		elf_builder_symbol(b, "Py_GetVersion", CODE, 16, STT_FUNC);
	elf_builder_symbol(b, r->evaluator ? r->evaluator : "_PyEval_EvalFrameDefault", CODE + 64,
			   32, STT_FUNC);
}

static uint8_t *cook(const struct recipe *r, size_t *size)
{
	struct elf_builder *b = elf_builder_new(ET_DYN);
	char text[512] = {0};

	memcpy(text, &r->hex, 4);
	snprintf(text + 16, sizeof(text) - 16, "%s", r->text ? r->text : "");
	for (size_t i = 16; i < sizeof(text); i++)
		text[i] = (char)(text[i] == '|' ? 0 : text[i]);
	add_code(b, r);
	elf_builder_segment(b, TEXT, PF_R, text, sizeof(text));
	elf_builder_segment(b, RUNTIME, PF_R | PF_W, r->debug, sizeof(r->debug));
	elf_builder_symbol(b, "_PyRuntime", RUNTIME, 8, STT_OBJECT);
	if (r->hex)
		elf_builder_symbol(b, "Py_Version", TEXT, 4, STT_OBJECT);
	if (r->extra)
		elf_builder_symbol(b, r->extra, CODE, 1, STT_FUNC);
	if (r->needed)
		elf_builder_name(b, DT_NEEDED, r->needed);
	return elf_builder_finish(b, size);
}

static int version_of(const struct recipe *r, struct python *py, struct diag *diag)
{
	_cleanup_(image_freep) struct image *img = NULL;
	size_t size;
	_cleanup_free_ uint8_t *data = cook(r, &size);

	memset(py, 0, sizeof(*py));
	assert_ok(image_open_bytes(data, size, "made", &img, NULL));
	return python_version_of_image(img, "made", py, diag);
}

static void assert_version(const struct recipe *r, const char *want)
{
	struct python py;
	struct diag diag = {0};
	unsigned int v[3] = {0};

	assert_diag_ok(version_of(r, &py, &diag), &diag);
	cr_assert_str_eq(py.version, want);
	cr_assert(sscanf(want, "%u.%u.%u", &v[0], &v[1], &v[2]) == 3);
	cr_assert(py.major == v[0] && py.minor == v[1] && py.micro == v[2]);
}

static void assert_no_version(const struct recipe *r, int err, const char *text)
{
	struct python py;
	struct diag diag = {0};

	assert_err(version_of(r, &py, &diag), err);
	cr_assert(diag.exit == PYP_EXIT_UNTRACEABLE);
	cr_assert_not_null(strstr(diag.msg, text), "%s", diag.msg);
}

#define SOURCES(...) (&(struct recipe){__VA_ARGS__})

Test(version, of_the_variable)
{
	assert_version(SOURCES(.hex = 0x030b02f0, .refers = -1), "3.11.2");
	assert_version(SOURCES(.hex = 0x030d00c2, .refers = -1), "3.13.0rc2");
	assert_version(SOURCES(.hex = 0x030e00a5, .refers = -1), "3.14.0a5");
	assert_version(SOURCES(.hex = 0x030c01f0, .text = "3.12.1+|", .refers = 16), "3.12.1+");
	/* Py_Version has precedence. */
	assert_version(SOURCES(.hex = 0x030c01f0, .text = "3.11.1|", .refers = 16), "3.12.1");
	check_no_leaks();
}

Test(version, of_the_function)
{
	assert_version(SOURCES(.text = "3.10.13|", .refers = 16), "3.10.13");
	/* Linkers let a string be the end of another one. */
	assert_version(SOURCES(.text = "/opt/3.10.13|", .refers = 21), "3.10.13");
	assert_version(SOURCES(.text = "3.9.2|python3.9|3.10.1|python3.10", .refers = 32),
		       "3.10.1");
	check_no_leaks();
}

Test(version, of_the_only_text)
{
	assert_version(SOURCES(.text = "x|3.10.9|lib/python3.10|3.2.0|", .refers = -1), "3.10.9");
	assert_no_version(SOURCES(.text = "x|3.10.9|lib/python3.9|", .refers = -1), -EOPNOTSUPP,
			  "unknown version");
	assert_no_version(SOURCES(.text = "x|3.10.9|python3.10|3.10.8|", .refers = -1), -EOPNOTSUPP,
			  "unknown version");
	check_no_leaks();
}

Test(version, texts_that_are_none)
{
	static const char *const bad[] = {
		"3.10|",   "3.10.|",	"3.10.1x|",  "3.10.1rc|", "3.10.1r1|", "3.10.1++|",
		"4.10.1|", "3.10.256|", "3.1000.1|", "a3.10.1|",  "",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_no_version(SOURCES(.text = bad[i], .refers = 16), -EOPNOTSUPP, "3.6-3.15");
	check_no_leaks();
}

Test(version, python_2)
{
	assert_no_version(SOURCES(.evaluator = "PyEval_EvalFrameEx", .text = "2.7.18|",
				  .refers = 16),
			  -EOPNOTSUPP, "is Python 2.7.18; supported: CPython 3.6-3.15");
	assert_no_version(SOURCES(.evaluator = "main", .refers = -1), -ENOENT, "no Python");
	check_no_leaks();
}

/* _Py_DebugOffsets of 3.13.0, in words of 8 bytes */
static const uint64_t debug_3_13[73] = {
	[1] = 0x030d00f0, [3] = 400000, [5] = 632,  [6] = 250000, [8] = 7264, [9] = 7344,
	[10] = 7400,	  [11] = 7656,	[19] = 304, [21] = 8,	  [22] = 16,  [23] = 72,
	[24] = 152,	  [25] = 160,	[28] = 80,  [29] = 8,	  [30] = 0,   [31] = 56,
	[32] = 72,	  [33] = 70,	[34] = 208, [35] = 112,	  [36] = 120, [37] = 128,
	[39] = 68,	  [43] = 200,	[44] = 16,  [45] = 8,	  [67] = 64,  [68] = 32,
	[69] = 16,	  [70] = 40,
};

static struct recipe recipe_3_13(void)
{
	struct recipe r = {.hex = 0x030d00f0, .refers = -1};

	memcpy(r.debug, debug_3_13, sizeof(r.debug));
	memcpy(r.debug, "xdebugpy", 8);
	return r;
}

/* python_open_file() on a recipe; the file is in memory. */
static int open_recipe(const struct recipe *r, struct python **ret, struct diag *diag)
{
	_cleanup_close_ int fd = memfd_create("python", MFD_CLOEXEC);
	size_t size;
	_cleanup_free_ uint8_t *data = cook(r, &size);
	char path[64];

	cr_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return python_open_file(path, ret, diag);
}

static void assert_refused(const struct recipe *r, const char *text)
{
	struct python *py = NULL;
	struct diag diag = {0};
	char line[900];

	cr_assert(open_recipe(r, &py, &diag) < 0);
	diag_format(&diag, line, sizeof(line));
	cr_assert(diag.exit == PYP_EXIT_UNTRACEABLE, "exit %d: %s", diag.exit, line);
	cr_assert_not_null(strstr(line, text), "%s", line);
	cr_assert_null(py);
}

Test(confirm, as_in_the_table)
{
	struct recipe r = recipe_3_13();
	struct layout want = *layout_find(3, 13);
	struct python *py = NULL;
	struct diag diag = {0};

	assert_diag_ok(open_recipe(&r, &py, &diag), &diag);
	cr_assert(py->debug_offsets && !python_free_threaded(py));
	cr_assert(py->runtime == RUNTIME && py->bias == 0 && !py->via[0]);
	assert_bytes_eq(&py->layout, &want, sizeof(want));
	python_free(py);
	check_no_leaks();
}

Test(confirm, refined)
{
	struct recipe r = recipe_3_13();
	struct python *py = NULL;
	struct diag diag = {0};

	r.debug[5] = 640;  /* interpreters.head */
	r.debug[8] = 7272; /* interpreter.next */
	r.debug[23] = 80;  /* current_frame */
	r.debug[29] = 24;  /* frame.previous */
	r.debug[30] = 16;  /* frame.f_executable */
	assert_diag_ok(open_recipe(&r, &py, &diag), &diag);
	cr_assert(py->layout.runtime_interpreters_head == 640 && py->layout.interp_next == 7272);
	cr_assert(py->layout.ts_frame == 80);
	cr_assert(py->layout.bpf.frame_code == 16 && py->layout.bpf.frame_previous == 24);
	cr_assert(py->layout.bpf.frame_block == 16);
	python_free(py);
	check_no_leaks();
}

/* Objects have a longer header, which shifts all confirmed offsets. */
Test(confirm, free_threaded)
{
	static const uint8_t moved[] = {35, 36, 37, 39, 43, 44, 45, 68, 69, 70};
	struct recipe r = recipe_3_13();
	struct layout want = *layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED);
	struct python *py = NULL;
	struct diag diag = {0};

	r.debug[2] = 1;
	assert_refused(&r, "has an unknown memory layout: object offsets differ");
	for (size_t i = 0; i < sizeof(moved); i++)
		r.debug[moved[i]] += 16;
	r.debug[34] += 16;
	r.debug[67] += 16;
	assert_diag_ok(open_recipe(&r, &py, &diag), &diag);
	cr_assert(py->debug_offsets && python_free_threaded(py));
	assert_bytes_eq(&py->layout, &want, sizeof(want));
	python_free(py);
	r.debug[2] = 0;
	assert_refused(&r, "has an unknown memory layout: object offsets differ");
	check_no_leaks();
}

Test(confirm, absurd)
{
	static const struct {
		size_t at;
		uint64_t value;
	} bad[] = {
		{0, 0},		{1, 0x030d01f0}, {1, 0x030c00f0}, {5, UINT64_MAX}, {5, 500000},
		{5, 65535 * 8}, {8, 7265},	 {23, 304},	  {29, 80},	   {29, 48},
		{33, 80},	{35, 120},	 {39, 72},	  {69, 32},	   {70, 48},
		{43, 208},	{45, 24},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct recipe r = recipe_3_13();

		r.debug[bad[i].at] = bad[i].value;
		assert_refused(&r, "has an unknown memory layout");
	}
	check_no_leaks();
}

Test(discover, builds_that_are_refused)
{
	struct recipe r = recipe_3_13();

	r.debug[2] = 1;
	r.extra = "_Py_GetRefTotal";
	assert_refused(&r, "debug build of Python 3.13.0");
	r = (struct recipe){.hex = 0x030e00f0, .refers = -1};
	memcpy(r.debug, "xdebugpy", 8);
	r.debug[1] = 0x030e00f0;
	r.debug[2] = 1;
	assert_refused(&r, "free-threaded build of Python 3.14.0");
	r = recipe_3_13();
	r.extra = "_Py_NegativeRefcount";
	assert_refused(&r, "debug build of Python 3.13.0");
	r = (struct recipe){.hex = 0x031000f0, .refers = -1};
	assert_refused(&r, "is Python 3.16.0; supported: CPython 3.6-3.15");
	r = (struct recipe){.text = "3.5.2|", .refers = 16};
	assert_refused(&r, "is Python 3.5.2; supported: CPython 3.6-3.15");
	r = (struct recipe){.evaluator = "main", .refers = -1, .needed = "libpython3.10.so.1.0"};
	assert_refused(&r, "use the path of libpython3.10.so.1.0 instead");
	r.needed = "libc.so.6";
	assert_refused(&r, "contains no Python interpreter");
	check_no_leaks();
}
