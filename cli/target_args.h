/* SPDX-License-Identifier: BSD-2-Clause */
/* Target options (base/target_opts.h) of the commands that attach, sent to the daemon as given. */
#ifndef PYPROFCTL_TARGET_ARGS_H
#define PYPROFCTL_TARGET_ARGS_H

#include <jansson.h>

#include "base/diag.h"
#include "base/target_opts.h"

/* Members of a struct cmd whose options struct has a struct target_opts_given `member`. */
#define TARGET_ARGS(type, member)                                                                  \
	.target_opts = target_opt_table, .target_at = offsetof(type, member)

/* Checks for options that are invalid regardless of the daemon's defaults. Exit code 2. */
int target_args_check(const struct target_opts_given *g, struct diag *diag);

/* Add the given options to an attach request's body. */
void target_args_add(const struct target_opts_given *g, json_t *body);

#endif
