/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of a fleet: questions to the database, and their answers as a snapshot. */
#ifndef PYPROFCTL_FLEET_FETCH_H
#define PYPROFCTL_FLEET_FETCH_H

#include "clickhouse/answer.h"
#include "clickhouse/question.h"
#include "fleet_client.h"

/*
 * Fetch the sum of all profiles that match. *ret belongs to the caller. If profiles arrive between
 * the questions, asks again; after some attempts fails with -EAGAIN.
 */
int fleet_fetch(struct fleet_client *c, const struct question *q, struct snapshot **ret,
		struct diag *diag);

/* Print a label's values as a table, or as JSON. */
int fleet_print_values(struct fleet_client *c, const struct question *q, const char *label,
		       bool json, FILE *out, struct diag *diag);

#endif
