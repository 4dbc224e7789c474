// SPDX-License-Identifier: BSD-2-Clause
/*
 * JSON: the whole snapshot. Saved snapshots have this format, and snapshot/load.c reads it. One
 * object: "format" and "version", the rest of the provenance (see provenance.h), then the arrays
 * `threads`, `functions`, `edges` and `nodes`, whose elements refer to each other by index. Times
 * are integer nanoseconds on both clocks. Each element is one line, written as soon as it is
 * complete, so a large snapshot is not copied in memory. The output is ASCII, so it cannot harm a
 * terminal.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/wait.h"
#include "format/coroutines.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/quantiles.h"
#include "format/resumptions.h"
#include "format/waits_text.h"
#include "format/writers.h"
#include "snapshot/lines.h"
#include "snapshot/pseudo.h"

struct writer {
	const struct snapshot *s;
	const struct view *v;
	const struct format_opts *o;
	const struct view_filter *filter;
	FILE *out;
	uint32_t *func_at;   /* index in `functions`; SNAPSHOT_NONE: left out */
	uint32_t *thread_at; /* index in `threads`; SNAPSHOT_NONE: left out */
	uint32_t *node_at;
	uint64_t (*outside)[SNAPSHOT_CLOCKS];  /* per thread: the figures of its "<outside>" row */
	const uint64_t *resumed;	       /* per function, see resumptions_new() */
	const struct waits_of_thread *waits;   /* per thread; NULL: not measured */
	const struct per_call_evidence *calls; /* per node */
	bool durations; /* functions have durations, valid for the written threads */
	bool errors;	/* figures have standard errors, valid for the written threads */
	bool lines;	/* functions have lines, valid for the written threads */
};

static void next(struct writer *w, bool *first)
{
	fputs(*first ? "\n" : ",\n", w->out);
	*first = false;
}

/* Writes a value and releases the reference; value may be NULL if out of memory. */
static int dump(struct writer *w, json_t *value, size_t flags)
{
	int err;

	if (!value)
		return -ENOMEM;
	err = json_dumpf(value, w->out, JSON_COMPACT | JSON_ENSURE_ASCII | flags);
	json_decref(value);
	return err < 0 && !ferror(w->out) ? -ENOMEM : 0;
}

static void put_index(struct writer *w, const char *key, const uint32_t *at, uint32_t i)
{
	if (i == SNAPSHOT_NONE || at[i] == SNAPSHOT_NONE)
		fprintf(w->out, "\"%s\":null,", key);
	else
		fprintf(w->out, "\"%s\":%" PRIu32 ",", key, at[i]);
}

static void put_number(struct writer *w, const char *key, uint64_t n)
{
	fprintf(w->out, "\"%s\":%" PRIu64 ",", key, n);
}

static void put_clocks(struct writer *w, const char *key, const uint64_t ns[SNAPSHOT_CLOCKS])
{
	fprintf(w->out, "\"%s\":{\"cpu\":%" PRIu64 ",\"wall\":%" PRIu64 "}", key, ns[SNAPSHOT_CPU],
		ns[SNAPSHOT_WALL]);
}

static void put_known(struct writer *w, const char *key, uint64_t ns)
{
	if (ns == SNAPSHOT_MIN_UNKNOWN)
		fprintf(w->out, "\"%s\":null", key);
	else
		fprintf(w->out, "\"%s\":%" PRIu64, key, ns);
}

static void put_known_clocks(struct writer *w, const char *key, const uint64_t ns[SNAPSHOT_CLOCKS])
{
	fprintf(w->out, "\"%s\":{", key);
	put_known(w, "cpu", ns[SNAPSHOT_CPU]);
	fputc(',', w->out);
	put_known(w, "wall", ns[SNAPSHOT_WALL]);
	fputc('}', w->out);
}

/*
 * Minimum and maximum are null until an activation has completed, and on a clock on which the probe
 * cost exceeds the activation's time.
 */
static void put_extremes(struct writer *w, const uint64_t min[SNAPSHOT_CLOCKS],
			 const uint64_t max[SNAPSHOT_CLOCKS])
{
	if (min[SNAPSHOT_CPU] == UINT64_MAX || min[SNAPSHOT_WALL] == UINT64_MAX) {
		fputs("\"min\":null,\"max\":null", w->out);
		return;
	}
	put_known_clocks(w, "min", min);
	fputc(',', w->out);
	put_known_clocks(w, "max", max);
}

