// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads snapshots from files: see load.h.
 *
 * This file parses the outermost object and its long arrays, and fills the snapshot's elements from
 * their JSON values; load_target.c does so for targets. load_json.c reads the values.
 */
#include "snapshot/load.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/wait.h"
#include "snapshot/load_json.h"
#include "snapshot/load_target.h"
#include "snapshot/pseudo.h"

/* The arrays of a file. Those from OPTIONAL on are missing in files of earlier versions. */
enum {
	TARGETS,
	THREADS,
	FUNCTIONS,
	NODES,
	OPTIONAL,
	COROUTINES = OPTIONAL,
	GIL_PAIRS,
	LONGEST_WAITS,
	SECTIONS
};

#define READ_CHUNK ((size_t)64 * 1024)
#define WHOLE_MAX  1e30 /* more than the squares of all calls of a century */

static void loader_deinit(struct loader *l)
{
	free(l->targets.data);
	free(l->threads.data);
	free(l->funcs.data);
	free(l->nodes.data);
	free(l->wholes.data);
	for (int c = 0; c < COLUMNS; c++)
		free(l->columns[c].data);
	free(l->coros.data);
	free(l->gil_pairs.data);
	free(l->waits.data);
}

/* ---- errors ---- */

static int not_ours(struct loader *l)
{
	if (!l->err)
		l->err = diag_set(l->diag, -EINVAL, PYP_EXIT_USAGE,
				  "`pyprofctl snapshot -o FILE.json` saves one",
				  "'%s' is not a saved snapshot", l->name);
	return l->err;
}

/* ---- elements ---- */

static void read_thread(struct loader *l, const json_t *v)
{
	struct snapshot_thread *t = loader_append(l, &l->threads);

	if (!t)
		return;
	t->pid = loader_get_u32(l, v, "pid");
	t->tid = loader_get_u32(l, v, "tid");
	t->name = loader_get_string(l, v, "name");
	t->alive = loader_get_bool(l, v, "alive");
	t->start_ns = loader_get_u64(l, v, "start_ns");
	t->end_ns = loader_get_u64(l, v, "end_ns");
	loader_get_clocks(l, v, "total", t->total);
	t->folded = loader_get_count(l, v, "folded");
	t->entry = t->folded ? loader_get_remark(l, v, "entry") : NULL;
	t->root = SNAPSHOT_NONE;
}

static double read_variance(struct loader *l, const json_t *v, const char *key)
{
	const json_t *error = loader_member(l, v, key);
	double n;

	if (!error || json_is_null(error))
		return -1;
	n = (double)loader_unsigned(l, error, key, INT64_MAX);
	return n * n;
}

/* Present only if figures are estimates. */
static void read_errors(struct loader *l, const json_t *v, struct snapshot_func *f)
{
	const json_t *tot, *cum;

	if (!json_is_object(v))
		return;
	tot = loader_member(l, v, "tottime");
	cum = loader_member(l, v, "cumtime");
	f->variance[SNAPSHOT_CALLS] = read_variance(l, v, "ncalls");
	f->variance[SNAPSHOT_TOT_CPU] = read_variance(l, tot, "cpu");
	f->variance[SNAPSHOT_TOT_WALL] = read_variance(l, tot, "wall");
	f->variance[SNAPSHOT_CUM_CPU] = read_variance(l, cum, "cpu");
	f->variance[SNAPSHOT_CUM_WALL] = read_variance(l, cum, "wall");
}

/* Buckets are identified by their upper bounds. */
static void read_buckets(struct loader *l, const json_t *v, struct histogram_sum *sum)
{
	const json_t *bucket;
	size_t i;

	json_array_foreach(v, i, bucket)
	{
		uint64_t upper = loader_unsigned(l, json_array_get(bucket, 0), "upper", INT64_MAX);
		uint64_t n = loader_unsigned(l, json_array_get(bucket, 1), "count", INT64_MAX);

		sum->n[histogram_bucket(upper)] += n;
		sum->count += n;
	}
}

/* Present only for functions that were traced; one of the clocks may be missing. */
static void read_durations(struct loader *l, const json_t *v, struct snapshot_func *f)
{
	static const char *const clocks[SNAPSHOT_CLOCKS] = {"cpu", "wall"};

	for (int c = 0; c < SNAPSHOT_CLOCKS && json_is_object(v); c++) {
		const json_t *of = json_object_get(v, clocks[c]);
		struct histogram_sum sum = {.count = 0};

		if (!json_is_object(of))
			continue;
		read_buckets(l, loader_member(l, of, "buckets"), &sum);
		if (snapshot_add_durations(l->s, f, c, &sum, loader_get_known(l, of, "max")) < 0)
			loader_no_memory(l);
	}
}

