// SPDX-License-Identifier: BSD-2-Clause
/* Writes and reads censuses of objects: see objects_report.h. */
#include "dump/objects_report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_clean.h"

#define FILE_MAX_BYTES (64u << 20)
#define FORMAT	       "pyprofd-objects"
#define FIGURE_MAX     (INT64_MAX / CENSUS_TYPES_MAX)

void objects_report_deinit(struct objects_report *r)
{
	census_deinit(&r->census);
}

/* ---- the difference between two censuses ---- */

struct row {
	const char *name;
	int64_t count, bytes;		/* in the later census */
	int64_t count_diff, bytes_diff; /* change since the earlier census */
};

struct rows {
	struct row *v;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static int compare(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

static int64_t key_of(const struct row *r, bool size, bool diff)
{
	return size ? (diff ? r->bytes_diff : r->bytes) : (diff ? r->count_diff : r->count);
}

#define SORT(fn, size, diff)                                                                       \
	static int fn(const void *a, const void *b)                                                \
	{                                                                                          \
		const int r = compare(key_of(a, size, diff), key_of(b, size, diff));               \
                                                                                                   \
		return r ? r : by_name(a, b);                                                      \
	}
SORT(by_count, false, false)
SORT(by_size, true, false)
SORT(by_count_diff, false, true)
SORT(by_size_diff, true, true)

static void add_rows(struct rows *rows, const struct census *c, bool before)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const int64_t count = (int64_t)c->types[i].count,
			      bytes = (int64_t)c->types[i].bytes;

		rows->v[rows->n++] =
			before ? (struct row){c->types[i].name, 0, 0, -count, -bytes}
			       : (struct row){c->types[i].name, count, bytes, count, bytes};
	}
}

/* Merges the rows of a type that is in both censuses, and removes types without a change. */
static void unite(struct rows *rows)
{
	size_t n = 0, kept = 0;

	qsort(rows->v, rows->n, sizeof(*rows->v), by_name);
	for (size_t i = 0; i < rows->n; i++) {
		struct row *to = n ? &rows->v[n - 1] : NULL;

		if (!to || strcmp(to->name, rows->v[i].name) != 0) {
			rows->v[n++] = rows->v[i];
			continue;
		}
		to->count += rows->v[i].count;
		to->bytes += rows->v[i].bytes;
		to->count_diff += rows->v[i].count_diff;
		to->bytes_diff += rows->v[i].bytes_diff;
	}
	for (size_t i = 0; i < n; i++)
		if (rows->v[i].count_diff || rows->v[i].bytes_diff)
			rows->v[kept++] = rows->v[i];
	rows->n = kept;
}

/* The caller frees ret->v. Its names belong to the reports. */
static int make_rows(const struct objects_report *r, const struct objects_report *before,
		     const struct objects_report_opts *opts, struct rows *ret)
{
	struct rows rows = {0};
	const bool size = opts->sort == OBJECTS_BY_SIZE;

	rows.v = calloc((size_t)r->census.n + (before ? before->census.n : 0) + 1, sizeof(*rows.v));
	if (!rows.v)
		return -ENOMEM;
	add_rows(&rows, &r->census, false);
	if (before) {
		add_rows(&rows, &before->census, true);
		unite(&rows);
	}
	qsort(rows.v, rows.n, sizeof(*rows.v),
	      before ? (size ? by_size_diff : by_count_diff) : (size ? by_size : by_count));
	*ret = rows;
	return 0;
}

/* ---- text ---- */

static void print_notes(const struct objects_report *r, FILE *out)
{
	const struct census *c = &r->census;

	if (c->limited)
		fputs("WARNING: limit of objects or time reached: figures are lower bounds\n", out);
	if (c->torn)
		fprintf(out,
			"WARNING: %" PRIu32 " of %" PRIu32 " lists changed during all %" PRIu32
			" reads: some objects are not counted\n",
			c->torn, c->lists, c->passes);
	if (c->unconfirmed)
		fprintf(out,
			"note: %" PRIu64 " objects were read during a garbage collection or other "
			"changes\n",
			c->unconfirmed);
	if (c->other)
		fprintf(out, "note: %" PRIu64 " objects of further types are not listed\n",
			c->other);
}

static double mib(int64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_head(const struct objects_report *r, const struct objects_report *before,
		       FILE *out)
{
	const struct census *c = &r->census;

	fprintf(out,
		"Objects of the garbage collector in process %d (Python %s): %" PRIu64
		" objects, %.1f MiB\n",
		r->pid, r->version, c->objects, mib((int64_t)c->bytes));
	if (before)
		fprintf(out,
			"%.1f seconds before: %" PRIu64 " objects, %.1f MiB; now %+" PRId64
			" objects, %+.1f MiB\n",
			((double)r->time_ns - (double)before->time_ns) / 1e9,
			before->census.objects, mib((int64_t)before->census.bytes),
			(int64_t)(c->objects - before->census.objects),
			mib((int64_t)(c->bytes - before->census.bytes)));
	print_notes(r, out);
}

int objects_report_write_text(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out)
{
	struct rows rows;
	size_t n;
	int err = make_rows(r, before, opts, &rows);

	if (err < 0)
		return err;
	n = opts->limit && opts->limit < rows.n ? (size_t)opts->limit : rows.n;
	print_head(r, before, out);
	if (before)
		fprintf(out, "\n%12s %14s %12s %14s  %s\n", "+count", "+bytes", "count", "bytes",
			"type");
	else
		fprintf(out, "\n%12s %14s %9s  %s\n", "count", "bytes", "bytes/n", "type");
	for (size_t i = 0; i < n; i++) {
		const struct row *w = &rows.v[i];

		if (before)
			fprintf(out,
				"%+12" PRId64 " %+14" PRId64 " %12" PRId64 " %14" PRId64 "  %s\n",
				w->count_diff, w->bytes_diff, w->count, w->bytes, w->name);
		else
			fprintf(out, "%12" PRId64 " %14" PRId64 " %9" PRId64 "  %s\n", w->count,
				w->bytes, w->count ? w->bytes / w->count : 0, w->name);
	}
	if (n < rows.n)
		fprintf(out, "... and %zu more types (--limit)\n", rows.n - n);
	free(rows.v);
	return ferror(out) ? -EIO : 0;
}

/* ---- JSON ---- */

static json_t *row_json(const struct row *w, bool diff)
{
	if (!diff)
		return json_pack("{s:s, s:I, s:I}", "type", w->name, "count", (json_int_t)w->count,
				 "bytes", (json_int_t)w->bytes);
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "type", w->name, "count",
			 (json_int_t)w->count, "bytes", (json_int_t)w->bytes, "count_diff",
			 (json_int_t)w->count_diff, "bytes_diff", (json_int_t)w->bytes_diff);
}

