// SPDX-License-Identifier: BSD-2-Clause
/* Consent to expensive tracing: see consent.h. */
#include "base/consent.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/terminal.h"

enum consent consent_for(double cost, bool yes, bool terminal)
{
	if (yes || cost <= CONSENT_ASK)
		return CONSENT_GIVEN;
	if (terminal)
		return CONSENT_WANTED;
	return cost > CONSENT_REFUSE ? CONSENT_REFUSED : CONSENT_GIVEN;
}

/* Reading would stop a process in the background. */
bool consent_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
	       tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void consent_ask(const char *question)
{
	char clean[256];

	fprintf(stderr, "%s [y/N] ", terminal_clean(question, clean, sizeof(clean)));
	fflush(stderr);
}

bool consent_agrees(const char *answer)
{
	return *answer == 'y' || *answer == 'Y';
}

int consent_declined(pid_t pid, struct diag *diag)
{
	return diag_set(diag, -ECANCELED, PYP_EXIT_FAILURE, "use --yes to skip this question",
			"not attached to process %d", (int)pid);
}

int consent_refused(pid_t pid, double cost, struct diag *diag)
{
	return diag_set(diag, -ECANCELED, PYP_EXIT_USAGE,
			"add --yes, or leave out --exact and --mode: the default has a limit",
			"not attached to process %d: to observe every call costs about +%.0f %% of "
			"its own CPU time",
			(int)pid, cost);
}