/* Present only for sampled functions. */
static void read_lines(struct loader *l, const json_t *v, struct snapshot_func *f)
{
	size_t n = json_array_size(v), i;
	struct snapshot_line *lines;
	const json_t *row;

	if (!n)
		return;
	lines = snapshot_alloc(l->s, n, sizeof(*lines));
	if (!lines) {
		loader_no_memory(l);
		return;
	}
	json_array_foreach(v, i, row)
	{
		double error =
			(double)loader_unsigned(l, json_array_get(row, 2), "lines", INT64_MAX);

		lines[i] = (struct snapshot_line){
			.line = (int32_t)loader_unsigned(l, json_array_get(row, 0), "lines",
							 INT32_MAX),
			.self_ns = loader_unsigned(l, json_array_get(row, 1), "lines", INT64_MAX),
			.samples = loader_unsigned(l, json_array_get(row, 3), "lines", INT64_MAX),
			.variance = error * error,
		};
	}
	f->lines = lines;
	f->nlines = (uint32_t)n;
}

static void read_func(struct loader *l, const json_t *v)
{
	struct snapshot_func *f = loader_append(l, &l->funcs);
	const json_t *line = loader_member(l, v, "line");
	json_int_t n = json_integer_value(line);

	if (!f)
		return;
	if (!json_is_integer(line) || n < INT32_MIN || n > INT32_MAX)
		loader_damaged(l, "invalid \"line\" number");
	f->firstlineno = (int32_t)n;
	f->filename = loader_get_string(l, v, "file");
	f->name = loader_get_string(l, v, "name");
	f->qualname = loader_get_string(l, v, "qualname");
	f->variant =
		(uint32_t)loader_unsigned(l, json_object_get(v, "variant"), "variant", INT32_MAX);
	f->pseudo = loader_get_bool(l, v, "pseudo");
	read_errors(l, json_object_get(v, "error"), f);
	read_durations(l, json_object_get(v, "durations"), f);
	read_lines(l, json_object_get(v, "lines"), f);
	if (!f->filename)
		f->filename = "";
	if (!f->name)
		f->name = "";
}

/* Reads a node's own figures: those of each measured column, by group. */
static void read_columns(struct loader *l, const json_t *v)
{
	for (int c = 0, end; (c = column_group_next(l->s->measured, c, &end)) < COLUMNS; c = end) {
		const char *group = column_table[c].group;
		const json_t *figures = *group ? json_object_get(v, group) : v;

		for (; c < end && !l->err; c++) {
			uint64_t *own;

			if (!(l->s->measured & COLUMN_BIT(c)))
				continue;
			own = loader_append(l, &l->columns[c]);
			if (own)
				*own = loader_get_count(l, figures, column_table[c].name);
		}
	}
}

/* Reads which columns were measured: names by group. Ignores columns of later versions. */
static void set_measured(struct loader *l, const json_t *v)
{
	const char *group;
	const json_t *names, *name;
	size_t i;

	if (l->sections & 1u << NODES) {
		loader_damaged(l, "\"columns\" must precede \"nodes\"");
		return;
	}
	json_object_foreach((json_t *)v, group, names)
	{
		json_array_foreach(names, i, name)
		{
			int c = column_find(group,
					    json_is_string(name) ? json_string_value(name) : "");

			if (c < COLUMNS)
				l->s->measured |= COLUMN_BIT(c);
		}
	}
}

/* At least: of what is a divisor, as sums of whole numbers are 0, or 1 and more. */
static double read_sum(struct loader *l, const json_t *v, double least)
{
	double n = json_number_value(v);

	if (!json_is_number(v) || n < 0 || (n > 0 && n < least) || n > WHOLE_MAX) {
		loader_damaged(l, "\"whole\" is not five numbers from 0 to %g", WHOLE_MAX);
		return 0;
	}
	return n;
}

/* Present only for calls that windows have shown. */
static void read_whole(struct loader *l, const json_t *v)
{
	struct snapshot_whole *w;

	if (!v)
		return;
	do {
		w = loader_append(l, &l->wholes);
		if (!w)
			return;
	} while (l->wholes.n < l->nodes.n);
	*w = (struct snapshot_whole){
		.x = read_sum(l, json_array_get(v, 0), 0),
		.y = read_sum(l, json_array_get(v, 1), 1),
		.x2 = read_sum(l, json_array_get(v, 2), 0),
		.xy = read_sum(l, json_array_get(v, 3), 0),
		.y2 = read_sum(l, json_array_get(v, 4), 1),
	};
}

