// SPDX-License-Identifier: BSD-2-Clause
/*
 * Callgrind's profile format, for callgrind_annotate and KCachegrind: functions with their own
 * costs and their calls, in two event columns of integer nanoseconds, the chosen clock first.
 *
 * Names include the function's line, `name:line`, because readers identify functions by file and
 * name only. The lines of calls are unknown: a call is at the first line of the calling function.
 *
 * The CPU time of a sampled function itself is divided among its lines, in proportion to the samples.
 * Wall time and what has no line are at its first line.
 *
 * Readers compute a function's inclusive cost as the sum over its calls, so that sum must equal the
 * function's cumulative time. Only non-recursive calls (direct or indirect) have an inclusive cost;
 * recursive calls have their number and no cost. A function that is called from outside Python has
 * the caller "(outside Python)", otherwise the sum would be incomplete. A call that was running
 * before tracing began is written as one call, because readers take the line after `calls=0` for
 * the function's own cost.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"
#include "snapshot/lines.h"
#include "stats/tree.h"

#define FIRST_CALLS 64

struct call {
	uint32_t caller, callee; /* index nfuncs: outside Python */
	uint64_t n;
	uint64_t cum[SNAPSHOT_CLOCKS];
};

struct writer {
	const struct snapshot *s;
	const struct tree *tree;
	FILE *out;
	bool lines; /* functions have lines, valid for the written threads */
	enum snapshot_clock order[SNAPSHOT_CLOCKS];
	uint32_t *depth; /* per function: occurrences on the current path */
	struct call *calls;
	size_t ncalls, cap;
	struct map by_pair;    /* (caller, callee) → call */
	bool *file_known;      /* per function: names already written */
	bool *name_known;      /* the same for its name */
	const uint32_t *files; /* per function: the first one in the same file */
};

static void writer_deinit(struct writer *w)
{
	free(w->depth);
	free(w->calls);
	free(w->file_known);
	free(w->name_known);
	map_deinit(&w->by_pair);
}

/* ---- costs ---- */

static struct call *find_call(struct writer *w, uint32_t caller, uint32_t callee)
{
	uint64_t key = (uint64_t)caller << 32 | callee;
	uint32_t i;

	if (map_get(&w->by_pair, key, &i))
		return &w->calls[i];
	if (w->ncalls == w->cap) {
		size_t cap = w->cap * 2;
		struct call *calls = reallocarray(w->calls, cap, sizeof(*calls));

		if (!calls)
			return NULL;
		w->calls = calls;
		w->cap = cap;
	}
	if (map_put(&w->by_pair, key, (uint32_t)w->ncalls) < 0)
		return NULL;
	w->calls[w->ncalls] = (struct call){.caller = caller, .callee = callee};
	return &w->calls[w->ncalls++];
}

static int enter(void *ctx, uint32_t node)
{
	struct writer *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[node];
	struct call *call;
	uint32_t caller;

	if (n->parent == SNAPSHOT_NONE)
		return 0;
	caller = w->s->nodes[n->parent].func;
	call = find_call(w, caller == SNAPSHOT_NONE ? w->s->nfuncs : caller, n->func);
	if (!call)
		return -ENOMEM;
	call->n += n->calls;
	if (w->depth[n->func]++ == 0)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			call->cum[c] += w->tree->nodes[node].cum[c];
	return 0;
}

static void leave(void *ctx, uint32_t node)
{
	struct writer *w = ctx;
	uint32_t func = w->s->nodes[node].func;

	if (func != SNAPSHOT_NONE)
		w->depth[func]--;
}

static int compare(const void *left, const void *right)
{
	const struct call *l = left, *r = right;

	if (l->caller != r->caller)
		return l->caller < r->caller ? -1 : 1;
	return (l->callee > r->callee) - (l->callee < r->callee);
}

static int collect(struct writer *w, const struct view_filter *filter)
{
	const struct tree_visitor visitor = {enter, leave, w};
	int err = 0;

	for (uint32_t i = 0; i < w->s->nthreads && !err; i++)
		if (view_selects(filter, &w->s->threads[i]))
			err = tree_walk(w->tree, w->s->threads[i].root, &visitor);
	if (!err && w->ncalls)
		qsort(w->calls, w->ncalls, sizeof(*w->calls), compare);
	return err;
}

