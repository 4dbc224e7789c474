// SPDX-License-Identifier: BSD-2-Clause
/* cli/ui_access and cli/ui_routes: which requests the live page's server answers. */
#include <errno.h>

#include "harness/test.h"
#include "ui_access.h"
#include "ui_routes.h"

#define PORT 4711
#define HOST "127.0.0.1:4711"

static struct ui_access access_;

static void setup(void)
{
	assert_ok(ui_access_init(&access_, PORT, NULL));
}

TestSuite(ui, .init = setup);

/* Returns whether it is allowed. */
static bool allowed(struct ui_asked q)
{
	struct diag diag = {0};
	int r = ui_access_check(&access_, &q, &diag);

	cr_assert(r == 0 || (r == -EPERM && diag.exit == PYP_EXIT_PERMISSION && diag.msg[0]));
	return r == 0;
}

Test(ui, tokens_differ_and_have_128_bits)
{
	struct ui_access other;

	assert_ok(ui_access_init(&other, PORT, NULL));
	cr_assert_eq(strspn(access_.token, "0123456789abcdef"), 32);
	cr_assert_eq(strlen(access_.token), 32);
	cr_assert_str_neq(access_.token, other.token);
}

Test(ui, token)
{
	char wrong[64], query[128];

	cr_assert(allowed((struct ui_asked){.host = HOST, .token = access_.token}));
	cr_assert(!allowed((struct ui_asked){.host = HOST}));
	cr_assert(!allowed((struct ui_asked){.host = HOST, .token = ""}));
	for (size_t i = 0; i < 32; i++) {
		snprintf(wrong, sizeof(wrong), "%s", access_.token);
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		cr_assert(!allowed((struct ui_asked){.host = HOST, .token = wrong}), "%zu", i);
		wrong[i] = '\0';
		cr_assert(!allowed((struct ui_asked){.host = HOST, .token = wrong}), "%zu", i);
	}
	snprintf(wrong, sizeof(wrong), "%s0", access_.token);
	cr_assert(!allowed((struct ui_asked){.host = HOST, .token = wrong}));

	/* In the query for the page only, in the header for all else only. */
	snprintf(query, sizeof(query), "token=%s", access_.token);
	cr_assert(allowed((struct ui_asked){.host = HOST, .query = query, .page = true}));
	cr_assert(!allowed((struct ui_asked){.host = HOST, .query = query}));
	cr_assert(!allowed((struct ui_asked){.host = HOST, .token = access_.token, .page = true}));
	snprintf(query, sizeof(query), "token=%s&x=1", access_.token);
	cr_assert(allowed((struct ui_asked){.host = HOST, .query = query, .page = true}));
	snprintf(query, sizeof(query), "x=1&token=%s", access_.token);
	cr_assert(!allowed((struct ui_asked){.host = HOST, .query = query, .page = true}));
	check_no_leaks();
}

Test(ui, host)
{
	static const char *const others[] = {"evil.example:4711",
					     "127.0.0.1",
					     "127.0.0.1:4712",
					     "127.0.0.1:47110",
					     "127.0.0.1:4711 ",
					     "localhost",
					     "",
					     "[::1]:4711"};

	cr_assert(allowed((struct ui_asked){.host = "localhost:4711", .token = access_.token}));
	cr_assert(!allowed((struct ui_asked){.host = NULL, .token = access_.token}));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(!allowed((struct ui_asked){.host = others[i], .token = access_.token}),
			  "%s", others[i]);
}

Test(ui, origin)
{
	struct ui_asked q = {.host = HOST, .token = access_.token};
	static const char *const others[] = {"http://evil.example", "null",
					     "https://" HOST,	    "http://localhost:4711",
					     "http://" HOST "0",    ""};

	q.origin = "http://" HOST;
	q.site = "same-origin";
	cr_assert(allowed(q));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		q.origin = others[i];
		cr_assert(!allowed(q), "%s", others[i]);
	}
	q.origin = NULL;
	q.site = "cross-site";
	cr_assert(!allowed(q));
	q.site = "same-site";
	cr_assert(!allowed(q));
}

static unsigned int status_of(const char *method, const char *uri)
{
	struct diag diag = {0};
	unsigned int status = 0;

	return ui_route_find(method, uri, &status, &diag) ? 200 : status;
}

Test(ui, routes)
{
	static const struct {
		const char *method, *uri;
		unsigned int status;
	} cases[] = {
		{"GET", "/", 200},
		{"GET", "/?token=x", 200},
		{"POST", "/", 405},
		{"OPTIONS", "/v1/stop", 405},
		{"GET", "/v1/status", 200},
		{"GET", "/v1/statusx", 404},
		{"GET", "/v1/status/", 404},
		{"GET", "/v1/snapshot?format=page&pid=1", 200},
		{"POST", "/v1/targets", 200},
		{"GET", "/v1/targets/12", 405},
		{"DELETE", "/v1/targets/12", 200},
		{"DELETE", "/v1/targets/", 404},
		{"DELETE", "/v1/targets/12/..", 404},
		{"DELETE", "/v1/targets/1x", 404},
		{"DELETE", "/v1/targets/%31", 404},
		{"GET", "/v1/slow/3?trees=0", 200},
		{"POST", "/v1/shutdown", 404},
		{"POST", "/v1/timelines", 404},
		{"GET", "/metrics", 404},
		{"GET", "//v1/status", 404},
		{"GET", "/ui/../v1/shutdown", 404},
		{"GET", "", 404},
		{"GET", "http://127.0.0.1/v1/status", 404},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(status_of(cases[i].method, cases[i].uri), cases[i].status, "%s %s",
			     cases[i].method, cases[i].uri);
}
