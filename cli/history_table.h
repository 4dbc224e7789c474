/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of intervals as text. Pure: JSON in, stream out. */
#ifndef PYPROFCTL_HISTORY_TABLE_H
#define PYPROFCTL_HISTORY_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * list: as GET /v1/history gives it. each: a row per interval, otherwise per process, the one with the
 * most CPU time first. Times are local.
 */
void history_table(const json_t *list, bool each, FILE *out);

#endif
