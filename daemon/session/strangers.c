// SPDX-License-Identifier: BSD-2-Clause
/* Messages about other tracers and leftover breakpoints: see strangers.h. */
#include "session/strangers.h"

#include <stdio.h>

static size_t tracers_text(const struct tracers *tracers, char *text, size_t size)
{
	char owner[32] = "";

	if (!tracers->links)
		return 0;
	if (tracers->owner)
		snprintf(owner, sizeof(owner), " (pid %d)", (int)tracers->owner);
	return (size_t)snprintf(
		text, size,
		"another tracer%s has probes on this process: each event has the overhead of both",
		owner);
}

void strangers_text(const struct tracers *tracers, unsigned int breaks, unsigned int sites,
		    char text[STRANGERS_TEXT])
{
	text[0] = '\0';
	if (tracers_text(tracers, text, STRANGERS_TEXT) || !breaks)
		return;
	snprintf(text, STRANGERS_TEXT,
		 "%u of %u planned sites had breakpoints before this trace, set by perf or a "
		 "debugger, or left by a killed tracer (stopping this trace removes the latter); "
		 "each hit costs about 0.5 us",
		 breaks, sites);
}
