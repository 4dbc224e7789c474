// SPDX-License-Identifier: BSD-2-Clause
/* The self-test's result as text: see result.h. */
#include "verify/result.h"

#include <stdio.h>

const char *verify_builtins_text(const struct verify_result *v, char *out, size_t size)
{
	if (v->verdict != VERIFY_RIGHT)
		return verify_text(v, out, size);
	snprintf(out, size, "passed: %u events at %u sites", v->events, v->sites);
	return out;
}

const char *verify_text(const struct verify_result *v, char *out, size_t size)
{
	switch (v->verdict) {
	case VERIFY_RIGHT:
		snprintf(out, size,
			 "passed%s: %u events of %u functions at %u sites, all as expected; "
			 "%u ns per event",
			 v->cached ? " before" : "", v->events, v->functions, v->sites,
			 v->event_ns);
		break;
	case VERIFY_WRONG:
		snprintf(out, size, "FAILED: %s", v->reason);
		break;
	case VERIFY_SKIPPED:
		snprintf(out, size, "not verified: skipped by --no-verify");
		break;
	case VERIFY_NOT_RUN:
		snprintf(out, size, "not verified: %s", v->reason);
		break;
	}
	return out;
}
