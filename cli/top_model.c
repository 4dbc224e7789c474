// SPDX-License-Identifier: BSD-2-Clause
/* Data of a live view: see top_model.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "top_model.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define NS	    1e9
#define MATCH_STEPS 100000u

struct top_model {
	struct top_table now[TOP_VIEWS], before[TOP_VIEWS];
	uint64_t now_ns, before_ns; /* time of the snapshots; 0: none */
	uint64_t first_ns;	    /* start of tracing */
	bool interval, uncounted;   /* see top_model_interval() */
	enum top_view view;
	enum snapshot_clock clock;
	struct top_order order;
	bool reverse, full_names;
	unsigned int cpus; /* that percentages of CPU time are of */
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
	m->cpus = 1;
	m->match = pcre2_match_data_create(1, NULL);
	m->limits = pcre2_match_context_create(NULL);
	if (!m->match || !m->limits) {
		top_model_free(m);
		return NULL;
	}
	pcre2_set_match_limit(m->limits, MATCH_STEPS);
	return m;
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	for (int v = 0; v < TOP_VIEWS; v++) {
		top_table_deinit(&m->now[v]);
		top_table_deinit(&m->before[v]);
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

/* ---- rows ---- */

/* After a clear everything is new. Otherwise times can decrease slightly, as corrections are
 * applied later. */
static double gain(uint64_t now, uint64_t before, bool cleared)
{
	if (cleared)
		return (double)now;
	return now > before ? (double)(now - before) : 0;
}

/* What percentages are of. Wall time is elapsed time, however many CPUs there are. */
static double cpus_of(const struct top_model *m, bool cpu)
{
	return cpu ? m->cpus : 1;
}

/* The time that the rates are of: since the previous response, or since the start. */
static double interval(const struct top_model *m)
{
	bool fresh = !m->before_ns || (m->view == TOP_CALLERS && m->callers_seen < 2);
	uint64_t since = fresh ? m->first_ns : m->before_ns;

	return m->now_ns > since ? (double)(m->now_ns - since) : NS;
}

static void fill_row(const struct top_model *m, const struct top_entry *e, struct top_row *r)
{
	static const struct top_entry none;
	const struct top_entry *old = top_table_find(&m->before[m->view], e->key);
	bool usage = m->view == TOP_THREADS || m->view == TOP_PROCESSES;
	enum snapshot_clock c = m->clock;
	double percent = 100 / interval(m);
	bool cleared;

	if (!old)
		old = &none;
	cleared = e->calls < old->calls;
	*r = (struct top_row){
		.entry = e,
		.key = e->key,
		.uncounted = m->uncounted,
		.name = m->full_names && e->full ? e->full : e->name,
		.calls = e->calls,
		.tottime = e->tot[c],
		.cumtime = e->cum[c],
		.rate = gain(e->calls, old->calls, cleared) / interval(m) * NS,
		.self = gain(e->tot[c], old->tot[c], cleared) * percent /
			cpus_of(m, usage || c == SNAPSHOT_CPU),
		.cum = gain(e->cum[c], old->cum[c], cleared) * percent /
		       cpus_of(m, !usage && c == SNAPSHOT_CPU),
	};
	for (int i = 0; i < TOP_WAITS; i++) {
		r->wait[i] = gain(e->waits[i], old->waits[i], cleared) * percent;
		r->waiting += r->wait[i];
	}
}

static bool text_matches(const struct top_model *m, const char *text)
{
	return text && pcre2_match(m->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, 0, m->match,
				   m->limits) >= 0;
}

/* Processes also by service, command line or function. */
static bool matches(const struct top_model *m, const struct top_entry *e)
{
	if (!m->code || m->view == TOP_CALLERS || text_matches(m, e->key))
		return true;
	return m->view == TOP_PROCESSES &&
	       (text_matches(m, e->service) || text_matches(m, e->full));
}

static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct top_model *m = arg;
	int order = top_order_compare(&m->order, left, right);

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
	const struct top_table *t = &m->now[m->view];

	free(m->rows);
	m->nrows = 0;
	m->rows = calloc(t->n + 1, sizeof(*m->rows));
	for (size_t i = 0; m->rows && i < t->n; i++)
		if (matches(m, &t->entries[i]))
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

/* Of an interval, the time of the response and of the one before are its ends. */
static void set_time(struct top_model *m, const json_t *rows)
{
	const json_t *interval = json_object_get(rows, "interval");

	m->interval = json_array_size(interval) == 2;
	m->uncounted = json_is_true(json_object_get(rows, "uncounted"));
	m->before_ns = m->interval ? 0 : m->now_ns;
	m->now_ns = number_of(rows, "taken_unix_ns");
	m->first_ns = first_start(rows);
	if (!m->interval)
		return;
	m->first_ns = (uint64_t)json_integer_value(json_array_get(interval, 0));
	m->now_ns = (uint64_t)json_integer_value(json_array_get(interval, 1));
	for (int v = 0; v < TOP_VIEWS; v++)
		top_table_deinit(&m->before[v]);
}

/* Read all tables, or none. */
static int read_tables(const json_t *rows, struct top_table ret[TOP_VIEWS])
{
	int err = 0;

	for (int v = 0; v < TOP_VIEWS && !err; v++)
		err = top_table_read(rows, (enum top_view)v, &ret[v]);
	for (int v = 0; v < TOP_VIEWS && err; v++)
		top_table_deinit(&ret[v]);
	return err;
}

int top_model_update(struct top_model *m, const json_t *rows, struct diag *diag)
{
	struct top_table tables[TOP_VIEWS] = {0};
	int err;

	if (!json_is_array(json_object_get(rows, "functions")))
		return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
				"check that the daemon has the same version",
				"the daemon's response contains no functions");
	err = read_tables(rows, tables);
	if (err < 0)
		return diag_errno(diag, -err, "cannot store the daemon's response");
	for (int v = 0; v < TOP_VIEWS; v++) {
		top_table_deinit(&m->before[v]);
		m->before[v] = m->now[v];
		m->now[v] = tables[v];
	}
	m->callers_seen += m->callers_of && json_object_get(rows, "callers");
	set_time(m, rows);
	refresh(m);
	return 0;
}

