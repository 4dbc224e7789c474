/* SPDX-License-Identifier: BSD-2-Clause */
/* The overhead as text, the same in all reports and messages. */
#ifndef PYPROF_FORMAT_OVERHEAD_H
#define PYPROF_FORMAT_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

#define OVERHEAD_TEXT 128

/*
 * "3.1 % of the process's own CPU time (0.25 s of 8.1 s)". several: of several processes. Returns
 * false if it is unknown; out is "" then.
 */
bool overhead_text(uint64_t overhead_ns, uint64_t own_cpu_ns, bool several,
		   char out[OVERHEAD_TEXT]);

#endif
