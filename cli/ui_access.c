// SPDX-License-Identifier: BSD-2-Clause
/* Access to the live page's server: see ui_access.h. */
#include "ui_access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/secret.h"

#define AGAIN "open the URL that `pyprofctl ui` printed"

int ui_access_init(struct ui_access *a, uint16_t port, struct diag *diag)
{
	unsigned char random[UI_TOKEN_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return diag_errno(diag, errno ? errno : EIO, "cannot get random bytes");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(a->token + 2 * i, 3, "%02x", random[i]);
	a->port = port;
	return 0;
}

/* The value of the query's first parameter, which must be "token". */
static bool token_in_query(const struct ui_access *a, const char *query)
{
	static const char key[] = "token=";

	if (!query || strncmp(query, key, strlen(key)) != 0)
		return false;
	query += strlen(key);
	return secret_equal(a->token, query, strcspn(query, "&"));
}

/* A name that an attacker's DNS server resolves to 127.0.0.1 is not one of these. */
static bool own_host(const struct ui_access *a, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char own[32];

	for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], a->port);
		if (strcmp(host, own) == 0)
			return true;
	}
	return false;
}

static bool own_origin(const struct ui_asked *q)
{
	static const char scheme[] = "http://";

	return !q->origin || (strncmp(q->origin, scheme, strlen(scheme)) == 0 &&
			      strcmp(q->origin + strlen(scheme), q->host) == 0);
}

int ui_access_check(const struct ui_access *a, const struct ui_asked *q, struct diag *diag)
{
	bool known = q->page ? token_in_query(a, q->query)
			     : q->token && secret_equal(a->token, q->token, strlen(q->token));

	if (!own_host(a, q->host))
		return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, AGAIN,
				"the request is for another host");
	if (!own_origin(q) || (!q->page && q->site && strcmp(q->site, "same-origin") != 0))
		return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, AGAIN,
				"the request comes from another page");
	if (!known)
		return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, AGAIN,
				"the token is missing or wrong");
	return 0;
}
