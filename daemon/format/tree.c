// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calling-context tree as lines: each context below its caller, siblings sorted by cumulative
 * time, with its share of all time in Python. Contexts that are too small or too deep are left out,
 * and counted if their sum is not small. Threads are merged into one tree unless o->by_thread is set or one is selected. It
 * starts where it branches: callers that do nothing but call the next one are named in one line. A context
 * that is not called exactly once in each call of its caller has the calls per call.
 *
 * Restrictions select functions as in a table (a number selects the first rows by the sort key,
 * cumulative time by default). A context is shown if its function is selected or if it leads to
 * such a context; with patterns, also if it is below one.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/calls_text.h"
#include "format/names.h"
#include "format/restrict.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"
#include "stats/merge_threads.h"
#include "stats/per_call.h"
#include "stats/tree.h"

#define DEPTH_DEFAULT 24
#define SHARE_DEFAULT 1.0
#define INDENT_MAX    24
#define FIGURES_WIDTH 36
#define PER_CALL      " per call"
#define NOTE_MAX      (CALLS_TEXT_MAX + 16)
#define NAME_LEAST    12 /* columns that a name has beside a note */

struct printer {
	const struct snapshot *s;
	const struct format_opts *o;
	const struct tree *tree;
	const struct snapshot_node *nodes;
	bool *shown;	 /* per node */
	uint32_t *order; /* nodes grouped by parent, in print order */
	uint32_t *first; /* per node: its first child in `order`; one element more at the end */
	struct per_call_evidence *calls; /* per node */
	enum calls_certainty *certainty; /* per function */
	uint64_t windows;
	uint64_t total, least;
	uint32_t depth;
	bool whole;	/* start at the root, not where it branches */
	size_t columns; /* of a line on a terminal; 0: a file, nothing is cut */
	FILE *out;
};

static void printer_deinit(struct printer *p)
{
	free(p->shown);
	free(p->order);
	free(p->first);
	free(p->calls);
	free(p->certainty);
}

static uint64_t cum(const struct printer *p, uint32_t node)
{
	return p->tree->nodes[node].cum[p->o->clock];
}

/* ---- order: children behind their parent's other children ---- */

static int compare_siblings(const void *left, const void *right, void *arg)
{
	const struct printer *p = arg;
	uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
	uint32_t pl = p->nodes[l].parent, pr = p->nodes[r].parent;
	uint64_t cl = cum(p, l), cr = cum(p, r);

	if (pl != pr)
		return pl < pr ? -1 : 1; /* roots, whose parent is the highest number, come last */
	if (cl != cr && pl != SNAPSHOT_NONE)
		return (cl > cr) != p->o->reverse ? -1 : 1;
	return l < r ? -1 : 1;
}

static int sort_nodes(struct printer *p)
{
	uint32_t n = p->s->nnodes, at = 0;

	p->order = calloc((size_t)n + 1, sizeof(*p->order));
	p->first = calloc((size_t)n + 1, sizeof(*p->first));
	if (!p->order || !p->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		p->order[i] = i;
	qsort_r(p->order, n, sizeof(*p->order), compare_siblings, p);
	for (uint32_t i = 0; i <= n; i++) {
		p->first[i] = at;
		while (at < n && p->nodes[p->order[at]].parent == i)
			at++;
	}
	return 0;
}

/* ---- which contexts ---- */

/* Maps table rows to functions by pstats' key. */
static int selected_funcs(const struct view *v, const struct table *t, const struct selection *rows,
			  bool **ret)
{
	_cleanup_free_ bool *funcs = calloc((size_t)v->snapshot->nfuncs + 1, sizeof(*funcs));
	_cleanup_free_ bool *chosen = calloc(t->nrows + 1, sizeof(*chosen));

	if (!funcs || !chosen)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++)
		chosen[rows->order[i]] = true;
	for (uint32_t f = 0; f < v->snapshot->nfuncs; f++)
		funcs[f] = t->row_of[f] != SNAPSHOT_NONE && chosen[t->row_of[f]];
	*ret = TAKE_PTR(funcs);
	return 0;
}

static void spread(struct printer *p, const bool *funcs, bool below)
{
	uint32_t n = p->s->nnodes;

	for (uint32_t i = 0; i < n; i++)
		p->shown[i] = p->nodes[i].parent != SNAPSHOT_NONE &&
			      (funcs[p->nodes[i].func] || (below && p->shown[p->nodes[i].parent]));
	/* parents precede children, so the loop marks ancestors backwards */
	for (uint32_t i = n; i-- > 0;)
		if (p->shown[i] && p->nodes[i].parent != SNAPSHOT_NONE)
			p->shown[p->nodes[i].parent] = true;
}

