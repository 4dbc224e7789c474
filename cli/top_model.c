// SPDX-License-Identifier: BSD-2-Clause
/* Data of a live view: see top_model.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "top_model.h"

#include <errno.h>
#include <inttypes.h>
#include <pcre2.h>
#include <string.h>

#include "format/names.h"
#include "format/screen.h"
#include "render.h"

#define NS		1e9
#define FIGURES_COLUMNS 46
#define MATCH_STEPS	100000u

const char *const top_sort_names[] = {"self",	 "cum",	    "rate", "calls",
				      "tottime", "cumtime", "name", NULL};

struct entry {
	char *key, *name; /* owned */
	uint64_t calls, tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS];
};

struct table {
	struct entry *entries; /* sorted by key */
	size_t n;
};

struct top_model {
	struct table now[TOP_VIEWS], before[TOP_VIEWS];
	uint64_t now_ns, before_ns; /* time of the snapshots; 0: none */
	uint64_t first_ns;	    /* start of tracing */
	enum top_view view;
	enum snapshot_clock clock;
	enum top_sort sort;
	bool reverse;
	char *pattern;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	struct top_row *rows;
	size_t nrows, selected;
	char *selected_key;
	char *callers_of; /* function whose callers are shown; NULL: none */
	int callers_seen; /* responses with callers so far; rates of the first one are since the
			   * start */
};

struct top_model *top_model_new(void)
{
	struct top_model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->match = pcre2_match_data_create(1, NULL);
	m->limits = pcre2_match_context_create(NULL);
	if (!m->match || !m->limits) {
		top_model_free(m);
		return NULL;
	}
	pcre2_set_match_limit(m->limits, MATCH_STEPS);
	return m;
}

static void table_deinit(struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->entries[i].key);
		free(t->entries[i].name);
	}
	free(t->entries);
	*t = (struct table){0};
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	for (int v = 0; v < TOP_VIEWS; v++) {
		table_deinit(&m->now[v]);
		table_deinit(&m->before[v]);
	}
	pcre2_code_free(m->code);
	pcre2_match_data_free(m->match);
	pcre2_match_context_free(m->limits);
	free(m->pattern);
	free(m->rows);
	free(m->selected_key);
	free(m->callers_of);
	free(m);
}

/* ---- reading ---- */

static const char *text_at(const json_t *row, size_t i)
{
	const char *s = json_string_value(json_array_get(row, i));

	return s ? s : "<unknown>";
}

static uint64_t count_at(const json_t *row, size_t i)
{
	json_int_t v = json_integer_value(json_array_get(row, i));

	return v < 0 ? 0 : (uint64_t)v;
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

/* Row: file, line, name, qualname, ncalls, pcalls, then tottime and cumtime for each clock */
static int read_function(const json_t *row, struct entry *e)
{
	const char *file = text_at(row, 0), *name = text_at(row, 2);
	int32_t line = (int32_t)count_at(row, 1);

	e->key = name_std(file, line, name);
	e->name = name_std(base_name(file), line, name);
	e->calls = count_at(row, 4);
	for (size_t c = 0; c < SNAPSHOT_CLOCKS; c++) {
		e->tot[c] = count_at(row, 6 + 2 * c);
		e->cum[c] = count_at(row, 7 + 2 * c);
	}
	return e->key && e->name ? 0 : -ENOMEM;
}

/* Row: pid, tid, name, alive, calls, cpu, wall. Both times are shown, whatever the clock. */
static int read_thread(const json_t *row, struct entry *e)
{
	bool alive = json_is_true(json_array_get(row, 3));

	if (asprintf(&e->key, "%" PRIu64 ":%" PRIu64, count_at(row, 0), count_at(row, 1)) < 0)
		e->key = NULL;
	if (asprintf(&e->name, "%" PRIu64 "/%" PRIu64 " %s%s", count_at(row, 0), count_at(row, 1),
		     text_at(row, 2), alive ? "" : " (ended)") < 0)
		e->name = NULL;
	e->calls = count_at(row, 4);
	for (size_t c = 0; c < SNAPSHOT_CLOCKS; c++) {
		e->tot[c] = count_at(row, 5);
		e->cum[c] = count_at(row, 6);
	}
	return e->key && e->name ? 0 : -ENOMEM;
}

static int compare_keys(const void *l, const void *r)
{
	return strcmp(((const struct entry *)l)->key, ((const struct entry *)r)->key);
}

/* Merge functions that differ only in the qualified name, as pstats does. */
static void merge_equals(struct table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct entry *e = &t->entries[i], *last = n ? &t->entries[n - 1] : NULL;

		if (!last || strcmp(last->key, e->key) != 0) {
			t->entries[n++] = *e;
			continue;
		}
		last->calls += e->calls;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			last->tot[c] += e->tot[c];
			last->cum[c] += e->cum[c];
		}
		free(e->key);
		free(e->name);
	}
	t->n = n;
}

