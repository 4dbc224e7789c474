// SPDX-License-Identifier: BSD-2-Clause
/* Intervals as rows: see interval_rows.h. The order of the columns is that of tables.c. */
#include "clickhouse/interval_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "clickhouse/contexts.h"
#include "clickhouse/facts.h"
#include "clickhouse/records.h"

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

/* Arrays of names and values, built one beside the other. */
struct labels {
	struct rows name, value;
	uint64_t n;
};

static void labels_deinit(struct labels *l)
{
	rows_deinit(&l->name);
	rows_deinit(&l->value);
}

static void add_label(struct labels *l, const char *name, const char *value)
{
	rows_put_str(&l->name, name);
	rows_put_str(&l->value, value);
	l->n++;
}

/* An array of n elements, which are in `from`. */
static void put_array(struct rows *r, uint64_t n, const struct rows *from)
{
	rows_put_varint(r, n);
	rows_put_bytes(r, from->data, from->n);
}

static void add_own_label(struct labels *l, const struct interval *iv, const char *name,
			  const char *value)
{
	if (!interval_label(iv, name))
		add_label(l, name, value);
}

static int put_label_arrays(struct rows *r, const struct interval *iv,
			    const struct snapshot_target *t)
{
	_cleanup_(labels_deinit) struct labels l = {.n = 0};
	const struct snapshot *s = iv->snapshot;

	for (uint32_t i = 0; i < iv->nlabels; i++)
		add_label(&l, iv->labels[i].name, iv->labels[i].value);
	add_own_label(&l, iv, INTERVAL_PYTHON, t->python_version);
	add_own_label(&l, iv, FACT_LABEL_CLOCK, s->clock == SNAPSHOT_WALL ? "wall" : "cpu");
	add_own_label(&l, iv, FACT_LABEL_KERNEL, s->kernel);
	add_own_label(&l, iv, FACT_LABEL_PROGRAM, s->program);
	add_own_label(&l, iv, FACT_LABEL_COMMAND, t->cmdline);
	put_array(r, l.n, &l.name);
	put_array(r, l.n, &l.value);
	return l.name.err ? l.name.err : l.value.err;
}

static int put_labels(struct rows *r, const struct interval *iv)
{
	static const struct snapshot_target none;
	const struct snapshot *s = iv->snapshot;
	const struct snapshot_target *t = s->ntargets ? s->targets : &none;
	const char *host = interval_label(iv, INTERVAL_HOST);
	char options[NAME_SIZE];

	rows_put_u32(r, (uint32_t)(iv->start_unix_ns / NS_PER_S));
	rows_put_str(r, label_or_empty(iv, INTERVAL_SERVICE));
	rows_put_str(r, host ? host : or_empty(s->host));
	rows_put_str(r, label_or_empty(iv, INTERVAL_VERSION));
	rows_put_u32(r, t->pid);
	rows_put_str(r, mode_names[t->mode]);
	rows_put_str(r, options_text(s, options));
	rows_put_bytes(r, iv->id, INTERVAL_ID_BYTES);
	rows_put_u64(r, iv->start_unix_ns);
	rows_put_u64(r, iv->end_unix_ns);
	return put_label_arrays(r, iv, t);
}

/* ---- samples ---- */

static void put_samples(struct rows *r, const struct contexts *c)
{
	rows_put_varint(r, c->n);
	for (uint32_t i = 0; i < c->n; i++)
		rows_put_bytes(r, c->list[i].id.bytes, STACK_ID_BYTES);
	rows_put_varint(r, c->n);
	for (uint32_t i = 0; i < c->n; i++)
		rows_put_u64(r, c->list[i].calls);
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++) {
		rows_put_varint(r, c->n);
		for (uint32_t i = 0; i < c->n; i++)
			rows_put_u64(r, c->list[i].self[k]);
	}
}

/* ---- details: figures of contexts by name ---- */

struct details {
	struct rows stack, name, value;
	uint64_t n;
};

static void details_deinit(struct details *d)
{
	rows_deinit(&d->stack);
	rows_deinit(&d->name);
	rows_deinit(&d->value);
}

static void details_of(const struct context *c, uint64_t of[DETAIL_COLUMNS + COLUMNS])
{
	of[DETAIL_YIELDS] = c->yields;
	of[DETAIL_INFLIGHT] = c->inflight;
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++) {
		of[DETAIL_MIN + k] = c->min[k];
		of[DETAIL_MAX + k] = c->max[k];
	}
	memcpy(of + DETAIL_COLUMNS, c->columns, sizeof(c->columns));
}

