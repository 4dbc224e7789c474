// SPDX-License-Identifier: BSD-2-Clause
/*
 * `make demo` ends well: the service's function is in the report, and the requests per second of each
 * phase are printed, all of them above zero. How they compare depends on the machine.
 */
#include <limits.h>

#include "harness/caps.h"
#include "harness/test.h"
#include "harness/tool.h"

static const char *const phases[] = {
	"not observed ",
	"observed, by default ",
	"each call traced (--exact) ",
	"not observed any more ",
};

Test(demo, prints_requests_per_second_of_each_phase)
{
	char script[PATH_MAX], *out, *end;
	unsigned long rate;

	caps_require_bpf();
	snprintf(script, sizeof(script), "%s/tests/demo.sh", getenv("PYPROF_TOP"));
	cr_assert_eq(setenv("DEMO_SECONDS", "1", 1), 0);
	out = tool_run((const char *[]){script, NULL});
	cr_assert(strstr(out, "demo_service.py:") && strstr(out, "(is_prime)"), "%s", out);
	end = strstr(out, "What it cost the service:");
	cr_assert(end, "%s", out);
	end = strchr(end, '\n') + 1;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		cr_assert(strncmp(end, phases[i], strlen(phases[i])) == 0, "%s", out);
		rate = strtoul(end + strlen(phases[i]), &end, 10);
		cr_assert(rate > 0 && strncmp(end, " requests/s\n", 12) == 0, "%s", out);
		end += 12;
	}
	free(out);
}
