// SPDX-License-Identifier: BSD-2-Clause
/* server/history_requests: which intervals a request gets, and limits. */
#include "server/history_requests.h"

#include <errno.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "history/keep.h"

static struct keep *keep;

static void add(uint8_t id, uint64_t end, const char *service)
{
	const uint8_t bytes[INTERVAL_ID_BYTES] = {id};
	struct interval *iv = interval_new(
		bytes, end - 10, end,
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"));
	char data[2] = {(char)('a' + id), '.'};
	struct kept *k;

	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, service));
	k = kept_new(iv, memcpy(malloc(2), data, 2), 2);
	assert_ok(keep_add(keep, k));
	interval_free(iv);
}

static void setup(void)
{
	assert_ok(keep_new(1 << 20, 1 << 20, &keep));
	add(0, 110, "web");
	add(1, 120, "api");
	add(2, 130, "web-2");
}

static int ask(const char *uri, size_t room, struct response *rs, struct diag *diag)
{
	struct request rq;
	int r;

	request_init(&rq);
	response_init(rs);
	diag_clear(diag);
	assert_ok(request_parse_target(&rq, uri, diag));
	assert_ok(request_check_params(&rq, HISTORY_PARAMS, diag));
	r = history_request(keep, room, &rq, rs, diag);
	request_deinit(&rq);
	return r;
}

static void assert_bytes(const char *uri, const char *expected)
{
	struct response rs;
	struct diag diag = {0};

	assert_diag_ok(ask(uri, 100, &rs, &diag), &diag);
	cr_assert(rs.size == strlen(expected) && memcmp(rs.body, expected, rs.size) == 0,
		  "%s: %.*s", uri, (int)rs.size, rs.body);
	response_deinit(&rs);
}

TestSuite(history_requests, .init = setup);

Test(history_requests, select_by_time_and_label)
{
	assert_bytes(HISTORY_INTERVALS, "a.b.c.");
	assert_bytes(HISTORY_INTERVALS "?from=110", "b.c.");
	assert_bytes(HISTORY_INTERVALS "?from=110&to=120", "b.");
	assert_bytes(HISTORY_INTERVALS "?where=service%3D%5Eweb", "a.c.");
	assert_bytes(HISTORY_INTERVALS "?where=service%3D%5Eweb&where=service%3D2", "c.");
	assert_bytes(HISTORY_INTERVALS "?from=500", "");
	keep_free(keep);
	check_no_leaks();
}

Test(history_requests, a_list)
{
	struct response rs;
	struct diag diag = {0};

	assert_diag_ok(ask("/v1/history?to=120", 0, &rs, &diag), &diag);
	cr_assert(strstr(rs.body, "\"api\"") && !strstr(rs.body, "web-2"), "%s", rs.body);
	response_deinit(&rs);
	keep_free(keep);
	check_no_leaks();
}

Test(history_requests, errors)
{
	struct response rs;
	struct diag diag = {0};

	assert_err(ask(HISTORY_INTERVALS, 5, &rs, &diag), -ENOBUFS);
	response_deinit(&rs);
	assert_err(ask("/v1/history?from=x", 5, &rs, &diag), -EINVAL);
	response_deinit(&rs);
	assert_err(ask("/v1/history?where=service%3D(", 5, &rs, &diag), -EINVAL);
	response_deinit(&rs);
	keep_free(keep);
	keep = NULL;
	assert_err(ask("/v1/history", 5, &rs, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	response_deinit(&rs);
	check_no_leaks();
}
