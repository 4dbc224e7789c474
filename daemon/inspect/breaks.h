/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breakpoints in a process's code that are not in its file. A process keeps them when a tracer was
 * killed while it detached, and pays for each hit until it ends. To be looked for while no probes of
 * ours are on. Pure, but for the memory that is read.
 */
#ifndef PYPROF_INSPECT_BREAKS_H
#define PYPROF_INSPECT_BREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"
#include "target/memory.h"

/* At how many of the plan's sites there is one. Sites that cannot be read do not count. */
unsigned int breaks_at_sites(const struct memory *mem, const struct plan *plan, uint64_t bias);

/* Is one of the plan's sites at this address of the process? */
bool breaks_is_site(const struct plan *plan, uint64_t bias, uint64_t address);

/*
 * The same for any code: `size` bytes that the process has at `address` and its file at `file`.
 * Returns how many there are, and the addresses of the first `max` of them. Pages that cannot be
 * read do not count.
 */
size_t breaks_in_text(const struct memory *mem, const uint8_t *file, size_t size, uint64_t address,
		      uint64_t *out, size_t max);

#endif
