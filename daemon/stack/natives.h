/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C functions of which only an instruction address is known. Their name is that of the file mapped
 * there, "<native code in libz.so.1>", which is looked up once per address range. The numbers of
 * ranges and of lookups are limited; addresses without a file or beyond the limits are "<native
 * code>". (Dynamic symbols would rarely add information: an extension exports its PyInit function,
 * but not the static functions that Python calls.)
 *
 * Mappings are assumed to be permanent: if another library replaces one, the old name remains.
 */
#ifndef PYPROF_STACK_NATIVES_H
#define PYPROF_STACK_NATIVES_H

#include <stdint.h>

#include "base/native_code.h"
#include "stats/func.h"

#define NATIVES_MAX	 256u /* ranges */
#define NATIVES_FAILURES 16u  /* failed lookups, after which there are no further ones */

/* Fills *ret for an address. Returns 0 or a negative errno. May take milliseconds. */
typedef int (*natives_find_fn)(void *ctx, uint64_t address, struct native_code *ret);

struct native_range {
	uint64_t start, end;
	uint32_t func;
};

/* Zeroed: no lookup function. */
struct natives {
	natives_find_fn find;
	void *ctx;		/* argument of find */
	struct native_range *v; /* sorted, without overlaps */
	uint32_t n, cap, failures;
};

void natives_deinit(struct natives *n);
/* Discards all ranges, because the addresses are no longer valid. */
void natives_forget(struct natives *n);

/* Returns the function for the code at an address, which is added to funcs if it is new. */
uint32_t natives_func(struct natives *n, struct funcs *funcs, uint64_t address);

#endif
