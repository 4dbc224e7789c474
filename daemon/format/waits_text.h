/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts that the text tables of waiting share, and waiting by thread. */
#ifndef PYPROF_FORMAT_WAITS_TEXT_H
#define PYPROF_FORMAT_WAITS_TEXT_H

#include <stdio.h>

#include "base/column.h"
#include "base/diag.h"
#include "format/format_opts.h"

#define WAITS_REASONS (COLUMN_WAITS_END - COLUMN_WAITS_FIRST)

/* A thread's own figures: the sums over its calling contexts, in ns, indexed by enum column_id. */
struct waits_of_thread {
	uint64_t of[COLUMNS];
};

/* Returns the columns of waiting per thread of the snapshot, or NULL: out of memory. Owned. */
struct waits_of_thread *waits_of_threads_new(const struct snapshot *s);

/* Waiting by thread, as text: see waits_threads.c. Returns 0 or a negative errno. */
int waits_threads_write(const struct snapshot *s, const struct format_opts *o, FILE *out,
			struct diag *diag);

/* Returns -ENODATA. */
int waits_not_measured(struct diag *diag);

/* Prints " %8.3f" seconds; 0 as spaces. */
void waits_print_seconds(uint64_t ns, FILE *out);
/* Prints the system calls that "other" consists of, and processes whose GIL is unknown. */
void waits_print_other(const struct snapshot *s, FILE *out);

#endif
