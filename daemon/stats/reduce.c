// SPDX-License-Identifier: BSD-2-Clause
/* Reduced snapshots: see reduce.h. */
#include "stats/reduce.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "snapshot/pseudo.h"
#include "stats/fold_wholes.h"

/* ---- library code ---- */

static const char *skip_digits(const char *p)
{
	while (*p >= '0' && *p <= '9')
		p++;
	return p;
}

/* The standard library is in lib/python3.N/ or, as a zip file, in lib/python3N.zip/. */
static bool is_versioned(const char *p)
{
	const char *digits = skip_digits(p), *minor;

	if (digits == p)
		return false;
	if (strncmp(digits, ".zip/", 5) == 0)
		return true;
	if (*digits != '.')
		return false;
	minor = digits + 1;
	digits = skip_digits(minor);
	if (*digits == 't') /* free-threaded builds */
		digits++;
	return digits > minor && *digits == '/';
}

bool reduce_is_library(const char *filename)
{
	static const char *const libs[] = {"/lib/python", "/lib64/python"};

	if (!filename)
		return false;
	if (strstr(filename, "/site-packages/") || strstr(filename, "/dist-packages/") ||
	    strncmp(filename, "<frozen ", 8) == 0)
		return true;
	for (size_t i = 0; i < sizeof(libs) / sizeof(*libs); i++)
		for (const char *p = filename; (p = strstr(p, libs[i]));) {
			p += strlen(libs[i]);
			if (is_versioned(p))
				return true;
		}
	return false;
}

/* ---- functions ---- */

static const char *base_name(const char *filename)
{
	const char *slash = filename ? strrchr(filename, '/') : NULL;

	return slash ? slash + 1 : filename;
}

/* Allocates one function more; the last one is REDUCE_LIBRARY. */
static int copy_funcs(struct snapshot *to, const struct snapshot *s, bool strip_dirs)
{
	to->funcs = snapshot_alloc(to, (size_t)s->nfuncs + 1, sizeof(*to->funcs));
	if (!to->funcs)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		to->funcs[i] = s->funcs[i];
		if (strip_dirs)
			to->funcs[i].filename = base_name(s->funcs[i].filename);
	}
	to->funcs[s->nfuncs] =
		(struct snapshot_func){.filename = "", .name = REDUCE_LIBRARY, .pseudo = true};
	to->nfuncs = s->nfuncs + 1;
	return 0;
}

/* ---- contexts ---- */

struct folding {
	const struct snapshot *s;
	struct snapshot *to;
	uint32_t *host;	     /* per node: the node that receives its time */
	bool *away;	     /* per function: whether it is folded */
	struct map children; /* (parent, func) → node */
};

static void folding_deinit(struct folding *f)
{
	free(f->host);
	free(f->away);
	map_deinit(&f->children);
}

static void add_node(struct snapshot_node *to, const struct snapshot_node *n, bool call)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		to->self[c] += n->self[c];
		if (call && n->min[c] < to->min[c])
			to->min[c] = n->min[c];
		if (call && n->max[c] > to->max[c])
			to->max[c] = n->max[c];
	}
	if (call) {
		to->calls += n->calls;
		to->inflight += n->inflight;
	}
}

/* Sets *ret to the child of a new node for func, created if necessary. */
static int child_of(struct folding *f, uint32_t parent, uint32_t func, uint32_t thread,
		    uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | func;
	uint32_t at = f->to->nnodes;

	if (map_get(&f->children, key, ret))
		return 0;
	if (map_put(&f->children, key, at) < 0)
		return -ENOMEM;
	f->to->nodes[at] = (struct snapshot_node){
		.parent = parent, .func = func, .thread = thread, .min = {UINT64_MAX, UINT64_MAX}};
	f->to->nnodes++;
	*ret = at;
	return 0;
}

static int fold_node(struct folding *f, uint32_t i)
{
	const struct snapshot_node *n = &f->s->nodes[i];
	uint32_t parent;

	if (n->parent == SNAPSHOT_NONE) {
		f->host[i] = f->to->nnodes;
		f->to->nodes[f->to->nnodes++] = *n;
		return 0;
	}
	parent = f->host[n->parent];
	if (!f->away[n->func]) {
		if (child_of(f, parent, n->func, n->thread, &f->host[i]) < 0)
			return -ENOMEM;
		add_node(&f->to->nodes[f->host[i]], n, true);
		return 0;
	}
	/* A thread's root is outside Python and must not receive Python time. */
	f->host[i] = parent;
	if (f->to->nodes[parent].parent == SNAPSHOT_NONE &&
	    child_of(f, parent, f->s->nfuncs, n->thread, &f->host[i]) < 0)
		return -ENOMEM;
	add_node(&f->to->nodes[f->host[i]], n, false);
	return 0;
}

static int fold_threads(struct folding *f)
{
	const struct snapshot *s = f->s;

	f->to->threads = snapshot_alloc(f->to, (size_t)s->nthreads + 1, sizeof(*s->threads));
	if (!f->to->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nthreads; i++) {
		f->to->threads[i] = s->threads[i];
		f->to->threads[i].root = f->host[s->threads[i].root];
	}
	return 0;
}

