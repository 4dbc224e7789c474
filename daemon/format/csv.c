// SPDX-License-Identifier: BSD-2-Clause
/*
 * CSV (RFC 4180): one row per function (and per variant of it), both clocks, integer nanoseconds.
 * CSV has no comments, so the provenance is in columns with the same values in each row: processes,
 * Python versions, whether the counts are exact, lost events, host, kernel, command line,
 * executable, build-id, start and end. Then come the measured optional columns, each as the
 * function's own figure and the one including callees, and quantiles of call durations on both
 * clocks.
 *
 * If figures are estimates, columns with their standard errors come last; empty: unknown.
 *
 * Names are quoted if necessary; control characters are written as \xNN or \u{…}. A name that a
 * spreadsheet would evaluate as a formula is prefixed with an apostrophe.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/names.h"
#include "format/provenance.h"
#include "format/quantiles.h"
#include "format/writers.h"

#define PIDS_MAX 32 /* listed individually up to this number */

static const char header[] =
	"ncalls,pcalls,inflight,tottime_cpu_ns,cumtime_cpu_ns,tottime_wall_ns,cumtime_wall_ns,"
	"file,line,name,qualname,variant,pid,python_version,exact,lost,host,kernel,command,"
	"executable,"
	"build_id,start_unix_ns,end_unix_ns";
/* In the order of enum snapshot_figure. */
static const char error_header[] =
	",ncalls_error,tottime_cpu_error_ns,tottime_wall_error_ns,cumtime_cpu_error_ns,"
	"cumtime_wall_error_ns";

static void put_text(FILE *out, const char *s)
{
	fputc(',', out);
	name_print_csv(out, s);
}

static void put_row(FILE *out, const struct snapshot_func *f, const struct view_row *r)
{
	fprintf(out,
		"%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		r->ncalls, r->pcalls, r->inflight, r->tot[SNAPSHOT_CPU], r->cum[SNAPSHOT_CPU],
		r->tot[SNAPSHOT_WALL], r->cum[SNAPSHOT_WALL]);
	put_text(out, f->filename);
	fprintf(out, ",%" PRId32, f->firstlineno);
	put_text(out, f->name);
	put_text(out, f->qualname);
	fprintf(out, ",%" PRIu32, f->variant);
}

static void put_errors(FILE *out, const struct snapshot_func *f)
{
	for (int i = 0; i < SNAPSHOT_FIGURES; i++) {
		double error = snapshot_error(f, (enum snapshot_figure)i);

		if (error < 0)
			fputc(',', out);
		else
			fprintf(out, ",%.0f", error);
	}
}

/* Writes empty fields if there are no durations or the probe cost exceeds them. */
static void put_durations(FILE *out, const struct snapshot_durations *d)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		struct quantiles q = {.max = 0};

		quantiles_add(&q, d, (enum snapshot_clock)c);
		for (int k = 0; k < QUANTILES; k++) {
			uint64_t ns = quantiles_get(&q, (enum quantile)k);

			if (ns)
				fprintf(out, ",%" PRIu64, ns);
			else
				fputc(',', out);
		}
	}
}

/* ---- origin of the figures: the same columns in each row ---- */

/* Of the selected targets. */
struct origin {
	const struct snapshot_target *first;
	uint32_t n;
	uint64_t lost, start, end;
	bool exact;
};

static struct origin origin_of(const struct snapshot *s, const struct format_opts *o)
{
	struct origin r = {.exact = true, .start = UINT64_MAX};

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];

		if (!provenance_selects(s, &o->filter, t))
			continue;
		if (!r.n++)
			r.first = t;
		r.exact &= provenance_exact(s, t);
		r.lost += provenance_lost(t);
		r.start = t->start_unix_ns < r.start ? t->start_unix_ns : r.start;
		r.end = t->end_unix_ns > r.end ? t->end_unix_ns : r.end;
	}
	return r;
}

