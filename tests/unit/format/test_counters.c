// SPDX-License-Identifier: BSD-2-Clause
/* The formats counters and memory: figures by function, and in all. */
#include <errno.h>
#include <stdio.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define KIB 1024

/* Nodes: the root, main, f, g, the other root, f */
static struct snapshot *build(void)
{
	return snapshot_build("target 42\n"
			      "thread 42 42 MainThread\n"
			      "main app.py:1 1 1000\n"
			      "  f app.py:10 3 2000\n"
			      "  g b.py:3 4 0\n"
			      "thread 42 43 worker\n"
			      "f app.py:10 2 1000\n");
}

static void set(struct snapshot *s, int column, const uint64_t figures[6], uint64_t unit)
{
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(column), s->nnodes));
	for (uint32_t i = 0; i < 6; i++)
		s->columns[column][i] = figures[i] * unit;
	s->measured |= COLUMN_BIT(column);
}

static void expect(const struct snapshot *s, const char *format, const struct format_opts *o,
		   const char *want)
{
	_cleanup_free_ char *text = report_new(format, s, o, NULL);

	cr_assert(strncmp(text, want, strlen(want)) == 0, "%s\nnot\n%s", text, want);
}

/* Outside Python, threads have figures that are in no row. */
Test(counters, by_function)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	const char *const pattern = "app", *const none = "nothing";

	set(s, COLUMN_vcsw, (const uint64_t[]){1000, 5, 20, 0, 30000, 400}, 1);
	set(s, COLUMN_rbytes, (const uint64_t[]){0, 0, 0, 8192, 0, 0}, 1);
	s->measured |= COLUMN_BIT(COLUMN_majflt) | COLUMN_BIT(COLUMN_grown);
	expect(s, "counters", &(struct format_opts){0},
	       "   voluntary context switches (vcsw): 31425\n"
	       "\n"
	       "   ncalls         self          cum  filename:lineno(function)\n"
	       "        5          420          420  app.py:10(f)\n"
	       "        1            5           25  app.py:1(main)\n"
	       "\n\n"
	       "   major page faults (majflt): 0\n"
	       "\n\n"
	       "   bytes read (rbytes): 8192\n"
	       "\n"
	       "   ncalls         self          cum  filename:lineno(function)\n"
	       "        4         8192         8192  b.py:3(g)\n"
	       "        1            0         8192  app.py:1(main)\n"
	       "\n\n   process");
	expect(s, "counters", &(struct format_opts){.filter = {.tid = 42}, .sort = "cumulative"},
	       "   voluntary context switches (vcsw): 1025\n"
	       "\n"
	       "   ncalls         self          cum  filename:lineno(function)\n"
	       "        1            5           25  app.py:1(main)\n"
	       "        3           20           20  app.py:10(f)\n");
	expect(s, "counters", &(struct format_opts){.restrict_ = &none, .nrestrict = 1},
	       "   voluntary context switches (vcsw): 31425\n\n\n   major");
	expect(s, "counters",
	       &(struct format_opts){
		       .restrict_ = &pattern, .nrestrict = 1, .reverse = true, .sort = "tottime"},
	       "   voluntary context switches (vcsw): 31425\n"
	       "\n"
	       "   ncalls         self          cum  filename:lineno(function)\n"
	       "        1            5           25  app.py:1(main)\n");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(memory, by_function)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	const char *const none = "nothing";

	set(s, COLUMN_grown, (const uint64_t[]){100, 1, 20, 0, 3000, 200}, KIB);
	set(s, COLUMN_shrunk, (const uint64_t[]){0, 4, 0, 0, 0, 0}, KIB);
	set(s, COLUMN_mapped, (const uint64_t[]){0, 0, 256, 0, 0, 256}, KIB);
	set(s, COLUMN_unmapped, (const uint64_t[]){0, 0, 0, 128, 0, 0}, KIB);
	set(s, COLUMN_large, (const uint64_t[]){0, 0, 2, 0, 0, 1}, 1);
	set(s, COLUMN_live, (const uint64_t[]){0, 0, 64, 0, 0, 0}, KIB);
	set(s, COLUMN_pools, (const uint64_t[]){0, 7, 0, 0, 0, 0}, 1);
	expect(s, "memory", &(struct format_opts){0},
	       "   Resident memory: grown 3321 KiB, given back 4 KiB; mapped in blocks of 128 KiB "
	       "and more: 512 KiB, unmapped 128 KiB, live 64 KiB\n"
	       "\n"
	       "  grown KiB  shrunk KiB         net  mapped KiB    unmapped   large    live KiB   "
	       "pools  filename:lineno(function)\n"
	       "        220           0        +220         512           0       3          64   "
	       "    0  app.py:10(f)\n"
	       "          1           4          -3           0           0       0           0   "
	       "    7  app.py:1(main)\n"
	       "          0           0          +0           0         128       0           0   "
	       "    0  b.py:3(g)\n"
	       "\n\n   process");
	expect(s, "memory", &(struct format_opts){.filter = {.tid = 43}},
	       "   Resident memory: grown 3200 KiB, given back 0 KiB; mapped in blocks of 128 KiB "
	       "and more: 256 KiB, unmapped 0 KiB, live 0 KiB\n");
	expect(s, "memory", &(struct format_opts){.restrict_ = &none, .nrestrict = 1},
	       "   Resident memory: grown 3321 KiB, given back 4 KiB; mapped in blocks of 128 KiB "
	       "and more: 512 KiB, unmapped 128 KiB, live 64 KiB\n\n  grown");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* The growth decides, or that of callees too; each figure but the number of blocks makes a row. */