static int choose(struct printer *p, const struct view *v, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_free_ bool *funcs = NULL;
	struct format_opts o = *p->o;
	bool below = false;
	int err = table_build(v, o.clock, &t);

	o.reverse = false;
	if (!o.sort)
		o.sort = "cumulative";
	if (!err)
		err = selection_init(&rows, t, &o, diag);
	if (!err)
		err = selected_funcs(v, t, &rows, &funcs);
	if (err < 0)
		return err;
	p->shown = calloc((size_t)p->s->nnodes + 1, sizeof(*p->shown));
	if (!p->shown)
		return -ENOMEM;
	for (size_t i = 0; i < o.nrestrict; i++)
		below = below || restriction_is_pattern(o.restrict_[i]);
	spread(p, funcs, below);
	if (o.nrestrict)
		fputs(rows.notes, p->out);
	return 0;
}

/* ---- lines ---- */

static double share(const struct printer *p, uint64_t ns)
{
	return p->total ? 100.0 * (double)ns / (double)p->total : 0;
}

/* Of a path that does not fit, the last components are kept. */
static const char *short_path(const char *file, size_t columns)
{
	const char *slash = strrchr(file, '/');

	return slash && screen_width(file) > columns ? slash + 1 : file;
}

/* Writes " x 36.7 per call"; "" if that is unknown, or exactly one, as most are. */
static void per_call_note(const struct printer *p, uint32_t node, char note[NOTE_MAX])
{
	struct per_call calls =
		per_call_of(&p->calls[node], &p->calls[p->nodes[node].parent], p->windows);
	char text[CALLS_TEXT_MAX];

	note[0] = '\0';
	if (calls.calls >= 0 && (calls.calls != 1 || calls.error > 0))
		snprintf(note, NOTE_MAX, "  x %s" PER_CALL, calls_text(&calls, text));
}

static void print_calls(const struct printer *p, const struct snapshot_node *n)
{
	const enum calls_certainty certainty = p->certainty[n->func];
	char text[24];

	snprintf(text, sizeof(text), "%s%" PRIu64, certainty == CALLS_ROUGH ? "~" : "", n->calls);
	fprintf(p->out, " %8s ", certainty == CALLS_UNKNOWN ? "?" : text);
}

/* Cuts the note so that the name has room, and returns the columns that are left. */
static size_t fit_note(char note[NOTE_MAX], size_t columns)
{
	size_t len = strlen(note);

	if (len && len + NAME_LEAST > columns)
		note[len -= strlen(PER_CALL)] = '\0';
	if (len + NAME_LEAST > columns)
		note[len = 0] = '\0';
	return columns - len;
}

/* note: behind the name. columns 0: nothing is cut */
static void print_label(const struct printer *p, const struct snapshot_func *f, char note[NOTE_MAX],
			size_t columns)
{
	_cleanup_free_ char *file = NULL,
			    *name = name_normal(name_of_func(f), NAME_KEEP_SURROGATES);
	size_t wanted, width;

	if (!name)
		return;
	wanted = screen_width(name);
	if (f->pseudo || asprintf(&file, "%s:%" PRId32, f->filename ? f->filename : "<unknown>",
				  f->firstlineno) < 0)
		file = NULL;
	columns = columns ? fit_note(note, columns) : wanted + 2 + (file ? screen_width(file) : 0);
	/* the name has priority, but the file gets a third */
	width = file && wanted + 2 + 8 > columns && wanted + 2 + screen_width(file) > columns
			? columns - columns / 3
			: columns;
	width = screen_fit(p->out, name, width);
	fputs(note, p->out);
	if (!file || width + 2 + 4 > columns)
		return;
	fprintf(p->out, "  %s", screen_dim(p->o));
	screen_fit(p->out, short_path(file, columns - width - 2), columns - width - 2);
	fputs(screen_plain(p->o), p->out);
}

static int indent_of(uint32_t depth)
{
	return (int)(depth < INDENT_MAX ? depth : INDENT_MAX);
}

static void print_node(const struct printer *p, uint32_t i, uint32_t depth)
{
	const struct snapshot_node *n = &p->nodes[i];
	double part = share(p, cum(p, i));
	char note[NOTE_MAX];

	fprintf(p->out, "%s%5.1f%%%s %9.3f %9.3f", part >= 10 ? screen_bold(p->o) : "", part,
		screen_plain(p->o), table_seconds(cum(p, i)), table_seconds(n->self[p->o->clock]));
	print_calls(p, n);
	fprintf(p->out, "%*s", indent_of(depth), "");
	per_call_note(p, i, note);
	print_label(p, &p->s->funcs[n->func], note,
		    p->columns ? p->columns - FIGURES_WIDTH - (size_t)indent_of(depth) : 0);
	fputc('\n', p->out);
}

