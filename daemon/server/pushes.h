/* SPDX-License-Identifier: BSD-2-Clause */
/* The receivers of pushed intervals in status and metrics. */
#ifndef PYPROF_SERVER_PUSHES_H
#define PYPROF_SERVER_PUSHES_H

#include <jansson.h>
#include <stddef.h>

#include "push/pusher.h"
#include "server/exposition.h"

/* An array with one object per receiver; empty if p is NULL. A new reference. */
json_t *json_of_pushes(const struct pusher *p);

/* The state of all receivers, for the thread that writes metrics */
struct pushes {
	struct push_status v[PUSHER_MAX];
	size_t n;
};

void pushes_get(const struct pusher *p, struct pushes *ret);
/* Their metrics; nothing if there are no receivers. */
void pushes_write_metrics(const struct pushes *p, struct exposition *e);

#endif
