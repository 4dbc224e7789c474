/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports processes of the machine that may run Python, as they start, fork and end, and at no other
 * time: see bpf/arrivals.bpf.c.
 */
#ifndef PYPROF_PROBE_ARRIVALS_H
#define PYPROF_PROBE_ARRIVALS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "pyprof/bpf_arrivals.h"

struct arrivals;

/* Reports begin. Exit code 4: a capability is missing. */
int arrivals_open(struct arrivals **ret, struct diag *diag);
void arrivals_free(struct arrivals *a);
DEFINE_FREEP(struct arrivals, arrivals_free)

/* Readable when there are reports. */
int arrivals_fd(const struct arrivals *a);

/* Passes the waiting reports to fn. Returns their number or a negative errno. */
typedef void (*arrivals_fn)(void *ctx, const struct pyp_arrival *report);
int arrivals_read(struct arrivals *a, arrivals_fn fn, void *ctx);

/* The number of processes and reports for which there was no room: a scan of /proc is needed. */
uint64_t arrivals_lost(const struct arrivals *a);

/* Report the forks and the end of this process; do not report them any more. */
void arrivals_watch(struct arrivals *a, pid_t pid);
void arrivals_forget(struct arrivals *a, pid_t pid);
/* Report no more execs of this file. */
void arrivals_ignore(struct arrivals *a, const struct pyp_arrival_file *file);

#endif
