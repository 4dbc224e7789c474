// SPDX-License-Identifier: BSD-2-Clause
/*
 * ClickHouse's HTTP interface: the statement is in the query, the rows in the body. The path of the
 * address is the database. Inserting an interval again changes nothing (clickhouse/tables.h), so
 * every failure that may pass is a reason to retry.
 *
 * The daemon's requests are compressed records. The sender remembers which functions and stacks the
 * server has acknowledged, and inserts the others, then the profiles: a stored profile's names are
 * stored. If the tables were created anew, they have another mark, and the insert fails.
 */
#include "push/clickhouse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "clickhouse/interval_rows.h"
#include "clickhouse/known.h"
#include "clickhouse/tables.h"
#include "push/gzip.h"
#include "push/inserts.h"
#include "push/transport.h"

#define ATTEMPTS 2 /* with the mark that is known, and with the present one */

/* ---- requests, in the daemon ---- */

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
	r = push_gzip(rows.data, rows.n, &rq->body, &rq->nbody);
	rq->path = strdup("");
	if (r < 0 || !rq->path)
		return diag_errno(diag, r < 0 ? -r : ENOMEM, "cannot encode an interval");
	*ret = TAKE_PTR(rq);
	return 0;
}

/* ---- answers ---- */

/* Returns whether an answer is the database's error with this code. */
static bool has_code(const struct push_answer *a, const char *code)
{
	return a->body && memmem(a->body, a->nbody < 64 ? a->nbody : 64, code, strlen(code));
}

/* No such table, database, or column: another mark */
static bool is_missing(const struct push_answer *a)
{
	return !a->error && (has_code(a, "Code: 60") || has_code(a, "Code: 81") ||
			     has_code(a, "Code: 16,") || has_code(a, "Code: 16."));
}

static void tables_missing(const struct push_answer *a, struct push_verdict *ret)
{
	push_verdict_set(ret, PUSH_RETRY, a, "the tables are missing: run `pyprofctl fleet init`");
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
	if (is_missing(a))
		tables_missing(a, ret);
	else
		push_verdict_set(ret, PUSH_RETRY, a, NULL);
}

/* ---- inserts, in the sender ---- */

struct push_memory {
	struct known known;	 /* to the tables with this mark */
	struct tables_mark mark; /* "": not known */
	bool missing;		 /* the last insert failed because the tables are other ones */
};

static struct push_memory *memory_new(void)
{
	return calloc(1, sizeof(struct push_memory));
}

static void memory_free(struct push_memory *m)
{
	known_deinit(&m->known);
	free(m);
}

static void forget(struct push_memory *m)
{
	known_forget(&m->known);
	m->mark.name[0] = '\0';
}

static uint32_t random_number(void)
{
	uint32_t ret = 0;

	return getrandom(&ret, sizeof(ret), GRND_NONBLOCK) < 0 ? (uint32_t)clock_monotonic_ns()
							       : ret;
}

static void judge_mark(void *ctx, const struct push_answer *a, struct push_verdict *ret)
{
	struct push_memory *m = ctx;
	const char *hint;
	int err;

	judge(a, ret);
	if (ret->result != PUSH_DONE)
		return;
	err = tables_mark_parse(a->body, a->nbody, &m->mark);
	if (err == -ENOENT)
		tables_missing(a, ret);
	else if (err < 0)
		push_verdict_set(ret, PUSH_RETRY, a, tables_mark_error(err, &hint));
}

static void judge_insert(void *ctx, const struct push_answer *a, struct push_verdict *ret)
{
	struct push_memory *m = ctx;

	m->missing = is_missing(a);
	judge(a, ret);
}

static char *find_mark_text(void)
{
	_cleanup_free_ char *sql = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&sql, &n);

	if (!out)
		return NULL;
	tables_write_find_mark(NULL, out);
	return fclose(out) == 0 ? TAKE_PTR(sql) : NULL;
}

