/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to the live page's server: which requests are answered. Any program of this machine, and any
 * web page in the user's browser, can send requests to its port. Pure.
 *
 * A request is answered only if it has the token, which is in the URL that the command prints: in the
 * query of the page itself, else in a header. A cookie would be sent to the servers of all ports.
 */
#ifndef PYPROFCTL_UI_ACCESS_H
#define PYPROFCTL_UI_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

#define UI_TOKEN_BYTES	16
#define UI_TOKEN_SIZE	(2 * UI_TOKEN_BYTES + 1)
#define UI_TOKEN_HEADER "X-Pyprofd-Token"

struct ui_access {
	char token[UI_TOKEN_SIZE]; /* lower case hexadecimal digits */
	uint16_t port;
};

/* The parts of a request that decide; NULL: it does not have this header */
struct ui_asked {
	const char *host, *origin, *site; /* site: Sec-Fetch-Site */
	const char *token;		  /* from the header */
	const char *query;		  /* of the URL, without '?'; NULL: none */
	bool page;			  /* it asks for the page, so the token is in the query */
};

/* A new random token. */
int ui_access_init(struct ui_access *a, uint16_t port, struct diag *diag);

/* 0, or exit code 4 and the reason. The comparison's time does not depend on the token. */
int ui_access_check(const struct ui_access *a, const struct ui_asked *q, struct diag *diag);

#endif
