/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of a snapshot that the client has: of saved files, of history. */
#ifndef PYPROFCTL_REPORT_H
#define PYPROFCTL_REPORT_H

#include "cmd.h"
#include "query.h"
#include "snapshot/snapshot.h"

/* Where the snapshot comes from. It is loaded when all options have been checked; *ret is owned. */
struct report_source {
	int (*load)(void *ctx, struct snapshot **ret, struct diag *diag);
	void *ctx;
};

/* Write the report that o selects. Operands from the index `first` on are patterns. */
int report_run(const struct cmd_call *call, const struct query *o, int first,
	       const struct report_source *from, struct diag *diag);

#endif