/* ---- lines ---- */

/* A name must not be empty or begin with a space: readers would ignore it. */
static void put_name(FILE *out, const char *name)
{
	if (!name || !*name)
		fputc('?', out);
	else
		name_print_escape(out, name, *name == ' ' ? " " : "");
}

static const char *file_of(const struct snapshot_func *f)
{
	return f->pseudo ? "~" : f->filename ? f->filename : "";
}

/* Writes a name in full the first time, and its number afterwards. */
static void put_file(struct writer *w, const char *key, uint32_t func)
{
	uint32_t file = func == w->s->nfuncs ? func : w->files[func];

	fprintf(w->out, "%s=(%" PRIu32 ")", key, file + 1);
	if (!w->file_known[file]) {
		fputc(' ', w->out);
		put_name(w->out, file == w->s->nfuncs ? "~" : file_of(&w->s->funcs[file]));
	}
	w->file_known[file] = true;
	fputc('\n', w->out);
}

static void put_func(struct writer *w, const char *key, uint32_t func)
{
	const struct snapshot_func *f = &w->s->funcs[func];

	fprintf(w->out, "%s=(%" PRIu32 ")", key, func + 1);
	if (!w->name_known[func]) {
		fputc(' ', w->out);
		put_name(w->out, func == w->s->nfuncs ? "(outside Python)" : name_of_func(f));
		if (func != w->s->nfuncs && !f->pseudo)
			fprintf(w->out, ":%" PRId32, f->firstlineno);
	}
	w->name_known[func] = true;
	fputc('\n', w->out);
}

/* Clamped, because a sign would make the line relative to the previous one. */
static int32_t line_of(const struct writer *w, uint32_t func)
{
	int32_t line = func == w->s->nfuncs ? 0 : w->s->funcs[func].firstlineno;

	return line > 0 ? line : 0;
}

static void put_costs(struct writer *w, int32_t line, const uint64_t ns[SNAPSHOT_CLOCKS])
{
	fprintf(w->out, "%" PRId32 " %" PRIu64 " %" PRIu64 "\n", line, ns[w->order[0]],
		ns[w->order[1]]);
}

static void put_self(struct writer *w, uint32_t func, const uint64_t self[SNAPSHOT_CLOCKS])
{
	const struct snapshot_func *f = &w->s->funcs[func];
	const uint32_t n = w->lines && func < w->s->nfuncs ? f->nlines : 0;
	const struct snapshot_line sum = n ? snapshot_lines_sum(f) : (struct snapshot_line){0};
	uint64_t rest[SNAPSHOT_CLOCKS] = {self[SNAPSHOT_CPU], self[SNAPSHOT_WALL]};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t part[SNAPSHOT_CLOCKS] = {snapshot_line_part(&f->lines[i], &sum,
								     self[SNAPSHOT_CPU],
								     rest[SNAPSHOT_CPU]),
						  0};

		rest[SNAPSHOT_CPU] -= part[SNAPSHOT_CPU];
		if (part[SNAPSHOT_CPU])
			put_costs(w, f->lines[i].line, part);
	}
	put_costs(w, line_of(w, func), rest);
}

/* *call points to the first remaining call, sorted by caller, that can be this function's. */
static void put_function(struct writer *w, uint32_t func, const uint64_t self[SNAPSHOT_CLOCKS],
			 const struct call **call)
{
	const struct call *end = w->calls + w->ncalls;

	fputc('\n', w->out);
	put_file(w, "fl", func);
	put_func(w, "fn", func);
	put_self(w, func, self);
	for (; *call < end && (*call)->caller == func; ++*call) {
		put_file(w, "cfl", (*call)->callee);
		put_func(w, "cfn", (*call)->callee);
		fprintf(w->out, "calls=%" PRIu64 " %" PRId32 "\n", (*call)->n ? (*call)->n : 1,
			line_of(w, (*call)->callee));
		put_costs(w, line_of(w, func), (*call)->cum);
	}
}