static void read_node(struct loader *l, const json_t *v)
{
	struct snapshot_node *n = loader_append(l, &l->nodes);

	if (!n)
		return;
	n->parent = loader_get_index(l, v, "parent");
	n->func = loader_get_index(l, v, "func");
	n->thread = loader_get_u32(l, v, "thread");
	n->calls = loader_get_u64(l, v, "calls");
	n->inflight = loader_get_u32(l, v, "inflight");
	loader_get_clocks(l, v, "self", n->self);
	n->min[SNAPSHOT_CPU] = n->min[SNAPSHOT_WALL] = UINT64_MAX;
	loader_get_extreme(l, v, "min", n->min);
	loader_get_extreme(l, v, "max", n->max);
	read_columns(l, v);
	read_whole(l, json_object_get(v, "whole"));
}

static enum snapshot_coro_kind get_kind(struct loader *l, const json_t *v)
{
	const char *name = json_string_value(json_object_get(v, "kind"));

	for (int i = 0; name && i < SNAPSHOT_CORO_KINDS; i++)
		if (strcmp(name, snapshot_coro_kinds[i]) == 0)
			return (enum snapshot_coro_kind)i;
	loader_damaged(l, "invalid coroutine \"kind\"");
	return SNAPSHOT_GENERATOR;
}

static void read_coro(struct loader *l, const json_t *v)
{
	struct snapshot_coro *c = loader_append(l, &l->coros);

	if (!c)
		return;
	c->pid = loader_get_u32(l, v, "pid");
	c->func = loader_get_u32(l, v, "func");
	c->kind = get_kind(l, v);
	c->ends_hidden = loader_get_bool(l, v, "ends_hidden");
	c->started = loader_get_u64(l, v, "started");
	c->partial = loader_get_u64(l, v, "partial");
	c->ended = loader_get_u64(l, v, "ended");
	c->steps = loader_get_u64(l, v, "steps");
	loader_get_clocks(l, v, "running", c->running);
	c->suspended = loader_get_u64(l, v, "suspended");
	c->lifetimes = loader_get_u64(l, v, "lifetimes");
	c->total = loader_get_u64(l, v, "total");
	c->min = loader_get_known(l, v, "min");
	c->max = loader_get_known(l, v, "max");
}

static void read_gil_pair(struct loader *l, const json_t *v)
{
	struct snapshot_gil_pair *p = loader_append(l, &l->gil_pairs);

	if (!p)
		return;
	p->pid = loader_get_u32(l, v, "pid");
	p->holder = loader_get_index(l, v, "holder");
	p->waiter = loader_get_index(l, v, "waiter");
	p->ns = loader_get_u64(l, v, "ns");
}

static void read_wait(struct loader *l, const json_t *v)
{
	struct snapshot_wait *w = loader_append(l, &l->waits);
	const char *reason;
	int why;

	if (!w)
		return;
	reason = loader_get_string(l, v, "reason");
	why = reason ? wait_find(reason) : -1;
	if (why < 0)
		loader_damaged(l, "unknown reason for waiting");
	w->why = why < 0 ? WAIT_other : (uint8_t)why;
	w->pid = loader_get_u32(l, v, "pid");
	w->tid = loader_get_u32(l, v, "tid");
	w->func = loader_get_index(l, v, "function");
	w->fd = json_object_get(v, "fd") ? loader_get_u32(l, v, "fd") : SNAPSHOT_NONE;
	w->end_ns = loader_get_u64(l, v, "end_ns");
	w->ns = loader_get_u64(l, v, "ns");
	w->syscall = loader_get_remark(l, v, "syscall");
}

/* ---- the file ---- */

static const struct section {
	const char *name;
	void (*read)(struct loader *l, const json_t *v);
} sections[SECTIONS] = {
	[TARGETS] = {"targets", load_target},		[THREADS] = {"threads", read_thread},
	[FUNCTIONS] = {"functions", read_func},		[NODES] = {"nodes", read_node},
	[COROUTINES] = {"coroutines", read_coro},	[GIL_PAIRS] = {"gil_pairs", read_gil_pair},
	[LONGEST_WAITS] = {"longest_waits", read_wait},
};

/* Reads an array of objects, one at a time. */
static int read_section(struct loader *l, unsigned int number)
{
	const struct section *section = &sections[number];

	if (l->sections & 1u << number)
		return loader_damaged(l, "duplicate \"%s\"", section->name);
	l->sections |= 1u << number;
	if (!loader_accept(l, '['))
		return loader_damaged(l, "\"%s\" is not an array", section->name);
	l->section = section->name;
	l->element = 0;
	for (bool more = loader_peek(l) != ']'; more && !l->err;
	     more = !l->err && loader_accept(l, ',')) {
		json_t *v = loader_value(l);

		if (v)
			section->read(l, v);
		json_decref(v);
		l->element++;
	}
	if (!l->err && !loader_accept(l, ']'))
		loader_damaged(l, "unterminated array");
	l->section = NULL;
	return l->err;
}

