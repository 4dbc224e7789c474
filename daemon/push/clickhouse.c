// SPDX-License-Identifier: BSD-2-Clause
/*
 * ClickHouse's HTTP interface: the statement is in the query, the rows in the body. The path of the
 * address is the database. Inserting an interval again changes nothing (clickhouse/tables.h), so
 * every failure that may pass is a reason to retry.
 */
#include "push/clickhouse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clickhouse/interval_rows.h"
#include "clickhouse/tables.h"
#include "push/gzip.h"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

static int write_path(char **ret)
{
	_cleanup_free_ char *sql = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&sql, &n);

	if (!out)
		return -errno;
	tables_write_insert(NULL, out);
	if (fclose(out) != 0)
		return -errno;
	out = open_memstream(ret, &n);
	if (!out)
		return -errno;
	fputs("&query=", out);
	for (const char *p = sql; *p; p++)
		fprintf(out, is_plain(*p) ? "%c" : "%%%02X", (unsigned char)*p);
	return fclose(out) == 0 ? 0 : -errno;
}

static int encode(const struct interval *iv, struct push_request **ret, struct diag *diag)
{
	_cleanup_(push_request_freep) struct push_request *rq = calloc(1, sizeof(*rq));
	_cleanup_(rows_deinit) struct rows rows = {0};
	int r = interval_rows_put(&rows, iv, diag);

	if (r < 0)
		return r;
	if (!rq)
		return diag_errno(diag, ENOMEM, "cannot encode an interval");
	memcpy(rq->id, iv->id, sizeof(rq->id));
	r = write_path(&rq->path);
	if (r == 0)
		r = push_gzip(rows.data, rows.n, &rq->body, &rq->nbody);
	rq->headers = strdup("Content-Type: application/octet-stream\nContent-Encoding: gzip\n");
	if (r < 0 || !rq->headers)
		return diag_errno(diag, r < 0 ? -r : ENOMEM, "cannot encode an interval");
	*ret = TAKE_PTR(rq);
	return 0;
}

/* Returns whether an answer is the database's error with this code. */
static bool has_code(const struct push_answer *a, const char *code)
{
	return a->body && memmem(a->body, a->nbody < 64 ? a->nbody : 64, code, strlen(code));
}

/*
 * Errors of one interval's data are not worth a retry. The codes of missing tables and databases
 * are: they can be created. All others (memory, too many parts, read-only) may pass, too.
 */
static void judge(const struct push_answer *a, struct push_verdict *ret)
{
	static const char *const of_data[] = {"Code: 27,", "Code: 33,", "Code: 27.", "Code: 33.",
					      NULL};

	if (a->error || (a->status >= 200 && a->status < 400)) {
		push_judge_status(a, ret);
		return;
	}
	for (const char *const *c = of_data; *c; c++)
		if (has_code(a, *c)) {
			push_verdict_set(ret, PUSH_REFUSE, a, NULL);
			return;
		}
	if (has_code(a, "Code: 60") || has_code(a, "Code: 81"))
		push_verdict_set(ret, PUSH_RETRY, a,
				 "the tables are missing: run `pyprofctl fleet init`");
	else
		push_verdict_set(ret, PUSH_RETRY, a, NULL);
}

const struct push_kind push_clickhouse = {
	.name = "clickhouse",
	.path_as = "/?database=",
	.path_default = TABLES_DATABASE,
	.encode = encode,
	.judge = judge,
};