static json_t *clocks_json(const uint64_t ns[SNAPSHOT_CLOCKS])
{
	return json_pack("{s:o, s:o}", "cpu", provenance_integer(ns[SNAPSHOT_CPU]), "wall",
			 provenance_integer(ns[SNAPSHOT_WALL]));
}

/* The thread's waiting by reason; NULL: out of memory. */
static json_t *thread_waits_json(const struct waits_of_thread *w)
{
	json_t *ret = json_object();

	for (int c = 0; c < COLUMNS && ret; c++) {
		if (!(COLUMN_WAITS & COLUMN_BIT(c)) ||
		    !json_object_set_new(ret, column_table[c].name, provenance_integer(w->of[c])))
			continue;
		json_decref(ret);
		ret = NULL;
	}
	return ret;
}

/*
 * outside: the thread's time outside Python. With snapshot_pseudo() it is also a context of its
 * own.
 */
static json_t *thread_json(const struct writer *w, const struct snapshot_thread *t)
{
	const struct snapshot *s = w->s;
	uint64_t outside[SNAPSHOT_CLOCKS];
	json_t *ret;

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		outside[c] = s->nodes[t->root].self[c] + w->outside[t - s->threads][c];
	ret = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "pid",
			provenance_integer(t->pid), "tid", provenance_integer(t->tid), "name",
			provenance_string(t->name), "alive", t->alive, "start_ns",
			provenance_integer(t->start_ns), "end_ns", provenance_integer(t->end_ns),
			"total", clocks_json(t->total), "outside", clocks_json(outside));
	if (ret && w->waits &&
	    json_object_set_new(ret, "waits", thread_waits_json(&w->waits[t - s->threads]))) {
		json_decref(ret);
		return NULL;
	}
	/* A row of ended threads has their number and function. */
	if (ret && t->folded &&
	    (json_object_set_new(ret, "folded", provenance_integer(t->folded)) ||
	     json_object_set_new(ret, "entry",
				 t->entry ? provenance_string(t->entry) : json_null()))) {
		json_decref(ret);
		return NULL;
	}
	return ret;
}

static void sum_outside(struct writer *w)
{
	const struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func == SNAPSHOT_NONE || !s->funcs[n->func].pseudo ||
		    strcmp(s->funcs[n->func].name, SNAPSHOT_OUTSIDE) != 0)
			continue;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			w->outside[n->thread][c] += n->self[c];
	}
}

static int put_threads(struct writer *w)
{
	bool first = true;
	uint32_t n = 0;

	fputs(",\n\"threads\":[", w->out);
	for (uint32_t i = 0; i < w->s->nthreads; i++) {
		const struct snapshot_thread *t = &w->s->threads[i];

		if (!view_selects(w->filter, t))
			continue;
		w->thread_at[i] = n++;
		next(w, &first);
		if (dump(w, thread_json(w, t), 0) < 0)
			return -ENOMEM;
	}
	fputs("\n]", w->out);
	return 0;
}

static bool node_selected(const struct writer *w, const struct snapshot_node *node)
{
	return w->thread_at[node->thread] != SNAPSHOT_NONE;
}

/* Pairs belong to processes, so a filter by thread selects none. */
static bool gil_pair_selected(const struct writer *w, const struct snapshot_gil_pair *p)
{
	const struct view_filter *f = w->filter;

	return (!f->pid || f->pid == p->pid) && !f->tid;
}

static bool wait_selected(const struct writer *w, const struct snapshot_wait *v)
{
	const struct view_filter *f = w->filter;

	return (!f->pid || f->pid == v->pid) && (!f->tid || f->tid == v->tid);
}

