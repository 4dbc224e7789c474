/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of receivers: "KIND+https://HOST[:PORT][/PATH]". Pure. */
#ifndef PYPROF_PUSH_URL_H
#define PYPROF_PUSH_URL_H

#include <stdbool.h>

#include "base/diag.h"

#define PUSH_KIND_MAX	16
#define PUSH_ORIGIN_MAX 300
#define PUSH_PATH_MAX	256
#define PUSH_URL_TEXT	(PUSH_KIND_MAX + PUSH_ORIGIN_MAX + PUSH_PATH_MAX)

struct push_url {
	char kind[PUSH_KIND_MAX];     /* "pyroscope" */
	char origin[PUSH_ORIGIN_MAX]; /* "https://host:4040": without a path */
	char path[PUSH_PATH_MAX];     /* "/prefix", without a slash at its end; "": none */
	bool tls;
	bool loopback; /* by its name or address: nothing leaves this machine */
};

/*
 * Parses an address. Credentials, queries and fragments are refused, because addresses are shown in
 * lists of processes and in status. Does not check whether the kind exists. Exit code 2.
 */
int push_url_parse(const char *text, struct push_url *ret, struct diag *diag);

/* Writes the address as text to buf and returns it. */
const char *push_url_text(const struct push_url *url, char buf[PUSH_URL_TEXT]);

#endif