/* Lists such as "42 43" and "3.12.1 3.13.0"; for too many processes, only their number. */
static void put_lists(const struct snapshot *s, const struct format_opts *o, uint32_t n, FILE *out)
{
	const char *last = "", *blank = "";

	fputs(",\"", out);
	if (n > PIDS_MAX)
		fprintf(out, "%" PRIu32 " processes", n);
	for (uint32_t i = 0; i < s->ntargets && n <= PIDS_MAX; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i])) {
			fprintf(out, "%s%" PRIu32, blank, s->targets[i].pid);
			blank = " ";
		}
	fputs("\",\"", out);
	blank = "";
	for (uint32_t i = 0; i < s->ntargets; i++) {
		const char *version = s->targets[i].python_version;

		if (!provenance_selects(s, &o->filter, &s->targets[i]) || !version ||
		    strcmp(version, last) == 0)
			continue;
		fputs(blank, out);
		name_print_escape(out, version, "\"");
		last = version;
		blank = " ";
	}
	fputc('"', out);
}

static int put_cut(FILE *out, const char *s)
{
	_cleanup_free_ char *cut = name_cut(s, "", NAME_REPEATED);

	if (!cut)
		return -ENOMEM;
	put_text(out, cut);
	return 0;
}

/* With several processes, the columns that differ between them are empty. */
static int put_origin(const struct snapshot *s, const struct format_opts *o, FILE *out)
{
	const struct origin r = origin_of(s, o);
	const struct snapshot_target none = {0}, *t = r.n == 1 ? r.first : &none;
	int err;

	put_lists(s, o, r.n, out);
	fprintf(out, ",%d,%" PRIu64, r.n && r.exact, r.lost);
	err = put_cut(out, s->host);
	if (!err)
		err = put_cut(out, s->kernel);
	if (!err)
		err = put_cut(out, t->cmdline);
	if (!err)
		err = put_cut(out, t->exe);
	if (!err)
		err = put_cut(out, t->build_id);
	fprintf(out, ",%" PRIu64 ",%" PRIu64, r.n ? r.start : 0, r.end);
	return err;
}

/* The caller frees the result. NULL: out of memory. */
static char *origin_new(const struct snapshot *s, const struct format_opts *o)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);
	int err = out ? put_origin(s, o, out) : -ENOMEM;

	if (out && fclose(out) != 0)
		err = -ENOMEM;
	if (!err)
		return ret;
	free(ret);
	return NULL;
}

/* ---- the file ---- */

static void put_header(const struct snapshot *s, bool durations, bool errors, FILE *out)
{
	char key[COLUMN_KEY_MAX];

	fputs(header, out);
	for (int c = 0; c < COLUMNS; c++)
		if (s->measured & COLUMN_BIT(c)) {
			const char *unit = column_table[c].unit == COLUMN_NS ? "_ns" : "";

			column_key(c, key);
			fprintf(out, ",%s_self%s,%s_cum%s", key, unit, key, unit);
		}
	for (int i = 0; durations && i < QUANTILES * SNAPSHOT_CLOCKS; i++)
		fprintf(out, ",duration_%s_%s_ns", i < QUANTILES ? "cpu" : "wall",
			quantile_names[i % QUANTILES]);
	if (errors)
		fputs(error_header, out);
	fputs("\r\n", out);
}

int csv_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	      FILE *out, struct diag *diag)
{
	_cleanup_free_ char *origin = origin_new(s, o);
	bool durations = view_has_durations(s, &o->filter);
	bool errors = view_has_errors(s, &o->filter);

	(void)diag;
	if (!origin)
		return -ENOMEM;
	put_header(s, durations, errors, out);
	for (size_t i = 0; i < v->nrows; i++) {
		put_row(out, &s->funcs[v->rows[i].func], &v->rows[i]);
		fputs(origin, out);
		for (int c = 0; c < COLUMNS; c++)
			if (v->self[c])
				fprintf(out, ",%" PRIu64 ",%" PRIu64, v->self[c][i], v->cum[c][i]);
		if (durations)
			put_durations(out, s->funcs[v->rows[i].func].durations);
		if (errors)
			put_errors(out, &s->funcs[v->rows[i].func]);
		fputs("\r\n", out);
	}
	return 0;
}
