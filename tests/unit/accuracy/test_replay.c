// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recorded evidence of real programs (harness/frozen.h) gives figures that are as close to the
 * truth as they were.
 *
 * evidence/figures.txt has, for each recording, how close that was. A change of accuracy/ may
 * make single programs worse by the tolerances below, but not a way of observing as a whole. The
 * table that is printed shows both. With PYPROF_REPLAY_UPDATE in the environment, the file is
 * written instead.
 */
#include <dirent.h>
#include <math.h>

#include "harness/frozen.h"
#include "harness/gunzip.h"
#include "harness/test.h"
#include "harness/traced.h"

#define EVIDENCE  "tests/unit/accuracy/evidence"
#define FIGURES	  "figures.txt"
#define FILES_MAX 8u
#define MAX	  512u /* recordings */
#define WAYS_MAX  16u

#define LARGE 0.01 /* share of functions that are compared: others have too few samples */
/*
 * How much worse than before a recording may get: the worst function in points of the whole, the
 * sum as a fraction. Both are below what chance makes of a recording: its truth has 8,000
 * samples, which is 0.5 points of a share of 30 %, and the machine's speed changes by some
 * percent.
 */
#define WORSE_POINTS 0.3
#define WORSE_SUM    0.02
/* The same of a way: its median, but for rounding; percent of figures within their errors */
#define WORSE_MEDIAN 0.05
#define LESS_WITHIN  2.0
/*
 * Larger errors always hold, so they may not grow either, by more than this factor. Numbers of
 * calls, in percent: they are off by 24 in the median.
 */
#define WORSE_STATED 1.1
#define WORSE_CALLS  0.5
#define DAMAGES	     2000u

struct figures {
	double worst; /* error of a function's share, the largest, in points */
	double sum;   /* of all times, divided by the CPU time of as many undisturbed rounds */
	unsigned int within, rows; /* shares within two standard errors, of all large functions */
	double stated;		   /* their standard errors, in points, on average */
	/* Numbers of calls that are estimates: within 1.96 standard errors, known at all, all */
	unsigned int calls_within, calls_known, calls;
	/* The average of what those known are off by, and of their standard errors, in percent */
	double calls_off, calls_stated;
};

struct recording {
	char python[FROZEN_NAME], program[FROZEN_NAME], way[FROZEN_NAME];
	struct figures now, was;
};

/* ---- files ---- */

static char *path_of(const char *name, char path[512])
{
	traced_path(EVIDENCE, name, path, 512);
	return path;
}

static int is_archive(const struct dirent *d)
{
	const size_t n = strlen(d->d_name);

	return n > 3 && strcmp(d->d_name + n - 3, ".gz") == 0;
}

/* Reads a whole archive. Returns memory that the caller frees. */
static char *read_archive(const char *name, size_t *ret_n)
{
	char path[512];
	FILE *f = fopen(path_of(name, path), "rb");
	uint8_t *zipped, *text;
	long n;

	cr_assert(f, "%s", path);
	cr_assert(fseek(f, 0, SEEK_END) == 0);
	n = ftell(f);
	cr_assert(n > 0);
	rewind(f);
	zipped = malloc((size_t)n);
	cr_assert(zipped && fread(zipped, 1, (size_t)n, f) == (size_t)n);
	fclose(f);
	text = gunzip(zipped, (size_t)n, ret_n);
	free(zipped);
	return (char *)text;
}

typedef void (*archive_fn)(void *ctx, const char *text, size_t n);

static void each_archive(archive_fn fn, void *ctx)
{
	struct dirent **list;
	char path[512];
	int n = scandir(path_of("", path), &list, is_archive, alphasort);

	cr_assert(n > 0 && n <= (int)FILES_MAX, "%s: %d archives", path, n);
	for (int i = 0; i < n; i++) {
		size_t size;
		char *text = read_archive(list[i]->d_name, &size);

		fn(ctx, text, size);
		free(text);
		free(list[i]);
	}
	free(list);
}

/* ---- figures ---- */

/* A Python function, all variants together */
struct row {
	double cpu, cpu_variance, calls, calls_variance, samples, true_calls;
};

struct rows {
	struct row *v; /* by the first function of its variants */
	uint32_t n;
	double cpu, samples; /* sums; */
	double other;	     /* samples of functions that the recording does not have */
};

static uint32_t first_variant(const struct snapshot *s, uint32_t func)
{
	const struct snapshot_func *f = &s->funcs[func];
	uint32_t i = 0;

	while (i < func && !(s->funcs[i].firstlineno == f->firstlineno &&
			     strcmp(s->funcs[i].name, f->name) == 0 &&
			     strcmp(s->funcs[i].filename, f->filename) == 0))
		i++;
	return i;
}

static double known(double variance)
{
	return variance > 0 ? variance : 0;
}

