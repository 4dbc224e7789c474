// SPDX-License-Identifier: BSD-2-Clause
/* Two snapshots compared by function: see diff.h. */
#include "format/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/diff_rates.h"
#include "format/jsonout.h"
#include "format/names.h"
#include "format/provenance.h"

static const char *const clock_names[SNAPSHOT_CLOCKS] = {"cpu", "wall"};

/*
 * A property of how a snapshot's figures were produced, with texts. Snapshots with different values
 * are not comparable.
 */
struct trait {
	unsigned int (*of)(const struct snapshot *s);
	const char *words[4];
	const char *hint;
};

/* The mode of all targets, or a value for several modes. */
static unsigned int mode(const struct snapshot *s)
{
	unsigned int modes = snapshot_modes(s);

	for (unsigned int i = MODE_TRACE; i <= MODE_SAMPLE; i++)
		if (modes == 1u << i)
			return i;
	return modes ? MODE_SAMPLE + 1 : MODE_TRACE;
}

static unsigned int builtins(const struct snapshot *s)
{
	return snapshot_builtins(s);
}

static unsigned int folded(const struct snapshot *s)
{
	return s->folded;
}

static unsigned int chosen(const struct snapshot *s)
{
	return s->builtins_of != NULL;
}

static unsigned int stripped(const struct snapshot *s)
{
	return s->stripped;
}

/* Whether probe costs were subtracted: for all targets, for none, or for some. */
static unsigned int corrected(const struct snapshot *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		n += s->targets[i].corrected;
	return n == 0 ? 0 : n == s->ntargets ? 1 : 2;
}

/* --force does not override this one, because the modes have no common figures. */
static const struct trait mode_trait = {mode,
					{"was traced", "was counted", "was sampled",
					 "was made in several modes"},
					"compare snapshots taken with the same --mode"};

/* Neither this one: own times with and without C functions differ in meaning. */
static const struct trait builtins_trait = {builtins,
					    {"has no rows of C functions",
					     "has rows of C functions",
					     "has rows of C functions for some processes"},
					    "use --builtins for both snapshots or for neither"};

static const struct trait traits[] = {
	{folded,
	 {"has library code as functions of its own", "has it folded into its callers", NULL},
	 "save both with --only-my-code, or none"},
	{chosen,
	 {"has rows of all C functions", "has some of them folded into their callers", NULL},
	 "save both with --builtins-of, or none"},
	{stripped,
	 {"has whole file names", "has them without directories", NULL},
	 "save both with --strip-dirs, or none"},
	{corrected,
	 {"has the probes' own time in its figures", "has it subtracted",
	  "has it subtracted for some processes"},
	 "save both with --raw-times, or --force a comparison"},
};

static int check_clocks(const struct diff_side side[DIFF_SIDES], struct diag *diag)
{
	const struct snapshot *a = side[DIFF_BEFORE].snapshot, *b = side[DIFF_AFTER].snapshot;

	if (a->clock == b->clock)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "--clock chooses one for both",
			"'%s' shows %s time and '%s' %s time", side[DIFF_BEFORE].name,
			clock_names[a->clock], side[DIFF_AFTER].name, clock_names[b->clock]);
}

static int check_trait(const struct diff_side side[DIFF_SIDES], const struct trait *t,
		       struct diag *diag)
{
	unsigned int a = t->of(side[DIFF_BEFORE].snapshot);
	unsigned int b = t->of(side[DIFF_AFTER].snapshot);

	if (a == b)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, t->hint, "'%s' %s and '%s' %s",
			side[DIFF_BEFORE].name, t->words[a], side[DIFF_AFTER].name, t->words[b]);
}

int diff_check(const struct diff_side side[DIFF_SIDES], const struct diff_check *check,
	       struct diag *diag)
{
	int err = check_trait(side, &mode_trait, diag);

	if (!err)
		err = check_trait(side, &builtins_trait, diag);
	if (!err && !check->clock_given)
		err = check_clocks(side, diag);
	for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]) && !err && !check->force; i++)
		err = check_trait(side, &traits[i], diag);
	return err;
}

