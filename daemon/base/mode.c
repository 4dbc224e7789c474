// SPDX-License-Identifier: BSD-2-Clause
/* Modes by name: see mode.h. */
#include "base/mode.h"

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
