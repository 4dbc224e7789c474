// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/lines: line tables made for the test, and those of a standard module of each interpreter.
 */
#include <errno.h>

#include "harness/heap.h"
#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/test.h"
#include "python/lines.h"

static int32_t line_in(enum line_format format, const char *table, size_t size, int64_t offset)
{
	const struct lines ls = {.format = format,
				 .firstlineno = 10,
				 .table = (uint8_t *)(uintptr_t)table,
				 .size = size};

	return lines_find(&ls, offset);
}

#define LINE(format, table, offset) line_in(format, table, sizeof(table) - 1, offset)

Test(lines, lnotab)
{
	/* +1 at 4; at 8, +300 in three steps and -2 at 263 */
	static const char table[] = "\x04\x01\x04\x7f\x00\x7f\x00\x2e\xff\xfe";

	cr_assert_eq(LINE(LINE_LNOTAB, table, -1), 10);
	cr_assert_eq(LINE(LINE_LNOTAB, table, 3), 10);
	cr_assert_eq(LINE(LINE_LNOTAB, table, 4), 11);
	cr_assert_eq(LINE(LINE_LNOTAB, table, 8), 311);
	cr_assert_eq(LINE(LINE_LNOTAB, table, 262), 311);
	cr_assert_eq(LINE(LINE_LNOTAB, table, 100000), 309);
	cr_assert_eq(LINE(LINE_LNOTAB, "", 5), 10);
	cr_assert_eq(LINE(LINE_LNOTAB, "\x00\x80", 5), LINE_UNKNOWN, "a negative line is none");
}

Test(lines, pep626)
{
	static const char table[] = "\x04\x00\x02\x80\x02\x05\x02\xff";

	cr_assert_eq(LINE(LINE_PEP626, table, -2), 10);
	cr_assert_eq(LINE(LINE_PEP626, table, 2), 10);
	cr_assert_eq(LINE(LINE_PEP626, table, 4), LINE_UNKNOWN);
	cr_assert_eq(LINE(LINE_PEP626, table, 6), 15);
	cr_assert_eq(LINE(LINE_PEP626, table, 8), 14);
	cr_assert_eq(LINE(LINE_PEP626, table, 10), LINE_UNKNOWN, "behind the code");
}

Test(lines, locations)
{
	/* no line, 2 units; long, 1 unit: +1; short, 8 units; one line +2, 1 unit; no column, -70 */
	static const char table[] = "\xf9"
				    "\xf0\x02\x00\x00\x00"
				    "\x87\x11"
				    "\xe0\x01\x02"
				    "\xe8\x4d\x02";

	cr_assert_eq(LINE(LINE_LOCATIONS, table, -2), 10);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 2), LINE_UNKNOWN);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 4), 11);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 6), 11);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 20), 11);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 22), 13);
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 24), LINE_UNKNOWN, "13 - 70 is no line");
	cr_assert_eq(LINE(LINE_LOCATIONS, table, 26), LINE_UNKNOWN);
	cr_assert_eq(LINE(LINE_LOCATIONS, "\x11\x22", 0), LINE_UNKNOWN, "no entry begins so");
	cr_assert_eq(LINE(LINE_LOCATIONS, "\xf0\x7f\x7f", 0), LINE_UNKNOWN, "cut off");
}

/* The list of runs gives the same lines. */
static void check_expanded(enum line_format format, const char *table, size_t size)
{
	const struct lines ls = {.format = format,
				 .firstlineno = 10,
				 .table = (uint8_t *)(uintptr_t)table,
				 .size = size};
	struct code_lines c;

	assert_ok(lines_expand(&ls, &c));
	for (int64_t offset = -2; offset < 600; offset += 3)
		cr_assert_eq(code_lines_find(&c, offset), lines_find(&ls, offset), "%d at %d",
			     (int)format, (int)offset);
	code_lines_deinit(&c);
}

/* Decoding arbitrary bytes terminates and stays within the table. */
Test(lines, any_bytes)
{
	uint32_t seed = 1;
	char table[64];

	for (unsigned int i = 0; i < 10000; i++) {
		for (size_t k = 0; k < sizeof(table); k++) {
			seed = seed * 1103515245u + 12345u;
			table[k] = (char)(seed >> 16);
		}
		(void)line_in((enum line_format)(i % 3), table, seed >> 8 & 63, seed & 1023);
		check_expanded((enum line_format)(i % 3), table, seed >> 8 & 63);
	}
}

