// SPDX-License-Identifier: BSD-2-Clause
/* python/object: strings and code objects from memory, in every version's layout. */
#include <errno.h>

#include "harness/heap.h"
#include "harness/test.h"
#include "python/python.h"

static void assert_utf8(unsigned int kind, const void *units, size_t bytes, const char *want)
{
	size_t len = 999;
	char *s = python_units_to_utf8(units, bytes, kind, &len);

	cr_assert_not_null(s);
	cr_assert_str_eq(s, want);
	cr_assert(len == strlen(want));
	free(s);
}

Test(object, units_to_utf8)
{
	const uint8_t latin[] = {'a', 0xe9, 0xff, 0x80};
	const uint16_t ucs2[] = {'d', 0xe9, 0x4e2d, 0xd800, 0xdfff, 0xfffd, 0x7ff, 0x800};
	const uint32_t ucs4[] = {0x1f40d, 0x10ffff, 0x110000, 0xffffffff, 0xdc00, 'z'};

	assert_utf8(1, "", 0, "");
	assert_utf8(1, "plain", 5, "plain");
	assert_utf8(1, latin, sizeof(latin), "aéÿ\xc2\x80");
	assert_utf8(1, "a\0b", 3,
		    "a\xef\xbf\xbd"
		    "b");
	assert_utf8(2, ucs2, sizeof(ucs2), "dé中���\xdf\xbf\xe0\xa0\x80");
	assert_utf8(2, ucs2, 5, "dé");
	assert_utf8(4, ucs4, sizeof(ucs4), "🐍\xf4\x8f\xbf\xbf���z");
	assert_utf8(3, "abc", 3, "");
	assert_utf8(0, "abc", 3, "");
	check_no_leaks();
}

static void check_strings(const struct layout *l)
{
	struct heap *h = heap_new(l);
	struct memory mem = heap_memory(h);
	const uint16_t ucs2[] = {'d', 0xe9, 0x4e2d};
	uint64_t addr[3];
	const char *want[3] = {"ascii", "caf\xc3\xa9", "d\xc3\xa9\xe4\xb8\xad"};
	char *s;
	size_t len;

	addr[0] = heap_ascii(h, "ascii");
	addr[1] = heap_str(h, 1, "caf\xe9", 4);
	addr[2] = heap_str(h, 2, ucs2, 3);
	for (int i = 0; i < 3; i++) {
		assert_ok(python_str_read(l, &mem, addr[i], &s, &len));
		cr_assert_str_eq(s, want[i]);
		cr_assert(len == strlen(s));
		free(s);
	}
	free(h);
}

Test(object, strings)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		check_strings(*l);
	check_no_leaks();
}

Test(object, what_is_no_string)
{
	const struct layout *l = layout_find(3, 12);
	struct heap *h = heap_new(l);
	struct memory mem = heap_memory(h);
	uint64_t s = heap_ascii(h, "text");
	uint32_t state;
	char *out = NULL;

	assert_err(python_str_read(l, &mem, 0, &out, NULL), -EFAULT);
	assert_err(python_str_read(l, &mem, HEAP_BASE + HEAP_SIZE - 8, &out, NULL), -EFAULT);
	memcpy(&state, h->bytes + (s - HEAP_BASE) + l->bpf.str_state, 4);
	for (unsigned int bit = 2; bit <= 6; bit++) { /* kind 0, 5 and 3; not compact; not ASCII */
		heap_u32(h, s + l->bpf.str_state, state ^ 1u << bit);
		if (bit != 6)
			assert_err(python_str_read(l, &mem, s, &out, NULL), -EINVAL);
	}
	heap_u32(h, s + l->bpf.str_state, state);
	heap_put(h, s + l->bpf.str_ascii_data, "\xff", 1);
	assert_err(python_str_read(l, &mem, s, &out, NULL), -EINVAL);
	heap_u64(h, s + l->bpf.str_length, 65537);
	assert_err(python_str_read(l, &mem, s, &out, NULL), -E2BIG);
	heap_u64(h, s + l->bpf.str_length, UINT64_MAX);
	assert_err(python_str_read(l, &mem, s, &out, NULL), -E2BIG);
	cr_assert_null(out);
	free(h);
	check_no_leaks();
}

static void check_code(const struct layout *l)
{
	struct heap *h = heap_new(l);
	struct memory mem = heap_memory(h);
	struct code_names c;
	uint64_t code = heap_code(h, "/a/b.py", "f", -3, 0x23);

	assert_ok(python_code_read(l, &mem, code, &c));
	cr_assert_str_eq(c.filename, "/a/b.py");
	cr_assert_str_eq(c.name, "f");
	cr_assert(c.firstlineno == -3 && c.flags == 0x23);
	cr_assert((c.qualname != NULL) == (l->minor >= 11));
	cr_assert(!c.qualname || strcmp(c.qualname, "Q.f") == 0);
	code_names_deinit(&c);
	heap_u64(h, code + l->bpf.code_name, 8);
	assert_err(python_code_read(l, &mem, code, &c), -EFAULT);
	assert_err(python_code_read(l, &mem, 0, &c), -EFAULT);
	free(h);
}

Test(object, code)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		check_code(*l);
	check_no_leaks();
}
