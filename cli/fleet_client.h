/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP client for ClickHouse, using libcurl. Answers are limited in size and time; redirects and
 * proxies are not followed; certificates are checked.
 */
#ifndef PYPROFCTL_FLEET_CLIENT_H
#define PYPROFCTL_FLEET_CLIENT_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define FLEET_ENV "PYPROF_FLEET"

struct fleet_client;

/* An answer, or an error's text */
struct fleet_answer {
	char *data; /* owned; NULL: empty */
	size_t n;
};
void fleet_answer_deinit(struct fleet_answer *a);

/*
 * url: "clickhouse+http[s]://[USER@]HOST[:PORT][/DATABASE]"; NULL: $PYPROF_FLEET. password_file:
 * its first line is the password; NULL: none. Exit code 2 if the address is not valid.
 */
int fleet_open(const char *url, const char *password_file, struct fleet_client **ret,
	       struct diag *diag);
void fleet_free(struct fleet_client *c);
DEFINE_FREEP(struct fleet_client, fleet_free)

/* Timeout of each request in seconds. The default is 300. */
void fleet_set_timeout(struct fleet_client *c, long seconds);

const char *fleet_database(const struct fleet_client *c);

/* Run a statement. ret may be NULL. */
int fleet_run(struct fleet_client *c, const char *sql, size_t nsql, struct fleet_answer *ret,
	      struct diag *diag);

/* Run an insert statement with its rows. */
int fleet_insert(struct fleet_client *c, const char *sql, const void *rows, size_t nrows,
		 struct diag *diag);

#endif
