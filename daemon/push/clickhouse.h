/* SPDX-License-Identifier: BSD-2-Clause */
/* ClickHouse: an interval as an insert of rows, in the tables of clickhouse/tables.h. */
#ifndef PYPROF_PUSH_CLICKHOUSE_H
#define PYPROF_PUSH_CLICKHOUSE_H

#include "push/sink.h"

extern const struct push_kind push_clickhouse;

#endif
