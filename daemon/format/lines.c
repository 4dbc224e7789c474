// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines, as text: the self time of each function by source line, with its share, from samples.
 * Functions are sorted and restricted like rows of a table, in which `tottime` is the sum of a
 * function's lines. The text of the lines is shown if the options have a source for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format/names.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"
#include "snapshot/lines.h"

/* Without a restriction, the number of functions. */
#define FUNCS "10"
/* The number of lines without samples that are shown around a line with samples. */
#define AROUND 2
#define TAB    8
/* The column where source text begins, and the width of the line number. */
#define SOURCE_AT 35
#define NUMBER	  8

struct lines_report {
	const struct snapshot *s;
	const struct format_opts *o;
	FILE *out;
};

static int not_sampled(const struct snapshot *s, struct diag *diag)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].misses_calls && s->targets[i].estimate.samples)
			return diag_set(
				diag, -ENODATA, PYP_EXIT_FAILURE,
				"they are known with PYTHON_JIT=0 and CPython's own evaluator",
				"lines are unknown: compiled code does not store them");
	return diag_set(diag, -ENODATA, PYP_EXIT_FAILURE,
			"sample it: --mode sample, or --rate 999 with another mode",
			"no samples of lines of Python code");
}

/* ---- source text ---- */

/* A file's text, and the position of its lines. */
struct text {
	const char *at, *end;
	int32_t next; /* number of the line at `at` */
};

/* Returns the line, which has n bytes; NULL: the text has no such line. Lines must be in order. */
static const char *text_line(struct text *t, int32_t line, size_t *n)
{
	while (t->at < t->end) {
		const char *start = t->at;
		const char *lf = memchr(start, '\n', (size_t)(t->end - start));

		t->at = lf ? lf + 1 : t->end;
		*n = (size_t)((lf ? lf : t->end) - start);
		if (t->next++ == line)
			return start;
	}
	return NULL;
}

/* Prints what fits the line, with tabs expanded. */
static void print_source(const char *line, size_t n, FILE *out)
{
	char *copy = strndup(line, n);
	const char *p = copy;
	size_t column = 0;

	while (p && *p && *p != '\r') {
		uint32_t cp = utf8_next(&p);

		if (cp == '\t') {
			size_t blanks = TAB - column % TAB;

			fprintf(out, "%*s", (int)blanks, "");
			column += blanks;
			continue;
		}
		name_putc(out, cp);
		if (++column > NAME_REPEATED)
			break;
	}
	free(copy);
}

/* ---- a function ---- */

static void print_figures(const struct snapshot_line *l, const struct snapshot_line *sum, FILE *out)
{
	const double share = sum->self_ns ? (double)l->self_ns / (double)sum->self_ns : 0;
	const double error = sum->samples ? sqrt(share * (1 - share) / (double)sum->samples) : 0;

	fprintf(out, " %6.1f %% %5.1f %9.3f", 100 * share, 100 * error, (double)l->self_ns / 1e9);
}

static void print_line(struct lines_report *r, const struct snapshot_line *l, int32_t line,
		       const struct snapshot_line *sum, struct text *text)
{
	size_t n = 0;
	const char *source = line ? text_line(text, line, &n) : NULL;

	if (line)
		fprintf(r->out, "%*" PRId32, NUMBER, line);
	else
		fprintf(r->out, "%*s", NUMBER, "?");
	if (l)
		print_figures(l, sum, r->out);
	if (source && n) {
		fprintf(r->out, "%*s", l ? 2 : SOURCE_AT - NUMBER, "");
		print_source(source, n, r->out);
	}
	fputc('\n', r->out);
}

/* Prints the text of lines without samples, from `from` to the one before `to`; of many, the ends. */
static void print_gap(struct lines_report *r, int64_t from, int64_t to, struct text *text)
{
	const bool all = to - from <= 2 * AROUND + 1;

	for (int64_t line = from; line < to && text->at < text->end; line++) {
		if (all || line < from + AROUND || line >= to - AROUND) {
			print_line(r, NULL, (int32_t)line, NULL, text);
		} else {
			fputs("     ...\n", r->out);
			line = to - AROUND - 1;
		}
	}
}