static void set_clock(struct loader *l, const json_t *v)
{
	const char *clock = json_string_value(v);

	if (clock && strcmp(clock, "cpu") == 0)
		l->s->clock = SNAPSHOT_CPU;
	else if (clock && strcmp(clock, "wall") == 0)
		l->s->clock = SNAPSHOT_WALL;
	else
		loader_damaged(l, "\"clock\" is neither cpu nor wall");
}

/*
 * Reads a member of the outermost object. Ignores members that are derived from others, or that
 * come from a later version.
 */
static int read_member(struct loader *l, const char *key)
{
	json_t *v;

	for (unsigned int i = 0; i < SECTIONS; i++)
		if (strcmp(key, sections[i].name) == 0)
			return read_section(l, i);
	v = loader_value(l);
	if (!v)
		return l->err;
	if (strcmp(key, "program") == 0)
		l->s->program = loader_string(l, v, key);
	else if (strcmp(key, "host") == 0)
		l->s->host = loader_string(l, v, key);
	else if (strcmp(key, "kernel") == 0)
		l->s->kernel = loader_string(l, v, key);
	else if (strcmp(key, "taken_unix_ns") == 0)
		l->s->taken_unix_ns = loader_unsigned(l, v, key, INT64_MAX);
	else if (strcmp(key, "clock") == 0)
		set_clock(l, v);
	else if (strcmp(key, "columns") == 0)
		set_measured(l, v);
	else if (strcmp(key, "only_my_code") == 0)
		l->s->folded = loader_bool(l, v, key);
	else if (strcmp(key, "strip_dirs") == 0)
		l->s->stripped = loader_bool(l, v, key);
	else if (strcmp(key, "builtins_of") == 0)
		l->s->builtins_of = loader_string(l, v, key);
	json_decref(v);
	return l->err;
}

/*
 * Reads a member's name and its colon. Returns a new reference to the name, or NULL after an error.
 */
static json_t *read_key(struct loader *l)
{
	json_t *key = loader_value(l);

	if (json_is_string(key) && loader_accept(l, ':'))
		return key;
	json_decref(key);
	loader_damaged(l, "expected a name and a colon");
	return NULL;
}

/*
 * The first two members are always "format" and "version", so that other files, and files of later
 * versions, are recognized before anything else in them is reported as an error.
 */
static int read_head(struct loader *l)
{
	static const char format[] = "\"format\"";
	static const char ours[] = "\"" SNAPSHOT_FILE_FORMAT "\"";
	static const char version_key[] = "\"version\"";
	const char *const words[] = {"{", format, ":", ours, ",", version_key, ":"};
	uint64_t version;
	json_t *v;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		loader_skip_blanks(l);
		if ((size_t)(l->end - l->p) < n || memcmp(l->p, words[i], n) != 0)
			return not_ours(l);
		l->p += n;
	}
	v = loader_value(l);
	version = loader_unsigned(l, v, "version", INT64_MAX);
	json_decref(v);
	if (!l->err && version > SNAPSHOT_FILE_VERSION)
		l->err = diag_set(l->diag, -ENOTSUP, PYP_EXIT_FAILURE,
				  "read it with the pyprofctl that belongs to it",
				  "'%s' was saved by a later version (format %" PRIu64
				  ", this is %d)",
				  l->name, version, SNAPSHOT_FILE_VERSION);
	return l->err;
}

static int read_members(struct loader *l)
{
	while (loader_accept(l, ',')) {
		json_t *key = read_key(l);

		if (key)
			read_member(l, json_string_value(key));
		json_decref(key);
		if (l->err)
			return l->err;
	}
	if (!loader_accept(l, '}') || loader_peek(l) || l->p != l->end)
		return loader_damaged(l, "unterminated object, or trailing data");
	for (unsigned int i = 0; i < OPTIONAL; i++)
		if (!(l->sections & 1u << i))
			return loader_damaged(l, "missing \"%s\"", sections[i].name);
	return 0;
}

static void *take_list(struct loader *l, const struct list *list, uint32_t *ret_n)
{
	void *ret = snapshot_alloc(l->s, list->n, list->size);

	if (!ret)
		loader_no_memory(l);
	else if (list->n)
		memcpy(ret, list->data, list->n * list->size);
	*ret_n = (uint32_t)list->n;
	return ret;
}

