/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests below /debug/pprof/, as Go's net/http/pprof answers them: what Go's tool, Parca and the
 * scrapers of Pyroscope ask for.
 */
#ifndef PYPROF_SERVER_PPROF_REQUESTS_H
#define PYPROF_SERVER_PPROF_REQUESTS_H

#include "server/request.h"
#include "server/response.h"
#include "server/snapshot_query.h"
#include "server/spans.h"
#include "session/session.h"

#define PPROF_PROFILE_PARAMS "seconds,pid"

/* The page with links to profiles of all targets and of each. */
int pprof_request_index(struct sessions *ss, struct response *rs);
/* The command lines of the targets, or of ?pid=. */
int pprof_request_cmdline(struct sessions *ss, const struct request *rq, struct response *rs,
			  struct diag *diag);
/* There are no addresses to look up: all profiles have names. */
int pprof_request_symbol(struct response *rs);

/*
 * The profile of the next ?seconds=. Begin: checks the request, takes the first snapshot and sets the
 * span's id. Exit code 3: no target, or none that is traced.
 */
int pprof_request_begin(struct sessions *ss, const struct request *rq, struct spans *spans,
			uint32_t *ret_span, struct diag *diag);
/* End: sets the format's options, and takes the second snapshot; both belong to the caller. */
int pprof_request_end(struct sessions *ss, const struct request *rq, struct spans *spans,
		      struct snapshot_query *q, struct snapshot **ret, struct snapshot **ret_before,
		      struct diag *diag);

#endif
