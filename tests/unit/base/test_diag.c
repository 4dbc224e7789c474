// SPDX-License-Identifier: BSD-2-Clause
/*
 * base/diag: the first cause is kept, errno values become exit codes, a message is always one line.
 */
#include "base/diag.h"

#include <errno.h>

#include "harness/test.h"

Test(diag, first_cause_is_kept)
{
	struct diag d = {0};

	assert_err(diag_set(&d, -EBUSY, PYP_EXIT_BUSY, "wait", "busy %d", 1), -EBUSY);
	assert_err(diag_errno(&d, EPERM, "later"), -EPERM);
	cr_assert_str_eq(d.msg, "busy 1");
	cr_assert_str_eq(d.hint, "wait");
	cr_assert(d.exit == PYP_EXIT_BUSY && d.err == -EBUSY);
	diag_clear(&d);
	assert_err(diag_errno(&d, EPERM, "later"), -EPERM);
	cr_assert(d.exit == PYP_EXIT_PERMISSION);
}

Test(diag, null_is_fine)
{
	assert_err(diag_set(NULL, -EIO, PYP_EXIT_FAILURE, NULL, "x"), -EIO);
	assert_err(diag_errno(NULL, EIO, "x"), -EIO);
	diag_clear(NULL);
}

Test(diag, exit_of_errno)
{
	static const struct {
		int err;
		enum pyp_exit exit;
	} cases[] = {
		{ESRCH, PYP_EXIT_NO_PROCESS},
		{EPERM, PYP_EXIT_PERMISSION},
		{EACCES, PYP_EXIT_PERMISSION},
		{EIO, PYP_EXIT_FAILURE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diag d = {0};

		assert_err(diag_errno(&d, cases[i].err, "x"), -cases[i].err);
		cr_assert(d.exit == cases[i].exit);
	}
}

Test(diag, format_is_one_harmless_line)
{
	struct diag d = {0};
	char out[64];

	diag_set(&d, -EIO, PYP_EXIT_FAILURE, "hint", "a\nb\033[31m\x7f");
	cr_assert_str_eq(diag_format(&d, out, sizeof(out)), "a?b?[31m?; hint");
	cr_assert_str_eq(diag_format(&d, out, 4), "a?b");
	d.hint[0] = '\0';
	cr_assert_str_eq(diag_format(&d, out, sizeof(out)), "a?b?[31m?");
}

Test(diag, exit_names)
{
	cr_assert_str_eq(diag_exit_name(PYP_EXIT_NO_PROCESS), "no_process");
	cr_assert_str_eq(diag_exit_name((enum pyp_exit)99), "failure");
}