/* nfuncs: without those that snapshot_finish() has added */
static void fill_rows(const struct frozen *f, uint32_t nfuncs, struct rows *rows)
{
	const struct snapshot *s = f->s;

	rows->other = (double)f->truth.other[0] + (double)f->truth.other[1];
	rows->samples = rows->other;
	for (uint32_t i = 0; i < nfuncs; i++) {
		const struct snapshot_func *fn = &s->funcs[i];
		struct row *row = &rows->v[first_variant(s, i)];
		const struct frozen_func *truth = &f->truth.funcs[i];
		const double samples = (double)truth->samples[0] + (double)truth->samples[1];

		if (fn->pseudo)
			continue;
		row->cpu_variance += known(fn->variance[SNAPSHOT_TOT_CPU]);
		row->calls_variance = row->calls_variance < 0 || fn->variance[SNAPSHOT_CALLS] < 0
					      ? -1
					      : row->calls_variance + fn->variance[SNAPSHOT_CALLS];
		row->samples += samples;
		row->true_calls += truth->calls > 0 ? truth->calls : 0;
		rows->samples += samples;
	}
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func == SNAPSHOT_NONE || s->funcs[n->func].pseudo)
			continue;
		rows->v[first_variant(s, n->func)].cpu += (double)n->self[SNAPSHOT_CPU];
		rows->v[first_variant(s, n->func)].calls += (double)n->calls;
		rows->cpu += (double)n->self[SNAPSHOT_CPU];
	}
}

/* The average of n + 1 values, of which n have this one */
static double average(double of, unsigned int n, double value)
{
	return (of * n + value) / (n + 1);
}

static void judge_share(const struct rows *rows, const struct row *row, struct figures *out)
{
	const double share = row->cpu / rows->cpu, reference = row->samples / rows->samples;
	const double off = fabs(share - reference), stated = sqrt(row->cpu_variance) / rows->cpu;

	out->worst = fmax(out->worst, 100 * off);
	out->stated = average(out->stated, out->rows, 100 * stated);
	out->rows++;
	out->within += off <= 2 * hypot(stated, sqrt(row->samples) / rows->samples);
}

static void judge_calls(const struct row *row, struct figures *out)
{
	const double error = row->calls_variance < 0 ? INFINITY : sqrt(row->calls_variance);

	if (row->true_calls <= 0)
		return;
	out->calls++;
	if (error > row->calls)
		return;
	out->calls_off = average(out->calls_off, out->calls_known,
				 100 * fabs(row->calls / row->true_calls - 1));
	out->calls_stated = average(out->calls_stated, out->calls_known, 100 * error / row->calls);
	out->calls_known++;
	out->calls_within += fabs(row->calls - row->true_calls) <= 1.96 * error + 1;
}

static struct figures judge(struct frozen *f)
{
	const uint32_t n = f->s->nfuncs;
	struct rows rows = {.v = calloc((size_t)n + 3, sizeof(*rows.v)), .n = n};
	const double round_ns = (f->truth.round_ns[0] + f->truth.round_ns[1]) / 2;
	struct figures out = {0};

	cr_assert(rows.v);
	assert_ok(frozen_finish(f));
	cr_assert(snapshot_valid(f->s));
	fill_rows(f, n, &rows);
	cr_assert(rows.cpu > 0 && rows.samples > 0 && f->truth.rounds > 0 && round_ns > 0,
		  "%s %s %s is empty", f->python, f->program, f->way);
	for (uint32_t i = 0; i < n; i++)
		if (rows.v[i].samples > LARGE * rows.samples) {
			judge_share(&rows, &rows.v[i], &out);
			if (f->limited)
				judge_calls(&rows.v[i], &out);
		}
	if (rows.other > LARGE * rows.samples)
		judge_share(&rows, &(struct row){.samples = rows.other}, &out);
	out.sum = rows.cpu / (f->truth.rounds * round_ns);
	free(rows.v);
	return out;
}

struct recordings {
	struct recording v[MAX];
	size_t n;
};

static void judge_archive(void *ctx, const char *text, size_t n)
{
	struct recordings *all = ctx;
	const char *at = text;

	while (at < text + n) {
		struct recording *r = &all->v[all->n++];
		struct frozen *f = frozen_read(&at, text + n);

		cr_assert(f, "invalid from byte %zu on", (size_t)(at - text));
		cr_assert(all->n < MAX);
		memcpy(r->python, f->python, FROZEN_NAME);
		memcpy(r->program, f->program, FROZEN_NAME);
		memcpy(r->way, f->way, FROZEN_NAME);
		r->now = judge(f);
		frozen_free(f);
	}
}

/* ---- what was ---- */

