/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of Python processes as `pyprofctl ps --json` prints it. Another process makes it, because
 * helper processes that inspect others must not inherit this one's connections.
 */
#ifndef PYPROFCTL_UI_PROCESSES_H
#define PYPROFCTL_UI_PROCESSES_H

#include <stddef.h>

#include "base/diag.h"

/* *ret: JSON text, owned by the caller. Blocks for up to a minute. */
int ui_processes(char **ret, size_t *ret_n, struct diag *diag);

#endif