static void put_desc(void *ctx, const char *label, const char *value)
{
	FILE *out = ctx;

	fprintf(out, "desc: %s: ", label);
	name_print(out, value, NAME_COLUMNS);
	fputc('\n', out);
}

/* `pid` and `cmd` hold one process only; the descriptions list all processes. */
static int put_head(struct writer *w, const struct view *v, const struct format_opts *o)
{
	static const char *const events[] = {"cpu", "wall"};
	static const char *const titles[] = {"CPU time [ns]", "Wall time [ns]"};
	int err;

	fputs("# callgrind format\nversion: 1\ncreator: ", w->out);
	put_name(w->out, w->s->program);
	fputc('\n', w->out);
	for (uint32_t i = 0; i < w->s->ntargets; i++) {
		const struct snapshot_target *t = &w->s->targets[i];

		if (!provenance_selects(w->s, &o->filter, t))
			continue;
		fprintf(w->out, "pid: %" PRIu32 "\ncmd: ", t->pid);
		put_name(w->out, t->cmdline);
		fputc('\n', w->out);
		break;
	}
	err = provenance_lines(w->s, o, put_desc, w->out);
	fputs("positions: line\n", w->out);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		fprintf(w->out, "event: %s : %s\n", events[w->order[c]], titles[w->order[c]]);
	fprintf(w->out, "events: %s %s\n", events[w->order[0]], events[w->order[1]]);
	fprintf(w->out, "summary: %" PRIu64 " %" PRIu64 "\n", v->total[w->order[0]],
		v->total[w->order[1]]);
	return err;
}

/* Calls are sorted by caller and rows by function; outside Python has the highest index. */
static void put_body(struct writer *w, const struct view *v)
{
	static const uint64_t nothing[SNAPSHOT_CLOCKS];
	const struct call *call = w->calls, *end = w->calls + w->ncalls;

	for (size_t i = 0; i < v->nrows; i++) {
		for (; call < end && call->caller < v->rows[i].func;)
			put_function(w, call->caller, nothing, &call);
		put_function(w, v->rows[i].func, v->rows[i].tot, &call);
	}
	while (call < end)
		put_function(w, call->caller, nothing, &call);
}

/* Two files with the same hash are only written twice, under two numbers. */
static int number_files(const struct snapshot *s, uint32_t *files)
{
	struct map by_hash = {0};
	int err = 0;

	for (uint32_t i = 0; i < s->nfuncs && !err; i++) {
		const char *file = file_of(&s->funcs[i]);
		uint64_t h = strtab_hash(0, file, strlen(file));

		if (map_get(&by_hash, h, &files[i]) &&
		    strcmp(file, file_of(&s->funcs[files[i]])) == 0)
			continue;
		files[i] = i;
		err = map_put(&by_hash, h, i);
	}
	map_deinit(&by_hash);
	return err;
}

int callgrind_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag)
{
	_cleanup_(tree_freep) struct tree *tree = NULL;
	_cleanup_free_ uint32_t *files = calloc((size_t)s->nfuncs + 1, sizeof(*files));
	_cleanup_(writer_deinit) struct writer w = {
		.s = s, .out = out, .lines = view_has_lines(s, &o->filter), .files = files};
	int err = tree_build(s, &tree);

	(void)diag;
	w.tree = tree;
	w.order[0] = o->clock;
	w.order[1] = o->clock == SNAPSHOT_CPU ? SNAPSHOT_WALL : SNAPSHOT_CPU;
	/* Never NULL, because the loop computes the array's end. */
	w.cap = FIRST_CALLS;
	w.calls = calloc(w.cap, sizeof(*w.calls));
	w.depth = calloc((size_t)s->nfuncs + 1, sizeof(*w.depth));
	w.file_known = calloc((size_t)s->nfuncs + 1, sizeof(*w.file_known));
	w.name_known = calloc((size_t)s->nfuncs + 1, sizeof(*w.name_known));
	if (err < 0 || !files || !w.calls || !w.depth || !w.file_known || !w.name_known)
		return -ENOMEM;
	err = number_files(s, files);
	if (!err)
		err = collect(&w, &o->filter);
	if (!err)
		err = put_head(&w, v, o);
	if (!err)
		put_body(&w, v);
	return err;
}