/* The columns still have one element per node of s. */
static int fold_columns(struct folding *f)
{
	uint64_t columns = snapshot_columns(f->s);

	memset(f->to->columns, 0, sizeof(f->to->columns));
	if (snapshot_reserve_columns(f->to, columns, f->to->nnodes) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->s->nnodes; i++)
		snapshot_add_columns(f->to, f->host[i], f->s, i);
	return 0;
}

static int fold_whole_calls(struct folding *f)
{
	f->to->wholes = NULL;
	if (!f->s->wholes)
		return 0;
	f->to->wholes = snapshot_alloc(f->to, (size_t)f->to->nnodes + 1, sizeof(*f->to->wholes));
	return f->to->wholes ? fold_wholes(f->s, f->away, f->host, f->to->wholes) : -ENOMEM;
}

static bool is_folded(const struct snapshot *s, const struct reduce_opts *o, uint32_t func)
{
	if (o->fold && o->fold[func])
		return true;
	return o->only_my_code && !s->funcs[func].pseudo &&
	       reduce_is_library(s->funcs[func].filename);
}

static int fold(const struct snapshot *s, const struct reduce_opts *o, struct snapshot *to)
{
	_cleanup_(folding_deinit) struct folding f = {.s = s, .to = to};

	/* reserves one (library) node per thread, the only nodes that are added */
	to->nnodes = 0;
	to->nodes = snapshot_alloc(to, (size_t)s->nnodes + s->nthreads + 1, sizeof(*to->nodes));
	f.host = calloc((size_t)s->nnodes + 1, sizeof(*f.host));
	f.away = calloc((size_t)s->nfuncs + 1, sizeof(*f.away));
	if (!to->nodes || !f.host || !f.away)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		f.away[i] = is_folded(s, o, i);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (fold_node(&f, i) < 0)
			return -ENOMEM;
	if (fold_columns(&f) < 0 || fold_whole_calls(&f) < 0)
		return -ENOMEM;
	return fold_threads(&f);
}

/* ---- waits for work ---- */

/* Replaces arrays that would be changed by copies in the memory of `owner`. */
static int own_arrays(struct snapshot *owner, struct snapshot *to)
{
	struct snapshot_node *nodes = snapshot_alloc(owner, (size_t)to->nnodes + 1, sizeof(*nodes));
	struct snapshot_thread *threads =
		snapshot_alloc(owner, (size_t)to->nthreads + 1, sizeof(*threads));

	if (!nodes || !threads)
		return -ENOMEM;
	memcpy(nodes, to->nodes, to->nnodes * sizeof(*nodes));
	memcpy(threads, to->threads, to->nthreads * sizeof(*threads));
	to->nodes = nodes;
	to->threads = threads;
	for (int c = 0; c < COLUMNS; c++) {
		uint64_t *column;

		if (!to->columns[c] || !(COLUMN_WAITS & COLUMN_BIT(c)))
			continue;
		column = snapshot_alloc(owner, (size_t)to->nnodes + 1, sizeof(*column));
		if (!column)
			return -ENOMEM;
		memcpy(column, to->columns[c], to->nnodes * sizeof(*column));
		to->columns[c] = column;
	}
	return 0;
}

static void leave_out(struct snapshot *to, struct snapshot_node *wait)
{
	uint64_t *total = &to->threads[wait->thread].total[SNAPSHOT_WALL];
	uint64_t ns = wait->self[SNAPSHOT_WALL];

	*total -= ns < *total ? ns : *total;
	wait->self[SNAPSHOT_WALL] = 0;
	for (int c = 0; c < COLUMNS; c++)
		if (to->columns[c] && COLUMN_WAITS & COLUMN_BIT(c))
			to->columns[c][wait->parent] = 0;
}

static int leave_out_waits(struct snapshot *owner, struct snapshot *to)
{
	if (own_arrays(owner, to) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < to->nnodes; i++) {
		struct snapshot_node *n = &to->nodes[i];

		if (n->func != SNAPSHOT_NONE && to->funcs[n->func].pseudo &&
		    strcmp(to->funcs[n->func].name, SNAPSHOT_WAIT) == 0)
			leave_out(to, n);
	}
	return 0;
}

int reduce_snapshot(const struct snapshot *s, const struct reduce_opts *o, struct snapshot **ret)
{
	_cleanup_(snapshot_freep) struct snapshot *to = snapshot_new();
	struct snapshot source = *s; /* borrows all of s, less waits for work */
	void *arena;
	int err = to ? 0 : -ENOMEM;

	if (!err && o->busy)
		err = leave_out_waits(to, &source);
	if (err < 0)
		return err;
	arena = to->arena;
	*to = source;
	to->arena = arena;
	to->busy |= o->busy;
	to->folded |= o->only_my_code;
	to->stripped |= o->strip_dirs;
	if (o->fold)
		to->builtins_of = o->builtins_of;
	err = copy_funcs(to, &source, o->strip_dirs);
	if (!err && (o->only_my_code || o->fold))
		err = fold(&source, o, to);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(to);
	return 0;
}
