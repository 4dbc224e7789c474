/* SPDX-License-Identifier: BSD-2-Clause */
/* The sums of hours in a fleet's database: filling them, and finding those that can be used. */
#ifndef PYPROFCTL_FLEET_HOURS_H
#define PYPROFCTL_FLEET_HOURS_H

#include "clickhouse/question.h"
#include "fleet_client.h"

/* Hours that a question can use */
struct fleet_hours {
	struct question_hours *ranges; /* owned; NULL: none */
	unsigned int n;
	uint64_t used; /* differs if one of them was filled again */
};

void fleet_hours_deinit(struct fleet_hours *h);
/* Without the table, or if labels are asked for that it lacks, there are none. */
int fleet_hours_find(struct fleet_client *c, const struct question *q, struct fleet_hours *ret,
		     struct diag *diag);

struct fleet_rollup_opts {
	uint64_t from_s, until_s; /* UNIX time: hours that begin and end within */
	uint64_t now_s;
	uint64_t wait_s; /* an hour is complete this long after its end */
};

/*
 * Fill the complete hours that are not filled, or whose profiles have changed since. It may be
 * interrupted, repeated, and run several times at once. *ret: number of hours filled.
 */
int fleet_rollup(struct fleet_client *c, const struct fleet_rollup_opts *o, uint64_t *ret,
		 struct diag *diag);

#endif