static int read_table(const json_t *list, int (*read)(const json_t *, struct entry *),
		      struct table *ret)
{
	_cleanup_(table_deinit) struct table t = {0};
	size_t i;
	json_t *row;

	t.entries = calloc(json_array_size(list) + 1, sizeof(*t.entries));
	if (!t.entries)
		return -ENOMEM;
	json_array_foreach(list, i, row)
	{
		int err = read(row, &t.entries[t.n++]);

		if (err < 0)
			return err;
	}
	qsort(t.entries, t.n, sizeof(*t.entries), compare_keys);
	merge_equals(&t);
	*ret = t;
	t = (struct table){0};
	return 0;
}

/* ---- rows ---- */

static const struct entry *find(const struct table *t, const char *key)
{
	const struct entry wanted = {.key = (char *)key};

	return t->n ? bsearch(&wanted, t->entries, t->n, sizeof(wanted), compare_keys) : NULL;
}

/* After a clear everything is new. Otherwise times can decrease slightly, as corrections are
 * applied later. */
static double gain(uint64_t now, uint64_t before, bool cleared)
{
	if (cleared)
		return (double)now;
	return now > before ? (double)(now - before) : 0;
}

static void fill_row(const struct top_model *m, const struct entry *e, struct top_row *r)
{
	static const struct entry none;
	const struct entry *old = find(&m->before[m->view], e->key);
	bool fresh = !m->before_ns || (m->view == TOP_CALLERS && m->callers_seen < 2);
	uint64_t since = fresh ? m->first_ns : m->before_ns;
	double ns = m->now_ns > since ? (double)(m->now_ns - since) : NS;
	enum snapshot_clock c = m->clock;
	bool cleared;

	if (!old)
		old = &none;
	cleared = e->calls < old->calls;
	*r = (struct top_row){
		.key = e->key,
		.name = e->name,
		.calls = e->calls,
		.tottime = e->tot[c],
		.cumtime = e->cum[c],
		.rate = gain(e->calls, old->calls, cleared) / ns * NS,
		.self = gain(e->tot[c], old->tot[c], cleared) / ns * 100,
		.cum = gain(e->cum[c], old->cum[c], cleared) / ns * 100,
	};
}

static bool matches(const struct top_model *m, const char *key)
{
	return !m->code || m->view == TOP_CALLERS ||
	       pcre2_match(m->code, (PCRE2_SPTR)key, PCRE2_ZERO_TERMINATED, 0, 0, m->match,
			   m->limits) >= 0;
}

static int by_number(double l, double r)
{
	return (l < r) - (l > r);
}

static int compare_by(enum top_sort sort, const struct top_row *l, const struct top_row *r)
{
	switch (sort) {
	case TOP_BY_SELF:
		return by_number(l->self, r->self);
	case TOP_BY_CUM:
		return by_number(l->cum, r->cum);
	case TOP_BY_RATE:
		return by_number(l->rate, r->rate);
	case TOP_BY_CALLS:
		return by_number((double)l->calls, (double)r->calls);
	case TOP_BY_TOTTIME:
		return by_number((double)l->tottime, (double)r->tottime);
	case TOP_BY_CUMTIME:
		return by_number((double)l->cumtime, (double)r->cumtime);
	default:
		return 0;
	}
}

/* Equal rows (an idle program) are ordered by total time. */
static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct top_row *l = left, *r = right;
	const struct top_model *m = arg;
	int order = compare_by(m->sort, l, r);

	if (!order && m->sort != TOP_BY_NAME)
		order = by_number((double)l->tottime, (double)r->tottime);
	if (!order)
		order = strcmp(l->name, r->name);
	if (!order)
		order = strcmp(l->key, r->key);
	return m->reverse ? -order : order;
}

