// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text: the table that cProfile prints, byte for byte, so that readers and scripts for it keep
 * working, followed by the provenance. Without a sort key the largest functions come first. On a
 * terminal, a percentage is added, calls of generators and coroutines are distinguished from resumptions, and
 * names are cut to the width. If figures are estimates, the first line states this and figures
 * with a large error are marked; numbers of calls of which windows say nothing are not printed. Two
 * differences concern malicious names: terminal control characters are escaped, and the middle of
 * very long names is left out.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format/calls_text.h"
#include "format/extras.h"
#include "format/names.h"
#include "format/resumptions.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define SHOWN_NS 500000

#define FIGURES_COLUMNS 46 /* before the additional columns and the name */
#define NAME_LEAST	32
#define ELLIPSIS	"..."

/* windowed: numbers of calls have errors, which are of the same windows and add up */
static enum calls_certainty print_head(const struct table *t, bool estimated, bool windowed,
				       FILE *out)
{
	enum calls_certainty certainty = CALLS_CERTAIN;
	uint64_t nc = 0, cc = 0;
	double tt = 0, error = 0;

	/* Adds seconds as doubles like pstats, otherwise the last digit could differ. */
	for (size_t i = 0; i < t->nrows; i++) {
		nc += t->rows[i].gc ? 0 : t->rows[i].nc;
		cc += t->rows[i].gc ? 0 : t->rows[i].cc;
		tt += table_seconds(t->rows[i].tt);
		error += t->rows[i].nc_variance < 0 ? (double)t->rows[i].nc
						    : sqrt(t->rows[i].nc_variance);
	}
	if (windowed && nc)
		certainty = calls_certainty(nc, error < (double)nc ? error * error : -1);
	if (certainty == CALLS_UNKNOWN)
		fputs("         ? function calls ", out);
	else
		fprintf(out, "         %s%" PRIu64 " function calls ",
			certainty == CALLS_ROUGH ? "~" : "", nc);
	if (nc != cc && certainty != CALLS_UNKNOWN)
		fprintf(out, "(%" PRIu64 " primitive calls) ", cc);
	fprintf(out, "in %.3f seconds%s\n\n", tt, estimated ? ", estimated" : "");
	return certainty;
}

static void print_percall(double seconds, uint64_t n, FILE *out)
{
	if (n)
		fprintf(out, "%8.3f ", seconds / (double)n);
	else
		fputs("         ", out);
}

/*
 * A relative standard error above the limit of marks. Unknown errors and times printed as 0.000 are not marked.
 */
static bool is_rough(uint64_t ns, double variance)
{
	return ns >= SHOWN_NS && variance > 0 && sqrt(variance) > ROUGH_ABOVE * (double)ns;
}

static void print_time(double seconds, bool rough, FILE *out)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%.3f", rough ? "~" : "", seconds);
	fprintf(out, "%8s ", text);
}

/* The columns of a terminal that are left for names; 0: a file, in which names are not cut. */
static size_t name_columns(const struct format_opts *o, const struct extras *extras)
{
	size_t columns = screen_columns(o), used = FIGURES_COLUMNS + extras_columns(extras);

	if (!columns)
		return 0;
	return columns > used + NAME_LEAST ? columns - used : NAME_LEAST;
}

/* Of a path that does not fit, the last directories are kept. columns 0: it is not cut. */
static void print_name(const struct table_row *r, size_t columns, FILE *out)
{
	const char *rest = r->std, *end = r->std + strlen(r->file), *slash;

	if (!columns) {
		name_print(out, r->std, NAME_COLUMNS);
		return;
	}
	for (size_t used = 0; screen_width(rest) + used > columns; used = strlen(ELLIPSIS)) {
		slash = strchr(rest + 1, '/');
		if (!slash || slash >= end)
			break;
		rest = slash;
	}
	if (rest != r->std) {
		fputs(ELLIPSIS, out);
		columns -= strlen(ELLIPSIS);
	}
	screen_fit(out, rest, columns);
}

struct rows {
	const struct table *t;
	const struct extras *extras;
	bool errors;	 /* figures have standard errors */
	bool windowed;	 /* numbers of calls are estimated from windows, with errors */
	bool screen;	 /* of a terminal: calls are distinguished from resumptions */
	size_t columns;	 /* of names, 0: all */
	bool rough, any; /* a figure was marked; a row has resumptions */
	bool unknown;	 /* a number of calls was not printed */
	FILE *out;
};