static void print_rest(const struct printer *p, uint32_t depth, uint32_t n, uint64_t ns)
{
	if (n)
		fprintf(p->out, "%s%5.1f%% %9.3f %18s %*s(%" PRIu32 " more)%s\n", screen_dim(p->o),
			share(p, ns), table_seconds(ns), "", indent_of(depth), "", n,
			screen_plain(p->o));
}

/* Returns whether a child is too small or too deep to be shown. */
static bool is_cut(const struct printer *p, uint32_t child, uint32_t depth)
{
	return depth > p->depth || cum(p, child) < p->least;
}

static void print_cut_children(const struct printer *p, uint32_t node, uint32_t depth)
{
	uint64_t ns = 0;
	uint32_t n = 0;

	for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++) {
		uint32_t child = p->order[i];

		if (!p->shown[child] || !is_cut(p, child, depth))
			continue;
		/* pseudo contexts always exist; empty ones are not counted */
		n += p->nodes[child].calls || cum(p, child);
		ns += cum(p, child);
	}
	/* the sum of small ones can be small as well */
	if (ns >= p->least)
		print_rest(p, depth, n, ns);
}

/* The only child that is shown, if hardly any time is spent elsewhere; otherwise SNAPSHOT_NONE. */
static uint32_t only_child(const struct printer *p, uint32_t node)
{
	uint32_t found = SNAPSHOT_NONE;

	for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++) {
		uint32_t child = p->order[i];

		if (!p->shown[child] || is_cut(p, child, 1))
			continue;
		if (found != SNAPSHOT_NONE)
			return SNAPSHOT_NONE;
		found = child;
	}
	if (found == SNAPSHOT_NONE || cum(p, node) - cum(p, found) > p->least)
		return SNAPSHOT_NONE;
	return found;
}

/* Skips callers without branches and names them in a line. Returns the context to start at. */
static uint32_t print_start(const struct printer *p, uint32_t node)
{
	_cleanup_free_ char *names = NULL;
	const char *sep = "";
	size_t size;
	FILE *out;

	if (p->whole || only_child(p, node) == SNAPSHOT_NONE)
		return node;
	out = open_memstream(&names, &size);
	for (uint32_t next; (next = only_child(p, node)) != SNAPSHOT_NONE; node = next) {
		if (out)
			fprintf(out, "%s%s", sep, name_of_func(&p->s->funcs[p->nodes[node].func]));
		sep = " > ";
	}
	if (!out || fclose(out) != 0)
		return node;
	fprintf(p->out, "%s%*s below ", screen_dim(p->o), FIGURES_WIDTH - 1, "");
	if (p->columns)
		screen_fit(p->out, names, p->columns - FIGURES_WIDTH - strlen("below "));
	else
		name_print(p->out, names, 0);
	fprintf(p->out, "%s\n", screen_plain(p->o));
	return node;
}

/* Iterative, because stacks can be deep. next[depth] is the index in `order` to continue at. */
static int print_below(const struct printer *p, uint32_t root)
{
	_cleanup_free_ uint32_t *next = calloc((size_t)p->s->nnodes + 2, sizeof(*next));
	_cleanup_free_ uint32_t *path = calloc((size_t)p->s->nnodes + 2, sizeof(*path));
	uint32_t depth = 0;

	if (!next || !path)
		return -ENOMEM;
	path[0] = root;
	next[0] = p->first[root];
	for (;;) {
		uint32_t child;

		if (next[depth] == p->first[path[depth] + 1]) {
			print_cut_children(p, path[depth], depth + 1);
			if (depth-- == 0)
				return 0;
			continue;
		}
		child = p->order[next[depth]++];
		if (!p->shown[child] || is_cut(p, child, depth + 1))
			continue;
		if (depth++ == 0)
			child = print_start(p, child);
		print_node(p, child, depth);
		path[depth] = child;
		next[depth] = p->first[child];
	}
}

static uint64_t in_python(const struct printer *p, const struct snapshot_thread *thread)
{
	return cum(p, thread->root) - p->nodes[thread->root].self[p->o->clock];
}

static int print_thread(const struct printer *p, const struct snapshot_thread *thread)
{
	uint64_t ns = in_python(p, thread);

	if (!p->shown[thread->root])
		return 0;
	if (!thread->tid && !thread->folded)
		return print_below(p, thread->root); /* threads are merged */
	fprintf(p->out, "%s%5.1f%% %9.3f %18s ", screen_bold(p->o), share(p, ns), table_seconds(ns),
		"");
	fprintf(p->out, "thread %" PRIu32 " ", thread->tid);
	if (p->columns)
		screen_fit(p->out, thread->name ? thread->name : "", 20);
	else
		name_print(p->out, thread->name ? thread->name : "", NAME_COLUMNS);
	fprintf(p->out, "%s\n", screen_plain(p->o));
	return print_below(p, thread->root);
}

