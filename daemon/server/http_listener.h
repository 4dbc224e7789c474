/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP listener for scrapers: its socket, token and certificate. On an address that other hosts
 * reach, it needs both. What it may serve is in the table of routes.
 */
#ifndef PYPROF_SERVER_HTTP_LISTENER_H
#define PYPROF_SERVER_HTTP_LISTENER_H

#include "base/cleanup.h"
#include "base/diag.h"
#include "server/access.h"
#include "server/address.h"

#define HTTP_TOKEN_BITS 128

struct http_listener_opts {
	const char *addr;	/* ADDR:PORT; NULL: there is no listener */
	const char *token_file; /* NULL: none; the same below */
	const char *cert, *key; /* PEM files; both or none */
};

struct http_listener {
	int fd; /* listening, non-blocking */
	char text[ADDRESS_TEXT];
	struct access access;
	char *token; /* owned, as those below; NULL: none */
	char *cert, *key;
};

/*
 * Read the files and listen. *ret is owned by the caller; NULL: opts->addr is NULL. Exit codes: 2
 * (options that do not fit together, files that others can read or change), 4, 7 (the address is in use).
 */
int http_listener_open(const struct http_listener_opts *opts, struct http_listener **ret,
		       struct diag *diag);
/* NULL is accepted. */
void http_listener_free(struct http_listener *l);
DEFINE_FREEP(struct http_listener, http_listener_free)

#endif
