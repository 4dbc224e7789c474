// SPDX-License-Identifier: BSD-2-Clause
/* Writing to a fleet's database: see fleet_write.h. */
#include "fleet_write.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "clickhouse/interval_rows.h"
#include "clickhouse/known.h"
#include "clickhouse/records.h"
#include "fleet_sql.h"

#define BATCH_BYTES ((size_t)32 * 1024 * 1024)
#define BATCH_ROWS  (1u << 19) /* of all kinds */
#define FILE_MAX    ((size_t)256 * 1024 * 1024)

/* ---- tables ---- */

/* Returns -ENOENT without *diag set if there are no tables. */
static int find_mark(struct fleet_client *c, struct tables_mark *ret, struct diag *diag)
{
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	const char *hint, *why;
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	tables_write_find_mark(fleet_database(c), sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	if (r < 0)
		return r;
	r = tables_mark_parse(answer.data, answer.n, ret);
	if (r == 0 || r == -ENOENT)
		return r;
	why = tables_mark_error(r, &hint);
	return diag_set(diag, r, PYP_EXIT_FAILURE, hint, "%s", why);
}

static int need_mark(struct fleet_client *c, struct tables_mark *ret, struct diag *diag)
{
	const char *hint, *why;
	int r = find_mark(c, ret, diag);

	if (r != -ENOENT)
		return r;
	why = tables_mark_error(r, &hint);
	return diag_set(diag, r, PYP_EXIT_FAILURE, hint, "%s", why);
}

static int new_mark(struct tables_mark *ret, struct diag *diag)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return diag_errno(diag, errno, "cannot create the tables");
	tables_mark_new(random, ret);
	return 0;
}

int fleet_create(struct fleet_client *c, struct diag *diag)
{
	struct tables_mark mark;
	bool more = true;
	int r = find_mark(c, &mark, diag);

	if (r == -ENOENT)
		r = new_mark(&mark, diag);
	for (unsigned int i = 0; more && r == 0; i++) {
		_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};

		r = fleet_sql_open(&sql, diag);
		if (r < 0)
			return r;
		more = tables_write_create(i, fleet_database(c), &mark, sql.out);
		if (more)
			r = fleet_sql_run(&sql, c, NULL, diag);
	}
	return r;
}

/* ---- rows ---- */

/* Rows to be inserted, by table; names that were inserted before are left out. */
struct batch {
	struct tables_mark mark;
	struct rows of[TABLES_KINDS];
	struct known known;
	size_t bytes, rows;
};

static void batch_deinit(struct batch *b)
{
	for (int i = 0; i < TABLES_KINDS; i++)
		rows_deinit(&b->of[i]);
	known_deinit(&b->known);
}

static int add_records(struct batch *b, const struct rows *records, struct diag *diag)
{
	struct cells c = {.p = records->data, .end = records->data + records->n};
	struct record rec;
	const uint8_t *row;

	while (record_next(&c, &rec, &row)) {
		struct rows *to = &b->of[rec.kind];

		if (known_has(&b->known, rec.key))
			continue;
		known_add(&b->known, &rec.key, 1);
		rows_put_bytes(to, row, rec.n);
		to->count++;
		b->bytes += rec.n;
		b->rows++;
		if (to->err)
			return diag_errno(diag, -to->err, "cannot insert");
	}
	return 0;
}

static int insert_kind(struct fleet_client *c, struct batch *b, enum tables_kind kind,
		       struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	tables_write_insert(kind, fleet_database(c), &b->mark, sql.out);
	r = fleet_sql_insert(&sql, c, b->of[kind].data, b->of[kind].n, diag);
	rows_deinit(&b->of[kind]);
	return r;
}

/* Names before profiles */
static int insert(struct fleet_client *c, struct batch *b, struct diag *diag)
{
	int r = 0;

	for (int i = 0; i < TABLES_KINDS && r == 0; i++)
		if (b->of[i].n)
			r = insert_kind(c, b, (enum tables_kind)i, diag);
	b->bytes = b->rows = 0;
	return r;
}

/* ---- files ---- */

/* Reads a file of limited size. */
static int read_file(const char *path, char **ret, size_t *ret_n, struct diag *diag)
{
	_cleanup_fclose_ FILE *in = fopen(path, "re");
	_cleanup_free_ char *data = NULL;
	struct stat st;

	if (!in || fstat(fileno(in), &st) < 0)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > FILE_MAX)
		return diag_errno(diag, S_ISREG(st.st_mode) ? EFBIG : EINVAL, "cannot read '%s'",
				  path);
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", path);
	*ret_n = fread(data, 1, (size_t)st.st_size, in);
	if (ferror(in))
		return diag_errno(diag, EIO, "cannot read '%s'", path);
	*ret = TAKE_PTR(data);
	return 0;
}

static int add_file(struct batch *b, const char *path, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	_cleanup_(rows_deinit) struct rows records = {0};
	_cleanup_free_ char *data = NULL;
	size_t n = 0;
	int r = read_file(path, &data, &n, diag);

	if (r == 0)
		r = interval_parse(data, n, path, &iv, diag);
	if (r == 0)
		r = interval_rows_put(&records, iv, diag);
	return r < 0 ? r : add_records(b, &records, diag);
}

int fleet_insert_files(struct fleet_client *c, char *const *files, size_t n, uint64_t *ret,
		       struct diag *diag)
{
	_cleanup_(batch_deinit) struct batch b = {.bytes = 0};
	int r = need_mark(c, &b.mark, diag);

	*ret = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = add_file(&b, files[i], diag);
		if (r == 0)
			++*ret;
		if (r == 0 && (b.bytes > BATCH_BYTES || b.rows >= BATCH_ROWS))
			r = insert(c, &b, diag);
	}
	return r == 0 ? insert(c, &b, diag) : r;
}
