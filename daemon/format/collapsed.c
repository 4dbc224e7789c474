// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collapsed stacks, the input of flame graph tools: one line per calling context, its frames from
 * the outermost on separated by semicolons, then its own time in nanoseconds. The first frame is
 * the thread. Provenance comes first in comments; their values are quoted, so that no tool takes
 * a comment that ends in a number for a stack.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"

struct writer {
	const struct snapshot *s;
	enum snapshot_clock clock;
	FILE *out;
	uint32_t *path; /* nodes from the innermost on; as long as there are nodes */
	char **frames;	/* per function: ";name (file:line)", made when first needed */
};

static void writer_deinit(struct writer *w)
{
	for (uint32_t i = 0; w->frames && i < w->s->nfuncs; i++)
		free(w->frames[i]);
	free(w->frames);
	free(w->path);
}

/* A semicolon would end the frame. */
static void put_frame(FILE *out, const char *s)
{
	uint32_t cp;

	while (s && (cp = utf8_next(&s)))
		if (cp == ';')
			fputs("\\x3b", out);
		else
			name_putc(out, cp);
}

/* Deep trees repeat a function's frame very many times: escape it once. */
static char *frame_new(const struct snapshot_func *f)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	if (!out)
		return NULL;
	fputc(';', out);
	put_frame(out, f->qualname ? f->qualname : f->name);
	if (!f->pseudo) {
		fputs(" (", out);
		put_frame(out, f->filename);
		fprintf(out, ":%" PRId32 ")", f->firstlineno);
	}
	if (fclose(out) == 0)
		return ret;
	free(ret);
	return NULL;
}

static int put_func(struct writer *w, uint32_t func)
{
	if (!w->frames[func])
		w->frames[func] = frame_new(&w->s->funcs[func]);
	if (!w->frames[func])
		return -ENOMEM;
	fputs(w->frames[func], w->out);
	return 0;
}

static int put_stack(struct writer *w, uint32_t node)
{
	const struct snapshot_node *nodes = w->s->nodes;
	const struct snapshot_thread *t = &w->s->threads[nodes[node].thread];
	size_t n = 0;

	for (uint32_t i = node; nodes[i].parent != SNAPSHOT_NONE; i = nodes[i].parent)
		w->path[n++] = i;
	if (w->s->ntargets > 1)
		fprintf(w->out, "process %" PRIu32 ";", t->pid);
	put_frame(w->out, t->name);
	fprintf(w->out, " (%" PRIu32 ")", t->tid);
	while (n > 0)
		if (put_func(w, nodes[w->path[--n]].func) < 0)
			return -ENOMEM;
	fprintf(w->out, " %" PRIu64 "\n", nodes[node].self[w->clock]);
	return 0;
}

static void put_comment(void *ctx, const char *label, const char *value)
{
	FILE *out = ctx;

	fprintf(out, "# %s: \"", label);
	name_print(out, value, 0);
	fputs("\"\n", out);
}

int collapsed_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag)
{
	_cleanup_(writer_deinit) struct writer w = {.s = s, .clock = o->clock, .out = out};
	int err;

	(void)v;
	(void)diag;
	w.path = calloc((size_t)s->nnodes + 1, sizeof(*w.path));
	w.frames = calloc((size_t)s->nfuncs + 1, sizeof(*w.frames));
	if (!w.path || !w.frames)
		return -ENOMEM;
	err = provenance_lines(s, o, put_comment, out);
	for (uint32_t i = 0; i < s->nnodes && !err && !ferror(out); i++) {
		const struct snapshot_node *n = &s->nodes[i];

		/* A root's own time is time outside Python: no function's, so not in any report. */
		if (n->parent != SNAPSHOT_NONE && n->self[o->clock] &&
		    provenance_selects(&o->filter, &s->threads[n->thread]))
			err = put_stack(&w, i);
	}
	return err;
}
