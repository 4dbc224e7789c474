/* SPDX-License-Identifier: BSD-2-Clause */
/* A statement for a fleet's database, as text that is written and then run. */
#ifndef PYPROFCTL_FLEET_SQL_H
#define PYPROFCTL_FLEET_SQL_H

#include <stdio.h>

#include "fleet_client.h"

/* Zeroed: empty. */
struct fleet_sql {
	FILE *out; /* to be written to; NULL: not open */
	char *text;
	size_t n;
};

int fleet_sql_open(struct fleet_sql *s, struct diag *diag);
void fleet_sql_deinit(struct fleet_sql *s);

/* Closes and runs it. ret may be NULL. */
int fleet_sql_run(struct fleet_sql *s, struct fleet_client *c, struct fleet_answer *ret,
		  struct diag *diag);
/* The same for an insert, with its rows. */
int fleet_sql_insert(struct fleet_sql *s, struct fleet_client *c, const void *rows, size_t nrows,
		     struct diag *diag);

#endif