/* Numbers the functions with a row, and those that only edges and contexts refer to. */
static void number_functions(struct writer *w)
{
	const struct snapshot *s = w->s;
	uint32_t n = 0;

	/* First mark used functions with 0, then number them in the snapshot's order. */
	for (size_t i = 0; i < w->v->nrows; i++)
		w->func_at[w->v->rows[i].func] = 0;
	for (size_t i = 0; i < w->v->nedges; i++) {
		w->func_at[w->v->edges[i].callee] = 0;
		if (w->v->edges[i].caller != SNAPSHOT_NONE)
			w->func_at[w->v->edges[i].caller] = 0;
	}
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE && node_selected(w, &s->nodes[i]))
			w->func_at[s->nodes[i].func] = 0;
	for (uint32_t i = 0; i < s->ncoros; i++)
		if (coroutine_selected(s, &s->coros[i], w->o))
			w->func_at[s->coros[i].func] = 0;
	for (uint32_t i = 0; i < s->ngil_pairs; i++) {
		if (!gil_pair_selected(w, &s->gil_pairs[i]))
			continue;
		if (s->gil_pairs[i].holder != SNAPSHOT_NONE)
			w->func_at[s->gil_pairs[i].holder] = 0;
		if (s->gil_pairs[i].waiter != SNAPSHOT_NONE)
			w->func_at[s->gil_pairs[i].waiter] = 0;
	}
	for (uint32_t i = 0; i < s->nwaits; i++)
		if (wait_selected(w, &s->waits[i]) && s->waits[i].func != SNAPSHOT_NONE)
			w->func_at[s->waits[i].func] = 0;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (w->func_at[i] == 0)
			w->func_at[i] = n++;
}

/* Writes one group's measured columns from index c to `end`: the values of row i. */
static void put_group(struct writer *w, int c, int end, uint64_t *const *values, const char *suffix,
		      size_t i)
{
	const char *group = column_table[c].group;
	const char *comma = "";

	if (*group)
		fprintf(w->out, ",\"%s%s\":{", group, suffix);
	for (; c < end; c++) {
		if (!(w->s->measured & COLUMN_BIT(c)))
			continue;
		fprintf(w->out, "%s\"%s%s\":%" PRIu64, *group ? comma : ",", column_table[c].name,
			*group ? "" : suffix, i != SIZE_MAX && values[c] ? values[c][i] : 0);
		comma = ",";
	}
	if (*group)
		fputc('}', w->out);
}

/* Writes an object for each group of measured columns; i SIZE_MAX: a row without figures. */
static void put_columns(struct writer *w, uint64_t *const *values, const char *suffix, size_t i)
{
	for (int c = 0, end; (c = column_group_next(w->s->measured, c, &end)) < COLUMNS; c = end)
		put_group(w, c, end, values, suffix, i);
}

static void put_duration(struct writer *w, const struct snapshot_durations *d,
			 enum snapshot_clock clock)
{
	const struct histogram *h = &d[clock].histogram;
	struct quantiles q = {.max = 0};
	const char *comma = "";

	quantiles_add(&q, d, clock);
	for (int k = 0; k < QUANTILES; k++) {
		put_known(w, quantile_names[k], quantiles_get(&q, (enum quantile)k));
		fputc(',', w->out);
	}
	fputs("\"buckets\":[", w->out);
	for (uint32_t i = 0; i < h->len; i++) {
		if (!h->n[i])
			continue;
		fprintf(w->out, "%s[%" PRIu64 ",%" PRIu64 "]", comma, histogram_upper(h->first + i),
			h->n[i]);
		comma = ",";
	}
	fputc(']', w->out);
}

static void put_durations(struct writer *w, const struct snapshot_durations *d)
{
	fputs(",\"durations\":{\"cpu\":{", w->out);
	put_duration(w, d, SNAPSHOT_CPU);
	fputs("},\"wall\":{", w->out);
	put_duration(w, d, SNAPSHOT_WALL);
	fputs("}}", w->out);
}

static void put_error(struct writer *w, const char *key, const struct snapshot_func *f,
		      enum snapshot_figure figure)
{
	double error = snapshot_error(f, figure);

	if (error < 0)
		fprintf(w->out, "\"%s\":null", key);
	else
		fprintf(w->out, "\"%s\":%" PRIu64, key, (uint64_t)(error + 0.5));
}

/* Standard errors; null if unknown. */
static void put_errors(struct writer *w, const struct snapshot_func *f)
{
	fputs(",\"error\":{", w->out);
	put_error(w, "ncalls", f, SNAPSHOT_CALLS);
	fputs(",\"tottime\":{", w->out);
	put_error(w, "cpu", f, SNAPSHOT_TOT_CPU);
	fputc(',', w->out);
	put_error(w, "wall", f, SNAPSHOT_TOT_WALL);
	fputs("},\"cumtime\":{", w->out);
	put_error(w, "cpu", f, SNAPSHOT_CUM_CPU);
	fputc(',', w->out);
	put_error(w, "wall", f, SNAPSHOT_CUM_WALL);
	fputs("}}", w->out);
}