static json_t *head_json(const struct objects_report *r, const struct objects_report *before)
{
	const struct census *c = &r->census;
	char command[sizeof(r->command)];
	json_t *j = json_pack(
		"{s:s, s:i, s:i, s:I, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:I, s:I, s:b}",
		"format", FORMAT, "version", 1, "pid", r->pid, "time_ns", (json_int_t)r->time_ns,
		"python", r->version, "command", utf8_clean(r->command, command, sizeof(command)),
		"objects", (json_int_t)c->objects, "bytes", (json_int_t)c->bytes, "interpreters",
		(int)c->interpreters, "lists", (int)c->lists, "passes", (int)c->passes, "torn",
		(int)c->torn, "unconfirmed", (json_int_t)c->unconfirmed, "other",
		(json_int_t)c->other, "limited", c->limited);

	if (j && before &&
	    json_object_set_new(j, "since",
				json_pack("{s:I, s:I, s:I}", "time_ns", (json_int_t)before->time_ns,
					  "objects", (json_int_t)before->census.objects, "bytes",
					  (json_int_t)before->census.bytes)) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

int objects_report_write_json(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out)
{
	struct rows rows;
	json_t *j, *types = json_array();
	int err = make_rows(r, before, opts, &rows);

	if (err < 0) {
		json_decref(types);
		return err;
	}
	for (size_t i = 0; i < rows.n && (!opts->limit || i < opts->limit); i++)
		if (json_array_append_new(types, row_json(&rows.v[i], before != NULL)) < 0)
			err = -ENOMEM;
	free(rows.v);
	j = head_json(r, before);
	if (!j || json_object_set(j, "types", types) < 0)
		err = -ENOMEM;
	if (!err && (json_dumpf(j, out, JSON_INDENT(1)) < 0 || fputc('\n', out) < 0))
		err = -EIO;
	json_decref(types);
	json_decref(j);
	return err;
}

static int load_number(const json_t *j, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(j, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > FIGURE_MAX)
		return -EINVAL;
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

static int load_type(const json_t *j, struct census_type *ret)
{
	const char *name = json_string_value(json_object_get(j, "type"));
	char clean[CENSUS_NAME_MAX];

	if (!name || load_number(j, "count", &ret->count) || load_number(j, "bytes", &ret->bytes))
		return -EINVAL;
	ret->name = strdup(utf8_clean(name, clean, sizeof(clean)));
	return ret->name ? 0 : -ENOMEM;
}

static int load_types(const json_t *types, struct census *c)
{
	const size_t n = json_array_size(types);
	int r = json_is_array(types) && n <= CENSUS_TYPES_MAX ? 0 : -EINVAL;

	if (r < 0)
		return r;
	c->types = calloc(n + 1, sizeof(*c->types));
	if (!c->types)
		return -ENOMEM;
	for (; c->n < n && r == 0; c->n++)
		r = load_type(json_array_get(types, c->n), &c->types[c->n]);
	return r;
}

static int load_report(const json_t *j, struct objects_report *r)
{
	const char *format = json_string_value(json_object_get(j, "format"));
	uint64_t version;

	if (!format || strcmp(format, FORMAT) != 0 || load_number(j, "version", &version) ||
	    version != 1 || json_object_get(j, "since"))
		return -EINVAL;
	r->time_ns = (uint64_t)json_integer_value(json_object_get(j, "time_ns"));
	if (load_number(j, "objects", &r->census.objects) ||
	    load_number(j, "bytes", &r->census.bytes))
		return -EINVAL;
	return load_types(json_object_get(j, "types"), &r->census);
}

int objects_report_load(const char *path, struct objects_report *ret, struct diag *diag)
{
	struct objects_report r = {0};
	FILE *f = fopen(path, "re");
	char *text;
	size_t n;
	json_t *j;
	int err;

	if (!f)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	text = malloc(FILE_MAX_BYTES);
	n = text ? fread(text, 1, FILE_MAX_BYTES, f) : 0;
	(void)fclose(f);
	j = text && n < FILE_MAX_BYTES ? json_loadb(text, n, 0, NULL) : NULL;
	free(text);
	err = j ? load_report(j, &r) : -EINVAL;
	json_decref(j);
	if (err < 0) {
		objects_report_deinit(&r);
		return diag_set(diag, err, PYP_EXIT_USAGE,
				"`pyprofctl objects PID --json -o FILE.json` saves one",
				"'%s' is not a saved census of objects", path);
	}
	*ret = r;
	return 0;
}
