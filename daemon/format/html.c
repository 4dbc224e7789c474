// SPDX-License-Identifier: BSD-2-Clause
/*
 * HTML: one self-contained file. It consists of a page that is bundled at build time (html/, linked
 * in by html/page.S) and of the snapshot as JSON in a script element that the browser does not
 * execute. The page computes its tables and graphs from the calling contexts by the rules of
 * stats/view.c, for any choice of threads.
 *
 * The JSON has a string table and one array per column, which takes a fraction of the JSON format's
 * size. It is all ASCII. The characters < > & can only be in strings and are escaped there as
 * \uXXXX, so no name in the traced program can end the element or start another one. Lone
 * surrogates keep their value. Numbers that JavaScript cannot represent exactly are strings of
 * digits.
 *
 * Measured optional columns are columns of contexts, like times. Standard errors are columns by
 * function, -1 if unknown; single threads have none. Durations are histograms by function, and lines
 * are times by function, also not per thread. GIL pairs are per process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/strtab.h"
#include "format/names.h"
#include "format/pages.h"
#include "format/provenance.h"
#include "format/resumptions.h"
#include "format/writers.h"
#include "snapshot/lines.h"

#define EXACT_MAX ((UINT64_C(1) << 53) - 1)
#define NO_STRING UINT64_MAX

struct writer {
	const struct snapshot *s;
	const struct format_opts *o;
	FILE *out;
	uint32_t *thread_at; /* index among the written threads; SNAPSHOT_NONE: left out */
	uint32_t *func_at;
	uint32_t *node_at;
	struct strtab strings;
	uint64_t start_unix_ns; /* start of the report's time axis */
	bool first;
};

/* ---- pieces of JSON ---- */

static void next(struct writer *w)
{
	fputs(w->first ? "" : ",", w->out);
	w->first = false;
}

static void begin(struct writer *w, const char *key, char bracket)
{
	next(w);
	fprintf(w->out, "\n\"%s\":%c", key, bracket);
	w->first = true;
}

static void end(struct writer *w, char bracket)
{
	fputc(bracket, w->out);
	w->first = false;
}

static void put_unit(FILE *out, uint32_t cp)
{
	bool plain = cp >= 0x20 && cp < 0x7f && !strchr("\"\\<>&", (int)cp);

	if (plain)
		fputc((int)cp, out);
	else
		fprintf(out, "\\u%04" PRIx32, cp);
}

static void put_string(struct writer *w, const char *s)
{
	uint32_t cp;

	next(w);
	fputc('"', w->out);
	for (const char *p = s ? s : ""; (cp = utf8_next(&p));) {
		if (cp >= 0x10000) {
			put_unit(w->out, 0xd800 + ((cp - 0x10000) >> 10));
			cp = 0xdc00 + ((cp - 0x10000) & 0x3ff);
		}
		put_unit(w->out, cp);
	}
	fputc('"', w->out);
}

/* UINT64_MAX stands for "none". */
static void put_number(struct writer *w, uint64_t n)
{
	next(w);
	if (n == UINT64_MAX)
		fputs("-1", w->out);
	else
		fprintf(w->out, n > EXACT_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, n);
}

/* Receives jansson's output, in which < > & only occur in strings. */
static int put_escaped(const char *buffer, size_t size, void *data)
{
	FILE *out = data;

	for (size_t i = 0; i < size; i++)
		if (strchr("<>&", buffer[i]) && buffer[i])
			put_unit(out, (unsigned char)buffer[i]);
		else
			fputc(buffer[i], out);
	return 0;
}

/* ---- the selection ---- */

static bool node_selected(const struct writer *w, const struct snapshot_node *n)
{
	return w->thread_at[n->thread] != SNAPSHOT_NONE;
}

/* Pairs belong to processes, so a filter by thread selects none. */
static bool pair_selected(const struct writer *w, const struct snapshot_gil_pair *p)
{
	const struct view_filter *f = &w->o->filter;

	return (!f->pid || f->pid == p->pid) && !f->tid;
}

