// SPDX-License-Identifier: BSD-2-Clause
/* Requests for ClickHouse: the rows of the interval, compressed; which answers mean what. */
#include "clickhouse/interval_rows.h"
#include "harness/gunzip.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "push/kinds.h"

static const struct push_kind *kind(void)
{
	const struct push_kind *k = push_kind_find("clickhouse", NULL);

	cr_assert(k);
	return k;
}

Test(push_clickhouse, requests_are_compressed_records)
{
	struct interval *iv =
		interval_new((const uint8_t[INTERVAL_ID_BYTES]){7}, 1000, 2000, snapshot_random(3));
	struct push_request *rq = NULL;
	struct rows rows = {0};
	struct diag diag = {0};
	uint8_t *body;
	size_t n;

	assert_diag_ok(kind()->encode(iv, &rq, &diag), &diag);
	assert_diag_ok(interval_rows_put(&rows, iv, &diag), &diag);
	cr_assert(rq->id[0] == 7);
	body = gunzip(rq->body, rq->nbody, &n);
	cr_assert_eq(n, rows.n);
	assert_bytes_eq(body, rows.data, rows.n);
	free(body);
	rows_deinit(&rows);
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

static enum push_result judge(unsigned int status, const char *body)
{
	struct push_answer a = {
		.status = status, .body = (const uint8_t *)body, .nbody = strlen(body)};
	struct push_verdict v;

	kind()->judge(&a, &v);
	return (enum push_result)v.result;
}

Test(push_clickhouse, only_errors_of_the_data_are_final)
{
	struct push_answer none = {.error = "cut off"};
	struct push_verdict v;

	cr_assert_eq(judge(200, ""), PUSH_DONE);
	cr_assert_eq(judge(500, "Code: 241, e.displayText() = DB::Exception: Memory"), PUSH_RETRY);
	cr_assert_eq(judge(500, "Code: 252. DB::Exception: Too many parts"), PUSH_RETRY);
	cr_assert_eq(judge(404, "Code: 60, e.displayText() = DB::Exception: Table"), PUSH_RETRY);
	cr_assert_eq(judge(500, "Code: 16, e.displayText() = No such column"), PUSH_RETRY);
	cr_assert_eq(judge(400, "Code: 27, e.displayText() = DB::Exception: Cannot"), PUSH_REFUSE);
	cr_assert_eq(judge(500, "Code: 33. DB::Exception: Cannot read all data"), PUSH_REFUSE);
	cr_assert_eq(judge(400, "<html>"), PUSH_RETRY);
	kind()->judge(&none, &v);
	cr_assert_eq(v.result, PUSH_RETRY);
}
