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
};

/* A semicolon would end the frame. */
static void put_frame(struct writer *w, const char *s)
{
	uint32_t cp;

	while (s && (cp = utf8_next(&s)))
		if (cp == ';')
			fputs("\\x3b", w->out);
		else
			name_putc(w->out, cp);
}

static void put_func(struct writer *w, const struct snapshot_func *f)
{
	fputc(';', w->out);
	put_frame(w, f->qualname ? f->qualname : f->name);
	if (f->pseudo)
		return;
	fputs(" (", w->out);
	put_frame(w, f->filename);
	fprintf(w->out, ":%" PRId32 ")", f->firstlineno);
}

static void put_stack(struct writer *w, uint32_t node)
{
	const struct snapshot_thread *t = &w->s->threads[w->s->nodes[node].thread];
	size_t n = 0;

	for (uint32_t i = node; w->s->nodes[i].parent != SNAPSHOT_NONE; i = w->s->nodes[i].parent)
		w->path[n++] = i;
	if (w->s->ntargets > 1)
		fprintf(w->out, "process %" PRIu32 ";", t->pid);
	put_frame(w, t->name);
	fprintf(w->out, " (%" PRIu32 ")", t->tid);
	while (n > 0)
		put_func(w, &w->s->funcs[w->s->nodes[w->path[--n]].func]);
	fprintf(w->out, " %" PRIu64 "\n", w->s->nodes[node].self[w->clock]);
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
	_cleanup_free_ uint32_t *path = calloc((size_t)s->nnodes + 1, sizeof(*path));
	struct writer w = {.s = s, .clock = o->clock, .out = out, .path = path};
	int err;

	(void)v;
	(void)diag;
	if (!path)
		return -ENOMEM;
	err = provenance_lines(s, o, put_comment, out);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		/* A root's own time is time outside Python: no function's, so not in any report. */
		if (n->parent != SNAPSHOT_NONE && n->self[o->clock] &&
		    provenance_selects(&o->filter, &s->threads[n->thread]))
			put_stack(&w, i);
	}
	return 0;
}
