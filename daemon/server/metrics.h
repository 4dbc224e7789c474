/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets and clients as OpenMetrics text, or in the older text format of Prometheus. Pure. */
#ifndef PYPROF_SERVER_METRICS_H
#define PYPROF_SERVER_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "server/access.h"
#include "server/places.h"
#include "session/session.h"

#define METRICS_MIME	   "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define METRICS_PLAIN_MIME "text/plain; version=0.0.4; charset=utf-8"

struct metrics_out {
	FILE *f;
	bool plain; /* the older format */
};

/* Does this Accept header (NULL: none) ask for the older format, and not for OpenMetrics? */
bool metrics_want_plain(const char *accept);

/* Write the text for n targets and the clients, from the first # TYPE to # EOF, which the older format
 * does not have. */
void metrics_write(const struct session_status *st, size_t n, const struct dropped_clients *dropped,
		   const struct refused_requests *refused, const struct metrics_out *out);

#endif
