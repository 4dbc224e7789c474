// SPDX-License-Identifier: BSD-2-Clause
/*
 * speedscope's JSON: one profile per thread, made from its calling-context tree. A context is one
 * frame that opens, lasts for its own and its callees' time, and closes: what speedscope calls the
 * time order is therefore no order of events but the tree laid out. This takes two short entries
 * per context however deep the tree, where a list of stacks would take as many as it has frames.
 * Provenance is in the member "pyprofd", which speedscope ignores.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"

/* What the layout needs of a context besides the snapshot's. */
struct layout {
	uint32_t first_child, next_sibling; /* SNAPSHOT_NONE: none */
	uint64_t cum;
	uint64_t open, close; /* when, in its profile */
};

struct writer {
	const struct snapshot *s;
	const struct format_opts *o;
	FILE *out;
	struct layout *nodes;
};

static int dump(struct writer *w, json_t *value)
{
	int err;

	if (!value)
		return -ENOMEM;
	err = json_dumpf(value, w->out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(value);
	return err < 0 && !ferror(w->out) ? -ENOMEM : 0;
}

/* Parents come first, so forwards a node's own moment is known before its children's. */
static void lay_out(struct writer *w)
{
	const struct snapshot *s = w->s;
	struct layout *l = w->nodes;

	for (uint32_t i = 0; i < s->nnodes; i++)
		l[i].first_child = l[i].next_sibling = SNAPSHOT_NONE;
	for (uint32_t i = s->nnodes; i-- > 0;) {
		uint32_t parent = s->nodes[i].parent;

		/* A root's own time is time outside Python, which no report counts. */
		if (parent == SNAPSHOT_NONE)
			continue;
		l[i].cum += s->nodes[i].self[w->o->clock];
		l[i].next_sibling = l[parent].first_child;
		l[parent].first_child = i;
		l[parent].cum += l[i].cum;
	}
	for (uint32_t i = 0; i < s->nnodes; i++) {
		uint64_t at = l[i].open;

		l[i].close = l[i].open + l[i].cum;
		for (uint32_t c = l[i].first_child; c != SNAPSHOT_NONE; c = l[c].next_sibling) {
			l[c].open = at;
			at += l[c].cum;
		}
	}
}

static void put_event(struct writer *w, char type, uint32_t node, uint64_t at, bool *first)
{
	fprintf(w->out, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		*first ? "\n" : ",\n", type, w->s->nodes[node].func, at);
	*first = false;
}

/* Depth first; trees can be as deep as a stack, so by links instead of recursion. */
static void put_events(struct writer *w, uint32_t root)
{
	const struct layout *l = w->nodes;
	uint32_t i = l[root].first_child;
	bool first = true;

	while (i != SNAPSHOT_NONE) {
		put_event(w, 'O', i, l[i].open, &first);
		if (l[i].first_child != SNAPSHOT_NONE) {
			i = l[i].first_child;
			continue;
		}
		put_event(w, 'C', i, l[i].close, &first);
		while (l[i].next_sibling == SNAPSHOT_NONE) {
			i = w->s->nodes[i].parent;
			if (i == root)
				return;
			put_event(w, 'C', i, l[i].close, &first);
		}
		i = l[i].next_sibling;
	}
}

static json_t *thread_name(const struct writer *w, const struct snapshot_thread *t)
{
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s (%" PRIu32 " of %" PRIu32 ", %s)", t->name ? t->name : "", t->tid,
		     t->pid, w->o->clock == SNAPSHOT_WALL ? "wall" : "cpu") < 0) {
		name = NULL;
		return NULL;
	}
	return provenance_string(name);
}

static int put_profiles(struct writer *w)
{
	bool first = true;

	fputs(",\n\"profiles\":[", w->out);
	for (uint32_t i = 0; i < w->s->nthreads; i++) {
		const struct snapshot_thread *t = &w->s->threads[i];

		if (!provenance_selects(&w->o->filter, t))
			continue;
		fputs(first ? "\n{\"type\":\"evented\",\"name\":"
			    : ",\n{\"type\":\"evented\",\"name\":",
		      w->out);
		first = false;
		if (dump(w, thread_name(w, t)) < 0)
			return -ENOMEM;
		fprintf(w->out,
			",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64
			",\"events\":[",
			w->nodes[t->root].cum);
		put_events(w, t->root);
		fputs("]}", w->out);
	}
	fputs("]", w->out);
	return 0;
}

static json_t *frame_json(const struct snapshot_func *f)
{
	const char *name = f->qualname ? f->qualname : f->name;

	if (f->pseudo)
		return json_pack("{s:o}", "name", provenance_string(name ? name : ""));
	return json_pack("{s:o, s:o, s:i}", "name", provenance_string(name ? name : ""), "file",
			 provenance_string(f->filename ? f->filename : ""), "line",
			 (int)f->firstlineno);
}

static int put_frames(struct writer *w)
{
	fputs(",\n\"shared\":{\"frames\":[", w->out);
	for (uint32_t i = 0; i < w->s->nfuncs; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		if (dump(w, frame_json(&w->s->funcs[i])) < 0)
			return -ENOMEM;
	}
	fputs("]}", w->out);
	return 0;
}

int speedscope_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag)
{
	_cleanup_free_ struct layout *nodes = calloc((size_t)s->nnodes + 1, sizeof(*nodes));
	struct writer w = {.s = s, .o = o, .out = out, .nodes = nodes};
	int err;

	(void)v;
	(void)diag;
	if (!nodes)
		return -ENOMEM;
	lay_out(&w);
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":",
	      out);
	err = dump(&w, provenance_string(s->program ? s->program : "pyprofd"));
	if (err < 0)
		return err;
	fputs(",\n\"pyprofd\":", out);
	err = dump(&w, provenance_json(s, o, "pyprofd-provenance"));
	if (!err)
		err = put_frames(&w);
	if (!err)
		err = put_profiles(&w);
	if (!err)
		fputs("\n}\n", out);
	return err;
}
