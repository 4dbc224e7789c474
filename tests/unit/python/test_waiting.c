// SPDX-License-Identifier: BSD-2-Clause
/* The version-dependent data for counting calls. tests/integration/test_modes.c tests the maps. */
#include "python/layout.h"

#include "harness/test.h"

Test(waiting, how_generators_show_that_they_wait)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		struct pyp_waiting w = layout_waiting(*l);

		if ((*l)->minor < 9) {
			cr_assert_eq(w.style, PYP_WAITING_NONE);
			continue;
		}
		cr_assert_eq(w.frame_instr, (*l)->bpf.frame_instr);
		cr_assert_neq(w.op[0], 0);
		if ((*l)->minor < 11) {
			cr_assert(w.style == PYP_WAITING_INDEX && w.code_bytes && w.bytes_data);
			cr_assert_eq(w.index_unit, (*l)->minor == 9 ? 1 : 2);
			cr_assert_eq(w.least_arg, 0);
			continue;
		}
		cr_assert_eq(w.style, (*l)->minor < 13 ? PYP_WAITING_PREV : PYP_WAITING_NEXT);
		cr_assert_eq(w.least_arg, 2);
		cr_assert_eq(w.op[0], (*l)->op.resume);
	}
}

Test(waiting, when_entries_are_executed_again)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		struct pyp_restart r = layout_restart(*l);

		cr_assert_eq(r.code_version != 0, (*l)->minor >= 12);
		cr_assert_eq(r.code_version, (*l)->code_version);
		cr_assert_eq(r.interp_version, (*l)->interp_version);
	}
}

static bool ends(const struct pyp_raising *r, int16_t op)
{
	return op >= 0 && r->ends[op / 64] >> op % 64 & 1;
}

/* A frame at any other instruction that leaves does so by an exception. */
Test(waiting, how_frames_end)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		const struct pyp_raising r = layout_raising(*l);

		cr_assert_eq(layout_distinguishes_raising(*l), (*l)->minor >= 8);
		cr_assert(ends(&r, (*l)->op.return_value) && ends(&r, (*l)->op.yield_value));
		if ((*l)->minor == 12 || (*l)->minor == 13)
			cr_assert(ends(&r, (*l)->op.return_const));
		if ((*l)->minor >= 12)
			cr_assert(ends(&r, (*l)->op.instrumented_return_value));
		cr_assert(!ends(&r, (*l)->op.resume) && !ends(&r, 0));
		cr_assert_eq(r.index_unit != 0, (*l)->minor < 11);
		if ((*l)->minor < 11)
			cr_assert(r.code_bytes && r.bytes_data && r.yield_from == 72);
		else
			cr_assert_eq(r.yield_from, 0);
	}
}
