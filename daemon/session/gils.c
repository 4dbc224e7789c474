// SPDX-License-Identifier: BSD-2-Clause
/* Locates the target's GILs: see tracee_find_gils. */
#include "session/tracee.h"

void tracee_find_gils(struct tracee *t)
{
	struct pyp_gil_range v[PYP_GIL_RANGES];
	int n;

	if (!t->probe || (t->opts.mode.mode != MODE_TRACE && !tracee_walks(t, t->python)))
		return;
	n = inspect_gils(t->inspect, v);
	if (n <= 0)
		return; /* keep the addresses found before */
	probe_set_gils(t->probe, v);
	t->gils = (uint32_t)n;
}
