// SPDX-License-Identifier: BSD-2-Clause
/* server/access: which requests the HTTP listener answers. */
#include "server/access.h"

#include <errno.h>

#include "harness/test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct refused_requests count;
static const struct access open_to_all = {NULL}, with_token = {TOKEN};

static int check(const struct access *a, struct access_asked q)
{
	struct diag diag = {0};
	int r = access_check(a, &q, &count, &diag);

	cr_assert(r == 0 || diag.exit == PYP_EXIT_PERMISSION);
	return r;
}

#define ASK(a, ...) check(&(a), (struct access_asked){__VA_ARGS__})

Test(access, token)
{
	const char *host = "example.org";

	cr_assert(ASK(with_token, host, .authorization = "Bearer " TOKEN) == 0);
	cr_assert(ASK(with_token, host, .authorization = "bearer  " TOKEN) == 0);
	cr_assert(ASK(with_token, host, .password = TOKEN) == 0);
	cr_assert(ASK(with_token, host, .authorization = "Basic x", .password = TOKEN) == 0);
	cr_assert(ASK(with_token, NULL, .password = TOKEN) == 0, "HTTP/1.0");
	cr_assert(count.token == 0 && count.site == 0);
	cr_assert(ASK(with_token, host) == -EACCES);
	cr_assert(ASK(with_token, "localhost") == -EACCES);
	cr_assert(ASK(with_token, host, .authorization = TOKEN) == -EACCES);
	cr_assert(ASK(with_token, host, .authorization = "Bearer " TOKEN "0") == -EACCES);
	cr_assert(ASK(with_token, host, .authorization = "Bearer ") == -EACCES);
	cr_assert(ASK(with_token, host, .authorization = "Bearer") == -EACCES);
	cr_assert(ASK(with_token, host, .password = "") == -EACCES);
	cr_assert(ASK(with_token, host, .authorization = "Bearer " TOKEN, .password = "x") ==
		  -EACCES);
	cr_assert(count.token == 8 && count.site == 0);
}

Test(access, hosts)
{
	static const char *const own[] = {"localhost",	    "LocalHost:9931", "127.0.0.1",
					  "127.0.0.1:9931", "127.3.2.1:1",    "[::1]",
					  "[::1]:9931"};
	static const char *const others[] = {"example.org",
					     "localhost.example.org",
					     "",
					     "127.0.0.1.example.org",
					     "10.0.0.1",
					     "[::2]",
					     "[::1",
					     "0.0.0.0:9931",
					     "127.1",
					     "2130706433",
					     "example.org:127.0.0.1",
					     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					     "aaaaaaaaaaaaaaaaaaaaaaaa"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		cr_assert(ASK(open_to_all, own[i]) == 0, "%s", own[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(ASK(open_to_all, others[i]) == -EPERM, "%s", others[i]);
	cr_assert(ASK(open_to_all, NULL) == -EPERM);
	cr_assert(count.site == sizeof(others) / sizeof(others[0]) + 1 && count.token == 0);
}

/* A browser keeps a password that its user typed, and sends it for other sites' pages, too. */
Test(access, browsers)
{
	const char *const authorized = "Bearer " TOKEN;

	for (int i = 0; i < 2; i++) {
		const struct access *a = i ? &with_token : &open_to_all;
		struct access_asked q = {.host = "localhost:1", .authorization = authorized};

		q.site = "none";
		cr_assert(check(a, q) == 0);
		q.site = "same-origin";
		cr_assert(check(a, q) == 0);
		q.origin = "http://localhost:1";
		cr_assert(check(a, q) == 0);
		q.site = "cross-site";
		cr_assert(check(a, q) == -EPERM);
		q.site = "same-site";
		cr_assert(check(a, q) == -EPERM);
		q.site = NULL;
		q.origin = "http://localhost:2";
		cr_assert(check(a, q) == -EPERM);
		q.origin = "null";
		cr_assert(check(a, q) == -EPERM);
	}
	cr_assert(count.site == 8);
}