static void number_all(struct writer *w)
{
	const struct snapshot *s = w->s;
	uint32_t threads = 0, funcs = 0, nodes = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(&w->o->filter, &s->threads[i]))
			w->thread_at[i] = threads++;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (!node_selected(w, &s->nodes[i]))
			continue;
		w->node_at[i] = nodes++;
		if (s->nodes[i].func != SNAPSHOT_NONE)
			w->func_at[s->nodes[i].func] = 0;
	}
	for (uint32_t i = 0; i < s->ngil_pairs; i++) {
		const struct snapshot_gil_pair *p = &s->gil_pairs[i];

		if (pair_selected(w, p) && p->holder != SNAPSHOT_NONE)
			w->func_at[p->holder] = 0;
		if (pair_selected(w, p) && p->waiter != SNAPSHOT_NONE)
			w->func_at[p->waiter] = 0;
	}
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (w->func_at[i] != SNAPSHOT_NONE)
			w->func_at[i] = funcs++;
}

/* ---- columns ---- */

struct own_column {
	const char *name;
	uint64_t (*get)(const struct writer *w, uint32_t i);
};

static uint64_t index_or_none(const uint32_t *at, uint32_t i)
{
	return i == SNAPSHOT_NONE || at[i] == SNAPSHOT_NONE ? UINT64_MAX : at[i];
}

#define NODE(member, value)                                                                        \
	static uint64_t node_##member(const struct writer *w, uint32_t i)                          \
	{                                                                                          \
		const struct snapshot_node *n = &w->s->nodes[i];                                   \
                                                                                                   \
		return value;                                                                      \
	}

/* The maximum is 0 until there is a minimum. */
static uint64_t longest(const struct snapshot_node *n, enum snapshot_clock clock)
{
	return n->min[clock] == UINT64_MAX ? 0 : n->max[clock];
}

NODE(parent, index_or_none(w->node_at, n->parent))
NODE(func, index_or_none(w->func_at, n->func))
NODE(calls, n->calls)
NODE(inflight, n->inflight)
NODE(cpu, n->self[SNAPSHOT_CPU])
NODE(wall, n->self[SNAPSHOT_WALL])
NODE(min_cpu, n->min[SNAPSHOT_CPU])
NODE(max_cpu, longest(n, SNAPSHOT_CPU))
NODE(min_wall, n->min[SNAPSHOT_WALL])
NODE(max_wall, longest(n, SNAPSHOT_WALL))

static const struct own_column node_columns[] = {
	{"parent", node_parent},
	{"func", node_func},
	{"calls", node_calls},
	{"inflight", node_inflight},
	{"cpu", node_cpu},
	{"wall", node_wall},
	{"min_cpu", node_min_cpu},
	{"max_cpu", node_max_cpu},
	{"min_wall", node_min_wall},
	{"max_wall", node_max_wall},
	{NULL, NULL},
};

/*
 * Per optional column: key (also the key of its array of contexts), group, name, description, unit,
 * and how figures of contexts combine.
 */
static void put_columns(struct writer *w)
{
	char key[COLUMN_KEY_MAX];

	begin(w, "columns", '[');
	for (int c = 0; c < COLUMNS; c++) {
		const struct column *column = &column_table[c];

		if (!(w->s->measured & COLUMN_BIT(c)))
			continue;
		next(w);
		fputc('[', w->out);
		w->first = true;
		put_string(w, column_key(c, key));
		put_string(w, column->group);
		put_string(w, column->name);
		put_string(w, column->text);
		put_string(w, column_units[column->unit]);
		put_string(w, column->merge == COLUMN_SUM ? "sum" : "max");
		end(w, ']');
	}
	end(w, ']');
}

static void put_column(struct writer *w, int c)
{
	char key[COLUMN_KEY_MAX];

	begin(w, column_key(c, key), '[');
	for (uint32_t i = 0; i < w->s->nnodes; i++)
		if (node_selected(w, &w->s->nodes[i]))
			put_number(w, snapshot_figure(w->s, c, i));
	end(w, ']');
}

/* What calls per call of the caller are made of: a column for each member of struct snapshot_whole. */
static void put_wholes(struct writer *w)
{
	static const struct {
		const char *name;
		size_t offset;
	} members[] = {
		{"whole_x", offsetof(struct snapshot_whole, x)},
		{"whole_y", offsetof(struct snapshot_whole, y)},
		{"whole_x2", offsetof(struct snapshot_whole, x2)},
		{"whole_xy", offsetof(struct snapshot_whole, xy)},
		{"whole_y2", offsetof(struct snapshot_whole, y2)},
	};

	for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
		begin(w, members[k].name, '[');
		for (uint32_t i = 0; i < w->s->nnodes; i++) {
			const char *of = (const char *)&w->s->wholes[i] + members[k].offset;

			if (!node_selected(w, &w->s->nodes[i]))
				continue;
			next(w);
			fprintf(w->out, "%.15g", *(const double *)of);
		}
		end(w, ']');
	}
}

