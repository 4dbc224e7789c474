// SPDX-License-Identifier: BSD-2-Clause
/* The cache of line tables: each is read once, and its size is limited. */
#include "python/line_tables.h"

#include "harness/heap.h"
#include "harness/test.h"

/* A code object with a table of n bytes. */
static uint64_t put_code(struct heap *h, const struct layout *l, int line, uint64_t n)
{
	const uint16_t last = l->bpf.code_qualname != LAYOUT_NONE ? l->bpf.code_qualname
								  : l->bpf.code_name;
	uint64_t code = heap_code(h, "a.py", "f", line, 0), bytes = heap_alloc(h, 64);

	heap_u64(h, code + last + 8, bytes);
	heap_u64(h, bytes + l->bytes_data - 16, n);
	return code;
}

Test(line_tables, each_is_read_once)
{
	const struct layout *l = layout_tables[0];
	struct heap *h = heap_new(l);
	struct memory mem = heap_memory(h), none = {0};
	struct line_tables t = {0};
	uint64_t a = put_code(h, l, 7, 3), b = put_code(h, l, 8, 2),
		 bad = put_code(h, l, 9, UINT64_MAX);
	const struct lines *lines = line_tables_get(&t, l, &mem, a);

	cr_assert(lines && lines->firstlineno == 7 && lines->size == 3);
	lines = line_tables_get(&t, l, &mem, b);
	cr_assert(lines && lines->firstlineno == 8 && lines->size == 2);
	cr_assert_null(line_tables_get(&t, l, &mem, bad));
	/* with this memory, reading again would crash */
	lines = line_tables_get(&t, l, &none, a);
	cr_assert(lines && lines->firstlineno == 7);
	cr_assert_null(line_tables_get(&t, l, &none, bad));
	line_tables_deinit(&t);
	free(h);
	check_no_leaks();
}

Test(line_tables, memory_is_bounded)
{
	const struct layout *l = layout_tables[0];
	struct heap *h = heap_new(l);
	struct memory mem = heap_memory(h);
	struct line_tables t = {0};
	uint64_t code = put_code(h, l, 7, 3);

	cr_assert_not_null(line_tables_get(&t, l, &mem, code));
	cr_assert(t.n == 1);
	t.bytes = (size_t)1 << 30;
	cr_assert_not_null(line_tables_get(&t, l, &mem, put_code(h, l, 8, 2)));
	cr_assert(t.n == 1 && t.bytes < 100);
	cr_assert_not_null(line_tables_get(&t, l, &mem, code));
	cr_assert(t.n == 2);
	line_tables_deinit(&t);
	free(h);
	check_no_leaks();
}
