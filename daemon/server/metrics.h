/* SPDX-License-Identifier: BSD-2-Clause */
/* What /metrics has: families of targets, of their functions, and of clients. Pure. */
#ifndef PYPROF_SERVER_METRICS_H
#define PYPROF_SERVER_METRICS_H

#include <stdio.h>

#include "server/access.h"
#include "server/exposition.h"
#include "server/pushes.h"
#include "server/places.h"
#include "server/totals.h"
#include "session/session.h"

struct metrics {
	const struct session_status *st; /* of n targets */
	size_t n;
	const struct totals *totals;
	struct dropped_clients dropped;
	struct refused_requests refused;
	struct pushes pushes;
};

/* Returns 0 or -ENOMEM. */
int metrics_write(const struct metrics *m, enum exposition_form form, FILE *out);

#endif
