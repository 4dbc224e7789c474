// SPDX-License-Identifier: BSD-2-Clause
/* The overhead as text: see overhead.h. */
#include "format/overhead.h"

#include <stdio.h>

#include "snapshot/snapshot.h"

/* Two digits, and at least seconds. */
static int decimals(double seconds)
{
	if (seconds < 0.1)
		return 3;
	if (seconds < 1)
		return 2;
	return seconds < 100;
}

bool overhead_text(uint64_t overhead_ns, uint64_t own_cpu_ns, bool several, char out[OVERHEAD_TEXT])
{
	const double ratio = snapshot_overhead(overhead_ns, own_cpu_ns);
	const double taken = (double)overhead_ns / 1e9, own = (double)own_cpu_ns / 1e9;

	out[0] = '\0';
	if (ratio < 0)
		return false;
	snprintf(out, OVERHEAD_TEXT, "%.1f %% of the process%s own CPU time (%.*f s of %.*f s)",
		 100 * ratio, several ? "es'" : "'s", decimals(taken), taken, decimals(own), own);
	return true;
}