/* ---- matching ---- */

/* A function with figures on one side. */
struct entry {
	const struct snapshot_func *func;
	const struct view_row *row;
	const struct view *view;
	int side;
};

static const char *text(const char *s)
{
	return s ? s : "";
}

/* Functions with the same file can match; pseudo functions have none. */
static int compare_place(const struct snapshot_func *a, const struct snapshot_func *b)
{
	int c = (int)a->pseudo - (int)b->pseudo;

	if (!c && !a->pseudo)
		c = strcmp(text(a->filename), text(b->filename));
	return c ? c : strcmp(name_of_func(a), name_of_func(b));
}

/* Reports merge the variants of a function, so they compare equal here. */
static int compare_identity(const struct snapshot_func *a, const struct snapshot_func *b)
{
	int c = compare_place(a, b);

	if (!c)
		c = strcmp(text(a->name), text(b->name));
	return c ? c : (a->firstlineno > b->firstlineno) - (a->firstlineno < b->firstlineno);
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return compare_identity(a->func, b->func);
}

/* Adds an entry's figures to its side of the row; the row gets its index at the first entry. */
static void add_figures(struct diff *d, uint32_t *at, uint32_t *places, const struct entry *e)
{
	size_t row = (size_t)(e->row - e->view->rows);

	if (!*at)
		*at = ++*places;
	for (int c = 0; c < COLUMNS; c++)
		if (d->self[c]) {
			column_merge(c, &d->self[c][*at], e->view->self[c][row]);
			column_merge(c, &d->cum[c][*at], e->view->cum[c][row]);
		}
}

/* Merges adjacent entries of one function (variants, and both sides) into one row. */
static void join_same(struct diff *d, const struct entry *e, size_t n)
{
	uint32_t places = 0;

	for (size_t i = 0; i < n; i++) {
		struct diff_row *row;

		if (i == 0 || compare_identity(e[i - 1].func, e[i].func) != 0)
			d->nrows++;
		row = &d->rows[d->nrows - 1];
		row->func[e[i].side] = e[i].func;
		row->ncalls[e[i].side] += e[i].row->ncalls;
		row->tot[e[i].side] += e[i].row->tot[d->clock];
		row->cum[e[i].side] += e[i].row->cum[d->clock];
		add_figures(d, &row->figures[e[i].side], &places, &e[i]);
	}
}

static const struct snapshot_func *func_of(const struct diff_row *r)
{
	return r->func[DIFF_AFTER] ? r->func[DIFF_AFTER] : r->func[DIFF_BEFORE];
}

/*
 * Among rows with the same file and name: merges one that is only before with one only after, if
 * each is unique.
 */
static void join_moved(struct diff_row *rows, size_t n)
{
	struct diff_row *left[DIFF_SIDES] = {NULL}, *to, *from;
	size_t count[DIFF_SIDES] = {0};

	for (size_t i = 0; i < n; i++) {
		int side = rows[i].func[DIFF_BEFORE] ? DIFF_BEFORE : DIFF_AFTER;

		if (rows[i].func[!side])
			continue;
		left[side] = &rows[i];
		count[side]++;
	}
	if (count[DIFF_BEFORE] != 1 || count[DIFF_AFTER] != 1)
		return;
	to = left[DIFF_AFTER];
	from = left[DIFF_BEFORE];
	to->func[DIFF_BEFORE] = from->func[DIFF_BEFORE];
	to->ncalls[DIFF_BEFORE] = from->ncalls[DIFF_BEFORE];
	to->tot[DIFF_BEFORE] = from->tot[DIFF_BEFORE];
	to->cum[DIFF_BEFORE] = from->cum[DIFF_BEFORE];
	to->figures[DIFF_BEFORE] = from->figures[DIFF_BEFORE];
	from->func[DIFF_BEFORE] = NULL; /* marks the row as empty */
}

