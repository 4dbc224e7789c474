/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about slow calls (slow/slow.h), below /v1/slow. Errors as of a route's handle(). */
#ifndef PYPROF_SERVER_SLOW_REQUESTS_H
#define PYPROF_SERVER_SLOW_REQUESTS_H

#include "server/request.h"
#include "server/response.h"
#include "session/session.h"

int slow_request_begin(struct sessions *ss, const struct request *rq, struct response *rs,
		       struct diag *diag);
int slow_request_read(struct sessions *ss, const struct request *rq, uint32_t id,
		      struct response *rs, struct diag *diag);
int slow_request_end(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag);

#endif