Test(lines, reads_what_a_code_object_has)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		const uint16_t last = (*l)->bpf.code_qualname != LAYOUT_NONE
					      ? (*l)->bpf.code_qualname
					      : (*l)->bpf.code_name;
		struct heap *h = heap_new(*l);
		struct memory mem = heap_memory(h);
		uint64_t code = heap_code(h, "a.py", "f", 7, 0), bytes = heap_alloc(h, 64);
		struct lines ls;

		heap_u64(h, code + last + 8, bytes);
		heap_u64(h, bytes + (*l)->bytes_data - 16, 3);
		heap_put(h, bytes + (*l)->bytes_data, "abc", 3);
		assert_ok(lines_read(*l, &mem, code, &ls));
		cr_assert(ls.size == 3 && ls.firstlineno == 7 && ls.table[2] == 'c');
		lines_deinit(&ls);
		heap_u64(h, bytes + (*l)->bytes_data - 16, UINT64_MAX);
		assert_err(lines_read(*l, &mem, code, &ls), -E2BIG);
		heap_u64(h, code + last + 8, 1);
		assert_err(lines_read(*l, &mem, code, &ls), -EFAULT);
		free(h);
	}
	check_no_leaks();
}

/*
 * Prints each code object of a module: its first line, its table, and the line of each instruction.
 */
static const char tables[] =
	"import sys, argparse, dis\n"
	"def codes(c):\n"
	"    yield c\n"
	"    for k in c.co_consts:\n"
	"        if hasattr(k, 'co_code'):\n"
	"            for x in codes(k): yield x\n"
	"def lines(c):\n"
	"    n = len(c.co_code)\n"
	"    v = [0] * (n // 2)\n"
	"    if hasattr(c, 'co_lines'):\n"
	"        for a, b, line in c.co_lines():\n"
	"            for i in range(a, min(b, n), 2): v[i // 2] = line or 0\n"
	"        return v\n"
	"    starts = dict(dis.findlinestarts(c))\n"
	"    line = c.co_firstlineno\n"
	"    for i in range(0, n, 2):\n"
	"        line = starts.get(i, line)\n"
	"        v[i // 2] = line\n"
	"    return v\n"
	"source = open(argparse.__file__, encoding='utf-8').read()\n"
	"for c in codes(compile(source, 'x', 'exec')):\n"
	"    t = c.co_linetable if hasattr(c, 'co_linetable') else c.co_lnotab\n"
	"    print(c.co_firstlineno, ''.join('%02x' % b for b in t) or '-', *lines(c))\n";

static size_t take_hex(const char *hex, uint8_t *out, size_t room)
{
	size_t n = 0;
	unsigned int byte;

	while (n < room && sscanf(hex + 2 * n, "%2x", &byte) == 1 && hex[2 * n] != ' ')
		out[n++] = (uint8_t)byte;
	return n;
}

/* Checks one line of that output; returns the number of compared instructions. */
static size_t check_code(const struct layout *l, const char *text)
{
	static uint8_t table[1 << 16];
	struct lines ls = {.format = lines_format(l), .table = table};
	char *p;
	size_t n = 0;

	ls.firstlineno = (int32_t)strtol(text, &p, 10);
	ls.size = take_hex(p + 1, table, sizeof(table));
	p = strchr(p + 1, ' ');
	for (; p && *p == ' '; n++) {
		long want = strtol(p + 1, &p, 10);

		cr_assert_eq(lines_find(&ls, (int64_t)(2 * n)), want,
			     "3.%d, at %zu of %.40s: %d, not %ld", l->minor, 2 * n, text,
			     lines_find(&ls, (int64_t)(2 * n)), want);
	}
	return n;
}

Test(lines, agrees_with_each_interpreter)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l =
			layout_find((unsigned int)v[i].major, (unsigned int)v[i].minor);
		char *out = python_run(v[i].exe, tables, ""), *save = NULL;
		size_t compared = 0;

		cr_assert(l);
		for (char *line = strtok_r(out, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			compared += check_code(l, line);
		cr_assert_gt(compared, 5000, "%s: %zu", v[i].exe, compared);
		free(out);
	}
	check_no_leaks();
}
