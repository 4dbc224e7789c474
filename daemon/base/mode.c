// SPDX-License-Identifier: BSD-2-Clause
/* Modes by name: see mode.h. */
#include "base/mode.h"

#include <errno.h>
#include <string.h>

const char *const mode_names[] = {
	[MODE_TRACE] = "trace",
	[MODE_COUNT] = "count",
	[MODE_SAMPLE] = "sample",
	NULL,
};

int mode_parse(const char *name)
{
	for (int i = 0; mode_names[i]; i++)
		if (strcmp(mode_names[i], name) == 0)
			return i;
	return -1;
}

int mode_check_bound(uint64_t percent, enum mode mode, bool metrics, const char *hint,
		     struct diag *diag)
{
	if (!percent || (mode == MODE_TRACE && !metrics))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint,
			"--max-overhead is for tracing only, without --metrics");
}