/* Explains the marks of the functions that are shown. */
static void print_legend(const struct printer *p)
{
	bool is[] = {false, false, false};

	for (uint32_t i = 0; i < p->s->nnodes; i++)
		if (p->shown[i] && p->nodes[i].parent != SNAPSHOT_NONE && cum(p, i) >= p->least)
			is[p->certainty[p->nodes[i].func]] = true;
	calls_print_legend(is[CALLS_ROUGH], is[CALLS_UNKNOWN], p->out);
}

static int print_threads(struct printer *p)
{
	int err = 0;

	fprintf(p->out, "\n%s%6s %9s %9s %8s %s%s\n", screen_bold(p->o), "share", "cumtime",
		"tottime", "ncalls", "function", screen_plain(p->o));
	for (uint32_t i = 0; i < p->s->nthreads && !err; i++)
		if (view_selects(&p->o->filter, &p->s->threads[i]))
			err = print_thread(p, &p->s->threads[i]);
	print_legend(p);
	fputs("\n\n", p->out);
	return err;
}

/* A context is as certain as all contexts of its function, whose error is known. */
static int set_certainty(struct printer *p, const struct snapshot *s)
{
	_cleanup_free_ uint64_t *calls = calloc((size_t)s->nfuncs + 1, sizeof(*calls));

	p->certainty = calloc((size_t)s->nfuncs + 1, sizeof(*p->certainty));
	if (!calls || !p->certainty)
		return -ENOMEM;
	if (!view_estimates_calls(s, &p->o->filter))
		return 0;
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE)
			calls[s->nodes[i].func] += s->nodes[i].calls;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		p->certainty[i] = calls_certainty(calls[i], s->funcs[i].variance[SNAPSHOT_CALLS]);
	return 0;
}

/* threads: the number of merged ones */
static void set_limits(struct printer *p, uint64_t threads)
{
	double percent = p->o->min_share > 0 ? p->o->min_share : SHARE_DEFAULT;

	p->columns = screen_columns(p->o);
	p->depth = p->o->depth ? p->o->depth : DEPTH_DEFAULT;
	for (uint32_t i = 0; i < p->s->nthreads; i++)
		if (view_selects(&p->o->filter, &p->s->threads[i]))
			p->total += in_python(p, &p->s->threads[i]);
	if (p->o->min_share >= 0)
		p->least = (uint64_t)((double)p->total * percent / 100);
	fputs("   Calling contexts", p->out);
	if (threads > 1)
		fprintf(p->out, " of %" PRIu64 " threads together (--by-thread)", threads);
	fprintf(p->out, ", at most %" PRIu32 " deep", p->depth);
	if (p->o->min_share >= 0)
		fprintf(p->out, ", with at least %g %% of %.3f seconds", percent,
			table_seconds(p->total));
	fputc('\n', p->out);
}

static uint64_t count_threads(const struct snapshot *s, const struct view_filter *filter)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(filter, &s->threads[i]))
			n += s->threads[i].folded ? s->threads[i].folded : 1;
	return n;
}

static int write_tree(struct printer *p, const struct view *v, uint64_t threads, struct diag *diag)
{
	_cleanup_(tree_freep) struct tree *tree = NULL;
	int err = tree_build(p->s, &tree);

	if (err < 0)
		return err;
	p->tree = tree;
	p->nodes = p->s->nodes;
	set_limits(p, threads);
	err = sort_nodes(p);
	if (!err)
		err = choose(p, v, diag);
	return err < 0 ? err : print_threads(p);
}

int tree_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *merged = NULL;
	_cleanup_free_ uint32_t *into = NULL;
	struct format_opts all = *o;
	_cleanup_(printer_deinit) struct printer p = {.s = s, .o = &all, .out = out};
	bool merge = !o->by_thread && !o->filter.tid;
	int err = merge ? merge_threads(s, &o->filter, &merged, &into) : 0;

	if (!err)
		err = set_certainty(&p, s);
	if (err < 0)
		return err;
	if (merge) {
		p.s = merged;
		all.filter = (struct view_filter){0};
	}
	p.calls = per_call_contexts(s, into, p.s->nnodes);
	p.windows = v->windows;
	if (!p.calls)
		return -ENOMEM;
	p.whole = o->min_share < 0;
	for (size_t i = 0; i < o->nrestrict; i++)
		p.whole |= restriction_is_pattern(o->restrict_[i]);
	err = write_tree(&p, v, merge ? count_threads(s, &o->filter) : 0, diag);
	return err < 0 ? err : screen_provenance(s, o, out);
}
