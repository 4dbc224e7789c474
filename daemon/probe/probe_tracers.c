// SPDX-License-Identifier: BSD-2-Clause
/* Other programs' probes in a process without probes of this daemon: see probe.h. */
#include "probe/probe.h"
#include "probe/sites.h"

int probe_tracers_of(pid_t pid, const char *via, const struct plan *plan, struct tracers *ret)
{
	const struct probe_sites sites = probe_sites_of(plan, 0, PROBE_SITES_PYTHON);
	const struct tracers_of of = {pid, via, sites.offsets, sites.n};

	return tracers_find(&of, ret);
}