/* Self time by source line; line 0 is unknown. */
static void put_lines(struct writer *w, const struct snapshot_func *f)
{
	fputs(",\"lines\":[", w->out);
	for (uint32_t i = 0; i < f->nlines; i++) {
		const struct snapshot_line *l = &f->lines[i];

		fprintf(w->out, "%s[%" PRId32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
			l->line, l->self_ns, (uint64_t)(snapshot_line_error(l) + 0.5), l->samples);
	}
	fputc(']', w->out);
}

/* NULL means out of memory; the caller reports the error later. */
static json_t *owner(const struct snapshot_func *f,
		     const char *(*find)(const char *name, size_t *len))
{
	_cleanup_free_ char *copy = NULL;
	size_t len = 0;
	const char *s = snapshot_func_is_native(f) && f->name ? find(f->name, &len) : NULL;

	if (!len)
		return json_null();
	copy = strndup(s, len);
	return copy ? provenance_string(copy) : NULL;
}

/* Only for generators and coroutines. */
static void put_resumed(struct writer *w, const struct snapshot_func *f, uint64_t ncalls)
{
	uint64_t n = w->resumed[f - w->s->funcs];

	if (n != RESUMED_NONE)
		put_number(w, "resumed", n < ncalls ? n : ncalls);
}

static int put_function(struct writer *w, const struct snapshot_func *f, const struct view_row *row)
{
	static const struct view_row none = {.min = {UINT64_MAX, UINT64_MAX}};
	json_t *names =
		json_pack("{s:o, s:i, s:o, s:o, s:i, s:b, s:b, s:b, s:o, s:o}", "file",
			  provenance_string(f->filename), "line", (int)f->firstlineno, "name",
			  provenance_string(f->name), "qualname", provenance_string(f->qualname),
			  "variant", (int)f->variant, "pseudo", f->pseudo, "gc",
			  snapshot_func_is_gc(f), "native", snapshot_func_is_native(f), "module",
			  owner(f, name_builtin_module), "type", owner(f, name_builtin_type));
	size_t at;

	if (!row)
		row = &none;
	fputc('{', w->out);
	if (dump(w, names, JSON_EMBED) < 0)
		return -ENOMEM;
	fputc(',', w->out);
	put_number(w, "ncalls", row->ncalls);
	put_number(w, "pcalls", row->pcalls);
	put_resumed(w, f, row->ncalls);
	put_number(w, "inflight", row->inflight);
	put_clocks(w, "tottime", row->tot);
	fputc(',', w->out);
	put_clocks(w, "cumtime", row->cum);
	fputc(',', w->out);
	put_extremes(w, row->min, row->max);
	at = row == &none ? SIZE_MAX : (size_t)(row - w->v->rows);
	put_columns(w, w->v->self, "", at);
	put_columns(w, w->v->cum, "_cum", at);
	if (w->durations && f->durations)
		put_durations(w, f->durations);
	if (w->errors)
		put_errors(w, f);
	if (w->lines && f->nlines)
		put_lines(w, f);
	fputc('}', w->out);
	return 0;
}

static int put_functions(struct writer *w)
{
	_cleanup_free_ const struct view_row **rows = calloc(w->s->nfuncs + 1, sizeof(*rows));
	bool first = true;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < w->v->nrows; i++)
		rows[w->v->rows[i].func] = &w->v->rows[i];
	number_functions(w);
	fputs(",\n\"functions\":[", w->out);
	for (uint32_t i = 0; i < w->s->nfuncs; i++) {
		if (w->func_at[i] == SNAPSHOT_NONE)
			continue;
		next(w, &first);
		if (put_function(w, &w->s->funcs[i], rows[i]) < 0)
			return -ENOMEM;
	}
	fputs("\n]", w->out);
	return 0;
}

