/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a request for a profile asks for: its parameters checked and turned into the options of a
 * format. Pure.
 */
#ifndef PYPROF_SERVER_SNAPSHOT_QUERY_H
#define PYPROF_SERVER_SNAPSHOT_QUERY_H

#include <stdbool.h>

#include "base/diag.h"
#include "format/format.h"
#include "server/request.h"

/* The parameters that GET /v1/snapshot knows, as struct route has them. */
#define SNAPSHOT_QUERY_PARAMS                                                                      \
	"format,pid,tid,clock,raw,sort,limit,restrict,reverse,strip_dirs,only_my_code,"            \
	"builtins_of,columns,depth,min_share,colour"

/* Valid as long as the request and the query itself: its texts are the request's, and
 * opts.restrict_ points into the query, which must not be copied. */
struct snapshot_query {
	const struct format *format;
	struct format_opts opts;
	const char *restricts[REQUEST_PARAMS_MAX + 1]; /* ends with NULL */
	bool clock_given;
	bool raw; /* nothing is subtracted */
};

/*
 * Fill q, which the caller has zeroed. -EINVAL, with exit code PYP_EXIT_USAGE, for a value that is
 * not valid.
 */
int snapshot_query_parse(const struct request *rq, struct snapshot_query *q, struct diag *diag);

#endif