/* The least duration of no call is the greatest number. */
static bool is_none(unsigned int i, uint64_t value)
{
	bool least = i >= DETAIL_MIN && i < DETAIL_MAX;

	return value == (least ? UINT64_MAX : 0);
}

static int put_details(struct rows *r, const struct contexts *c)
{
	_cleanup_(details_deinit) struct details d = {.n = 0};
	uint64_t of[DETAIL_COLUMNS + COLUMNS];
	char buf[DETAIL_NAME_MAX];

	for (uint32_t i = 0; i < c->n; i++) {
		details_of(&c->list[i], of);
		for (unsigned int k = 0; k < DETAIL_COLUMNS + COLUMNS; k++) {
			if (is_none(k, of[k]))
				continue;
			rows_put_bytes(&d.stack, c->list[i].id.bytes, STACK_ID_BYTES);
			rows_put_str(&d.name, detail_name(k, buf));
			rows_put_u64(&d.value, of[k]);
			d.n++;
		}
	}
	put_array(r, d.n, &d.stack);
	put_array(r, d.n, &d.name);
	put_array(r, d.n, &d.value);
	return d.stack.err || d.name.err || d.value.err ? -ENOMEM : 0;
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
	add_fact(f, FACT_RATE, t->estimate.rate);
	add_fact(f, FACT_PERIOD, t->estimate.period_ns);
	add_fact(f, FACT_MAX_OVERHEAD, t->windows.max_overhead);
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
	put_array(r, f.n, &f.function);
	put_array(r, f.n, &f.name);
	put_array(r, f.n, &f.value);
	put_array(r, f.n, &f.variance);
	return 0;
}

/* ---- functions and stacks ---- */

/* What the rows of an interval's functions and stacks have in common */
struct naming {
	uint16_t day; /* since 1970 */
	const char *service;
	uint64_t keys[TABLES_KINDS]; /* of name_keys() */
};

static void naming_init(struct naming *n, const struct interval *iv)
{
	time_t seconds = (time_t)(iv->start_unix_ns / NS_PER_S);
	uint32_t month = 0;
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		month = (uint32_t)tm.tm_year * 12 + (uint32_t)tm.tm_mon;
	n->day = (uint16_t)(iv->start_unix_ns / NS_PER_S / S_PER_DAY);
	n->service = label_or_empty(iv, INTERVAL_SERVICE);
	n->keys[TABLES_FUNCTIONS] = name_keys(TABLES_FUNCTIONS, n->service, month);
	n->keys[TABLES_STACKS] = name_keys(TABLES_STACKS, n->service, month);
}

/* Returns what record_end() needs. */
static size_t begin_name(struct rows *r, const struct naming *n, enum tables_kind kind, uint64_t id)
{
	size_t begin = record_begin(r, kind, name_key(n->keys[kind], id));

	rows_put_u16(r, n->day);
	rows_put_str(r, n->service);
	return begin;
}

static void put_function(struct rows *r, const struct naming *n, uint64_t id,
			 const struct snapshot_func *f)
{
	size_t begin = begin_name(r, n, TABLES_FUNCTIONS, id);

	rows_put_u64(r, id);
	rows_put_str(r, f->filename);
	rows_put_u32(r, (uint32_t)f->firstlineno);
	rows_put_str(r, f->name);
	rows_put_str(r, f->qualname);
	rows_put_u8(r, f->qualname != NULL);
	rows_put_u32(r, f->variant);
	rows_put_u8(r, f->pseudo);
	record_end(r, begin);
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
	struct naming n;
	int err = 0;

	naming_init(&n, iv);
	for (uint32_t i = 0; i < iv->snapshot->nfuncs; i++)
		if (c->used[i])
			put_function(r, &n, c->functions[i], &iv->snapshot->funcs[i]);
	for (uint32_t i = 0; i < c->n && !err; i++) {
		const struct stack_id *id = &c->list[i].id;
		size_t begin = begin_name(r, &n, TABLES_STACKS, stack_id_key(id));

		rows_put_bytes(r, id->bytes, STACK_ID_BYTES);
		err = put_path(r, c, c->list[i].node, &path);
		record_end(r, begin);
	}
	return err;
}

static int put_profile(struct rows *r, const struct interval *iv, const struct contexts *c)
{
	size_t begin = record_begin(r, TABLES_PROFILES, 0);
	int err = put_labels(r, iv);

	put_samples(r, c);
	if (!err)
		err = put_details(r, c);
	if (!err)
		err = put_figures(r, c);
	rows_put_u8(r, 0); /* the mark */
	record_end(r, begin);
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
