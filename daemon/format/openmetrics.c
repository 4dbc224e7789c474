// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenMetrics text: calls, own time and durations of functions, for Prometheus (which can scrape a
 * request for a profile as well as /metrics). Without restrictions, the LIMIT functions with the
 * most time, because each function is as many time series as it has buckets.
 *
 * Durations are classic histograms. Their bounds are powers of two, which are bounds of the
 * exponential histograms too, so no count is approximate; they are the same in each report, as a
 * time series must be. Prometheus can store them as native histograms with custom bounds. _sum is
 * the sum of the buckets' middles: accurate to 4.4 %.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "format/brief.h"
#include "format/names.h"
#include "format/selection.h"
#include "format/writers.h"

#define LIMIT	     "30"
#define FIRST_OCTAVE 10 /* 2^10 ns: about 1 us */
#define LAST_OCTAVE  36 /* 2^36 ns: about 69 s */

static const char *const clocks[SNAPSHOT_CLOCKS] = {
	[SNAPSHOT_CPU] = "cpu", [SNAPSHOT_WALL] = "wall"};

/* The durations of a table row on one clock; view rows that differ in their qualified name. */
struct row_durations {
	struct histogram_sum sum[SNAPSHOT_CLOCKS];
};

struct writer {
	const struct view *v;
	const struct table *t;
	const struct selection *rows;
	uint64_t (*own)[SNAPSHOT_CLOCKS]; /* by table row: own time */
	/* The view's rows of each table row: a linked list of row number + 1; 0 ends it. */
	uint32_t *first, *next;
	FILE *out;
};

static void put_family(struct writer *w, const char *name, const char *type, const char *unit,
		       const char *help)
{
	fprintf(w->out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(w->out, "# UNIT %s %s\n", name, unit);
	fprintf(w->out, "# HELP %s %s\n", name, help);
}

/* Escapes a text like other text formats, then like a label's value. */
static int put_escaped(FILE *out, const char *s)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	name_print(f, s, NAME_COLUMNS);
	if (fclose(f) != 0)
		return -ENOMEM;
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		fputc(*p, out);
	}
	return 0;
}

static int put_function(struct writer *w, const char *std)
{
	int err;

	fputs("{function=\"", w->out);
	err = put_escaped(w->out, std);
	fputc('"', w->out);
	return err;
}

/* ---- the profile itself ---- */

struct remarks {
	FILE *out;
	int err;
};

static void put_remark(void *ctx, const char *label, const char *value)
{
	struct remarks *r = ctx;

	fprintf(r->out, " %s: ", label);
	if (!r->err)
		r->err = put_escaped(r->out, value);
	fputc('.', r->out);
}

static bool is_exact(const struct snapshot *s, const struct view_filter *filter)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, filter, &s->targets[i]) &&
		    !provenance_exact(s, &s->targets[i]))
			return false;
	return true;
}

/* In the help, the remarks may change with each report: unlike labels, it does not make a series. */
static int put_profile(struct writer *w, const struct format_opts *o)
{
	const struct snapshot *s = w->v->snapshot;
	struct remarks r = {w->out, 0};
	int err;

	fputs("# TYPE pyprofd_profile_exact gauge\n"
	      "# HELP pyprofd_profile_exact Whether all counts are exact.",
	      w->out);
	err = brief_lines(s, o, put_remark, &r);
	fprintf(w->out, "\npyprofd_profile_exact %d\n", is_exact(s, &o->filter));
	return err ? err : r.err;
}

/* ---- functions ---- */

static int put_calls(struct writer *w)
{
	int err = 0;

	put_family(w, "pyprofd_function_calls", "counter", NULL, "Calls of a function.");
	for (size_t i = 0; i < w->rows->n && !err; i++) {
		const struct table_row *r = &w->t->rows[w->rows->order[i]];

		fputs("pyprofd_function_calls_total", w->out);
		err = put_function(w, r->std);
		fprintf(w->out, "} %" PRIu64 "\n", r->nc);
	}
	return err;
}

