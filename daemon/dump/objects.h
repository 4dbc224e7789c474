/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the objects of a process by type. A separate inspector process reads them, without a
 * daemon, probes or BPF, and without stopping the process.
 */
#ifndef PYPROF_DUMP_OBJECTS_H
#define PYPROF_DUMP_OBJECTS_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "python/census.h"

struct objects;

/*
 * Locates the interpreter of the process; the caller frees *ret. Exit codes 3 (no such process), 4
 * (no permission), 5 (no Python, or an unsupported one).
 */
int objects_open(pid_t pid, struct objects **ret, struct diag *diag);
void objects_free(struct objects *o);
DEFINE_FREEP(struct objects, objects_free)

/* Return the interpreter's version and the process's command line; valid as long as o. */
const char *objects_version(const struct objects *o);
const char *objects_command(const struct objects *o);

/*
 * Takes a census; the caller frees *ret with census_deinit(). It takes about 0.1 µs per object, and
 * at most INSPECT_CENSUS_MS. May be repeated.
 */
int objects_census(struct objects *o, struct census *ret, struct diag *diag);

#endif