/* The selection follows its key; if the key is gone, it stays at its place. */
static void find_selected(struct top_model *m)
{
	for (size_t i = 0; m->selected_key && i < m->nrows; i++)
		if (strcmp(m->rows[i].key, m->selected_key) == 0) {
			m->selected = i;
			return;
		}
	if (m->selected >= m->nrows)
		m->selected = m->nrows ? m->nrows - 1 : 0;
}

static void refresh(struct top_model *m)
{
	const struct table *t = &m->now[m->view];

	free(m->rows);
	m->nrows = 0;
	m->rows = calloc(t->n + 1, sizeof(*m->rows));
	for (size_t i = 0; m->rows && i < t->n; i++)
		if (matches(m, t->entries[i].key))
			fill_row(m, &t->entries[i], &m->rows[m->nrows++]);
	if (m->nrows)
		qsort_r(m->rows, m->nrows, sizeof(*m->rows), compare_rows, m);
	find_selected(m);
}

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v < 0 ? 0 : (uint64_t)v;
}

static uint64_t first_start(const json_t *rows)
{
	const json_t *targets = json_object_get(rows, "targets");
	uint64_t first = 0;
	size_t i;
	json_t *t;

	json_array_foreach(targets, i, t)
	{
		uint64_t start = number_of(t, "start_unix_ns");

		first = !first || start < first ? start : first;
	}
	return first;
}

int top_model_update(struct top_model *m, const json_t *rows, struct diag *diag)
{
	_cleanup_(table_deinit) struct table functions = {0}, threads = {0}, callers = {0};
	int err;

	if (!json_is_array(json_object_get(rows, "functions")))
		return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
				"check that the daemon has the same version",
				"the daemon's response contains no functions");
	err = read_table(json_object_get(rows, "functions"), read_function, &functions);
	if (!err)
		err = read_table(json_object_get(rows, "threads"), read_thread, &threads);
	if (!err)
		err = read_table(json_object_get(rows, "callers"), read_function, &callers);
	if (err < 0)
		return diag_errno(diag, -err, "cannot store the daemon's response");
	for (int v = 0; v < TOP_VIEWS; v++) {
		table_deinit(&m->before[v]);
		m->before[v] = m->now[v];
	}
	m->now[TOP_FUNCTIONS] = functions;
	m->now[TOP_THREADS] = threads;
	m->now[TOP_CALLERS] = callers;
	functions = threads = callers = (struct table){0};
	m->callers_seen += m->callers_of && json_object_get(rows, "callers");
	m->before_ns = m->now_ns;
	m->now_ns = number_of(rows, "taken_unix_ns");
	m->first_ns = first_start(rows);
	refresh(m);
	return 0;
}

/* ---- settings ---- */

int top_model_set_callers(struct top_model *m, const char *key)
{
	char *copy = key ? strdup(key) : NULL, *old = m->callers_of;

	if (key && !copy)
		return -ENOMEM;
	m->callers_of = copy;
	m->callers_seen = 0;
	table_deinit(&m->now[TOP_CALLERS]);
	table_deinit(&m->before[TOP_CALLERS]);
	top_model_set_view(m, key ? TOP_CALLERS : TOP_FUNCTIONS);
	m->selected_key = key ? NULL : old;
	if (key)
		free(old);
	find_selected(m);
	return 0;
}

const char *top_model_callers(const struct top_model *m)
{
	return m->callers_of;
}

void top_model_set_view(struct top_model *m, enum top_view view)
{
	m->view = view;
	m->selected = 0;
	free(TAKE_PTR(m->selected_key));
	refresh(m);
}

void top_model_set_clock(struct top_model *m, enum snapshot_clock clock)
{
	m->clock = clock;
	refresh(m);
}

void top_model_set_sort(struct top_model *m, enum top_sort sort, bool reverse)
{
	m->sort = sort;
	m->reverse = reverse;
	refresh(m);
}

