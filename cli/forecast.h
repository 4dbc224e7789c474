/* SPDX-License-Identifier: BSD-2-Clause */
/* What observing a process would cost it, said before it is attached to. */
#ifndef PYPROFCTL_FORECAST_H
#define PYPROFCTL_FORECAST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"
#include "client.h"
#include "target_args.h"

/* From here on, in percent of the target's own CPU time, a warning names what costs less; and who sits
 * at a terminal is asked. */
#define FORECAST_WARN 25.0
#define FORECAST_ASK  300.0

/*
 * Have the daemon look at the process, print the line to stderr, and ask if that is too dear. yes: do not
 * ask. -ECANCELED: the answer was no, and nothing is attached; else the daemon's error. given may be
 * NULL.
 */
int forecast_tell(struct client *c, pid_t pid, const struct target_opts_given *given, bool yes,
		  struct diag *diag);

#endif