/* Prints how many calls there are, and returns the number that the time per call refers to. */
static uint64_t print_calls(struct rows *p, uint32_t row, bool rough)
{
	const struct table_row *r = &p->t->rows[row];
	uint64_t resumed = p->screen ? extras_resumed(p->extras, row) : RESUMED_NONE;
	uint64_t started = resumed == RESUMED_NONE ? r->nc : r->nc - resumed;
	char calls[64];

	if (started != r->nc)
		snprintf(calls, sizeof(calls), "%" PRIu64 "+%" PRIu64, started, resumed);
	else if (r->nc == r->cc)
		snprintf(calls, sizeof(calls), "%s%" PRIu64, rough ? "~" : "", r->nc);
	else
		snprintf(calls, sizeof(calls), "%s%" PRIu64 "/%" PRIu64, rough ? "~" : "", r->nc,
			 r->cc);
	fprintf(p->out, "%9s ", calls);
	p->any |= started != r->nc;
	return started;
}

/* Instead of print_calls. */
static uint64_t print_unknown_calls(struct rows *p)
{
	fprintf(p->out, "%9s ", "?");
	p->unknown = true;
	return 0;
}

static void print_row(struct rows *p, uint32_t row)
{
	const struct table_row *r = &p->t->rows[row];
	bool rough_tt = p->errors && is_rough(r->tt, r->tt_variance);
	bool rough_ct = p->errors && is_rough(r->ct, r->ct_variance);
	const enum calls_certainty certainty = p->windowed ? calls_certainty(r->nc, r->nc_variance)
							   : CALLS_CERTAIN;
	const bool unknown = certainty == CALLS_UNKNOWN, rough_nc = certainty == CALLS_ROUGH;
	double tt = table_seconds(r->tt), ct = table_seconds(r->ct);
	uint64_t calls = unknown ? print_unknown_calls(p) : print_calls(p, row, rough_nc);

	print_time(tt, rough_tt, p->out);
	print_percall(tt, calls, p->out);
	print_time(ct, rough_ct, p->out);
	print_percall(ct, calls == r->nc ? r->cc : calls, p->out);
	extras_print_row(p->extras, row, p->out);
	print_name(r, p->columns, p->out);
	fputc('\n', p->out);
	p->rough |= rough_nc || rough_tt || rough_ct;
}

/* If no row is left, pstats prints nothing, not even the restrictions. */
static void print_rows(struct rows *p, const struct selection *rows, const struct format_opts *o)
{
	FILE *out = p->out;

	if (!rows->n)
		return;
	fputs("   Ordered by: ", out);
	sort_print_title(&rows->sort, out);
	fprintf(out, "\n%s\n", rows->notes);
	fputs(screen_bold(o), out);
	fputs("   ncalls  tottime  percall  cumtime  percall ", out);
	extras_print_titles(p->extras, out);
	fprintf(out, "filename:lineno(function)%s\n", screen_plain(o));
	for (size_t i = 0; i < rows->n; i++)
		print_row(p, rows->order[i]);
	if (p->any)
		fputs("\n   + is followed by resumptions of generators and coroutines", out);
	calls_print_legend(p->rough, p->unknown, out);
	fputs("\n\n", out);
}

int text_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(extras_freep) struct extras *extras = NULL;
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	struct rows p;
	enum calls_certainty sum;
	bool windowed;
	int err = table_build(v, o->clock, &t);

	if (!o->sort)
		sorted.sort = selection_default_sort(s, &o->filter);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (!err)
		err = extras_new(v, t, &sorted, &extras, diag);
	if (err < 0)
		return err;
	windowed = view_estimates_calls(s, &o->filter);
	sum = print_head(t, snapshot_guesses_counts(s), windowed, out);
	p = (struct rows){.t = t,
			  .extras = extras,
			  .errors = view_has_errors(s, &o->filter),
			  .windowed = windowed,
			  .rough = sum == CALLS_ROUGH,
			  .unknown = sum == CALLS_UNKNOWN,
			  .screen = o->width > 0,
			  .columns = name_columns(o, extras),
			  .out = out};
	print_rows(&p, &rows, o);
	return screen_provenance(s, o, out);
}
