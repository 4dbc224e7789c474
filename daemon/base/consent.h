/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consent to observe a process in a way that slows it down very much. Both programs ask on a
 * terminal; elsewhere nobody can answer, so a cost that stops a service needs --yes.
 */
#ifndef PYPROF_BASE_CONSENT_H
#define PYPROF_BASE_CONSENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

/* Percent of the process's own CPU time: above ASK ask; above REFUSE refuse where nobody is to be
 * asked. */
#define CONSENT_ASK    100.0
#define CONSENT_REFUSE 300.0

enum consent { CONSENT_GIVEN, CONSENT_WANTED, CONSENT_REFUSED };

/* cost: percent; yes: the user has agreed before; terminal: consent_can_ask() */
enum consent consent_for(double cost, bool yes, bool terminal);

/* Returns whether stdin and stderr are a terminal from which this process may read: it is not in
 * the background. */
bool consent_can_ask(void);

/* Prints a question and " [y/N] " to stderr. */
void consent_ask(const char *question);
/* Returns whether a line of text agrees. */
bool consent_agrees(const char *answer);

/* The errors without consent: -ECANCELED, exit code 1: declined; 2: refused. */
int consent_declined(pid_t pid, struct diag *diag);
int consent_refused(pid_t pid, double cost, struct diag *diag);

#endif
