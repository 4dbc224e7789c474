/* SPDX-License-Identifier: BSD-2-Clause */
/* An interval as rows of the tables, in the format RowBinary. Pure. */
#ifndef PYPROF_CLICKHOUSE_INTERVAL_ROWS_H
#define PYPROF_CLICKHOUSE_INTERVAL_ROWS_H

#include "base/diag.h"
#include "clickhouse/rows.h"
#include "interval/interval.h"

/*
 * Appends the interval's rows as records (records.h): its functions, its stacks, and the profile.
 * The same interval always gives the same bytes. Returns 0, -EINVAL (its targets have different
 * modes) or -ENOMEM, with *diag set; the rows are then unchanged or, after -ENOMEM, unusable.
 */
int interval_rows_put(struct rows *r, const struct interval *iv, struct diag *diag);

/* The label with the version of the service, a column of its own. */
#define INTERVAL_VERSION "version"

#endif