/* Nodes behind the last one that has sums have none. */
static struct snapshot_whole *take_wholes(struct loader *l, uint32_t nodes)
{
	struct snapshot_whole *ret = snapshot_alloc(l->s, nodes, sizeof(*ret));

	if (!ret)
		loader_no_memory(l);
	else
		memcpy(ret, l->wholes.data, l->wholes.n * sizeof(*ret));
	return ret;
}

/*
 * Moves the lists to the snapshot. A file has less than 2^32 elements. A node without a parent is
 * the root of the thread that it names.
 */
static int assemble(struct loader *l)
{
	struct snapshot *s = l->s;
	uint32_t figures;

	s->targets = take_list(l, &l->targets, &s->ntargets);
	s->threads = take_list(l, &l->threads, &s->nthreads);
	s->funcs = take_list(l, &l->funcs, &s->nfuncs);
	s->nodes = take_list(l, &l->nodes, &s->nnodes);
	for (int c = 0; c < COLUMNS; c++)
		if (s->measured & COLUMN_BIT(c))
			s->columns[c] = take_list(l, &l->columns[c], &figures);
	if (l->wholes.n)
		s->wholes = take_wholes(l, s->nnodes);
	s->coros = take_list(l, &l->coros, &s->ncoros);
	s->gil_pairs = take_list(l, &l->gil_pairs, &s->ngil_pairs);
	s->waits = take_list(l, &l->waits, &s->nwaits);
	for (uint32_t i = 0; i < s->nnodes && !l->err; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->parent != SNAPSHOT_NONE)
			continue;
		if (n->thread >= s->nthreads || s->threads[n->thread].root != SNAPSHOT_NONE)
			return loader_damaged(l, "node %" PRIu32 " is not the root of any thread",
					      i);
		s->threads[n->thread].root = i;
	}
	if (!l->err && !snapshot_valid(s))
		loader_damaged(l, "inconsistent contents");
	return l->err;
}

int snapshot_parse(const char *data, size_t size, const char *name, struct snapshot **ret,
		   struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	_cleanup_(loader_deinit) struct loader l = {
		.name = name,
		.data = data,
		.p = data,
		.end = data + size,
		.s = s,
		.targets.size = sizeof(struct snapshot_target),
		.threads.size = sizeof(struct snapshot_thread),
		.funcs.size = sizeof(struct snapshot_func),
		.nodes.size = sizeof(struct snapshot_node),
		.wholes.size = sizeof(struct snapshot_whole),
		.coros.size = sizeof(struct snapshot_coro),
		.gil_pairs.size = sizeof(struct snapshot_gil_pair),
		.waits.size = sizeof(struct snapshot_wait),
		.diag = diag,
	};

	if (!s)
		return loader_no_memory(&l);
	for (int c = 0; c < COLUMNS; c++)
		l.columns[c].size = sizeof(uint64_t);
	if (read_head(&l) < 0 || read_members(&l) < 0 || assemble(&l) < 0)
		return l.err;
	*ret = TAKE_PTR(s);
	return 0;
}

/* Reads a stream to its end; it need not be a regular file. */
static int read_all(FILE *in, const char *path, char **ret, size_t *ret_size, struct diag *diag)
{
	_cleanup_free_ char *data = NULL;
	size_t n = 0, cap = 0;

	do {
		if (cap - n < READ_CHUNK) {
			char *more = realloc(data, cap * 2 + READ_CHUNK);

			if (!more)
				return diag_errno(diag, ENOMEM, "cannot read '%s'", path);
			data = more;
			cap = cap * 2 + READ_CHUNK;
		}
		errno = EIO;
		n += fread(data + n, 1, cap - n, in);
		if (ferror(in))
			return diag_errno(diag, errno, "cannot read '%s'", path);
		if (n > SNAPSHOT_FILE_MAX_BYTES)
			return diag_errno(diag, EFBIG, "cannot read '%s'", path);
	} while (!feof(in));
	*ret = TAKE_PTR(data);
	*ret_size = n;
	return 0;
}

int snapshot_load(const char *path, struct snapshot **ret, struct diag *diag)
{
	_cleanup_fclose_ FILE *in = fopen(path, "re");
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	int err;

	if (!in)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	err = read_all(in, path, &data, &size, diag);
	if (!err)
		err = snapshot_parse(data, size, path, &s, diag);
	if (err < 0)
		return err;
	/* Files of earlier versions lack these rows. */
	if (snapshot_pseudo(s) < 0)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", path);
	*ret = TAKE_PTR(s);
	return 0;
}