static void put_seconds(struct writer *w, uint64_t ns)
{
	fprintf(w->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static int put_times(struct writer *w)
{
	int err = 0;

	put_family(w, "pyprofd_function_self_seconds", "counter", "seconds",
		   "Time in a function itself.");
	for (size_t i = 0; i < w->rows->n && !err; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS && !err; c++) {
			const uint32_t row = w->rows->order[i];

			if (!w->v->total[c])
				continue;
			fputs("pyprofd_function_self_seconds_total", w->out);
			err = put_function(w, w->t->rows[row].std);
			fprintf(w->out, ",clock=\"%s\"} ", clocks[c]);
			put_seconds(w, w->own[row][c]);
		}
	return err;
}

static int put_bucket(struct writer *w, const char *std, int clock, int octave, uint64_t n)
{
	int err;

	fputs("pyprofd_call_duration_seconds_bucket", w->out);
	err = put_function(w, std);
	fprintf(w->out, ",clock=\"%s\",le=\"", clocks[clock]);
	if (octave > LAST_OCTAVE)
		fputs("+Inf", w->out);
	else
		fprintf(w->out, "%.9f", (double)(UINT64_C(1) << octave) / 1e9);
	fprintf(w->out, "\"} %" PRIu64 "\n", n);
	return err;
}

static int put_total(struct writer *w, const char *std, int clock, const char *suffix)
{
	int err;

	fprintf(w->out, "pyprofd_call_duration_seconds_%s", suffix);
	err = put_function(w, std);
	fprintf(w->out, ",clock=\"%s\"} ", clocks[clock]);
	return err;
}

static int put_histogram(struct writer *w, const char *std, int clock,
			 const struct histogram_sum *sum)
{
	uint64_t n = 0, ns = 0;
	uint32_t bucket = 0;
	int err = 0;

	for (int octave = FIRST_OCTAVE; octave <= LAST_OCTAVE + 1 && !err; octave++) {
		const uint32_t end = octave > LAST_OCTAVE ? HISTOGRAM_BUCKETS
							  : (uint32_t)octave * HISTOGRAM_SCALE + 1;

		for (; bucket < end; bucket++) {
			n += sum->n[bucket];
			if (sum->n[bucket])
				ns += sum->n[bucket] * histogram_middle(bucket);
		}
		err = put_bucket(w, std, clock, octave, n);
	}
	if (!err)
		err = put_total(w, std, clock, "count");
	fprintf(w->out, "%" PRIu64 "\n", n);
	if (!err)
		err = put_total(w, std, clock, "sum");
	put_seconds(w, ns);
	return err;
}

static int put_row_durations(struct writer *w, uint32_t row, struct row_durations *d)
{
	int err = 0;

	*d = (struct row_durations){0};
	for (uint32_t i = w->first[row]; i; i = w->next[i - 1]) {
		const struct snapshot_func *f = &w->v->snapshot->funcs[w->v->rows[i - 1].func];

		for (int c = 0; c < SNAPSHOT_CLOCKS && f->durations; c++)
			histogram_add(&d->sum[c], &f->durations[c].histogram);
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS && !err; c++)
		if (d->sum[c].count)
			err = put_histogram(w, w->t->rows[row].std, c, &d->sum[c]);
	return err;
}

static int put_durations(struct writer *w, const struct format_opts *o)
{
	_cleanup_free_ struct row_durations *d = malloc(sizeof(*d));
	int err = 0;

	if (!d)
		return -ENOMEM;
	if (!view_has_durations(w->v->snapshot, &o->filter))
		return 0;
	put_family(w, "pyprofd_call_duration_seconds", "histogram", "seconds",
		   "Durations of complete calls, callees included.");
	for (size_t i = 0; i < w->rows->n && !err; i++)
		err = put_row_durations(w, w->rows->order[i], d);
	return err;
}

/* Figures that the mode does not measure have no family. */
static int put_all(struct writer *w, const struct format_opts *o)
{
	int err;

	for (uint32_t i = 0; i < w->v->nrows; i++) {
		const uint32_t row = w->t->row_of[w->v->rows[i].func];

		w->next[i] = w->first[row];
		w->first[row] = i + 1;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			w->own[row][c] += w->v->rows[i].tot[c];
	}
	err = put_profile(w, o);
	if (!err && w->v->ncalls)
		err = put_calls(w);
	if (!err)
		err = put_times(w);
	if (!err)
		err = put_durations(w, o);
	fputs("# EOF\n", w->out);
	return err;
}

static int put_selected(const struct view *v, const struct table *t, const struct selection *rows,
			const struct format_opts *o, FILE *out)
{
	_cleanup_free_ uint64_t(*own)[SNAPSHOT_CLOCKS] = calloc(t->nrows + 1, sizeof(*own));
	_cleanup_free_ uint32_t *first = calloc(t->nrows + 1, sizeof(*first));
	_cleanup_free_ uint32_t *next = calloc(v->nrows + 1, sizeof(*next));
	struct writer w = {v, t, rows, own, first, next, out};

	return own && first && next ? put_all(&w, o) : -ENOMEM;
}

int openmetrics_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		      FILE *out, struct diag *diag)
{
	static const char *const limit[] = {LIMIT};
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	int err = table_build(v, o->clock, &t);

	if (!o->sort)
		sorted.sort = selection_default_sort(s, &o->filter);
	if (!o->nrestrict) {
		sorted.restrict_ = limit;
		sorted.nrestrict = 1;
	}
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	return put_selected(v, t, &rows, o, out);
}
