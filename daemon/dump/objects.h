/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of a process by type, read by an inspector process of its own, without a daemon,
 * probes or BPF, and without stopping the process.
 */
#ifndef PYPROF_DUMP_OBJECTS_H
#define PYPROF_DUMP_OBJECTS_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "python/census.h"

struct objects;

/* Find the interpreter of the process. Exit codes 3 (no such process), 4 (no permission), 5 (not a
 * Python that is known). */
int objects_open(pid_t pid, struct objects **ret, struct diag *diag);
void objects_free(struct objects *o);
DEFINE_FREEP(struct objects, objects_free)

/* Of the interpreter and of the process; of o's life. */
const char *objects_version(const struct objects *o);
const char *objects_command(const struct objects *o);

/* Takes some 0.1 µs an object, and at most INSPECT_CENSUS_MS; may be repeated. */
int objects_census(struct objects *o, struct census *ret, struct diag *diag);

#endif