static void no_memory(struct push_verdict *ret)
{
	push_verdict_set(ret, PUSH_RETRY, &(struct push_answer){.error = "out of memory"}, NULL);
}

static void find_mark(struct push_memory *m, struct transport *t, const struct push_request *of,
		      struct push_verdict *ret)
{
	_cleanup_free_ char *sql = find_mark_text();
	struct push_request rq = {.path = (char *)"", .body = (uint8_t *)sql};

	if (!sql) {
		no_memory(ret);
		return;
	}
	rq.nbody = strlen(sql);
	memcpy(rq.id, of->id, sizeof(rq.id));
	transport_post(t, &rq, judge_mark, m, ret);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

/* Returns "&query=INSERT…", owned by the caller; NULL: out of memory. */
static char *insert_path(enum tables_kind kind, const struct tables_mark *mark)
{
	_cleanup_free_ char *sql = NULL, *path = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&sql, &n);

	if (!out)
		return NULL;
	tables_write_insert(kind, NULL, mark, out);
	if (fclose(out) != 0)
		return NULL;
	out = open_memstream(&path, &n);
	if (!out)
		return NULL;
	fputs("&query=", out);
	for (const char *p = sql; *p; p++)
		fprintf(out, is_plain(*p) ? "%c" : "%%%02X", (unsigned char)*p);
	return fclose(out) == 0 ? TAKE_PTR(path) : NULL;
}

static void insert(struct push_memory *m, struct transport *t, enum tables_kind kind,
		   const struct push_zip *body, const struct push_request *of,
		   struct push_verdict *ret)
{
	_cleanup_free_ char *path = insert_path(kind, &m->mark);
	struct push_request rq = {
		.path = path,
		.headers =
			(char *)"Content-Type: application/octet-stream\nContent-Encoding: gzip\n",
		.body = body->data,
		.nbody = body->n,
	};

	if (!path) {
		no_memory(ret);
		return;
	}
	memcpy(rq.id, of->id, sizeof(rq.id));
	transport_post(t, &rq, judge_insert, m, ret);
}

/* Names before profiles. They are known when all is stored: then the mark was the same all the time. */
static void insert_all(struct push_memory *m, struct transport *t, const struct push_request *rq,
		       struct push_verdict *ret)
{
	_cleanup_(inserts_deinit) struct inserts in = {.nkeys = 0};
	int err = inserts_read(&in, rq->body, rq->nbody, &m->known);

	m->missing = false;
	if (err < 0) {
		push_verdict_set(ret, err == -ENOMEM ? PUSH_RETRY : PUSH_REFUSE,
				 &(struct push_answer){.error = "the request is damaged"}, NULL);
		return;
	}
	*ret = (struct push_verdict){.result = PUSH_DONE};
	for (int i = 0; i < TABLES_KINDS && ret->result == PUSH_DONE; i++)
		if (in.of[i].rows)
			insert(m, t, (enum tables_kind)i, &in.of[i].body, rq, ret);
	if (ret->result == PUSH_DONE)
		known_add(&m->known, in.keys, in.nkeys);
}

static void send_request(struct push_memory *m, struct transport *t, const struct push_request *rq,
			 struct push_verdict *ret)
{
	known_expire(&m->known, clock_monotonic_ns(), random_number());
	for (int i = 0; i < ATTEMPTS; i++) {
		*ret = (struct push_verdict){.result = PUSH_DONE};
		if (!m->mark.name[0])
			find_mark(m, t, rq, ret);
		if (ret->result == PUSH_DONE)
			insert_all(m, t, rq, ret);
		if (!m->missing)
			return;
		m->missing = false;
		forget(m);
	}
}

const struct push_kind push_clickhouse = {
	.name = "clickhouse",
	.path_as = "/?database=",
	.path_default = TABLES_DATABASE,
	.encode = encode,
	.judge = judge,
	.batches = true,
	.posts = ATTEMPTS * (1 + TABLES_KINDS),
	.memory_new = memory_new,
	.memory_free = memory_free,
	.send = send_request,
};