/* Only if it is known. */
static void put_per_call(struct writer *w, const struct per_call *p)
{
	if (p->calls >= 0)
		fprintf(w->out, ",\"calls_per_call\":%.9g,\"calls_per_call_error\":%.9g", p->calls,
			p->error);
}

/* What calls_per_call is made of, with all digits of integers. Only if windows have shown any. */
static void put_whole(struct writer *w, const struct snapshot_whole *v)
{
	if (v->x > 0 || v->y > 0)
		fprintf(w->out, ",\"whole\":[%.15g,%.15g,%.15g,%.15g,%.15g]", v->x, v->y, v->x2,
			v->xy, v->y2);
}

/*
 * Edges and contexts contain only numbers and can be millions, so they are printed without jansson.
 */
static void put_edges(struct writer *w)
{
	bool first = true;

	fputs(",\n\"edges\":[", w->out);
	for (size_t i = 0; i < w->v->nedges; i++) {
		const struct view_edge *e = &w->v->edges[i];

		next(w, &first);
		fputc('{', w->out);
		put_index(w, "caller", w->func_at, e->caller);
		put_index(w, "callee", w->func_at, e->callee);
		put_number(w, "ncalls", e->ncalls);
		put_number(w, "pcalls", e->pcalls);
		put_clocks(w, "tottime", e->tot);
		fputc(',', w->out);
		put_clocks(w, "cumtime", e->cum);
		put_per_call(w, &e->per_call);
		fputc('}', w->out);
	}
	fputs("\n]", w->out);
}

static void put_calls(struct writer *w, uint32_t node)
{
	uint32_t parent = w->s->nodes[node].parent;
	struct per_call p;

	if (parent != SNAPSHOT_NONE) {
		p = per_call_of(&w->calls[node], &w->calls[parent], w->v->windows);
		put_per_call(w, &p);
	}
	if (w->s->wholes)
		put_whole(w, &w->s->wholes[node]);
}

static void put_nodes(struct writer *w)
{
	bool first = true;
	uint32_t n = 0;

	fputs(",\n\"nodes\":[", w->out);
	for (uint32_t i = 0; i < w->s->nnodes; i++) {
		const struct snapshot_node *node = &w->s->nodes[i];

		if (!node_selected(w, node))
			continue;
		w->node_at[i] = n++;
		next(w, &first);
		fputc('{', w->out);
		put_index(w, "parent", w->node_at, node->parent);
		put_index(w, "func", w->func_at, node->func);
		put_index(w, "thread", w->thread_at, node->thread);
		put_number(w, "calls", node->calls);
		put_number(w, "inflight", node->inflight);
		put_clocks(w, "self", node->self);
		fputc(',', w->out);
		put_extremes(w, node->min, node->max);
		put_columns(w, w->s->columns, "", i);
		put_calls(w, i);
		fputc('}', w->out);
	}
	fputs("\n]", w->out);
}

static void put_coroutine(struct writer *w, const struct snapshot_coro *c)
{
	put_index(w, "func", w->func_at, c->func);
	put_number(w, "pid", c->pid);
	fprintf(w->out, "\"kind\":\"%s\",\"ends_hidden\":%s,", snapshot_coro_kinds[c->kind],
		c->ends_hidden ? "true" : "false");
	put_number(w, "started", c->started);
	put_number(w, "partial", c->partial);
	put_number(w, "ended", c->ended);
	put_number(w, "steps", c->steps);
	put_clocks(w, "running", c->running);
	fputc(',', w->out);
	put_number(w, "suspended", c->suspended);
	put_number(w, "lifetimes", c->lifetimes);
	put_number(w, "total", c->total);
	put_known(w, "min", c->min);
	fputc(',', w->out);
	put_known(w, "max", c->max);
}

static void put_coroutines(struct writer *w)
{
	bool first = true;

	fputs(",\n\"coroutines\":[", w->out);
	for (uint32_t i = 0; i < w->s->ncoros; i++) {
		if (!coroutine_selected(w->s, &w->s->coros[i], w->o))
			continue;
		next(w, &first);
		fputc('{', w->out);
		put_coroutine(w, &w->s->coros[i]);
		fputc('}', w->out);
	}
	fputs("\n]", w->out);
}

