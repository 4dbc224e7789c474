/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets of a saved snapshot, for snapshot/load.c only */
#ifndef PYPROF_SNAPSHOT_LOAD_TARGET_H
#define PYPROF_SNAPSHOT_LOAD_TARGET_H

#include "snapshot/load_json.h"

/*
 * Appends a target to l->targets. v: an element of the file's "targets". Errors: see load_json.h.
 */
void load_target(struct loader *l, const json_t *v);

#endif
