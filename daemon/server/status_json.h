/* SPDX-License-Identifier: BSD-2-Clause */
/* What the control API says about a target, as JSON. Pure. */
#ifndef PYPROF_SERVER_STATUS_JSON_H
#define PYPROF_SERVER_STATUS_JSON_H

#include <jansson.h>

#include "session/session.h"

/* What modes would cost, in percent of its own CPU time; null where that is not known. New reference. */
json_t *json_of_forecast(const struct forecast *f);

/* One target's status. New reference; NULL: no memory. */
json_t *json_of_status(const struct session_status *st);

#endif
