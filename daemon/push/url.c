// SPDX-License-Identifier: BSD-2-Clause
/* Addresses of receivers: see url.h. */
#include "push/url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define FORM	  "use KIND+https://HOST[:PORT][/PATH]"
#define NAME_MAX_ 253 /* of a DNS name */
#define ALNUM	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Messages never contain more than the part that is known to hold no secret. */
static int bad(const char *what, const char *hint, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "address of a receiver: %s", what);
}

static int parse_scheme(const char *text, struct push_url *ret, const char **ret_rest,
			struct diag *diag)
{
	const char *plus = strchr(text, '+'), *end = strstr(text, "://");
	size_t n = plus ? (size_t)(plus - text) : 0;

	if (!end || !plus || plus > end || n == 0 || n >= sizeof(ret->kind) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz") != n)
		return bad("it does not begin with a kind and a protocol", FORM, diag);
	if (strncmp(plus, "+https://", 9) == 0)
		ret->tls = true;
	else if (strncmp(plus, "+http://", 8) != 0)
		return bad("the protocol is neither http nor https", FORM, diag);
	memcpy(ret->kind, text, n);
	*ret_rest = end + 3;
	return 0;
}

/* The length of the host at s, brackets included; 0: it is none. */
static size_t host_length(const char *s)
{
	size_t n = strspn(s, ALNUM ".-_");

	if (*s != '[')
		return n <= NAME_MAX_ ? n : 0;
	n = strspn(s + 1, "0123456789abcdefABCDEF:.");
	return n >= 2 && n < 46 && s[n + 1] == ']' ? n + 2 : 0;
}

static bool is_loopback(const char *host, size_t n)
{
	return (n == 9 && strncmp(host, "localhost", n) == 0) ||
	       (n == 5 && strncmp(host, "[::1]", n) == 0) ||
	       (n >= 7 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n);
}

static int parse_port(const char *s, size_t n, struct diag *diag)
{
	char text[8] = "";
	uint64_t port;

	if (n > 0 && n < sizeof(text))
		memcpy(text, s, n);
	return parse_u64(text, 1, 65535, &port) < 0 ? bad("its port is not valid", FORM, diag) : 0;
}

static int parse_path(const char *s, struct push_url *ret, struct diag *diag)
{
	size_t n = strlen(s);

	if (strspn(s, ALNUM "/-._~%!$&'()*+,;=:@") != n)
		return bad("its path has a query, a fragment or invalid characters", FORM, diag);
	while (n > 0 && s[n - 1] == '/')
		n--;
	if (n >= sizeof(ret->path))
		return bad("its path is too long", FORM, diag);
	memcpy(ret->path, s, n);
	return 0;
}

int push_url_parse(const char *text, struct push_url *ret, struct diag *diag)
{
	struct push_url url = {.tls = false};
	const char *host = text, *end;
	size_t nhost;
	int r = parse_scheme(text, &url, &host, diag);

	if (r < 0)
		return r;
	end = host + strcspn(host, "/?#");
	if (memchr(host, '@', (size_t)(end - host)))
		return bad("it contains credentials", "put them into a file: --push-token-file",
			   diag);
	nhost = host_length(host);
	if (!nhost || (host + nhost != end && host[nhost] != ':'))
		return bad("its host is not valid", FORM, diag);
	if (host + nhost != end)
		r = parse_port(host + nhost + 1, (size_t)(end - host) - nhost - 1, diag);
	if (r == 0)
		r = parse_path(end, &url, diag);
	if (r < 0)
		return r;
	url.loopback = is_loopback(host, nhost);
	snprintf(url.origin, sizeof(url.origin), "http%s://%.*s", url.tls ? "s" : "",
		 (int)(end - host), host);
	*ret = url;
	return 0;
}

const char *push_url_text(const struct push_url *url, char buf[PUSH_URL_TEXT])
{
	snprintf(buf, PUSH_URL_TEXT, "%s+%s%s", url->kind, url->origin, url->path);
	return buf;
}