static void write_was(const struct recordings *all)
{
	char path[512];
	FILE *f = fopen(path_of(FIGURES, path), "w");

	cr_assert(f, "%s", path);
	fputs("# Python, program, way: error of the worst function's share, in points; sum of\n"
	      "# times / true one; functions within 2 errors / all; the error, in points; numbers\n"
	      "# of calls within 1.96 errors / known / all; how far off, and the error, in "
	      "percent\n",
	      f);
	for (size_t i = 0; i < all->n; i++) {
		const struct recording *r = &all->v[i];
		const struct figures *n = &r->now;

		fprintf(f, "%s %s %s %.2f %.3f %u/%u %.2f %u/%u/%u %.1f %.1f\n", r->python,
			r->program, r->way, n->worst, n->sum, n->within, n->rows, n->stated,
			n->calls_within, n->calls_known, n->calls, n->calls_off, n->calls_stated);
	}
	cr_assert(fclose(f) == 0);
}

static bool parse_was(const char *line, struct recording *r)
{
	struct figures *w = &r->was;

	return sscanf(line, "%31s %31s %31s %lf %lf %u/%u %lf %u/%u/%u %lf %lf", r->python,
		      r->program, r->way, &w->worst, &w->sum, &w->within, &w->rows, &w->stated,
		      &w->calls_within, &w->calls_known, &w->calls, &w->calls_off,
		      &w->calls_stated) == 13;
}

static bool is_same(const struct recording *a, const struct recording *b)
{
	return strcmp(a->python, b->python) == 0 && strcmp(a->program, b->program) == 0 &&
	       strcmp(a->way, b->way) == 0;
}

static void read_was(struct recordings *all)
{
	char path[512], line[256];
	FILE *f = fopen(path_of(FIGURES, path), "r");
	size_t n = 0;

	cr_assert(f, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		struct recording was = {0};

		if (line[0] == '#')
			continue;
		cr_assert(parse_was(line, &was), "%s: %s", path, line);
		cr_assert(n < all->n && is_same(&was, &all->v[n]),
			  "%s does not go with the recordings: %s", path, line);
		all->v[n++].was = was.was;
	}
	cr_assert_eq(n, all->n);
	fclose(f);
}

/* ---- ways ---- */

struct sorted {
	double v[MAX];
	size_t n;
};