static void put_nodes(struct writer *w)
{
	begin(w, "nodes", '{');
	for (const struct own_column *c = node_columns; c->name; c++) {
		begin(w, c->name, '[');
		for (uint32_t i = 0; i < w->s->nnodes; i++)
			if (node_selected(w, &w->s->nodes[i]))
				put_number(w, c->get(w, i));
		end(w, ']');
	}
	for (int c = 0; c < COLUMNS; c++)
		if (w->s->measured & COLUMN_BIT(c))
			put_column(w, c);
	if (w->s->wholes)
		put_wholes(w);
	end(w, '}');
}

/* -ENOSPC is impossible, because the table has no limit. */
static int intern(struct writer *w, const char *s, uint64_t *ret)
{
	uint32_t id;
	int err = strtab_add(&w->strings, s ? s : "", &id);

	*ret = id;
	return err;
}

/* One row per function: name, qualified name or -1, file, line, pseudo. */
static int put_function(struct writer *w, const struct snapshot_func *f)
{
	uint64_t name = 0, qualname = NO_STRING, file = 0;
	int err = intern(w, f->name, &name);

	if (!err && f->qualname)
		err = intern(w, f->qualname, &qualname);
	if (!err)
		err = intern(w, f->filename, &file);
	if (err < 0)
		return err;
	next(w);
	fputc('[', w->out);
	w->first = true;
	put_number(w, name);
	put_number(w, qualname);
	put_number(w, file);
	fprintf(w->out, ",%" PRId32 ",%d", f->pseudo ? 0 : f->firstlineno, f->pseudo);
	end(w, ']');
	return 0;
}

static int put_functions(struct writer *w)
{
	int err = 0;

	begin(w, "functions", '[');
	for (uint32_t i = 0; i < w->s->nfuncs && !err; i++)
		if (w->func_at[i] != SNAPSHOT_NONE)
			err = put_function(w, &w->s->funcs[i]);
	end(w, ']');
	if (err < 0)
		return err;
	begin(w, "strings", '[');
	for (uint32_t id = 0; id < w->strings.n; id++)
		put_string(w, strtab_get(&w->strings, id));
	end(w, ']');
	return 0;
}

/* One clock's histogram: the maximum, then each bucket's midpoint and count. */
static void put_histogram(struct writer *w, const struct snapshot_durations *d)
{
	next(w);
	fputc('[', w->out);
	w->first = true;
	put_number(w, d->max);
	for (uint32_t i = 0; i < d->histogram.len; i++) {
		if (!d->histogram.n[i])
			continue;
		put_number(w, histogram_middle(d->histogram.first + i));
		put_number(w, d->histogram.n[i]);
	}
	end(w, ']');
}

/* Per function: the histograms of both clocks; null if it has none. */
static void put_durations(struct writer *w)
{
	if (!view_has_durations(w->s, &w->o->filter))
		return;
	begin(w, "durations", '[');
	for (uint32_t i = 0; i < w->s->nfuncs; i++) {
		const struct snapshot_durations *d = w->s->funcs[i].durations;

		if (w->func_at[i] == SNAPSHOT_NONE)
			continue;
		next(w);
		if (!d) {
			fputs("null", w->out);
			continue;
		}
		fputc('[', w->out);
		w->first = true;
		put_histogram(w, &d[SNAPSHOT_CPU]);
		put_histogram(w, &d[SNAPSHOT_WALL]);
		end(w, ']');
	}
	end(w, ']');
}

/* Per function: line, time, standard error and number of samples of each line; null: no lines. */
static void put_own_lines(struct writer *w)
{
	if (!view_has_lines(w->s, &w->o->filter))
		return;
	begin(w, "own_lines", '[');
	for (uint32_t i = 0; i < w->s->nfuncs; i++) {
		const struct snapshot_func *f = &w->s->funcs[i];

		if (w->func_at[i] == SNAPSHOT_NONE)
			continue;
		next(w);
		if (!f->nlines) {
			fputs("null", w->out);
			continue;
		}
		fputc('[', w->out);
		w->first = true;
		for (uint32_t k = 0; k < f->nlines; k++) {
			put_number(w, (uint64_t)f->lines[k].line);
			put_number(w, f->lines[k].self_ns);
			put_number(w, (uint64_t)(snapshot_line_error(&f->lines[k]) + 0.5));
			put_number(w, f->lines[k].samples);
		}
		end(w, ']');
	}
	end(w, ']');
}

