// SPDX-License-Identifier: BSD-2-Clause
/* What is said of other tracers, and of breakpoints that none explains. */
#include "session/strangers.h"

#include "harness/test.h"

static const char *text_of(uint32_t links, pid_t owner, unsigned int breaks)
{
	static char text[STRANGERS_TEXT];

	strangers_text(&(struct tracers){.links = links, .owner = owner}, breaks, 12, text);
	return text;
}

Test(strangers, texts)
{
	cr_assert_str_eq(text_of(0, 0, 0), "");
	cr_assert(strstr(text_of(1, 4242, 0), "another tracer (pid 4242) has probes"));
	cr_assert(strstr(text_of(2, 0, 0), "another tracer has probes"), "its owner is not known");
	cr_assert(strstr(text_of(0, 0, 3), "3 of 12 planned sites had breakpoints"));
	/* Then they are that tracer's. */
	cr_assert(!strstr(text_of(1, 4242, 12), "left by"));
	cr_assert_leq(strlen(text_of(0, 0, 4294967295u)), STRANGERS_TEXT - 2);
}
