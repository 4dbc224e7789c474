/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python processes of this machine (of this pid namespace). */
#ifndef PYPROF_FIND_PROCESSES_H
#define PYPROF_FIND_PROCESSES_H

#include <stddef.h>

#include "base/diag.h"
#include "find/process.h"

#define PROCESSES_MAX 65536

/* All zero: empty */
struct processes {
	struct process *v; /* owned, by increasing pid */
	size_t n;
	unsigned int unreadable; /* processes that may run Python: no permission to look */
	unsigned int late;	 /* processes that could not be read before their deadline */
};

/* List them. Leaves out those that end meanwhile, and this process. *ret is freed with
 * processes_deinit(). */
int processes_list(struct processes *ret, struct diag *diag);
void processes_deinit(struct processes *l);

/* Set `cpu` to the percentage of one CPU that each used during the next ms milliseconds. */
void processes_measure(struct processes *l, unsigned int ms);

/*
 * Find out which can be traced, and their exact versions, in helper processes without privileges
 * (inspect/inspect.h). Processes with equal files are inspected once. After PROCESSES_CHECK_NS no
 * further inspection starts, and what remains is unknown. A process whose files turn out to contain
 * no interpreter is removed.
 */
#define PROCESSES_CHECK_NS 20000000000ull
void processes_check(struct processes *l);

#endif