struct way {
	const char *name;
	struct sorted worst, sum, calls_off, calls_stated;
	struct figures total; /* numbers are sums; `stated` is the average */
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(struct sorted *s)
{
	qsort(s->v, s->n, sizeof(*s->v), compare);
}

static double median(const struct sorted *s)
{
	return s->n ? (s->v[(s->n - 1) / 2] + s->v[s->n / 2]) / 2 : 0;
}

static void add(struct way *w, const struct figures *f)
{
	struct figures *t = &w->total;

	t->stated = average(t->stated, (unsigned int)w->worst.n, f->stated);
	w->worst.v[w->worst.n++] = f->worst;
	w->sum.v[w->sum.n++] = f->sum;
	t->within += f->within;
	t->rows += f->rows;
	t->calls_within += f->calls_within;
	t->calls_known += f->calls_known;
	t->calls += f->calls;
	if (!f->calls_known)
		return;
	w->calls_off.v[w->calls_off.n++] = f->calls_off;
	w->calls_stated.v[w->calls_stated.n++] = f->calls_stated;
}

/* The recordings of a way; NULL: of all */
static void sum_up(const struct recordings *all, const char *name, bool was, struct way *w)
{
	*w = (struct way){.name = name ? name : "all"};
	for (size_t i = 0; i < all->n; i++)
		if (!name || strcmp(all->v[i].way, name) == 0)
			add(w, was ? &all->v[i].was : &all->v[i].now);
	sort(&w->worst);
	sort(&w->sum);
	sort(&w->calls_off);
	sort(&w->calls_stated);
}

static double percent(unsigned int part, unsigned int all)
{
	return all ? 100.0 * part / all : 0;
}

/* Of worst functions and of calls: medians. The most of the former; of errors, the average */
static void print_way(const struct way *w, const char *when)
{
	const struct figures *t = &w->total;

	fprintf(stderr, "%-10s %s %3zu  %5.2f to %5.2f  %.2f to %.2f  %5.1f %% of %4.2f points",
		w->name, when, w->worst.n, median(&w->worst), w->worst.v[w->worst.n - 1],
		w->sum.v[0], w->sum.v[w->sum.n - 1], percent(t->within, t->rows), t->stated);
	if (t->calls)
		fprintf(stderr, "  %4.1f %% %8u  %5.1f %% of %4.1f %%", median(&w->calls_off),
			t->calls - t->calls_known, percent(t->calls_within, t->calls_known),
			median(&w->calls_stated));
	fputc('\n', stderr);
}

/* Prints it, and checks that it is no worse. less: see LESS_WITHIN */
static bool check_way(const struct recordings *all, const char *name, double less)
{
	static struct way now, was;
	const struct figures *a = &now.total, *b = &was.total;

	sum_up(all, name, true, &was);
	sum_up(all, name, false, &now);
	print_way(&was, "was");
	print_way(&now, "now");
	return median(&now.worst) <= median(&was.worst) + WORSE_MEDIAN &&
	       a->stated <= WORSE_STATED * b->stated &&
	       median(&now.calls_off) <= median(&was.calls_off) + WORSE_CALLS &&
	       median(&now.calls_stated) <= WORSE_STATED * median(&was.calls_stated) &&
	       percent(a->within, a->rows) >= percent(b->within, b->rows) - less &&
	       percent(a->calls_within, a->calls) >= percent(b->calls_within, b->calls) - less;
}

/* Whether all recordings are no worse */
static bool check_each(const struct recordings *all)
{
	bool ok = true;

	for (size_t i = 0; i < all->n; i++) {
		const struct recording *r = &all->v[i];
		const struct figures *now = &r->now, *was = &r->was;

		if (now->worst <= was->worst + WORSE_POINTS &&
		    fabs(now->sum - 1) <= fabs(was->sum - 1) + WORSE_SUM)
			continue;
		fprintf(stderr,
			"%s %s, %s: worst function off by %.2f points (was %.2f), sum %.3f "
			"(was %.3f)\n",
			r->python, r->program, r->way, now->worst, was->worst, now->sum, was->sum);
		ok = false;
	}
	return ok;
}

static bool check_ways(const struct recordings *all)
{
	const char *names[WAYS_MAX];
	size_t n = 0;
	bool ok = true;

	fputs("way              n  worst function  sum of times  within 2 errors        "
	      "calls off, unknown, within 1.96\n",
	      stderr);
	for (size_t i = 0; i < all->n; i++) {
		size_t k = 0;

		while (k < n && strcmp(names[k], all->v[i].way) != 0)
			k++;
		if (k < n)
			continue;
		cr_assert(n < WAYS_MAX);
		names[n++] = all->v[i].way;
		ok &= check_way(all, all->v[i].way, LESS_WITHIN);
	}
	return check_way(all, NULL, 0) && ok;
}

Test(replay, figures_are_as_close_to_the_truth_as_they_were)
{
	static struct recordings all;
	bool each, ways;

	each_archive(judge_archive, &all);
	if (getenv("PYPROF_REPLAY_UPDATE"))
		write_was(&all);
	read_was(&all);
	each = check_each(&all);
	ways = check_ways(&all);
	cr_assert(each && ways, "figures are worse than they were, see above and tests/README.md");
	check_no_leaks();
}

/* ---- the format ---- */

static void write_again(void *ctx, const char *text, size_t n)
{
	const char *at = text;
	char *again;
	size_t size;
	FILE *f = open_memstream(&again, &size);

	(void)ctx;
	cr_assert(f);
	while (at < text + n) {
		struct frozen *frozen = frozen_read(&at, text + n);

		cr_assert(frozen);
		frozen_write(frozen, f);
		frozen_free(frozen);
	}
	cr_assert(fclose(f) == 0);
	cr_assert_eq(size, n);
	assert_bytes_eq(again, text, n);
	free(again);
}

Test(replay, what_is_read_is_written_the_same)
{
	each_archive(write_again, NULL);
	check_no_leaks();
}

/* The first recording of the first archive, as text */
struct first {
	char *text;
	size_t n;
};

static void keep_first(void *ctx, const char *text, size_t n)
{
	struct first *first = ctx;
	const char *at = text;

	if (first->text)
		return;
	frozen_free(frozen_read(&at, text + n));
	first->n = (size_t)(at - text);
	first->text = strndup(text, first->n);
	cr_assert(first->n && first->text);
}

Test(replay, damaged_recordings_are_refused_or_consistent)
{
	struct first first = {0};
	unsigned int seed = 1;

	each_archive(keep_first, &first);
	for (size_t n = 0; n < first.n; n++) {
		/* Of exactly this size: reading behind it is an error of the sanitizer. */
		char *cut = malloc(n ? n : 1);
		const char *at = cut;

		cr_assert(cut);
		memcpy(cut, first.text, n);
		cr_assert(!frozen_read(&at, cut + n), "%zu of %zu bytes are enough", n, first.n);
		free(cut);
	}
	for (unsigned int i = 0; i < DAMAGES; i++) {
		const size_t where = (size_t)rand_r(&seed) % first.n;
		const char *at = first.text, was = first.text[where];
		struct frozen *f;

		first.text[where] = (char)(rand_r(&seed) % 128);
		f = frozen_read(&at, first.text + first.n);
		cr_assert(!f || snapshot_valid(f->s));
		frozen_free(f);
		first.text[where] = was;
	}
	free(first.text);
	check_no_leaks();
}
