/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes dumps of a process: an inspector (inspect/inspect.h) reads it from outside, writes nothing to
 * it and does not stop it.
 */
#ifndef PYPROF_DUMP_DUMPER_H
#define PYPROF_DUMP_DUMPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "dump/dump.h"

struct dump_opts {
	bool locals; /* read local variables, which may be secrets */
};

/* The source of dumps of one process. */
struct dumper;

/*
 * Locates the interpreter of the process; the caller frees *ret. Exit codes as for attach: 3 no
 * such process, 4 no permission, 5 not a Python that can be read.
 */
int dumper_open(pid_t pid, struct dumper **ret, struct diag *diag);
/* Takes a dump; the caller frees *ret. May be repeated. Errors: the process has ended or executed
 * another program, or its memory cannot be read. */
int dumper_take(struct dumper *from, const struct dump_opts *opts, struct dump **ret,
		struct diag *diag);
void dumper_free(struct dumper *d);
DEFINE_FREEP(struct dumper, dumper_free)

/* All three. */
int dump_take(pid_t pid, const struct dump_opts *opts, struct dump **ret, struct diag *diag);

#endif
