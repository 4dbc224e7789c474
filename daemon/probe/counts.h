/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's side of mode count (bpf/count.bpf.c); private to probe/. */
#ifndef PYPROF_PROBE_COUNTS_H
#define PYPROF_PROBE_COUNTS_H

#include "probe/opts.h"

/* Invalidates the cached code of frames and the numbers of code objects. */
void counts_forget(int state_fd);

/* Reads the whole map, see probe_counts. */
int counts_read(int edges_fd, struct probe_count **ret, size_t *ret_n);

#endif
