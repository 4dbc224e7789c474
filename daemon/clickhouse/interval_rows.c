// SPDX-License-Identifier: BSD-2-Clause
/* Intervals as rows: see interval_rows.h. The order of the columns is that of tables.c. */
#include "clickhouse/interval_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "clickhouse/contexts.h"
#include "clickhouse/facts.h"
#include "clickhouse/tables.h"

#define NS_PER_S  UINT64_C(1000000000)
#define S_PER_DAY 86400u
#define NAME_SIZE 96

/* ---- labels ---- */

static const char *label_or_empty(const struct interval *iv, const char *name)
{
	const char *value = interval_label(iv, name);

	return value ? value : "";
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

/* What makes figures of functions differ, so that they cannot be added. */
static const char *options_text(const struct snapshot *s, char buf[NAME_SIZE])
{
	snprintf(buf, NAME_SIZE, "%s%s%s%s",
		 snapshot_builtins(s) != SNAPSHOT_BUILTINS_NONE ? "builtins " : "",
		 s->builtins_of ? "builtins-of " : "", s->folded ? "only-my-code " : "",
		 s->stripped ? "strip-dirs " : "");
	return buf;
}

static void put_names(struct rows *r, const struct interval *iv)
{
	rows_put_varint(r, iv->nlabels);
	for (uint32_t i = 0; i < iv->nlabels; i++)
		rows_put_str(r, iv->labels[i].name);
	rows_put_varint(r, iv->nlabels);
	for (uint32_t i = 0; i < iv->nlabels; i++)
		rows_put_str(r, iv->labels[i].value);
}

static void put_target(struct rows *r, const struct interval *iv)
{
	static const struct snapshot_target none;
	const struct snapshot *s = iv->snapshot;
	const struct snapshot_target *t = s->ntargets ? s->targets : &none;
	const char *python = interval_label(iv, INTERVAL_PYTHON);
	char options[NAME_SIZE];

	rows_put_u32(r, t->pid);
	rows_put_str(r, python ? python : t->python_version);
	rows_put_str(r, mode_names[t->mode]);
	rows_put_str(r, options_text(s, options));
	rows_put_u32(r, t->estimate.rate);
	rows_put_u64(r, t->estimate.period_ns);
	rows_put_u32(r, t->windows.max_overhead);
	rows_put_str(r, s->clock == SNAPSHOT_WALL ? "wall" : "cpu");
	rows_put_str(r, s->kernel);
	rows_put_str(r, s->program);
	rows_put_str(r, t->cmdline);
}

static void put_labels(struct rows *r, const struct interval *iv)
{
	uint64_t seconds = iv->start_unix_ns / NS_PER_S;
	const char *host = interval_label(iv, INTERVAL_HOST);

	rows_put_u32(r, (uint32_t)seconds);
	rows_put_str(r, label_or_empty(iv, INTERVAL_SERVICE));
	rows_put_str(r, host ? host : or_empty(iv->snapshot->host));
	rows_put_str(r, label_or_empty(iv, INTERVAL_VERSION));
	put_target(r, iv);
	rows_put_bytes(r, iv->id, INTERVAL_ID_BYTES);
	rows_put_u64(r, iv->start_unix_ns);
	rows_put_u64(r, iv->end_unix_ns);
	put_names(r, iv);
}

/* ---- samples ---- */

static uint64_t figure_of(const struct context *c, int figure)
{
	const uint64_t of[] = {c->calls,
			       c->yields,
			       c->inflight,
			       c->self[SNAPSHOT_CPU],
			       c->self[SNAPSHOT_WALL],
			       c->min[SNAPSHOT_CPU],
			       c->min[SNAPSHOT_WALL],
			       c->max[SNAPSHOT_CPU],
			       c->max[SNAPSHOT_WALL]};

	return of[figure];
}

#define FIGURES 9 /* of figure_of() and tables_figures */

static void put_samples(struct rows *r, const struct contexts *c)
{
	rows_put_varint(r, c->n);
	for (uint32_t i = 0; i < c->n; i++)
		rows_put_bytes(r, c->list[i].id.bytes, STACK_ID_BYTES);
	for (int k = 0; k < FIGURES; k++) {
		rows_put_varint(r, c->n);
		for (uint32_t i = 0; i < c->n; i++)
			rows_put_u64(r, figure_of(&c->list[i], k));
	}
	for (int k = 0; k < COLUMNS; k++) {
		rows_put_varint(r, c->n);
		for (uint32_t i = 0; i < c->n; i++)
			rows_put_u64(r, c->list[i].columns[k]);
	}
}

/* ---- figures by name ---- */

/* Four columns, built one beside the other. */
struct figures {
	struct rows function, name, value, variance;
	uint64_t n;
};

static void figures_deinit(struct figures *f)
{
	rows_deinit(&f->function);
	rows_deinit(&f->name);
	rows_deinit(&f->value);
	rows_deinit(&f->variance);
}

static void add_figure(struct figures *f, uint64_t function, const char *name, uint64_t value,
		       double variance)
{
	if (!value && variance <= 0)
		return;
	rows_put_u64(&f->function, function);
	rows_put_str(&f->name, name);
	rows_put_u64(&f->value, value);
	rows_put_double(&f->variance, variance);
	f->n++;
}

static void add_fact(struct figures *f, const char *name, uint64_t value)
{
	add_figure(f, 0, name, value, 0);
}

static void add_syscalls(struct figures *f, const struct snapshot_waits *w)
{
	char name[NAME_SIZE];

	for (uint32_t i = 0; i < w->nother; i++) {
		snprintf(name, sizeof(name), FACT_CALL_NS "%.60s", or_empty(w->other[i].name));
		add_fact(f, name, w->other[i].ns);
		snprintf(name, sizeof(name), FACT_CALLS "%.60s", or_empty(w->other[i].name));
		add_fact(f, name, w->other[i].n);
	}
}

static void add_target(struct figures *f, struct snapshot_target *t)
{
	char buf[FACT_NAME_MAX];

	for (unsigned int i = 0; i < facts_count(); i++)
		add_fact(f, fact_name(i, buf), *fact_at(t, i));
	for (const struct fact_flag *flag = fact_flags; flag->name; flag++)
		add_fact(f, flag->name, *fact_flag_at(t, flag));
	add_syscalls(f, &t->waits);
}

static void add_head(struct figures *f, const struct snapshot *s)
{
	uint64_t total[SNAPSHOT_CLOCKS] = {0};
	char name[NAME_SIZE], key[COLUMN_KEY_MAX];

	for (uint32_t i = 0; i < s->ntargets; i++)
		add_target(f, &s->targets[i]);
	for (uint32_t i = 0; i < s->nthreads; i++)
		for (int k = 0; k < SNAPSHOT_CLOCKS; k++)
			total[k] += s->threads[i].total[k];
	add_fact(f, FACT_TARGETS, s->ntargets);
	add_fact(f, FACT_THREADS, s->nthreads);
	add_fact(f, FACT_TOTAL_CPU, total[SNAPSHOT_CPU]);
	add_fact(f, FACT_TOTAL_WALL, total[SNAPSHOT_WALL]);
	for (int c = 0; c < COLUMNS; c++) {
		if (!(s->measured & COLUMN_BIT(c)))
			continue;
		snprintf(name, sizeof(name), FACT_MEASURED "%s", column_key(c, key));
		add_fact(f, name, 1);
	}
}

static void add_lines(struct figures *f, uint64_t id, const struct snapshot_func *func)
{
	char name[NAME_SIZE];

	for (uint32_t i = 0; i < func->nlines; i++) {
		const struct snapshot_line *l = &func->lines[i];

		snprintf(name, sizeof(name), FACT_LINE_NS "%" PRId32, l->line);
		add_figure(f, id, name, l->self_ns, l->variance);
		snprintf(name, sizeof(name), FACT_LINE_SAMPLES "%" PRId32, l->line);
		add_figure(f, id, name, l->samples, 0);
	}
}

static void add_durations(struct figures *f, uint64_t id, const struct snapshot_func *func)
{
	char name[NAME_SIZE];

	for (int k = 0; k < SNAPSHOT_CLOCKS && func->durations; k++) {
		const struct histogram *h = &func->durations[k].histogram;

		for (uint32_t i = 0; i < h->len; i++) {
			snprintf(name, sizeof(name), "%s%" PRIu64, fact_durations[k],
				 histogram_upper(h->first + i));
			add_figure(f, id, name, h->n[i], 0);
		}
		add_figure(f, id, fact_longest[k], func->durations[k].max, 0);
	}
}

/* errors: the snapshot has them; else all variances are zero or unknown. */
static void add_function(struct figures *f, uint64_t id, const struct snapshot_func *func,
			 bool errors)
{
	for (int i = 0; i < SNAPSHOT_FIGURES && errors; i++)
		add_figure(f, id, fact_variances[i], func->variance[i] < 0,
			   func->variance[i] < 0 ? 0 : func->variance[i]);
	add_lines(f, id, func);
	add_durations(f, id, func);
}

static int put_figures(struct rows *r, const struct contexts *c)
{
	_cleanup_(figures_deinit) struct figures f = {.n = 0};
	const struct snapshot *s = c->snapshot;
	bool errors = snapshot_has_errors(s);

	add_head(&f, s);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (c->used[i])
			add_function(&f, c->functions[i], &s->funcs[i], errors);
	if (f.function.err || f.name.err || f.value.err || f.variance.err)
		return -ENOMEM;
	rows_put_varint(r, f.n);
	rows_put_bytes(r, f.function.data, f.function.n);
	rows_put_varint(r, f.n);
	rows_put_bytes(r, f.name.data, f.name.n);
	rows_put_varint(r, f.n);
	rows_put_bytes(r, f.value.data, f.value.n);
	rows_put_varint(r, f.n);
	rows_put_bytes(r, f.variance.data, f.variance.n);
	return 0;
}

/* ---- functions and stacks ---- */

/* Sizes of empty columns: strings and arrays take one byte, their length. */
#define EMPTY_LABELS   (1 + 1 + 4 + 1 + 1 + 1 + 4 + 8 + 4 + 4 * 1 + INTERVAL_ID_BYTES + 8 + 8 + 2 * 1)
#define EMPTY_PROFILE  (4 + EMPTY_LABELS + 1 + FIGURES + COLUMNS + 4)
#define EMPTY_FUNCTION (8 + 1 + 4 + 1 + 1 + 1 + 4 + 1)
#define EMPTY_STACK    (STACK_ID_BYTES + 1)

static void put_empty(struct rows *r, size_t n)
{
	static const uint8_t zeros[EMPTY_PROFILE];

	rows_put_bytes(r, zeros, n);
}

/* The beginning of a row; day and service are those of the interval. */
static void put_kind(struct rows *r, const struct interval *iv, enum tables_kind kind)
{
	rows_put_u8(r, (uint8_t)kind);
	rows_put_u16(r, (uint16_t)(iv->start_unix_ns / NS_PER_S / S_PER_DAY));
	r->count++;
	if (kind == TABLES_PROFILE)
		return;
	rows_put_u32(r, 0);
	rows_put_str(r, label_or_empty(iv, INTERVAL_SERVICE));
	put_empty(r, EMPTY_PROFILE - 4);
}

static void put_function(struct rows *r, const struct interval *iv, uint64_t id,
			 const struct snapshot_func *f)
{
	put_kind(r, iv, TABLES_FUNCTION);
	rows_put_u64(r, id);
	rows_put_str(r, f->filename);
	rows_put_u32(r, (uint32_t)f->firstlineno);
	rows_put_str(r, f->name);
	rows_put_str(r, f->qualname);
	rows_put_u8(r, f->qualname != NULL);
	rows_put_u32(r, f->variant);
	rows_put_u8(r, f->pseudo);
	put_empty(r, EMPTY_STACK);
}

/* A path: the functions from the outermost one to that of the node. */
struct path {
	uint64_t *functions; /* owned */
	uint32_t cap;
};

static void path_deinit(struct path *p)
{
	free(p->functions);
}

static int put_path(struct rows *r, const struct contexts *c, uint32_t node, struct path *path)
{
	const struct snapshot *s = c->snapshot;
	uint32_t depth = context_depth(s, node), i = depth;

	if (depth > path->cap) {
		uint64_t *more = reallocarray(path->functions, depth, sizeof(*more));

		if (!more)
			return -ENOMEM;
		path->functions = more;
		path->cap = depth;
	}
	for (; s->nodes[node].parent != SNAPSHOT_NONE; node = s->nodes[node].parent)
		path->functions[--i] = c->functions[s->nodes[node].func];
	rows_put_varint(r, depth);
	for (i = 0; i < depth; i++)
		rows_put_u64(r, path->functions[i]);
	return 0;
}

static int put_names_of(struct rows *r, const struct interval *iv, const struct contexts *c)
{
	_cleanup_(path_deinit) struct path path = {0};
	int err = 0;

	for (uint32_t i = 0; i < iv->snapshot->nfuncs; i++)
		if (c->used[i])
			put_function(r, iv, c->functions[i], &iv->snapshot->funcs[i]);
	for (uint32_t i = 0; i < c->n && !err; i++) {
		put_kind(r, iv, TABLES_STACK);
		put_empty(r, EMPTY_FUNCTION);
		rows_put_bytes(r, c->list[i].id.bytes, STACK_ID_BYTES);
		err = put_path(r, c, c->list[i].node, &path);
	}
	return err;
}

static int put_profile(struct rows *r, const struct interval *iv, const struct contexts *c)
{
	int err;

	put_kind(r, iv, TABLES_PROFILE);
	put_labels(r, iv);
	put_samples(r, c);
	err = put_figures(r, c);
	put_empty(r, EMPTY_FUNCTION + EMPTY_STACK);
	return err;
}

static int check_modes(const struct snapshot *s, struct diag *diag)
{
	for (uint32_t i = 1; i < s->ntargets; i++)
		if (s->targets[i].mode != s->targets[0].mode)
			return diag_set(diag, -EINVAL, PYP_EXIT_FAILURE,
					"the modes must be the same",
					"an interval has targets of different modes");
	return 0;
}

int interval_rows_put(struct rows *r, const struct interval *iv, struct diag *diag)
{
	_cleanup_(contexts_deinit) struct contexts c = {0};
	int err = check_modes(iv->snapshot, diag);

	if (err < 0)
		return err;
	err = contexts_collect(&c, iv->snapshot);
	if (err < 0)
		return diag_errno(diag, -err, "cannot encode an interval");
	err = put_names_of(r, iv, &c);
	if (!err)
		err = put_profile(r, iv, &c);
	if (!err)
		err = r->err;
	return err ? diag_errno(diag, -err, "cannot encode an interval") : 0;
}