Test(memory, rows)
{
	static const int columns[] = {COLUMN_grown,    COLUMN_shrunk, COLUMN_mapped,
				      COLUMN_unmapped, COLUMN_live,   COLUMN_pools};
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	_cleanup_free_ char *text = NULL;

	set(s, COLUMN_grown, (const uint64_t[]){0, 1, 20, 30, 0, 0}, KIB);
	text = report_new("memory", s, &(struct format_opts){.sort = "cumulative"}, NULL);
	cr_assert(strstr(text, "(main)") < strstr(text, "(g)") &&
			  strstr(text, "(g)") < strstr(text, "(f)"),
		  "%s", text);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		_cleanup_free_ char *one = NULL;

		s->columns[COLUMN_grown] = NULL;
		s->columns[columns[i]] = NULL;
		set(s, columns[i], (const uint64_t[]){0, 0, 0, 5, 0, 0}, 1);
		one = report_new("memory", s, &(struct format_opts){0}, NULL);
		cr_assert(strstr(one, "(g)") && !strstr(one, "(f)") && !strstr(one, "(main)"), "%s",
			  one);
		s->columns[columns[i]] = NULL;
	}
}

/* A row is as wide as the terminal if its name does not fit. */
Test(counters, names_use_the_width)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	_cleanup_free_ char *text = NULL;
	char longest[200], *line;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	s->funcs[2].name = longest;
	set(s, COLUMN_vcsw, (const uint64_t[]){0, 0, 0, 5, 0, 0}, 1);
	text = report_new("counters", s, &(struct format_opts){.width = 140}, NULL);
	line = strstr(text, "        4            5            5  b.py:3(xxx");
	cr_assert(line && strcspn(line, "\n") == 140, "%s", text);
}

Test(counters, not_measured)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	const struct format_opts o = {0};
	struct diag diag = {0};

	s->measured = column_group("memory");
	assert_err(format_write(format_find("counters"), s, &o, stdout, &diag), -ENODATA);
	s->measured = column_group("counters");
	assert_err(format_write(format_find("memory"), s, &o, stdout, &diag), -ENODATA);
}
