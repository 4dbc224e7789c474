// SPDX-License-Identifier: BSD-2-Clause
/*
 * speedscope's file format: one "evented" profile per thread and clock, the chosen clock first.
 *
 * The snapshot has sums per calling context, not a sequence of events. Each context therefore opens
 * once, then all its callees follow, then its own time; its width is its cumulative time.
 * speedscope's "Left Heavy" and "Sandwich" views show correct results; "Time Order" shows no
 * chronological order. Two events per context keep the file proportional to the tree at any depth.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/jsonout.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"
#include "stats/tree.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct writer {
	const struct snapshot *s;
	const struct tree *tree;
	FILE *out;
	enum snapshot_clock clock; /* of the profile being written */
	uint64_t at;		   /* the current position in it, in ns */
	bool first;
};

static int put_frame(FILE *out, const struct snapshot_func *f)
{
	fputs("{\"name\":", out);
	if (jsonout_string(out, name_of_func(f)) < 0)
		return -ENOMEM;
	if (!f->pseudo) {
		fputs(",\"file\":", out);
		if (jsonout_string(out, f->filename ? f->filename : "") < 0)
			return -ENOMEM;
		fprintf(out, ",\"line\":%" PRId32, f->firstlineno);
	}
	fputc('}', out);
	return 0;
}

static int put_frames(const struct snapshot *s, FILE *out)
{
	fputs("\"shared\":{\"frames\":[", out);
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		fputs(i ? ",\n" : "\n", out);
		if (put_frame(out, &s->funcs[i]) < 0)
			return -ENOMEM;
	}
	fputs("\n]},\n", out);
	return 0;
}

static void put_event(struct writer *w, char type, uint32_t func)
{
	fprintf(w->out, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		w->first ? "\n" : ",\n", type, func, w->at);
	w->first = false;
}

static int enter(void *ctx, uint32_t node)
{
	struct writer *w = ctx;

	if (w->s->nodes[node].func != SNAPSHOT_NONE)
		put_event(w, 'O', w->s->nodes[node].func);
	return 0;
}

static void leave(void *ctx, uint32_t node)
{
	struct writer *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[node];

	if (n->func == SNAPSHOT_NONE)
		return;
	w->at += n->self[w->clock];
	put_event(w, 'C', n->func);
}

static int put_profile(struct writer *w, const struct snapshot_thread *t)
{
	const struct tree_visitor visitor = {enter, leave, w};
	const struct snapshot_node *root = &w->s->nodes[t->root];
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s [%" PRIu32 ":%" PRIu32 "], %s time",
		     t->name && t->name[0] ? t->name : "thread", t->pid, t->tid,
		     w->clock == SNAPSHOT_CPU ? "cpu" : "wall") < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fputs("{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":", w->out);
	if (jsonout_string(w->out, name) < 0)
		return -ENOMEM;
	/* The root's own time is outside Python and has no frame. */
	fprintf(w->out, ",\"startValue\":0,\"endValue\":%" PRIu64 ",\"events\":[",
		w->tree->nodes[t->root].cum[w->clock] - root->self[w->clock]);
	w->at = 0;
	w->first = true;
	if (tree_walk(w->tree, t->root, &visitor) < 0)
		return -ENOMEM;
	fputs("\n]}", w->out);
	return 0;
}

static int put_profiles(struct writer *w, const struct format_opts *o)
{
	const enum snapshot_clock order[] = {o->clock, o->clock == SNAPSHOT_CPU ? SNAPSHOT_WALL
										: SNAPSHOT_CPU};
	const char *separator = "\n";

	fputs("\"profiles\":[", w->out);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		w->clock = order[c];
		for (uint32_t i = 0; i < w->s->nthreads; i++) {
			if (!view_selects(&o->filter, &w->s->threads[i]))
				continue;
			fputs(separator, w->out);
			separator = ",\n";
			if (put_profile(w, &w->s->threads[i]) < 0)
				return -ENOMEM;
		}
	}
	fputs("\n],\n", w->out);
	return 0;
}

/* The schema allows additional keys; `pyprofd` is the header object of the JSON format. */
static int put_tail(const struct snapshot *s, const struct format_opts *o, FILE *out)
{
	fputs("\"activeProfileIndex\":0,\"exporter\":", out);
	if (jsonout_string(out, s->program) < 0)
		return -ENOMEM;
	fputs(",\"name\":", out);
	if (jsonout_string(out, s->ntargets && s->targets[0].cmdline ? s->targets[0].cmdline
								     : "pyprofd") < 0)
		return -ENOMEM;
	fputs(",\n\"pyprofd\":", out);
	if (jsonout_value(out, provenance_json(s, o, "pyprofd-provenance")) < 0)
		return -ENOMEM;
	fputs("}\n", out);
	return 0;
}

int speedscope_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag)
{
	_cleanup_(tree_freep) struct tree *tree = NULL;
	struct writer w = {.s = s, .out = out};
	int err = tree_build(s, &tree);

	(void)v, (void)diag;
	if (err < 0)
		return err;
	w.tree = tree;
	fputs("{\"$schema\":\"" SCHEMA "\",\n", out);
	err = put_frames(s, out);
	if (!err)
		err = put_profiles(&w, o);
	return err ? err : put_tail(s, o, out);
}
