// SPDX-License-Identifier: BSD-2-Clause
/* Requirements of tests: see caps.h. */
#include "harness/caps.h"

#include "harness/test.h"
#include "probe/probe.h"

void caps_require_bpf(void)
{
	struct diag diag = {0};
	const char *required = getenv("PYPROF_TEST_REQUIRE");
	char why[1024];

	if (!probe_check(NULL, &diag))
		return;
	diag_format(&diag, why, sizeof(why));
	if (required && strstr(required, "bpf"))
		cr_assert_fail("bpf is required, but %s", why);
	cr_skip_test("needs bpf, but %s", why);
}

bool caps_virtual(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[4096];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor ");
	if (f)
		fclose(f);
	return found;
}