int top_model_set_filter(struct top_model *m, const char *pattern, struct diag *diag)
{
	const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
				 PCRE2_MATCH_INVALID_UTF;
	PCRE2_UCHAR why[128];
	pcre2_code *code = NULL;
	PCRE2_SIZE at;
	int err;

	if (pattern && *pattern) {
		code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &err, &at,
				     NULL);
		if (!code) {
			pcre2_get_error_message(err, why, sizeof(why));
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "",
					"invalid pattern '%.100s': %s", pattern, (char *)why);
		}
	}
	pcre2_code_free(m->code);
	m->code = code;
	free(m->pattern);
	m->pattern = code ? strdup(pattern) : NULL;
	refresh(m);
	return 0;
}

enum top_view top_model_view(const struct top_model *m)
{
	return m->view;
}

enum snapshot_clock top_model_clock(const struct top_model *m)
{
	return m->clock;
}

enum top_sort top_model_sort(const struct top_model *m)
{
	return m->sort;
}

bool top_model_reversed(const struct top_model *m)
{
	return m->reverse;
}

const char *top_model_filter(const struct top_model *m)
{
	return m->pattern ? m->pattern : "";
}

const struct top_row *top_model_rows(const struct top_model *m, size_t *ret_n)
{
	*ret_n = m->nrows;
	return m->rows;
}

size_t top_model_selected(const struct top_model *m)
{
	return m->selected;
}

void top_model_move(struct top_model *m, long rows)
{
	if (!m->nrows)
		return;
	if (rows < 0)
		m->selected -= (size_t)-rows > m->selected ? m->selected : (size_t)-rows;
	else
		m->selected += (size_t)rows;
	if (m->selected >= m->nrows)
		m->selected = m->nrows - 1;
	free(m->selected_key);
	m->selected_key = strdup(m->rows[m->selected].key);
}

/* ---- lines ---- */

void top_print_heading(const struct top_model *m, size_t columns, FILE *out)
{
	bool threads = m->view == TOP_THREADS;
	char line[128];

	snprintf(line, sizeof(line), "%7s %5s %5s %7s %8s %8s %s", "CALLS/S",
		 threads ? "CPU%" : "SELF%", threads ? "WALL%" : "CUM%", "CALLS",
		 threads ? "CPU" : "TOTTIME", threads ? "WALL" : "CUMTIME",
		 threads		  ? "PID/TID THREAD"
		 : m->view == TOP_CALLERS ? "CALLED BY"
					  : "FUNCTION");
	screen_fit(out, line, columns);
}

void top_print_row(const struct top_row *r, size_t columns, FILE *out)
{
	char rate[32], calls[32], line[FIGURES_COLUMNS + 64];

	snprintf(line, sizeof(line), "%7s %5.1f %5.1f %7s %8.2f %8.2f ",
		 render_count((uint64_t)(r->rate + .5), 7, rate, sizeof(rate)), r->self, r->cum,
		 render_count(r->calls, 7, calls, sizeof(calls)), (double)r->tottime / NS,
		 (double)r->cumtime / NS);
	if (strlen(line) + 8 > columns) {
		screen_fit(out, r->name, columns);
		return;
	}
	fputs(line, out);
	screen_fit(out, r->name, columns - strlen(line));
}

void top_print_status(const json_t *status, size_t columns, FILE *out)
{
	const json_t *targets = json_object_get(status, "targets");
	uint64_t events = 0, rate = 0, lost = 0, tracing = 0, ended = 0;
	char all[32], per_s[32], line[256];
	double overhead = 0;
	size_t i;
	json_t *t;

	json_array_foreach(targets, i, t)
	{
		const char *state = json_string_value(json_object_get(t, "state"));

		overhead += json_real_value(json_object_get(t, "overhead"));
		events += number_of(t, "events");
		rate += number_of(t, "events_per_s");
		lost += number_of(t, "lost");
		tracing += state && strcmp(state, "tracing") == 0;
		ended += state && strcmp(state, "ended") == 0;
	}
	snprintf(line, sizeof(line),
		 "%" PRIu64 " traced, %" PRIu64 " ended | %s events, %s/s, %" PRIu64
		 " lost | overhead about %.1f%%",
		 tracing, ended, render_count(events, 9, all, sizeof(all)),
		 render_count(rate, 6, per_s, sizeof(per_s)), lost,
		 tracing ? overhead / (double)tracing * 100 : 0);
	screen_fit(out, line, columns);
}
