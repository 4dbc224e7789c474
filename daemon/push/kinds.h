/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of receivers. To add one: a file with its struct push_kind, and a row in kinds.c. */
#ifndef PYPROF_PUSH_KINDS_H
#define PYPROF_PUSH_KINDS_H

#include "push/sink.h"

/* Ends with NULL. */
extern const struct push_kind *const push_kinds[];

/* NULL: there is none of this name; *diag is set (exit code 2). */
const struct push_kind *push_kind_find(const char *name, struct diag *diag);

#endif
