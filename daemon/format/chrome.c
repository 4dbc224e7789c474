// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chrome's trace format, for chrome://tracing and Perfetto: the calling-context tree as a flame
 * graph per thread. The data is aggregated and not a timeline: one slice per calling context, with
 * its cumulative time on the chosen clock as length, in the order of the contexts' first calls.
 * Positions do not show when or how often contexts ran. `args` of each slice has its exact figures.
 *
 * Timestamps are in microseconds with three decimals, so nanoseconds are exact.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/map.h"
#include "format/jsonout.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/writers.h"
#include "stats/tree.h"

struct writer {
	const struct snapshot *s;
	const struct tree *tree;
	FILE *out;
	enum snapshot_clock clock;
	const struct snapshot_thread *thread;
	uint64_t at;
	bool first;
	struct map ends;      /* (pid, tid) → the last thread laid out there */
	uint64_t *end;	      /* per thread: the end of its slices */
	struct label *labels; /* per function; created at first use */
};

/* Each slice repeats the names, so long ones are cut. */
struct label {
	char *name, *file;
};

static void labels_free(struct label *labels, uint32_t n)
{
	for (uint32_t i = 0; labels && i < n; i++) {
		free(labels[i].name);
		free(labels[i].file);
	}
	free(labels);
}

/* Returns NULL if out of memory. */
static const struct label *label_of(struct writer *w, uint32_t func)
{
	const struct snapshot_func *f = &w->s->funcs[func];
	struct label *l = &w->labels[func];

	if (!l->name)
		l->name = name_cut(name_of_func(f), "", NAME_REPEATED);
	if (!l->file)
		l->file = name_cut(f->filename, "", NAME_REPEATED);
	return l->name && l->file ? l : NULL;
}

static void next(struct writer *w)
{
	fputs(w->first ? "\n" : ",\n", w->out);
	w->first = false;
}

static void put_us(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static int put_metadata(struct writer *w, const char *what, uint32_t pid, uint32_t tid,
			const char *name)
{
	next(w);
	fprintf(w->out,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"args\":{\"name\":",
		what, pid, tid);
	if (jsonout_string(w->out, name) < 0)
		return -ENOMEM;
	fputs("}}", w->out);
	return 0;
}

static int put_slice(struct writer *w, uint32_t node)
{
	const struct snapshot_node *n = &w->s->nodes[node];
	const struct snapshot_func *f = &w->s->funcs[n->func];
	const uint64_t *cum = w->tree->nodes[node].cum;
	const struct label *l = label_of(w, n->func);

	if (!l)
		return -ENOMEM;
	next(w);
	fputs("{\"ph\":\"X\",\"cat\":\"python\",\"name\":", w->out);
	if (jsonout_string(w->out, l->name) < 0)
		return -ENOMEM;
	fprintf(w->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, w->thread->pid, w->thread->tid);
	put_us(w->out, "ts", w->at);
	put_us(w->out, "dur", cum[w->clock]);
	fputs(",\"args\":{\"file\":", w->out);
	if (jsonout_string(w->out, l->file) < 0)
		return -ENOMEM;
	fprintf(w->out,
		",\"line\":%" PRId32 ",\"calls\":%" PRIu64 ",\"self_cpu_ns\":%" PRIu64
		",\"self_wall_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64 "}}",
		f->firstlineno, n->calls, n->self[SNAPSHOT_CPU], n->self[SNAPSHOT_WALL],
		cum[SNAPSHOT_CPU], cum[SNAPSHOT_WALL]);
	return 0;
}

/* Children start at the beginning of their parent; the parent's own time follows them. */
static int enter(void *ctx, uint32_t node)
{
	struct writer *w = ctx;

	return w->s->nodes[node].func == SNAPSHOT_NONE ? 0 : put_slice(w, node);
}

static void leave(void *ctx, uint32_t node)
{
	struct writer *w = ctx;

	if (w->s->nodes[node].func != SNAPSHOT_NONE)
		w->at += w->s->nodes[node].self[w->clock];
}

/*
 * Thread ids can repeat, for example in merged snapshots; later threads are placed after earlier
 * ones.
 */
static int put_thread(struct writer *w, uint32_t i)
{
	const struct snapshot_thread *t = &w->s->threads[i];
	const struct tree_visitor visitor = {enter, leave, w};
	uint64_t key = (uint64_t)t->pid << 32 | t->tid;
	uint32_t before;
	int err;

	w->thread = t;
	w->at = map_get(&w->ends, key, &before) ? w->end[before] : 0;
	err = put_metadata(w, "thread_name", t->pid, t->tid,
			   t->name && t->name[0] ? t->name : "thread");
	if (!err)
		err = tree_walk(w->tree, t->root, &visitor);
	w->end[i] = w->at;
	return err ? err : map_put(&w->ends, key, i);
}

static int put_events(struct writer *w, const struct format_opts *o)
{
	const struct snapshot *s = w->s;
	int err = 0;

	fputs("{\"traceEvents\":[", w->out);
	w->first = true;
	for (uint32_t i = 0; i < s->ntargets && !err; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i]))
			err = put_metadata(w, "process_name", s->targets[i].pid, 0,
					   s->targets[i].cmdline ? s->targets[i].cmdline : "");
	for (uint32_t i = 0; i < s->nthreads && !err; i++)
		if (view_selects(&o->filter, &s->threads[i]))
			err = put_thread(w, i);
	return err;
}

int chrome_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag)
{
	_cleanup_(tree_freep) struct tree *tree = NULL;
	_cleanup_free_ uint64_t *end = calloc((size_t)s->nthreads + 1, sizeof(*end));
	struct writer w = {.s = s, .out = out, .clock = o->clock, .end = end};
	int err = tree_build(s, &tree);

	(void)v, (void)diag;
	w.labels = calloc((size_t)s->nfuncs + 1, sizeof(*w.labels));
	if (err < 0 || !end || !w.labels) {
		free(w.labels);
		return -ENOMEM;
	}
	w.tree = tree;
	err = put_events(&w, o);
	map_deinit(&w.ends);
	labels_free(w.labels, s->nfuncs);
	if (err < 0)
		return err;
	fputs("\n],\n\"displayTimeUnit\":\"ns\",\n"
	      "\"otherData\":{\"note\":\"aggregated calling contexts, not a timeline\","
	      "\"provenance\":",
	      out);
	if (jsonout_value(out, provenance_json(s, o, "pyprofd-provenance")) < 0)
		return -ENOMEM;
	fputs("}}\n", out);
	return 0;
}
