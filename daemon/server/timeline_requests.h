/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about timelines: /v1/timelines. */
#ifndef PYPROF_SERVER_TIMELINE_REQUESTS_H
#define PYPROF_SERVER_TIMELINE_REQUESTS_H

#include "server/request.h"
#include "server/response.h"
#include "session/session.h"

int timeline_request_begin(struct sessions *ss, const struct request *rq, struct response *rs,
			   struct diag *diag);
int timeline_request_list(struct sessions *ss, struct response *rs);
int timeline_request_read(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag);
int timeline_request_end(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag);

#endif
