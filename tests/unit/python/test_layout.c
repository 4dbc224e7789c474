// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/layout: the tables are valid, and their opcodes are those of this machine's interpreters.
 */
#include "python/layout.h"

#include "harness/interpreters.h"
#include "harness/test.h"

Test(layout, tables_are_sound)
{
	const struct layout *prev = NULL;

	for (const struct layout *const *p = layout_tables; *p; p++) {
		const struct layout *l = *p;
		const struct pyp_layout *b = &l->bpf;

		cr_assert(layout_find_abi(l->major, l->minor, l->abi) == l);
		cr_assert(!prev || prev->minor < l->minor ||
			  (prev->minor == l->minor && prev->abi < l->abi));
		cr_assert(b->frame_code >= b->frame_block && b->frame_previous >= b->frame_block);
		cr_assert(b->frame_code + 8 <= b->frame_block + 32);
		cr_assert(b->frame_previous + 8 <= b->frame_block + 32);
		cr_assert((b->code_qualname == LAYOUT_NONE) == (l->minor < 11));
		cr_assert((b->frame_owner == LAYOUT_NONE) == (l->minor < 11));
		cr_assert((l->ts_frame == LAYOUT_NONE) != (l->ts_cframe == LAYOUT_NONE));
		cr_assert((l->ts_native_thread_id == LAYOUT_NONE) == (l->minor < 11));
		cr_assert(l->proven);
		cr_assert(l->op.return_value > 0 && l->op.yield_value > 0 &&
			  l->op.yield_value < 256);
		cr_assert_not_null(l->tag);
		prev = l;
	}
	cr_assert_null(layout_find(3, 5));
	cr_assert_null(layout_find(2, 7));
	cr_assert_null(layout_find(3, 99));
}

/* The key of a table is the version and the build's configuration. */
Test(layout, builds_are_kept_apart)
{
	for (const struct layout *const *p = layout_tables; *p; p++)
		cr_assert(layout_find_abi((*p)->major, (*p)->minor, (*p)->abi) == *p);
	cr_assert(layout_find_abi(3, 13, 0) == layout_find(3, 13));
	cr_assert(layout_find(3, 13)->abi == 0);
	cr_assert(layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED)->bpf.object_type == 24);
	cr_assert_null(layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED | LAYOUT_ABI_DEBUG));
	cr_assert_null(layout_find_abi(3, 14, LAYOUT_ABI_FREE_THREADED));
	cr_assert_null(layout_find_abi(3, 12, LAYOUT_ABI_DEBUG));
}

Test(layout, range_for_people)
{
	char range[32];

	cr_assert_str_eq(layout_proven_range(range, sizeof(range)), "3.6-3.15");
}

/*
 * Prints the number of each opcode that the daemon uses, -1 if there is none, in the order of
 * struct layout_opcodes. Specialized ones (not in opmap) are elsewhere, depending on the version.
 */
static const char print_opcodes[] =
	"import opcode, sys\n"
	"m = dict(opcode.opmap)\n"
	"n = 1\n"
	"for s in getattr(opcode, '_specialized_instructions', ()):\n"
	"    while n in m.values(): n += 1\n"
	"    m.setdefault(s, n)\n"
	"m.update(getattr(opcode, '_specialized_opmap', {}))\n"
	/* In 3.11 only opcode.h has it. */
	"if sys.version_info[:2] == (3, 11): m['DO_TRACING'] = 255\n"
	"print(*[m.get(s, -1) for s in '''RESUME RESUME_QUICK RESUME_CHECK RESUME_CHECK_JIT\n"
	"INSTRUMENTED_RESUME RETURN_VALUE RETURN_CONST INSTRUMENTED_RETURN_VALUE\n"
	"INSTRUMENTED_RETURN_CONST YIELD_VALUE INSTRUMENTED_YIELD_VALUE "
	"RETURN_GENERATOR DO_TRACING YIELD_FROM'''.split()])\n"
	"import signal; signal.pause()\n";

static void check_opcodes(const struct interpreter *it)
{
	const struct layout *l = interpreter_layout(it);
	int16_t op[14];
	char line[256], *p = line;
	int out;
	pid_t pid;

	if (!l)
		return;
	pid = interpreter_start(it, print_opcodes, &out);
	interpreter_line(out, line, sizeof(line));
	interpreter_end(pid, out);
	cr_assert(sizeof(op) == sizeof(l->op));
	memcpy(op, &l->op, sizeof(op));
	for (int i = 0; i < 14; i++) {
		long v = strtol(p, &p, 10);

		cr_assert(v == op[i], "opcode %d of %s is %ld, not %d", i, it->exe, v, op[i]);
	}
}

Test(layout, opcodes_of_real_interpreters)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_opcodes(&v[i]);
	check_no_leaks();
}
