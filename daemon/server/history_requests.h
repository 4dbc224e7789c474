/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for the intervals that continuous mode keeps in memory. */
#ifndef PYPROF_SERVER_HISTORY_REQUESTS_H
#define PYPROF_SERVER_HISTORY_REQUESTS_H

#include <stddef.h>

#include "server/request.h"
#include "server/response.h"

struct keep;

/* from, to: ns since 1970; where: a condition of history/where.h, may be repeated */
#define HISTORY_PARAMS	  "from,to,where"
#define HISTORY_INTERVALS "/v1/history/intervals"

/*
 * Answers with a list of the intervals, or for HISTORY_INTERVALS with their bytes (history/gz.h), at
 * most `room` of them. Exit code 2: keep is NULL, as the daemon does not run in continuous mode.
 */
int history_request(const struct keep *keep, size_t room, const struct request *rq,
		    struct response *rs, struct diag *diag);

#endif
