/* SPDX-License-Identifier: BSD-2-Clause */
/* Time that probes took of a node's own time, from measured costs (private to estimate/) */
#ifndef PYPROF_ESTIMATE_TAKEN_H
#define PYPROF_ESTIMATE_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "stats/calltree.h"

/* Numbers of activations that began and that yielded, of a node or of its callees */
struct taken_ends {
	uint64_t calls, yields;
};
void taken_ends_add(struct taken_ends *to, struct taken_ends n);

/* Returns ns; 0 if costs are unknown. */
double taken_of(const struct cost *c, struct taken_ends n, struct taken_ends callees, bool pseudo);

/* Returns whether the node is not a function, but a thread's root or unattributed time. */
bool taken_is_pseudo(const struct node *n);
/* The part of its own wall time without CPU time */
double taken_waiting(const struct node *n);

#endif
