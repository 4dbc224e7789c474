/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breakpoints in a process's code that are not in its file. They remain if a tracer is killed while
 * it detaches, and cost time until the process ends. Use these functions while the daemon's probes
 * are detached. Pure, except for reading memory.
 */
#ifndef PYPROF_INSPECT_BREAKS_H
#define PYPROF_INSPECT_BREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"
#include "target/memory.h"

/* Returns the number of the plan's sites with a breakpoint. Unreadable sites do not count. */
unsigned int breaks_at_sites(const struct memory *mem, const struct plan *plan, uint64_t bias);

/* Returns whether the plan has a site at this address of the process. */
bool breaks_is_site(const struct plan *plan, uint64_t bias, uint64_t address);

/*
 * Finds breakpoints in `size` bytes of code, at `address` in the process and `file` in its file.
 * Returns their number, and the addresses of the first max in out. Unreadable pages do not count.
 */
size_t breaks_in_text(const struct memory *mem, const uint8_t *file, size_t size, uint64_t address,
		      uint64_t *out, size_t max);

#endif
