/* SPDX-License-Identifier: BSD-2-Clause */
/* A target's status as JSON. Pure. */
#ifndef PYPROF_SERVER_STATUS_JSON_H
#define PYPROF_SERVER_STATUS_JSON_H

#include <jansson.h>

#include "server/places.h"
#include "session/session.h"

/* Overhead in all as a fraction of own CPU time; null if unknown. New reference. */
json_t *json_of_overhead(uint64_t overhead_ns, uint64_t own_cpu_ns);
/* Predicted overhead by mode, in percent of own CPU time; null if unknown. New reference. */
json_t *json_of_forecast(const struct forecast *f);

/* Children that are left out, with a text about them; null if there are none. New reference. */
json_t *json_of_workers(const struct workers_use *u);

/* A target's status. New reference; NULL: out of memory. */
json_t *json_of_status(const struct session_status *st);

/* Clients that were dropped; processes that are being attached to. New references. */
json_t *json_of_dropped(const struct dropped_clients *d);
json_t *json_of_attaching(const struct sessions *ss);

/* The status of all targets (pid 0), or of one, as an array. */
json_t *json_of_targets(struct sessions *ss, pid_t pid);

#endif