static void match(struct diff *d, const struct entry *e, size_t n)
{
	size_t kept = 0;

	join_same(d, e, n);
	for (size_t i = 0, end; i < d->nrows; i = end) {
		for (end = i + 1; end < d->nrows &&
				  compare_place(func_of(&d->rows[i]), func_of(&d->rows[end])) == 0;)
			end++;
		join_moved(&d->rows[i], end - i);
	}
	for (size_t i = 0; i < d->nrows; i++)
		if (func_of(&d->rows[i]))
			d->rows[kept++] = d->rows[i];
	d->nrows = kept;
}

/* ---- order ---- */

/* Sums from a malicious file may have wrapped: compare the differences as printed. */
static int64_t change(const uint64_t v[DIFF_SIDES])
{
	return (int64_t)(v[DIFF_AFTER] - v[DIFF_BEFORE]);
}

static int descending(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

static int compare_rows(const void *left, const void *right)
{
	const struct diff_row *a = left, *b = right;
	int c = descending(change(a->tot), change(b->tot));

	if (!c)
		c = descending(change(a->cum), change(b->cum));
	if (!c)
		c = descending(change(a->ncalls), change(b->ncalls));
	return c ? c : compare_identity(func_of(a), func_of(b));
}

/* ---- building ---- */

static size_t add_entries(struct entry *e, const struct view *v, int side)
{
	for (size_t i = 0; i < v->nrows; i++)
		e[i] = (struct entry){.func = &v->snapshot->funcs[v->rows[i].func],
				      .row = &v->rows[i],
				      .view = v,
				      .side = side};
	return v->nrows;
}

/* Reserves an index for each entry, and index 0 for zeros. */
static int reserve_figures(struct diff *d, size_t n)
{
	for (int c = 0; c < COLUMNS; c++) {
		if (!(d->columns & COLUMN_BIT(c)))
			continue;
		d->self[c] = calloc(n + 1, sizeof(*d->self[c]));
		d->cum[c] = calloc(n + 1, sizeof(*d->cum[c]));
		if (!d->self[c] || !d->cum[c])
			return -ENOMEM;
	}
	return 0;
}

static int fill(struct diff *d, const struct view *before, const struct view *after)
{
	size_t n = before->nrows + after->nrows;
	_cleanup_free_ struct entry *e = calloc(n + 1, sizeof(*e));

	d->rows = calloc(n + 1, sizeof(*d->rows));
	if (!e || !d->rows || reserve_figures(d, n) < 0)
		return -ENOMEM;
	add_entries(e + add_entries(e, before, DIFF_BEFORE), after, DIFF_AFTER);
	qsort(e, n, sizeof(*e), compare_entries);
	match(d, e, n);
	qsort(d->rows, d->nrows, sizeof(*d->rows), compare_rows);
	return 0;
}

int diff_build(const struct diff_side side[DIFF_SIDES], enum snapshot_clock clock,
	       struct diff **ret)
{
	_cleanup_(diff_freep) struct diff *d = calloc(1, sizeof(*d));
	_cleanup_(view_freep) struct view *before = NULL, *after = NULL;

	if (!d || view_build(side[DIFF_BEFORE].snapshot, NULL, &before) < 0 ||
	    view_build(side[DIFF_AFTER].snapshot, NULL, &after) < 0)
		return -ENOMEM;
	d->clock = clock;
	memcpy(d->side, side, sizeof(d->side));
	d->columns = side[DIFF_BEFORE].snapshot->measured & side[DIFF_AFTER].snapshot->measured;
	d->side[DIFF_BEFORE].ncalls = before->ncalls;
	d->side[DIFF_BEFORE].total = before->total[clock];
	d->side[DIFF_AFTER].ncalls = after->ncalls;
	d->side[DIFF_AFTER].total = after->total[clock];
	if (fill(d, before, after) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(d);
	return 0;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (int c = 0; c < COLUMNS; c++) {
		free(d->self[c]);
		free(d->cum[c]);
	}
	free(d->rows);
	free(d);
}

/* ---- data that is not compared ---- */

typedef void (*left_out_fn)(const char *what, void *ctx);

static void each_left_out(const struct diff *d, left_out_fn fn, void *ctx)
{
	char key[COLUMN_KEY_MAX];
	const struct snapshot *a = d->side[DIFF_BEFORE].snapshot, *b = d->side[DIFF_AFTER].snapshot;

	for (int c = 0; c < COLUMNS; c++)
		if ((a->measured ^ b->measured) & COLUMN_BIT(c))
			fn(column_key(c, key), ctx);
	if (a->ncoros || b->ncoros)
		fn("coroutines", ctx);
}

/* ---- text ---- */

static void print_side(const struct diff *d, int side, FILE *out)
{
	const struct diff_side *s = &d->side[side];
	const struct snapshot *snapshot = s->snapshot;
	const char *version = snapshot->ntargets ? snapshot->targets[0].python_version : NULL;

	fprintf(out, "   %s: ", side == DIFF_BEFORE ? "before" : " after");
	name_print(out, s->name, NAME_COLUMNS);
	fprintf(out, ", %" PRIu64 " function calls in %.3f seconds, python ", s->ncalls,
		(double)s->total / 1e9);
	name_print(out, version && *version ? version : "unknown", NAME_COLUMNS);
	if (snapshot_guesses_counts(snapshot))
		fputs(", estimated\n", out);
	else
		fputs(snapshot_exact(snapshot) ? "\n" : ", INCOMPLETE: counts are lower bounds\n",
		      out);
}

/* The growth in percent; new or vanished functions have none. */
static void print_percent(const struct diff_row *r, const uint64_t v[DIFF_SIDES], FILE *out)
{
	char buf[32];

	if (!r->func[DIFF_BEFORE])
		snprintf(buf, sizeof(buf), "new");
	else if (!r->func[DIFF_AFTER])
		snprintf(buf, sizeof(buf), "gone");
	else if (!v[DIFF_BEFORE])
		snprintf(buf, sizeof(buf), "-");
	else
		snprintf(buf, sizeof(buf), "%+.1f%%",
			 (double)change(v) * 100 / (double)v[DIFF_BEFORE]);
	fprintf(out, " %8s", buf);
}

static void print_times(const struct diff_row *r, const uint64_t v[DIFF_SIDES], FILE *out)
{
	fprintf(out, " %10.6f %+10.6f", (double)v[DIFF_AFTER] / 1e9, (double)change(v) / 1e9);
	print_percent(r, v, out);
}

static char *std_of(const struct snapshot_func *f)
{
	return name_std(f->pseudo ? "~" : text(f->filename), f->pseudo ? 0 : f->firstlineno,
			text(f->name));
}

static int print_row(const struct diff_row *r, FILE *out)
{
	_cleanup_free_ char *std = std_of(func_of(r));

	if (!std)
		return -ENOMEM;
	fprintf(out, "%9" PRIu64 " %+9" PRId64, r->ncalls[DIFF_AFTER], change(r->ncalls));
	print_times(r, r->tot, out);
	print_times(r, r->cum, out);
	fputc(' ', out);
	name_print(out, std, NAME_COLUMNS);
	fputc('\n', out);
	return 0;
}

static bool changed(const struct diff_row *r)
{
	return change(r->ncalls) || change(r->tot) || change(r->cum) || !r->func[DIFF_BEFORE] ||
	       !r->func[DIFF_AFTER];
}

struct left_out {
	FILE *out;
	bool any;
};

static void print_left_out(const char *what, void *ctx)
{
	struct left_out *l = ctx;

	fprintf(l->out, "%s %s", l->any ? "," : "   not compared:", what);
	l->any = true;
}

/* A function's own figure of a column, on both sides. */
struct share {
	const struct diff_row *row;
	uint64_t v[DIFF_SIDES];
};

static int compare_shares(const void *left, const void *right)
{
	const struct share *a = left, *b = right;
	int c = descending(change(a->v), change(b->v));

	return c ? c : compare_identity(func_of(a->row), func_of(b->row));
}

static int print_share(const struct share *s, FILE *out)
{
	_cleanup_free_ char *std = std_of(func_of(s->row));

	if (!std)
		return -ENOMEM;
	fprintf(out, "%12" PRIu64 " %+12" PRId64, s->v[DIFF_AFTER], change(s->v));
	print_percent(s->row, s->v, out);
	fputc(' ', out);
	name_print(out, std, NAME_COLUMNS);
	fputc('\n', out);
	return 0;
}

/* Prints the functions whose own figure of a column has changed. */
static int print_column(const struct diff *d, int c, size_t limit, FILE *out)
{
	_cleanup_free_ struct share *shares = calloc(d->nrows + 1, sizeof(*shares));
	uint64_t total[DIFF_SIDES] = {0};
	int err = shares ? 0 : -ENOMEM;
	size_t n = 0;

	for (size_t i = 0; !err && i < d->nrows; i++) {
		const struct diff_row *r = &d->rows[i];
		const struct share s = {r,
					{d->self[c][r->figures[DIFF_BEFORE]],
					 d->self[c][r->figures[DIFF_AFTER]]}};

		column_merge(c, &total[DIFF_BEFORE], s.v[DIFF_BEFORE]);
		column_merge(c, &total[DIFF_AFTER], s.v[DIFF_AFTER]);
		if (change(s.v))
			shares[n++] = s;
	}
	if (err)
		return err;
	qsort(shares, n, sizeof(*shares), compare_shares);
	fprintf(out, "\n   %s (%s): %" PRIu64 " before, %" PRIu64 " after\n", column_table[c].text,
		column_table[c].name, total[DIFF_BEFORE], total[DIFF_AFTER]);
	if (n)
		fprintf(out, "\n%12s %12s %8s %s\n", "self", "change", "%",
			"filename:lineno(function)");
	for (size_t i = 0; !err && i < n && !(limit && i == limit); i++)
		err = print_share(&shares[i], out);
	return err;
}

static int print_columns(const struct diff *d, size_t limit, FILE *out)
{
	/* Waiting is always measured and is a part of wall time. */
	const uint64_t of_wall = column_group("waits") | COLUMN_BIT(COLUMN_gil_held_ns);
	uint64_t shown = d->clock == SNAPSHOT_WALL ? d->columns : d->columns & ~of_wall;
	int err = 0;

	for (int c = 0; c < COLUMNS && !err; c++)
		if (shown & COLUMN_BIT(c))
			err = print_column(d, c, limit, out);
	return err;
}

int diff_write_text(const struct diff *d, size_t limit, FILE *out)
{
	struct left_out left_out = {.out = out};
	size_t n = 0;

	print_side(d, DIFF_BEFORE, out);
	print_side(d, DIFF_AFTER, out);
	each_left_out(d, print_left_out, &left_out);
	fputs(left_out.any ? "\n" : "", out);
	fprintf(out, "\n   Ordered by: increase of internal time (%s)\n\n", clock_names[d->clock]);
	fprintf(out, "%9s %9s %10s %10s %8s %10s %10s %8s %s\n", "ncalls", "change", "tottime",
		"change", "%", "cumtime", "change", "%", "filename:lineno(function)");
	for (size_t i = 0; i < d->nrows; i++) {
		if (!changed(&d->rows[i]) || (limit && n == limit))
			continue;
		n++;
		if (print_row(&d->rows[i], out) < 0)
			return -ENOMEM;
	}
	if (!n)
		fputs("   nothing changed\n", out);
	if (diff_rates_write(d, limit, out) < 0)
		return -ENOMEM;
	return print_columns(d, limit, out);
}

/* ---- JSON ---- */

static json_t *figures_json(const uint64_t v[DIFF_SIDES])
{
	json_t *ratio = v[DIFF_BEFORE] ? json_real((double)v[DIFF_AFTER] / (double)v[DIFF_BEFORE])
				       : json_null();

	return json_pack("{s:o, s:o, s:I, s:o}", "before", provenance_integer(v[DIFF_BEFORE]),
			 "after", provenance_integer(v[DIFF_AFTER]), "change",
			 (json_int_t)change(v), "ratio", ratio);
}

static json_t *column_json(const struct diff *d, const struct diff_row *r, int c)
{
	const uint64_t self[] = {d->self[c][r->figures[0]], d->self[c][r->figures[1]]};
	const uint64_t cum[] = {d->cum[c][r->figures[0]], d->cum[c][r->figures[1]]};

	return json_pack("{s:o, s:o}", "self", figures_json(self), "cum", figures_json(cum));
}

/*
 * Adds the compared columns; the columns of a group go into an object with its name. row NULL (out
 * of memory): returns NULL.
 */
static json_t *add_columns(json_t *row, const struct diff *d, const struct diff_row *r)
{
	for (int c = 0, end; row && (c = column_group_next(d->columns, c, &end)) < COLUMNS;
	     c = end) {
		json_t *group = *column_table[c].group ? json_object() : json_incref(row);

		for (int i = c; i < end; i++)
			if (d->columns & COLUMN_BIT(i))
				json_object_set_new(group, column_table[i].name,
						    column_json(d, r, i));
		if (group == row)
			json_decref(group);
		else
			json_object_set_new(row, column_table[c].group, group);
	}
	return row;
}

static json_t *row_json(const struct diff *d, const struct diff_row *r)
{
	const struct snapshot_func *f = func_of(r), *before = r->func[DIFF_BEFORE];
	json_t *ret = json_pack("{s:o, s:i, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "file",
				provenance_string(f->filename), "line", (int)f->firstlineno, "name",
				provenance_string(f->name), "qualname",
				provenance_string(f->qualname), "line_before",
				before ? json_integer(before->firstlineno) : json_null(), "is_new",
				!before, "is_gone", !r->func[DIFF_AFTER], "ncalls",
				figures_json(r->ncalls), "tottime", figures_json(r->tot), "cumtime",
				figures_json(r->cum));

	return add_columns(diff_rates_add(ret, d, r), d, r);
}

static int put_side(const struct diff *d, int side, FILE *out)
{
	const struct format_opts o = {.clock = d->clock};
	const struct diff_side *s = &d->side[side];

	fprintf(out, ",\n\"%s\":{\"file\":", side == DIFF_BEFORE ? "before" : "after");
	if (jsonout_string(out, s->name) < 0)
		return -ENOMEM;
	fprintf(out,
		",\"ncalls\":%" PRIu64 ",\"tottime\":%" PRIu64 ",\"seconds\":%.9f,\"provenance\":",
		s->ncalls, s->total, diff_seconds(s->snapshot));
	if (jsonout_value(out, provenance_json(s->snapshot, &o, "pyprofd-provenance")) < 0)
		return -ENOMEM;
	fputc('}', out);
	return 0;
}

static void add_left_out(const char *what, void *ctx)
{
	json_array_append_new(ctx, json_string(what));
}

static int put_left_out(const struct diff *d, FILE *out)
{
	json_t *list = json_array();

	if (list)
		each_left_out(d, add_left_out, list);
	fputs(",\n\"not_compared\":", out);
	return jsonout_value(out, list);
}

int diff_write_json(const struct diff *d, size_t limit, FILE *out)
{
	size_t n = limit && limit < d->nrows ? limit : d->nrows;

	fprintf(out,
		"{\"format\":\"pyprofd-diff\",\"version\":1,\"clock\":\"%s\","
		"\"time_unit\":\"ns\"",
		clock_names[d->clock]);
	if (put_side(d, DIFF_BEFORE, out) < 0 || put_side(d, DIFF_AFTER, out) < 0 ||
	    put_left_out(d, out) < 0)
		return -ENOMEM;
	fputs(",\n\"functions\":[", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ",\n" : "\n", out);
		if (jsonout_value(out, row_json(d, &d->rows[i])) < 0)
			return -ENOMEM;
	}
	fputs("\n]}\n", out);
	return 0;
}
