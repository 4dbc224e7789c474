// SPDX-License-Identifier: BSD-2-Clause
/* session/workers: what is said about a process's children. */
#include "session/workers.h"

#include "harness/test.h"

#define S UINT64_C(1000000000)

static void says(struct workers_use u, const char *want)
{
	char text[WORKERS_TEXT];

	cr_assert(workers_text(&u, text));
	cr_assert_str_eq(text, want);
}

Test(workers, none)
{
	char text[WORKERS_TEXT];

	cr_assert(!workers_text(&(struct workers_use){.span_ns = S, .own_ns = S}, text));
}

Test(workers, do_the_work)
{
	says((struct workers_use){.n = 4, .span_ns = S / 2, .own_ns = 1000000, .theirs_ns = S},
	     "its 4 Python child processes use 2.0 CPUs, and it hardly any: --follow-children "
	     "includes them");
	says((struct workers_use){.n = 1, .span_ns = S, .theirs_ns = S / 2},
	     "its 1 Python child process uses 0.5 CPUs, and it hardly any: --follow-children "
	     "includes it");
}

Test(workers, share_the_work)
{
	says((struct workers_use){.n = 4, .span_ns = S, .own_ns = S / 2, .theirs_ns = S},
	     "its 4 Python child processes are not included: --follow-children includes them");
	says((struct workers_use){.n = 256, .more = true, .span_ns = S, .own_ns = S},
	     "its 256 or more Python child processes are not included: --follow-children includes "
	     "them");
}

Test(workers, did_the_work)
{
	says((struct workers_use){.n = 2,
				  .span_ns = S,
				  .own_ns = 100,
				  .theirs_ns = 100,
				  .own_ever_ns = S / 2,
				  .theirs_ever_ns = 60 * S},
	     "its 2 Python child processes did its work so far (60.0 of 60.5 seconds of CPU "
	     "time): --follow-children includes them");
	says(
		(struct workers_use){
			.n = 1, .span_ns = S, .own_ever_ns = S / 2, .theirs_ever_ns = S / 4},
		"its 1 Python child process is not included: --follow-children includes it");
}
