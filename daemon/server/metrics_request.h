/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request for /metrics: takes the snapshots that the functions' counters need, at most once a second,
 * and has the rest done in the thread that writes profiles (render.h).
 */
#ifndef PYPROF_SERVER_METRICS_REQUEST_H
#define PYPROF_SERVER_METRICS_REQUEST_H

#include "server/metrics.h"
#include "server/render.h"

struct metrics_request {
	struct sessions *sessions;
	struct totals *totals; /* borrowed until the rendering has ended */
	size_t functions;      /* of each target; 0: none */
	const char *accept;    /* the header; NULL: none */
	uint64_t now_ns;       /* CLOCK_MONOTONIC */
	struct dropped_clients dropped;
	struct refused_requests refused;
	struct pushes pushes;
};

/* Returns 0 or a negative errno. */
int metrics_request_start(const struct metrics_request *rq, size_t held, size_t max,
			  struct render **ret, struct diag *diag);

#endif
