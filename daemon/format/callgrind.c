// SPDX-License-Identifier: BSD-2-Clause
/*
 * Callgrind's format, for KCachegrind and QCachegrind: own costs of every function and inclusive
 * costs of every call between two, in nanoseconds on both clocks, the one asked for first.
 *
 * Its readers know functions by file and name only, so a name carries its line; and they do not
 * know where in its caller a call was made, so that is the caller's first line. Files and functions
 * are numbered at first mention ("name compression"), which also keeps a name that starts with a
 * parenthesis from being read as such a number.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"

struct writer {
	const struct snapshot *s;
	const struct view *v;
	enum snapshot_clock first, second;
	FILE *out;
	bool *named; /* per function: its file and its name have been written */
};

static void put_costs(struct writer *w, int32_t line, const uint64_t ns[SNAPSHOT_CLOCKS])
{
	/* Negative lines would be read as relative ones. */
	fprintf(w->out, "%" PRId32 " %" PRIu64 " %" PRIu64 "\n", line > 0 ? line : 0, ns[w->first],
		ns[w->second]);
}

/* Every function has a file number of its own: equal names are one file to the reader all the same.
 */
static void put_func(struct writer *w, const char *file_key, const char *func_key, uint32_t func)
{
	const struct snapshot_func *f = &w->s->funcs[func];

	fprintf(w->out, "%s=(%" PRIu32 ")", file_key, func + 1);
	if (!w->named[func]) {
		fputc(' ', w->out);
		name_print(w->out, f->pseudo || !f->filename ? "~" : f->filename, NAME_COLUMNS);
	}
	fprintf(w->out, "\n%s=(%" PRIu32 ")", func_key, func + 1);
	if (!w->named[func]) {
		fputc(' ', w->out);
		name_print(w->out,
			   f->qualname ? f->qualname
			   : f->name   ? f->name
				       : "",
			   NAME_COLUMNS);
		if (!f->pseudo)
			fprintf(w->out, ":%" PRId32, f->firstlineno);
	}
	fputc('\n', w->out);
	w->named[func] = true;
}

/* A block that names its function again adds to it, so edges may follow in their own order. */
static void put_edge(struct writer *w, const struct view_edge *e)
{
	if (e->caller == SNAPSHOT_NONE)
		return;
	put_func(w, "fl", "fn", e->caller);
	put_func(w, "cfi", "cfn", e->callee);
	fprintf(w->out, "calls=%" PRIu64 " %" PRId32 "\n", e->ncalls,
		w->s->funcs[e->callee].firstlineno > 0 ? w->s->funcs[e->callee].firstlineno : 0);
	put_costs(w, w->s->funcs[e->caller].firstlineno, e->cum);
	fputc('\n', w->out);
}

static void put_description(void *ctx, const char *label, const char *value)
{
	FILE *out = ctx;

	fprintf(out, "desc: %s: ", label);
	name_print(out, value, 0);
	fputc('\n', out);
}

static int put_head(struct writer *w, const struct format_opts *o)
{
	static const char *const names[SNAPSHOT_CLOCKS] = {"Cpu", "Wall"};
	static const char *const texts[SNAPSHOT_CLOCKS] = {"CPU time (ns)", "Wall time (ns)"};
	int err;

	fputs("# callgrind format\nversion: 1\ncreator: ", w->out);
	name_print(w->out, w->s->program ? w->s->program : "pyprofd", 0);
	fputc('\n', w->out);
	err = provenance_lines(w->s, o, put_description, w->out);
	if (err < 0)
		return err;
	fprintf(w->out, "positions: line\nevent: %s : %s\nevent: %s : %s\nevents: %s %s\n",
		names[w->first], texts[w->first], names[w->second], texts[w->second],
		names[w->first], names[w->second]);
	fprintf(w->out, "summary: %" PRIu64 " %" PRIu64 "\n\n", w->v->total[w->first],
		w->v->total[w->second]);
	return 0;
}

int callgrind_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag)
{
	_cleanup_free_ bool *named = calloc((size_t)s->nfuncs + 1, sizeof(*named));
	struct writer w = {.s = s, .v = v, .first = o->clock, .out = out, .named = named};
	int err;

	(void)diag;
	if (!named)
		return -ENOMEM;
	w.second = o->clock == SNAPSHOT_CPU ? SNAPSHOT_WALL : SNAPSHOT_CPU;
	err = put_head(&w, o);
	if (err < 0)
		return err;
	for (size_t i = 0; i < v->nrows; i++) {
		put_func(&w, "fl", "fn", v->rows[i].func);
		put_costs(&w, s->funcs[v->rows[i].func].firstlineno, v->rows[i].tot);
		fputc('\n', out);
	}
	for (size_t i = 0; i < v->nedges; i++)
		put_edge(&w, &v->edges[i]);
	return 0;
}
