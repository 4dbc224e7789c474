/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process may do and what this kernel can do. Every question is answered by trying, never
 * by the kernel's version.
 */
#ifndef PYPROF_PROBE_KCAPS_H
#define PYPROF_PROBE_KCAPS_H

#include <stdbool.h>

#include "base/diag.h"

/* The capabilities that probing takes. 0, or a diag that names the missing one (exit 4). */
int kcaps_permissions(struct diag *diag);

/* BTF, ring buffer, uprobe_multi. 0, or a diag that names the missing one (exit 5). */
int kcaps_features(struct diag *diag);

/*
 * Does a uprobe_multi link with a pid fire for all threads of that process? From 6.6 to 6.9 it
 * fired for one thread only; fixed by 46ba0e49b642 in 6.10, and wherever it was backported.
 */
bool kcaps_pid_filter(void);

#endif
