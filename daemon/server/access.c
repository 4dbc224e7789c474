// SPDX-License-Identifier: BSD-2-Clause
/* Access to the HTTP listener: see access.h. */
#include "server/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"
#include "server/address.h"

#define HOST_MAX 64

static bool token_given(const struct access *a, const struct access_asked *q)
{
	static const char scheme[] = "Bearer ";
	const char *given = q->authorization;

	if (q->password)
		return secret_equal(a->token, q->password, strlen(q->password));
	if (!given || strncasecmp(given, scheme, strlen(scheme)) != 0)
		return false;
	given += strlen(scheme);
	given += strspn(given, " ");
	return secret_equal(a->token, given, strlen(given));
}

/* The host's name without the port, which may be that of a tunnel. */
static bool host_name(const char *host, char ret[HOST_MAX])
{
	const bool bracket = *host == '[';
	const size_t n = bracket ? strcspn(host, "]") : strcspn(host, ":");

	if (n >= HOST_MAX || (bracket && host[n] != ']'))
		return false;
	memcpy(ret, host + bracket, n - bracket);
	ret[n - bracket] = '\0';
	return true;
}

static bool is_loopback_host(const char *host)
{
	char name[HOST_MAX];
	struct in6_addr v6;
	struct in_addr v4;

	if (!host || !host_name(host, name))
		return false;
	if (strcasecmp(name, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, name, &v4) == 1)
		return address_is_loopback4(&v4);
	return inet_pton(AF_INET6, name, &v6) == 1 && address_is_loopback6(&v6);
}

static bool is_own_origin(const struct access_asked *q)
{
	const char *name = q->origin ? strstr(q->origin, "://") : NULL;

	return !q->origin || (name && q->host && strcmp(name + 3, q->host) == 0);
}

/* "none": the user typed the URL. */
static bool is_own_site(const char *site)
{
	return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

static int refuse_site(struct diag *diag, const char *what)
{
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION,
			"use the listener's own address, e.g. http://localhost:PORT/", "%s", what);
}

int access_check(const struct access *a, const struct access_asked *q,
		 struct refused_requests *count, struct diag *diag)
{
	if (!is_own_site(q->site) || !is_own_origin(q)) {
		count->site++;
		return refuse_site(diag, "the request comes from another site");
	}
	if (!a->token && !is_loopback_host(q->host)) {
		count->site++;
		return refuse_site(diag, "the request is for another host");
	}
	if (a->token && !token_given(a, q)) {
		count->token++;
		return diag_set(diag, -EACCES, PYP_EXIT_PERMISSION,
				"send the token: 'Authorization: Bearer TOKEN', or as password",
				"the token is missing or wrong");
	}
	return 0;
}
