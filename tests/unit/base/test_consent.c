// SPDX-License-Identifier: BSD-2-Clause
/* base/consent: when the user is asked, when a high cost is refused. */
#include "base/consent.h"

#include <errno.h>

#include "harness/test.h"

Test(consent, is_asked_for_at_a_terminal)
{
	cr_assert_eq(consent_for(0, false, true), CONSENT_GIVEN);
	cr_assert_eq(consent_for(100, false, true), CONSENT_GIVEN);
	cr_assert_eq(consent_for(101, false, true), CONSENT_WANTED);
	cr_assert_eq(consent_for(5000, false, true), CONSENT_WANTED);
	cr_assert_eq(consent_for(5000, true, true), CONSENT_GIVEN);
}

Test(consent, is_required_where_nobody_answers)
{
	cr_assert_eq(consent_for(101, false, false), CONSENT_GIVEN);
	cr_assert_eq(consent_for(300, false, false), CONSENT_GIVEN);
	cr_assert_eq(consent_for(301, false, false), CONSENT_REFUSED);
	cr_assert_eq(consent_for(301, true, false), CONSENT_GIVEN);
}

Test(consent, is_an_answer)
{
	cr_assert(consent_agrees("y\n") && consent_agrees("Yes\n"));
	cr_assert(!consent_agrees("") && !consent_agrees("\n") && !consent_agrees("no\n"));
}

Test(consent, errors)
{
	struct diag diag = {0};

	cr_assert_eq(consent_refused(42, 594, &diag), -ECANCELED);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert(strstr(diag.msg, "process 42") && strstr(diag.msg, "+594 %"), "%s", diag.msg);
	cr_assert(strstr(diag.hint, "--yes") && strstr(diag.hint, "the default"), "%s", diag.hint);
	diag_clear(&diag);
	cr_assert_eq(consent_declined(42, &diag), -ECANCELED);
	cr_assert_eq(diag.exit, PYP_EXIT_FAILURE);
}
