/* SPDX-License-Identifier: BSD-2-Clause */
/* Predicted overhead, reported before an attach. */
#ifndef PYPROFCTL_FORECAST_H
#define PYPROFCTL_FORECAST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"
#include "client.h"
#include "pick.h"
#include "target_args.h"

/* Overhead in percent of the target's own CPU time: above this print a warning with advice. */
#define FORECAST_WARN 25.0

#define FORECAST_LINE 700

/*
 * Request a forecast for pid, print it to stderr, and ask for consent if the overhead is high
 * (base/consent.h; yes: it is given). given: target options, may be NULL. picked: all processes that
 * the command attaches to, NULL: only this one; children that are among them are not reported as left
 * out. If there is no forecast, *ret_late is a line about it, to be printed after the attach, which
 * may be refused for the same reason; else it is empty. -ECANCELED: there is no consent, and nothing
 * was attached; else the daemon's error.
 */
struct forecast_of {
	pid_t pid;
	const struct target_opts_given *given;
	const struct pick *picked;
	bool yes;
};
int forecast_confirm(struct client *c, const struct forecast_of *of, char ret_late[FORECAST_LINE],
		     struct diag *diag);

#endif
