// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collapsed stacks, the input of flame graph tools: one line per calling context with its frames
 * from the outermost inwards, separated by semicolons, then its own time in ns. The first frame is
 * the thread; stacks.h describes how deep stacks are shortened. Long names are cut (NAME_REPEATED),
 * because each context repeats them. Comments at the top hold the provenance; their values are
 * quoted so that no tool takes a comment that ends in a number for a stack.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/names.h"
#include "format/provenance.h"
#include "format/stacks.h"
#include "format/writers.h"

#define SEPARATOR ";"

struct writer {
	const struct snapshot *s;
	enum snapshot_clock clock;
	FILE *out;
	char **frames; /* per function: ";name (file:line)"; created at first use */
};

static void writer_deinit(struct writer *w)
{
	for (uint32_t i = 0; w->frames && i < w->s->nfuncs; i++)
		free(w->frames[i]);
	free(w->frames);
}

/* Deep trees repeat a function's frame very often, so it is escaped only once. */
static char *frame_new(const struct snapshot_func *f)
{
	_cleanup_free_ char *name = name_cut(name_of_func(f), SEPARATOR, NAME_REPEATED);
	_cleanup_free_ char *file = name_cut(f->filename, SEPARATOR, NAME_REPEATED);
	char *ret = NULL;
	size_t size;
	FILE *out = name && file ? open_memstream(&ret, &size) : NULL;

	if (!out)
		return NULL;
	fputc(';', out);
	/* A semicolon would end the frame. */
	name_print_escape(out, name, SEPARATOR);
	if (!f->pseudo) {
		fputs(" (", out);
		name_print_escape(out, file, SEPARATOR);
		fprintf(out, ":%" PRId32 ")", f->firstlineno);
	}
	if (fclose(out) == 0)
		return ret;
	free(ret);
	return NULL;
}

static int put_func(struct writer *w, uint32_t func)
{
	if (func == SNAPSHOT_NONE)
		return fputs(";" STACKS_LEFT_OUT, w->out), 0;
	if (!w->frames[func])
		w->frames[func] = frame_new(&w->s->funcs[func]);
	if (!w->frames[func])
		return -ENOMEM;
	fputs(w->frames[func], w->out);
	return 0;
}

static int put_stack(void *ctx, const struct stack *stack)
{
	struct writer *w = ctx;
	const struct snapshot_thread *t = &w->s->threads[stack->thread];
	uint64_t own = w->s->nodes[stack->node].self[w->clock];

	if (!own || ferror(w->out))
		return 0;
	if (w->s->ntargets > 1)
		fprintf(w->out, "process %" PRIu32 ";", t->pid);
	name_print_escape(w->out, t->name, SEPARATOR);
	fprintf(w->out, " (%" PRIu32 ")", t->tid);
	for (size_t i = 0; i < stack->n; i++)
		if (put_func(w, stack->funcs[i]) < 0)
			return -ENOMEM;
	fprintf(w->out, " %" PRIu64 "\n", own);
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
	w.frames = calloc((size_t)s->nfuncs + 1, sizeof(*w.frames));
	if (!w.frames)
		return -ENOMEM;
	err = provenance_lines(s, o, put_comment, out);
	return err ? err : stacks_each(s, &o->filter, put_stack, &w);
}
