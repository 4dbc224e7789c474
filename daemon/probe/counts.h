/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting calls (bpf/count.bpf.c), as the daemon sees it: private to probe/. */
#ifndef PYPROF_PROBE_COUNTS_H
#define PYPROF_PROBE_COUNTS_H

#include "probe/opts.h"

/* What runs in which frame, and which code has which number, is void. */
void counts_forget(int state_fd);

/* All of the map, see probe_counts. */
int counts_read(int edges_fd, struct probe_count **ret, size_t *ret_n);

#endif
