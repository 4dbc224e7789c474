// SPDX-License-Identifier: BSD-2-Clause
/* Comparisons per call and per second: see diff_rates.h. */
#include "format/diff_rates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/names.h"

#define NS 1e9

/* A figure on both sides; negative: unknown. */
struct rate {
	double v[DIFF_SIDES];
};

struct rates {
	const struct diff_row *row;
	struct rate calls, tot, cum;
	double weight; /* the order */
};

double diff_seconds(const struct snapshot *s)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];
		uint64_t own = t->windows.sampled ? t->windows.span_ns : t->traced_ns;

		ns = own > ns ? own : ns;
	}
	return (double)ns / NS;
}

static double part(uint64_t ns, double of)
{
	return of > 0 ? (double)ns / of : -1;
}

static struct rates per_call(const struct diff_row *r)
{
	struct rates ret = {.row = r};

	for (int i = 0; i < DIFF_SIDES; i++) {
		ret.calls.v[i] = (double)r->ncalls[i];
		ret.tot.v[i] = part(r->tot[i], (double)r->ncalls[i]);
		ret.cum.v[i] = part(r->cum[i], (double)r->ncalls[i]);
	}
	return ret;
}

static struct rates per_second(const struct diff *d, const struct diff_row *r)
{
	struct rates ret = {.row = r};

	for (int i = 0; i < DIFF_SIDES; i++) {
		double seconds = diff_seconds(d->side[i].snapshot);

		ret.calls.v[i] = part(r->ncalls[i], seconds);
		ret.tot.v[i] = part(r->tot[i], seconds);
		ret.cum.v[i] = part(r->cum[i], seconds);
	}
	return ret;
}

static double change(const struct rate *r)
{
	return r->v[DIFF_AFTER] - r->v[DIFF_BEFORE];
}

static bool known(const struct rate *r)
{
	return r->v[DIFF_BEFORE] >= 0 && r->v[DIFF_AFTER] >= 0;
}

/* ---- text ---- */

/* Equal rows keep the comparison's order, in which they are in one array. */
static int compare(const void *left, const void *right)
{
	const struct rates *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return (a->row > b->row) - (a->row < b->row);
}

static void print_percent(const struct rate *r, FILE *out)
{
	if (r->v[DIFF_BEFORE] > 0)
		fprintf(out, " %+8.1f%%", 100 * change(r) / r->v[DIFF_BEFORE]);
	else
		fprintf(out, " %9s", r->v[DIFF_AFTER] > 0 ? "new" : "-");
}

static void print_rate(const struct rate *r, double unit, int digits, FILE *out)
{
	fprintf(out, " %10.*f", digits, r->v[DIFF_AFTER] / unit);
	print_percent(r, out);
}

static int print_name(const struct diff_row *r, FILE *out)
{
	const struct snapshot_func *f = r->func[DIFF_AFTER] ? r->func[DIFF_AFTER]
							    : r->func[DIFF_BEFORE];
	_cleanup_free_ char *std = name_std(f->pseudo || !f->filename ? "~" : f->filename,
					    f->pseudo ? 0 : f->firstlineno, f->name ? f->name : "");

	if (!std)
		return -ENOMEM;
	fputc(' ', out);
	name_print(out, std, NAME_COLUMNS);
	fputc('\n', out);
	return 0;
}

/* digits: of the calls, behind the point */
static int print_table(struct rates *list, size_t n, size_t limit, double unit, int digits,
		       FILE *out)
{
	int err = 0;

	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 0; i < n && !err && !(limit && i == limit); i++) {
		print_rate(&list[i].calls, 1, digits, out);
		print_rate(&list[i].tot, unit, 3, out);
		print_rate(&list[i].cum, unit, 3, out);
		err = print_name(list[i].row, out);
	}
	return err;
}

/* Weighted by the calls after: what the increase per call costs now. */
static int write_per_call(const struct diff *d, struct rates *list, size_t limit, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < d->nrows; i++) {
		struct rates r = per_call(&d->rows[i]);

		r.weight = change(&r.tot) * r.calls.v[DIFF_AFTER];
		if (known(&r.tot) && (change(&r.tot) != 0 || change(&r.cum) != 0))
			list[n++] = r;
	}
	if (!n)
		return 0;
	fprintf(out,
		"\n   Per call, in us; ordered by the increase of internal time times calls\n\n"
		" %10s %9s %10s %9s %10s %9s %s\n",
		"ncalls", "%", "tottime", "%", "cumtime", "%", "filename:lineno(function)");
	return print_table(list, n, limit, 1e3, 0, out);
}

static int write_per_second(const struct diff *d, struct rates *list, size_t limit, FILE *out)
{
	double before = diff_seconds(d->side[DIFF_BEFORE].snapshot);
	double after = diff_seconds(d->side[DIFF_AFTER].snapshot);
	size_t n = 0;

	if (before <= 0 || after <= 0)
		return 0;
	for (size_t i = 0; i < d->nrows; i++) {
		struct rates r = per_second(d, &d->rows[i]);

		r.weight = change(&r.tot);
		if (change(&r.calls) != 0 || change(&r.tot) != 0 || change(&r.cum) != 0)
			list[n++] = r;
	}
	if (!n)
		return 0;
	fprintf(out,
		"\n   Per second of %.3f before and %.3f after: calls, and times in ms; ordered by "
		"the increase of internal time\n\n %10s %9s %10s %9s %10s %9s %s\n",
		before, after, "ncalls", "%", "tottime", "%", "cumtime", "%",
		"filename:lineno(function)");
	return print_table(list, n, limit, 1e6, 1, out);
}

int diff_rates_write(const struct diff *d, size_t limit, FILE *out)
{
	_cleanup_free_ struct rates *list = calloc(d->nrows + 1, sizeof(*list));
	int err = list ? write_per_call(d, list, limit, out) : -ENOMEM;

	return err ? err : write_per_second(d, list, limit, out);
}

/* ---- JSON ---- */

static json_t *number(double v)
{
	return v >= 0 ? json_real(v) : json_null();
}

static json_t *rate_json(const struct rate *r)
{
	bool ratio = known(r) && r->v[DIFF_BEFORE] > 0;

	return json_pack("{s:o, s:o, s:o}", "before", number(r->v[DIFF_BEFORE]), "after",
			 number(r->v[DIFF_AFTER]), "ratio",
			 ratio ? json_real(r->v[DIFF_AFTER] / r->v[DIFF_BEFORE]) : json_null());
}

json_t *diff_rates_add(json_t *row, const struct diff *d, const struct diff_row *r)
{
	struct rates call = per_call(r), second = per_second(d, r);
	json_t *per_call_json, *per_second_json;

	if (!row)
		return NULL;
	per_call_json = json_pack("{s:o, s:o}", "tottime", rate_json(&call.tot), "cumtime",
				  rate_json(&call.cum));
	per_second_json = json_pack("{s:o, s:o, s:o}", "ncalls", rate_json(&second.calls),
				    "tottime", rate_json(&second.tot), "cumtime",
				    rate_json(&second.cum));
	if (json_object_set_new(row, "per_call", per_call_json) == 0 &&
	    json_object_set_new(row, "per_second", per_second_json) == 0)
		return row;
	json_decref(row);
	return NULL;
}
