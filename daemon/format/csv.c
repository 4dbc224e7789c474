// SPDX-License-Identifier: BSD-2-Clause
/*
 * CSV (RFC 4180): one row per function (and variant of one), both clocks, integer nanoseconds. CSV
 * has no comments, so where the figures come from is in columns as well: pids and Python versions. Resource counters, where
 * there are any, are the last columns.
 *
 * Where figures are estimates, their standard errors follow in columns behind all others; empty: not
 * known.
 *
 * Names are quoted where needed, and control characters are written as \xNN or \u{…}. A name that a
 * spreadsheet would take for a formula gets an apostrophe in front.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/metrics.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"

static const char header[] =
	"ncalls,pcalls,inflight,tottime_cpu_ns,cumtime_cpu_ns,tottime_wall_ns,cumtime_wall_ns,"
	"file,line,name,qualname,variant,pid,python_version";
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

/* " 42 43" and " 3.12.1 3.13.0" of the selected targets; the first blank is for nobody. */
static int origin(const struct snapshot *s, const struct format_opts *o, char **ret_pids,
		  char **ret_versions)
{
	size_t npids, nversions;
	FILE *pids = open_memstream(ret_pids, &npids);
	FILE *versions = open_memstream(ret_versions, &nversions);
	const char *last = "";
	int err = pids && versions ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->ntargets && !err; i++) {
		const char *version = s->targets[i].python_version;

		if (!provenance_selects(s, &o->filter, &s->targets[i]))
			continue;
		fprintf(pids, " %" PRIu32, s->targets[i].pid);
		if (version && strcmp(version, last) != 0)
			fprintf(versions, " %s", last = version);
	}
	if (pids && fclose(pids) != 0)
		err = -ENOMEM;
	if (versions && fclose(versions) != 0)
		err = -ENOMEM;
	return err;
}

int csv_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	      FILE *out, struct diag *diag)
{
	_cleanup_free_ char *pids = NULL, *versions = NULL;
	bool errors = view_has_errors(s, &o->filter);
	int err = origin(s, o, &pids, &versions);

	(void)diag;
	if (err < 0)
		return err;
	fputs(header, out);
	for (int k = 0; k < PYP_METRICS; k++)
		if (s->metrics & 1u << k)
			fprintf(out, ",%s_self,%s_cum", metrics_name((enum pyp_metric)k),
				metrics_name((enum pyp_metric)k));
	if (errors)
		fputs(error_header, out);
	fputs("\r\n", out);
	for (size_t i = 0; i < v->nrows; i++) {
		put_row(out, &s->funcs[v->rows[i].func], &v->rows[i]);
		put_text(out, pids + (*pids == ' '));
		put_text(out, versions + (*versions == ' '));
		for (int k = 0; k < PYP_METRICS && v->metrics; k++)
			if (s->metrics & 1u << k)
				fprintf(out, ",%" PRIu64 ",%" PRIu64, v->metrics[i].self[k],
					v->metrics[i].cum[k]);
		if (errors)
			put_errors(out, &s->funcs[v->rows[i].func]);
		fputs("\r\n", out);
	}
	return 0;
}
