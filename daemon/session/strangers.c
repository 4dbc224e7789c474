// SPDX-License-Identifier: BSD-2-Clause
/* Other tracers and what they left behind: see strangers.h. */
#include "session/strangers.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "session/collector.h"
#include "session/tracee.h"

static size_t tracers_text(const struct tracers *tracers, char *text, size_t size)
{
	char who[32] = "";

	if (!tracers->links)
		return 0;
	if (tracers->owner)
		snprintf(who, sizeof(who), " (pid %d)", (int)tracers->owner);
	return (size_t)snprintf(
		text, size,
		"another tracer%s has probes on this process: each event has the overhead of both",
		who);
}

void strangers_text(const struct tracers *tracers, unsigned int breaks, unsigned int sites,
		    char text[STRANGERS_TEXT])
{
	text[0] = '\0';
	if (tracers_text(tracers, text, STRANGERS_TEXT) || !breaks)
		return;
	snprintf(text, STRANGERS_TEXT,
		 "%u of %u planned sites had breakpoints before: left behind by a tracer that was "
		 "killed, and then stopping this trace removes them, or set by perf or a debugger; "
		 "each hit costs about 0.5 us",
		 breaks, sites);
}

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
	/* With another tracer they are its own, and go with it. */
	if (!tracers.links)
		t->breaks = t->found.site_breaks;
	strangers_text(&tracers, t->breaks, plan_sites(&t->plan), t->strangers);
	if (*t->strangers)
		log_warning("process %d: %s", (int)t->target->pid, t->strangers);
}