/* Which function held the GIL while which function waited for it; null: outside Python. */
static void put_gil_pairs(struct writer *w)
{
	bool first = true;

	fputs(",\n\"gil_pairs\":[", w->out);
	for (uint32_t i = 0; i < w->s->ngil_pairs; i++) {
		const struct snapshot_gil_pair *p = &w->s->gil_pairs[i];

		if (!gil_pair_selected(w, p))
			continue;
		next(w, &first);
		fputc('{', w->out);
		put_number(w, "pid", p->pid);
		put_index(w, "holder", w->func_at, p->holder);
		put_index(w, "waiter", w->func_at, p->waiter);
		fprintf(w->out, "\"ns\":%" PRIu64 "}", p->ns);
	}
	fputs("\n]", w->out);
}

static void put_waits(struct writer *w)
{
	bool first = true;

	fputs(",\n\"longest_waits\":[", w->out);
	for (uint32_t i = 0; i < w->s->nwaits; i++) {
		const struct snapshot_wait *v = &w->s->waits[i];

		if (!wait_selected(w, v))
			continue;
		next(w, &first);
		fputc('{', w->out);
		put_number(w, "pid", v->pid);
		put_number(w, "tid", v->tid);
		put_index(w, "function", w->func_at, v->func);
		fprintf(w->out, "\"reason\":\"%s\",", wait_name((enum wait_reason)v->why));
		if (v->syscall)
			fprintf(w->out, "\"syscall\":\"%s\",", v->syscall);
		if (v->fd != SNAPSHOT_NONE)
			put_number(w, "fd", v->fd);
		put_number(w, "end_ns", v->end_ns);
		fprintf(w->out, "\"ns\":%" PRIu64 "}", v->ns);
	}
	fputs("\n]", w->out);
}

static void put_totals(struct writer *w)
{
	fputs(",\n\"time_unit\":\"ns\",\n\"totals\":{", w->out);
	put_number(w, "ncalls", w->v->ncalls);
	put_number(w, "pcalls", w->v->pcalls);
	put_clocks(w, "tottime", w->v->total);
	fputc('}', w->out);
}

static uint32_t *new_indices(size_t n)
{
	uint32_t *ret = malloc((n + 1) * sizeof(*ret));

	if (ret)
		memset(ret, 0xff, (n + 1) * sizeof(*ret));
	return ret;
}

int json_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	_cleanup_free_ uint32_t *func_at = new_indices(s->nfuncs);
	_cleanup_free_ uint32_t *thread_at = new_indices(s->nthreads);
	_cleanup_free_ uint32_t *node_at = new_indices(s->nnodes);
	_cleanup_free_ uint64_t(*outside)[SNAPSHOT_CLOCKS] =
		calloc((size_t)s->nthreads + 1, sizeof(*outside));
	_cleanup_free_ uint64_t *resumed = resumptions_new(s, &o->filter);
	_cleanup_free_ struct per_call_evidence *calls = per_call_contexts(s, NULL, s->nnodes);
	_cleanup_free_ struct waits_of_thread *waits =
		s->measured & COLUMN_WAITS ? waits_of_threads_new(s) : NULL;
	struct writer w = {.s = s,
			   .resumed = resumed,
			   .waits = waits,
			   .calls = calls,
			   .v = v,
			   .o = o,
			   .filter = &o->filter,
			   .out = out,
			   .func_at = func_at,
			   .thread_at = thread_at,
			   .node_at = node_at,
			   .outside = outside,
			   .durations = view_has_durations(s, &o->filter),
			   .errors = view_has_errors(s, &o->filter),
			   .lines = view_has_lines(s, &o->filter)};
	int err;

	(void)diag;
	if (!resumed || !calls || !func_at || !thread_at || !node_at || !outside ||
	    (s->measured & COLUMN_WAITS && !waits))
		return -ENOMEM;
	sum_outside(&w);
	fputc('{', out);
	err = dump(&w, provenance_json(s, o, "pyprofd-snapshot"), JSON_EMBED);
	if (!err) {
		put_totals(&w);
		err = put_threads(&w);
	}
	if (!err)
		err = put_functions(&w);
	if (err < 0)
		return err;
	put_edges(&w);
	put_nodes(&w);
	put_coroutines(&w);
	if (s->measured & COLUMN_WAITS) {
		put_gil_pairs(&w);
		put_waits(&w);
	}
	fputs("\n}\n", out);
	return 0;
}