/*
 * Standard errors of the written figures, if these are estimates; unknown for a selection of
 * threads.
 */
static void put_errors(struct writer *w)
{
	static const char *const figures[SNAPSHOT_FIGURES] = {
		[SNAPSHOT_CALLS] = "ncalls",	  [SNAPSHOT_TOT_CPU] = "tot_cpu",
		[SNAPSHOT_TOT_WALL] = "tot_wall", [SNAPSHOT_CUM_CPU] = "cum_cpu",
		[SNAPSHOT_CUM_WALL] = "cum_wall",
	};

	if (!view_has_errors(w->s, &w->o->filter))
		return;
	begin(w, "errors", '{');
	for (int k = 0; k < SNAPSHOT_FIGURES; k++) {
		begin(w, figures[k], '[');
		for (uint32_t i = 0; i < w->s->nfuncs; i++) {
			double error = snapshot_error(&w->s->funcs[i], (enum snapshot_figure)k);

			if (w->func_at[i] != SNAPSHOT_NONE)
				put_number(w, error < 0 ? UINT64_MAX : (uint64_t)(error + 0.5));
		}
		end(w, ']');
	}
	end(w, '}');
}

/* One row per pair: process, function that held the GIL, function that waited, ns. */
static void put_gil_pairs(struct writer *w)
{
	begin(w, "gil_pairs", '[');
	for (uint32_t i = 0; i < w->s->ngil_pairs; i++) {
		const struct snapshot_gil_pair *p = &w->s->gil_pairs[i];

		if (!pair_selected(w, p))
			continue;
		next(w);
		fputc('[', w->out);
		w->first = true;
		put_number(w, p->pid);
		put_number(w, index_or_none(w->func_at, p->holder));
		put_number(w, index_or_none(w->func_at, p->waiter));
		put_number(w, p->ns);
		end(w, ']');
	}
	end(w, ']');
}

/* ---- threads and targets ---- */

/* The run that a thread belongs to; merged snapshots may have several of one pid. */
static const struct snapshot_target *target_of(const struct snapshot *s,
					       const struct snapshot_thread *t)
{
	const struct snapshot_target *ret = NULL;

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *candidate = &s->targets[i];

		if (candidate->pid != t->pid)
			continue;
		if (!ret ||
		    (t->start_ns >= candidate->start_ns && t->start_ns <= candidate->end_ns))
			ret = candidate;
	}
	return ret;
}

/* Converts a time on the clock of the target's machine to ns since the report's start. */
static uint64_t since_start(const struct writer *w, const struct snapshot_target *t, uint64_t ns)
{
	uint64_t offset;

	if (!t)
		return 0;
	offset = t->start_unix_ns > w->start_unix_ns ? t->start_unix_ns - w->start_unix_ns : 0;
	return offset + (ns > t->start_ns ? ns - t->start_ns : 0);
}

static void put_thread(struct writer *w, uint32_t thread)
{
	const struct snapshot_thread *t = &w->s->threads[thread];
	const struct snapshot_target *target = target_of(w->s, t);

	next(w);
	fputc('[', w->out);
	w->first = true;
	put_number(w, t->pid);
	put_number(w, t->tid);
	put_string(w, t->name);
	put_number(w, t->alive);
	put_number(w, since_start(w, target, t->start_ns));
	put_number(w, since_start(w, target, t->end_ns));
	put_number(w, t->total[SNAPSHOT_CPU]);
	put_number(w, t->total[SNAPSHOT_WALL]);
	put_number(w, w->node_at[t->root]);
	put_string(w, mode_names[snapshot_thread_mode(w->s, thread)]);
	end(w, ']');
}

static void put_target(struct writer *w, const struct snapshot_target *t)
{
	next(w);
	fputc('[', w->out);
	w->first = true;
	put_number(w, t->pid);
	put_string(w, t->cmdline);
	put_number(w, since_start(w, t, t->start_ns));
	put_number(w, since_start(w, t, t->end_ns));
	put_number(w, provenance_exact(w->s, t));
	end(w, ']');
}

