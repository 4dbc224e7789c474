/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to routes: routes.c has the table and the handlers, routes_dispatch.c selects one. */
#ifndef PYPROF_SERVER_ROUTES_PRIV_H
#define PYPROF_SERVER_ROUTES_PRIV_H

#include "server/routes.h"

#define ROUTES_PARAMS_MAX 256

/* The names of a route's parameters, comma-separated; "" if it has none. */
const char *routes_params_of(const struct route *route, char buf[ROUTES_PARAMS_MAX]);

#endif
