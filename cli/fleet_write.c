// SPDX-License-Identifier: BSD-2-Clause
/* Writing to a fleet's database: see fleet_write.h. */
#include "fleet_write.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "clickhouse/interval_rows.h"
#include "clickhouse/tables.h"

#define BATCH_BYTES ((size_t)32 * 1024 * 1024)
#define BATCH_ROWS  (1u << 19) /* of all kinds */
#define FILE_MAX    ((size_t)256 * 1024 * 1024)

int fleet_create(struct fleet_client *c, struct diag *diag)
{
	int r = 0;
	bool more = true;

	for (unsigned int i = 0; more && r == 0; i++) {
		_cleanup_free_ char *sql = NULL;
		size_t n = 0;
		FILE *out = open_memstream(&sql, &n);

		if (!out)
			return diag_errno(diag, errno, "cannot create the tables");
		more = tables_write_create(i, fleet_database(c), out);
		if (fclose(out) != 0)
			return diag_errno(diag, ENOMEM, "cannot create the tables");
		if (more)
			r = fleet_run(c, sql, n, NULL, diag);
	}
	return r;
}

static int insert(struct fleet_client *c, struct rows *rows, struct diag *diag)
{
	_cleanup_free_ char *sql = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&sql, &n);
	int r;

	if (!out)
		return diag_errno(diag, errno, "cannot insert");
	tables_write_insert(fleet_database(c), out);
	if (fclose(out) != 0)
		return diag_errno(diag, ENOMEM, "cannot insert");
	r = fleet_insert(c, sql, rows->data, rows->n, diag);
	rows_deinit(rows);
	return r;
}

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

static int add_file(struct rows *rows, const char *path, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	_cleanup_free_ char *data = NULL;
	size_t n = 0;
	int r = read_file(path, &data, &n, diag);

	if (r == 0)
		r = interval_parse(data, n, path, &iv, diag);
	return r < 0 ? r : interval_rows_put(rows, iv, diag);
}

int fleet_insert_files(struct fleet_client *c, char *const *files, size_t n, uint64_t *ret,
		       struct diag *diag)
{
	_cleanup_(rows_deinit) struct rows rows = {0};
	int r = 0;

	*ret = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = add_file(&rows, files[i], diag);
		if (r == 0)
			++*ret;
		if (r == 0 && (rows.n > BATCH_BYTES || rows.count >= BATCH_ROWS))
			r = insert(c, &rows, diag);
	}
	return r == 0 && rows.n ? insert(c, &rows, diag) : r;
}