static void print_lines(struct lines_report *r, const struct snapshot_func *f, struct text *text)
{
	const struct snapshot_line sum = snapshot_lines_sum(f);
	int64_t shown = f->firstlineno > 0 ? (int64_t)f->firstlineno - 1 : 0;
	const uint32_t unknown = f->lines[0].line ? 0 : 1;

	for (uint32_t i = unknown; i < f->nlines; i++) {
		print_gap(r, shown + 1, f->lines[i].line, text);
		print_line(r, &f->lines[i], f->lines[i].line, &sum, text);
		shown = f->lines[i].line;
	}
	print_gap(r, shown + 1, shown + 1 + AROUND, text);
	if (unknown)
		print_line(r, &f->lines[0], 0, &sum, text);
}

static void print_func(struct lines_report *r, const struct snapshot_func *f, const char *std)
{
	const struct snapshot_line sum = snapshot_lines_sum(f);
	const struct format_source *source = r->o->source;
	struct text text = {.next = 1};
	const char *note = NULL;
	size_t size = 0;

	fprintf(r->out, "%s", screen_bold(r->o));
	screen_fit(r->out, std, SCREEN_COLUMNS);
	fprintf(r->out, "%s\n   %.3f s +- %.3f of its own, %" PRIu64 " samples\n",
		screen_plain(r->o), (double)sum.self_ns / 1e9, snapshot_line_error(&sum) / 1e9,
		sum.samples);
	if (source)
		text.at = source->text(source->ctx, f->filename, &size, &note);
	text.end = text.at ? text.at + size : NULL;
	if (note) {
		fputs("   ", r->out);
		name_print(r->out, note, NAME_COLUMNS);
		fputc('\n', r->out);
	}
	fprintf(r->out, "    line    share  +- %%   seconds%s\n", text.at ? "  source" : "");
	print_lines(r, f, &text);
	fputc('\n', r->out);
}

/* Prints the selected functions' lines; returns the number of functions. */
static size_t print_funcs(struct lines_report *r, const struct table *t,
			  const struct selection *rows)
{
	size_t printed = 0;

	for (size_t i = 0; i < rows->n; i++)
		for (uint32_t f = 0; f < r->s->nfuncs; f++)
			if (r->s->funcs[f].nlines && t->row_of[f] == rows->order[i]) {
				print_func(r, &r->s->funcs[f], t->rows[rows->order[i]].std);
				printed++;
			}
	return printed;
}

/* ---- the report ---- */

/* The table of times with the functions' lines in their place. */
static int lines_table(const struct view *v, struct table **ret)
{
	const struct snapshot *s = v->snapshot;
	_cleanup_(table_freep) struct table *t = NULL;
	int err = table_build(v, SNAPSHOT_CPU, &t);

	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++) {
		t->rows[i].tt = 0;
		t->rows[i].listed = false;
	}
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		uint32_t row = s->funcs[i].nlines ? t->row_of[i] : SNAPSHOT_NONE;

		if (row == SNAPSHOT_NONE)
			continue;
		t->rows[row].tt += snapshot_lines_sum(&s->funcs[i]).self_ns;
		t->rows[row].listed = true;
	}
	*ret = TAKE_PTR(t);
	return 0;
}

int lines_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag)
{
	static const char *const few[] = {FUNCS};
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	struct lines_report r = {.s = s, .o = o, .out = out};
	struct format_opts sorted = *o;
	int err;

	if (!snapshot_has_lines(s))
		return not_sampled(s, diag);
	if (!o->sort)
		sorted.sort = "tottime";
	if (!o->nrestrict) {
		sorted.restrict_ = few;
		sorted.nrestrict = 1;
	}
	err = lines_table(v, &t);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	fprintf(out, "   CPU time by source line, from samples\n%s\n",
		rows.notes ? rows.notes : "");
	if (!print_funcs(&r, t, &rows))
		fputs("   No function that matches has samples. Record for longer, or raise "
		      "--rate.\n\n",
		      out);
	return screen_provenance(s, o, out);
}
