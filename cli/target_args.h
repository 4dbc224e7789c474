/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of base/target_opts.h in the commands that attach: they go to the daemon as given. */
#ifndef PYPROFCTL_TARGET_ARGS_H
#define PYPROFCTL_TARGET_ARGS_H

#include <jansson.h>

#include "base/diag.h"
#include "base/target_opts.h"

/* Members of a struct cmd: its options' struct has a struct target_opts_given in this member. */
#define TARGET_ARGS(type, member)                                                                  \
	.target_opts = target_opt_table, .target_at = offsetof(type, member)

/* What is wrong whatever the daemon was started with: exit code 2. */
int target_args_check(const struct target_opts_given *g, struct diag *diag);

/* Add those that were given to an attach request's body. */
void target_args_add(const struct target_opts_given *g, json_t *body);

#endif
