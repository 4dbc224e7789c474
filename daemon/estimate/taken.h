/* SPDX-License-Identifier: BSD-2-Clause */
/* What probes took of a context's own time, by what they cost (private to estimate/). */
#ifndef PYPROF_ESTIMATE_TAKEN_H
#define PYPROF_ESTIMATE_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "stats/calltree.h"

/* What began and ended: a context's own activations, or its callees'. */
struct taken_ends {
	uint64_t calls, yields;
};
void taken_ends_add(struct taken_ends *to, struct taken_ends n);

/* ns; 0 where costs are not known. */
double taken_of(const struct cost *c, struct taken_ends n, struct taken_ends callees, bool pseudo);

/* Not a function: a thread's root, or time that is not known to be anybody's. */
bool taken_is_pseudo(const struct node *n);
/* Of its own wall time, that without CPU. */
double taken_waiting(const struct node *n);

#endif
