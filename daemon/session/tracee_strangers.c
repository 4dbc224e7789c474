// SPDX-License-Identifier: BSD-2-Clause
/* Other tracers of a target and their leftover breakpoints: see strangers.h. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "session/collector.h"
#include "session/strangers.h"
#include "session/tracee.h"

void strangers_again(struct tracee *t)
{
	struct tracers tracers;

	if (t->probe && probe_tracers(t->probe, &tracers) == 0)
		strangers_text(&tracers, t->breaks, plan_sites(&t->plan), t->strangers);
}

void strangers_warnings(const struct tracee *t, char *out, size_t size)
{
	bool both = *t->warning && *t->strangers;

	snprintf(out, size, "%s%s%s", t->warning, both ? "; " : "", t->strangers);
}

void strangers_find(struct tracee *t)
{
	struct tracers tracers = {0};

	if (!t->collector->probes)
		return;
	(void)probe_tracers(t->probe, &tracers);
	/* If there is another tracer, the breakpoints are its own and are removed with it. */
	if (!tracers.links)
		t->breaks = t->found.site_breaks;
	strangers_text(&tracers, t->breaks, plan_sites(&t->plan), t->strangers);
	if (*t->strangers)
		log_warning("process %d: %s", (int)t->target->pid, t->strangers);
}
