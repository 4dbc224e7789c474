/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a profile request: checks them and converts them to format options. Pure. */
#ifndef PYPROF_SERVER_SNAPSHOT_QUERY_H
#define PYPROF_SERVER_SNAPSHOT_QUERY_H

#include <stdbool.h>

#include "base/diag.h"
#include "format/format.h"
#include "server/request.h"

/* The parameters of GET /v1/snapshot, for struct route */
#define SNAPSHOT_QUERY_PARAMS                                                                      \
	"format,pid,tid,clock,raw,sort,limit,restrict,reverse,strip_dirs,only_my_code,"            \
	"builtins_of,columns,depth,min_share,colour,verbose,width,by_thread,busy,since"

/* Valid as long as the request, whose strings it uses. Must not be copied, as opts.restrict_ points
 * into it. */
struct snapshot_query {
	const struct format *format;
	struct format_opts opts;
	const char *restricts[REQUEST_PARAMS_MAX + 1]; /* ends with NULL */
	bool clock_given;
	const char *attachment; /* a literal: name for the file; NULL: none */
	const char *since;	/* the name of a mark; NULL: everything */
	bool raw;		/* do not subtract the probes' time */
};

/* Fill q, which must be zeroed. -EINVAL, exit code PYP_EXIT_USAGE: a value is invalid. */
int snapshot_query_parse(const struct request *rq, struct snapshot_query *q, struct diag *diag);

#endif
