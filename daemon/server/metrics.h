/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets and clients as OpenMetrics text. Pure. */
#ifndef PYPROF_SERVER_METRICS_H
#define PYPROF_SERVER_METRICS_H

#include <stdio.h>

#include "server/places.h"
#include "session/session.h"

#define METRICS_MIME "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Write the text for n targets and the clients, from the first # TYPE to # EOF. */
void metrics_write(const struct session_status *st, size_t n, const struct dropped_clients *dropped,
		   FILE *out);

#endif
