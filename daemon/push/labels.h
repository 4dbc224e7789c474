/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels of an interval that is made of a snapshot. Pure. */
#ifndef PYPROF_PUSH_LABELS_H
#define PYPROF_PUSH_LABELS_H

#include "interval/interval.h"

#define PUSH_SERVICE_MAX 64

/*
 * A name for a program, from its command line as a snapshot has it (words with blanks between): the
 * script's name without directory and ".py", or the module of -m; else that of the executable.
 */
const char *push_service_of(const char *cmdline, char out[PUSH_SERVICE_MAX]);

/*
 * Sets host, service, pid and python, of the snapshot's only target. service: instead of one by its
 * command line; NULL: none. Returns 0 or -ENOMEM.
 */
int push_set_labels(struct interval *iv, const char *service);

#endif
