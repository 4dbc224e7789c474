/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating a fleet's tables, and inserting intervals from files. */
#ifndef PYPROFCTL_FLEET_WRITE_H
#define PYPROFCTL_FLEET_WRITE_H

#include <stdint.h>

#include "fleet_client.h"

/*
 * Create the database and the tables that do not exist yet. Fails if there are tables of another
 * version.
 */
int fleet_create(struct fleet_client *c, struct diag *diag);

/*
 * Insert files of intervals, several in one request. Repeating it changes nothing. *ret: their
 * number.
 */
int fleet_insert_files(struct fleet_client *c, char *const *files, size_t n, uint64_t *ret,
		       struct diag *diag);

#endif