static void put_threads(struct writer *w)
{
	const struct snapshot *s = w->s;

	w->start_unix_ns = UINT64_MAX;
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, &w->o->filter, &s->targets[i]) &&
		    s->targets[i].start_unix_ns < w->start_unix_ns)
			w->start_unix_ns = s->targets[i].start_unix_ns;
	begin(w, "threads", '[');
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (w->thread_at[i] != SNAPSHOT_NONE)
			put_thread(w, i);
	end(w, ']');
	begin(w, "targets", '[');
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, &w->o->filter, &s->targets[i]))
			put_target(w, &s->targets[i]);
	end(w, ']');
}

/* ---- provenance ---- */

static void put_line(void *ctx, const char *label, const char *value)
{
	struct writer *w = ctx;

	next(w);
	fputs("\n[", w->out);
	w->first = true;
	put_string(w, label);
	put_string(w, value);
	end(w, ']');
}

/* Writes it as lines for the reader, and as the JSON format's header object for programs. */
static int put_provenance(struct writer *w)
{
	json_t *object = provenance_json(w->s, w->o, "pyprofd-provenance");
	int err;

	if (!object)
		return -ENOMEM;
	begin(w, "lines", '[');
	err = provenance_lines(w->s, w->o, put_line, w);
	end(w, ']');
	fputs(",\n\"provenance\":", w->out);
	if (json_dump_callback(object, put_escaped, w->out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		err = -ENOMEM;
	json_decref(object);
	return err;
}

/* Per function: how many of its calls are resumptions; null if it is no generator or coroutine. */
static int put_resumed(struct writer *w)
{
	_cleanup_free_ uint64_t *resumed = resumptions_new(w->s, &w->o->filter);

	if (!resumed)
		return -ENOMEM;
	if (!w->s->ncoros)
		return 0;
	begin(w, "resumed", '[');
	for (uint32_t i = 0; i < w->s->nfuncs; i++) {
		if (w->func_at[i] == SNAPSHOT_NONE)
			continue;
		if (resumed[i] != RESUMED_NONE) {
			put_number(w, resumed[i]);
			continue;
		}
		next(w);
		fputs("null", w->out);
	}
	end(w, ']');
	return 0;
}

static int put_data(struct writer *w)
{
	int err;

	w->first = true;
	fputc('{', w->out);
	err = put_provenance(w);
	if (!err)
		err = put_functions(w);
	if (err < 0)
		return err;
	put_errors(w);
	err = put_resumed(w);
	if (err < 0)
		return err;
	put_durations(w);
	put_own_lines(w);
	put_columns(w);
	put_gil_pairs(w);
	put_threads(w);
	put_nodes(w);
	fputs("\n}\n", w->out);
	return 0;
}

/* ---- the file ---- */

static uint32_t *new_indices(size_t n)
{
	uint32_t *ret = malloc((n + 1) * sizeof(*ret));

	if (ret)
		memset(ret, 0xff, (n + 1) * sizeof(*ret));
	return ret;
}

static int write_data(const struct snapshot *s, const struct format_opts *o, FILE *out)
{
	_cleanup_free_ uint32_t *thread_at = new_indices(s->nthreads);
	_cleanup_free_ uint32_t *func_at = new_indices(s->nfuncs);
	_cleanup_free_ uint32_t *node_at = new_indices(s->nnodes);
	struct writer w = {.s = s,
			   .o = o,
			   .out = out,
			   .thread_at = thread_at,
			   .func_at = func_at,
			   .node_at = node_at,
			   .strings.limit = UINT64_MAX};
	int err;

	if (!thread_at || !func_at || !node_at)
		return -ENOMEM;
	number_all(&w);
	err = put_data(&w);
	strtab_deinit(&w.strings);
	return err;
}

int page_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	(void)v, (void)diag;
	return write_data(s, o, out);
}

int html_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	int err;

	(void)v;
	if (!html_head_size)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE,
				"save it as .json, and `report` that with a build that can",
				"no HTML reports: npm was missing when this was built");
	fwrite(html_head, 1, html_head_size, out);
	err = write_data(s, o, out);
	fwrite(html_tail, 1, html_tail_size, out);
	return err;
}