void top_model_forget(struct top_model *m)
{
	for (int v = 0; v < TOP_VIEWS; v++) {
		top_table_deinit(&m->now[v]);
		top_table_deinit(&m->before[v]);
	}
	m->now_ns = m->before_ns = 0;
	refresh(m);
}

bool top_model_interval(const struct top_model *m, struct when_span *ret)
{
	if (m->interval && ret)
		*ret = (struct when_span){.from_ns = m->first_ns, .to_ns = m->now_ns};
	return m->interval;
}

bool top_model_uncounted(const struct top_model *m)
{
	return m->uncounted;
}

/* ---- settings ---- */

int top_model_set_callers(struct top_model *m, const char *key)
{
	char *copy = key ? strdup(key) : NULL, *old = m->callers_of;

	if (key && !copy)
		return -ENOMEM;
	m->callers_of = copy;
	m->callers_seen = 0;
	top_table_deinit(&m->now[TOP_CALLERS]);
	top_table_deinit(&m->before[TOP_CALLERS]);
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

void top_model_set_order(struct top_model *m, const struct top_order *order, bool reverse)
{
	m->order = *order;
	m->reverse = reverse;
	refresh(m);
}

void top_model_set_cpus(struct top_model *m, unsigned int cpus)
{
	m->cpus = cpus ? cpus : 1;
	refresh(m);
}

void top_model_set_full_names(struct top_model *m, bool full)
{
	m->full_names = full;
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

const struct top_order *top_model_order(const struct top_model *m)
{
	return &m->order;
}

unsigned int top_model_cpus(const struct top_model *m)
{
	return m->cpus;
}

bool top_model_full_names(const struct top_model *m)
{
	return m->full_names;
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
