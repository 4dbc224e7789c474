// SPDX-License-Identifier: BSD-2-Clause
/* A snapshot from answers: see answer.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/parse.h"
#include "clickhouse/answer.h"
#include "clickhouse/facts.h"
#include "clickhouse/ids.h"
#include "clickhouse/rows.h"
#include "snapshot/lines.h"
#include "snapshot/pseudo.h"

#define CONTEXTS_MAX (UINT32_C(1) << 24)
#define DEPTH_MAX    UINT32_C(100000)
#define NAME_SIZE    256
#define UNKNOWN	     "(unknown)"

struct stack {
	struct stack_id id;
	const uint8_t *path; /* `depth` ids of functions, in the answer */
	uint32_t depth;
};

struct answer {
	const struct answer_summary *summary;
	struct snapshot *s;
	struct snapshot_target *target; /* the only one */
	struct map functions;		/* id → function */
	struct map stacks;		/* first bits of the id → stack */
	struct map children;		/* (parent, function) → node */
	struct stack *list;
	uint32_t nlist, cap;
	uint32_t ncolumns; /* number of nodes with room in the columns */
	uint32_t nunknown; /* function UNKNOWN; SNAPSHOT_NONE: not there yet */
	uint64_t unknown;
};

static int damaged(struct diag *diag)
{
	return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
			"check that the address is ClickHouse's HTTP interface",
			"the database's answer is damaged");
}

static int result(int err, struct diag *diag)
{
	if (err == -EBADMSG)
		return damaged(diag);
	if (err == -E2BIG)
		return diag_set(diag, -E2BIG, PYP_EXIT_FAILURE,
				"select less: a shorter span, or --where",
				"too many calling contexts");
	return err < 0 ? diag_errno(diag, -err, "cannot read the answer") : 0;
}

/* ---- the target and the thread that stand for all ---- */

static const char *common(struct answer *a, const struct answer_range *r, uint64_t n,
			  const char *plural)
{
	char text[NAME_SIZE];

	if (strcmp(r->min, r->max) == 0)
		return snapshot_str(a->s, r->min);
	if (!n)
		return snapshot_str(a->s, "several");
	snprintf(text, sizeof(text), "%" PRIu64 " %s", n, plural);
	return snapshot_str(a->s, text);
}

static const char *command_text(struct answer *a)
{
	const struct answer_summary *s = a->summary;
	char text[2 * ANSWER_TEXT_MAX];
	bool one = strcmp(s->service.min, s->service.max) == 0;

	snprintf(text, sizeof(text), "%" PRIu64 " process%s of %s %s, %" PRIu64 " profiles",
		 s->processes, s->processes == 1 ? "" : "es", one ? "service" : "several services",
		 one ? s->service.min : "", s->intervals);
	return snapshot_str(a->s, text);
}

static int add_target(struct answer *a)
{
	const struct answer_summary *s = a->summary;
	struct snapshot_target *t = snapshot_alloc(a->s, 1, sizeof(*t));
	int mode = mode_parse(s->mode.min);

	if (!t)
		return -ENOMEM;
	if (mode < 0)
		return -EBADMSG;
	a->s->targets = a->target = t;
	a->s->ntargets = 1;
	t->mode = (enum mode)mode;
	t->start_unix_ns = s->start_ns;
	t->end_unix_ns = s->end_ns;
	t->end_ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;
	t->cmdline = command_text(a);
	t->exe = t->python_file = t->build_id = "";
	t->python_version = common(a, &s->python, 0, NULL);
	return t->cmdline && t->python_version ? 0 : -ENOMEM;
}

static int add_thread(struct answer *a)
{
	struct snapshot *s = a->s;

	s->threads = snapshot_alloc(s, 1, sizeof(*s->threads));
	s->nodes = snapshot_grow(s, &s->adding.nodes, NULL, 0, 1, sizeof(*s->nodes));
	if (!s->threads || !s->nodes)
		return -ENOMEM;
	s->threads[0].name = "all threads";
	s->threads[0].end_ns = a->target->end_ns;
	s->nthreads = s->nnodes = 1;
	s->nodes[0] = (struct snapshot_node){
		.parent = SNAPSHOT_NONE, .func = SNAPSHOT_NONE, .min = {UINT64_MAX, UINT64_MAX}};
	return 0;
}

static int add_head(struct answer *a)
{
	const struct answer_summary *of = a->summary;
	struct snapshot *s = a->s;

	s->host = common(a, &of->host, of->hosts, "hosts");
	s->kernel = common(a, &of->kernel, 0, NULL);
	s->program = common(a, &of->program, 0, NULL);
	s->taken_unix_ns = of->end_ns;
	s->clock = strcmp(of->clock.min, "wall") == 0 ? SNAPSHOT_WALL : SNAPSHOT_CPU;
	s->folded = strstr(of->options.min, "only-my-code") != NULL;
	s->stripped = strstr(of->options.min, "strip-dirs") != NULL;
	if (strstr(of->options.min, "builtins-of"))
		s->builtins_of = "unknown";
	if (!s->host || !s->kernel || !s->program)
		return -ENOMEM;
	return 0;
}

int answer_new(const struct answer_summary *summary, struct answer **ret, struct diag *diag)
{
	_cleanup_(answer_freep) struct answer *a = calloc(1, sizeof(*a));
	int err = -ENOMEM;

	if (!a)
		return result(err, diag);
	a->summary = summary;
	a->nunknown = SNAPSHOT_NONE;
	a->s = snapshot_new();
	if (a->s)
		err = add_head(a);
	if (!err)
		err = add_target(a);
	if (!err)
		err = add_thread(a);
	if (err < 0)
		return result(err, diag);
	*ret = TAKE_PTR(a);
	return 0;
}

void answer_free(struct answer *a)
{
	if (!a)
		return;
	snapshot_free(a->s);
	map_deinit(&a->functions);
	map_deinit(&a->stacks);
	map_deinit(&a->children);
	free(a->list);
	free(a);
}

/* ---- functions ---- */

static struct snapshot_func *new_function(struct answer *a)
{
	struct snapshot *s = a->s;

	s->funcs = snapshot_grow(s, &s->adding.funcs, s->funcs, s->nfuncs, 1, sizeof(*s->funcs));
	if (!s->funcs || s->nfuncs == CONTEXTS_MAX)
		return NULL;
	return &s->funcs[s->nfuncs++];
}

static const char *read_string(struct answer *a, struct cells *c)
{
	size_t n;
	const char *str = cells_str(c, &n);

	return str ? snapshot_strn(a->s, str, strnlen(str, n)) : NULL;
}

static int read_function(struct answer *a, struct cells *c)
{
	uint64_t id = cells_u64(c);
	struct snapshot_func *f = new_function(a);
	bool qualified;

	if (!f)
		return -ENOMEM;
	f->filename = read_string(a, c);
	f->firstlineno = (int32_t)cells_u32(c);
	f->name = read_string(a, c);
	f->qualname = read_string(a, c);
	qualified = cells_u8(c);
	f->variant = cells_u32(c);
	f->pseudo = cells_u8(c);
	if (c->err)
		return c->err;
	if (!f->filename || !f->name || !f->qualname)
		return -ENOMEM;
	if (!qualified)
		f->qualname = NULL;
	return map_put(&a->functions, id, (uint32_t)(f - a->s->funcs));
}

int answer_functions(struct answer *a, const void *data, size_t n, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	int err = 0;

	while (!err && cells_more(&c))
		err = read_function(a, &c);
	return result(err, diag);
}

/* ---- figures by name ---- */

struct figure {
	uint64_t sum, max;
	double variance;
};

/* Returns what follows the prefix; NULL: the name has another one. */
static const char *rest_of(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static int add_syscall(struct answer *a, const char *name, uint64_t ns, uint64_t count)
{
	struct snapshot_waits *w = &a->target->waits;
	struct snapshot_call *grown;
	uint32_t i = 0;

	while (i < w->nother && strcmp(w->other[i].name, name) != 0)
		i++;
	if (i == w->nother) {
		grown = snapshot_alloc(a->s, (size_t)w->nother + 1, sizeof(*grown));
		if (!grown || w->nother > 4096)
			return -ENOMEM;
		if (w->nother)
			memcpy(grown, w->other, w->nother * sizeof(*grown));
		grown[i].name = snapshot_str(a->s, name);
		if (!grown[i].name)
			return -ENOMEM;
		w->other = grown;
		w->nother++;
	}
	w->other[i].ns += ns;
	w->other[i].n += count;
	return 0;
}

/* A name that this version does not know is ignored. */
static int take_named(struct answer *a, const char *name, const struct figure *v)
{
	char buf[COLUMN_KEY_MAX];
	const char *rest;

	rest = rest_of(name, FACT_CALL_NS);
	if (rest)
		return add_syscall(a, rest, v->sum, 0);
	rest = rest_of(name, FACT_CALLS);
	if (rest)
		return add_syscall(a, rest, 0, v->sum);
	rest = rest_of(name, FACT_MEASURED);
	for (int c = 0; c < COLUMNS && rest; c++)
		if (strcmp(column_key(c, buf), rest) == 0)
			a->s->measured |= COLUMN_BIT(c);
	if (strcmp(name, FACT_RATE) == 0)
		a->target->estimate.rate = (uint32_t)v->max;
	if (strcmp(name, FACT_PERIOD) == 0)
		a->target->estimate.period_ns = v->max;
	if (strcmp(name, FACT_MAX_OVERHEAD) == 0)
		a->target->windows.max_overhead = (uint32_t)v->max;
	if (strcmp(name, FACT_TOTAL_CPU) == 0)
		a->s->threads[0].total[SNAPSHOT_CPU] = v->sum;
	if (strcmp(name, FACT_TOTAL_WALL) == 0)
		a->s->threads[0].total[SNAPSHOT_WALL] = v->sum;
	return 0;
}

/* The sum of a flag is the number of targets that have it. */
static int take_fact(struct answer *a, const char *name, const struct figure *v)
{
	char buf[FACT_NAME_MAX];

	for (unsigned int i = 0; i < facts_count(); i++)
		if (strcmp(fact_name(i, buf), name) == 0) {
			*fact_at(a->target, i) = v->sum;
			return 0;
		}
	for (const struct fact_flag *flag = fact_flags; flag->name; flag++)
		if (strcmp(flag->name, name) == 0) {
			*fact_flag_at(a->target, flag) = !flag->of_all ||
							 v->sum >= a->summary->intervals;
			return 0;
		}
	return take_named(a, name, v);
}

static int take_line(struct answer *a, struct snapshot_func *f, const char *number,
		     const struct figure *v, bool samples)
{
	struct snapshot_line line = {.line = 0};
	uint64_t n;

	if (parse_u64(number, 0, INT32_MAX, &n) < 0)
		return 0;
	line.line = (int32_t)n;
	if (samples) {
		line.samples = v->sum;
	} else {
		line.self_ns = v->sum;
		line.variance = v->variance;
	}
	return snapshot_add_lines(a->s, f, &line, 1);
}

static int take_duration(struct answer *a, struct snapshot_func *f, int clock, const char *bound,
			 const struct figure *v)
{
	struct histogram_sum sum = {.count = v->sum};
	uint64_t upper;

	if (parse_u64(bound, 0, UINT64_MAX, &upper) < 0)
		return 0;
	sum.n[histogram_bucket(upper)] = v->sum;
	return snapshot_add_durations(a->s, f, clock, &sum, 0);
}

static int take_of_function(struct answer *a, struct snapshot_func *f, const char *name,
			    const struct figure *v)
{
	const char *rest;

	for (int i = 0; i < SNAPSHOT_FIGURES; i++)
		if (strcmp(name, fact_variances[i]) == 0) {
			f->variance[i] = v->sum ? -1 : v->variance;
			return 0;
		}
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++) {
		rest = rest_of(name, fact_durations[k]);
		if (rest)
			return take_duration(a, f, k, rest, v);
		if (strcmp(name, fact_longest[k]) != 0)
			continue;
		if (!f->durations)
			f->durations = snapshot_alloc(a->s, SNAPSHOT_CLOCKS, sizeof(*f->durations));
		if (!f->durations)
			return -ENOMEM;
		f->durations[k].max = v->max;
		return 0;
	}
	rest = rest_of(name, FACT_LINE_NS);
	if (rest)
		return take_line(a, f, rest, v, false);
	rest = rest_of(name, FACT_LINE_SAMPLES);
	return rest ? take_line(a, f, rest, v, true) : 0;
}

static int read_figure(struct answer *a, struct cells *c)
{
	uint64_t function = cells_u64(c);
	size_t n;
	const char *str = cells_str(c, &n);
	char name[NAME_SIZE];
	struct figure v;
	uint32_t at;

	v.sum = cells_u64(c);
	v.max = cells_u64(c);
	v.variance = cells_double(c);
	if (c->err)
		return c->err;
	if (n >= sizeof(name) || !(v.variance >= 0))
		return -EBADMSG;
	memcpy(name, str, n);
	name[n] = '\0';
	if (!function)
		return take_fact(a, name, &v);
	return map_get(&a->functions, function, &at)
		       ? take_of_function(a, &a->s->funcs[at], name, &v)
		       : 0;
}

int answer_figures(struct answer *a, const void *data, size_t n, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	int err = 0;

	while (!err && cells_more(&c))
		err = read_figure(a, &c);
	return result(err, diag);
}

/* ---- stacks ---- */

/* Copies the path: the answer does not outlive the call. */
static int read_stack(struct answer *a, struct cells *c)
{
	const uint8_t *id = cells_bytes(c, STACK_ID_BYTES), *path;
	uint64_t depth = cells_varint(c);
	struct stack *st;

	if (c->err || depth > DEPTH_MAX)
		return -EBADMSG;
	path = cells_bytes(c, (size_t)depth * sizeof(uint64_t));
	if (!path)
		return -EBADMSG;
	if (a->nlist == a->cap) {
		a->cap = a->cap ? a->cap * 2 : 1024;
		st = a->cap > CONTEXTS_MAX ? NULL : reallocarray(a->list, a->cap, sizeof(*st));
		if (!st)
			return -ENOMEM;
		a->list = st;
	}
	st = &a->list[a->nlist];
	memcpy(st->id.bytes, id, STACK_ID_BYTES);
	st->depth = (uint32_t)depth;
	st->path = (const uint8_t *)snapshot_strn(a->s, (const char *)path, depth * 8);
	return st->path ? map_put(&a->stacks, stack_id_key(&st->id), a->nlist++) : -ENOMEM;
}

int answer_stacks(struct answer *a, const void *data, size_t n, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	int err = 0;

	while (!err && cells_more(&c))
		err = read_stack(a, &c);
	return result(err, diag);
}

static uint32_t unknown_function(struct answer *a)
{
	struct snapshot_func *f;

	if (a->nunknown != SNAPSHOT_NONE)
		return a->nunknown;
	f = new_function(a);
	if (!f)
		return SNAPSHOT_NONE;
	f->filename = SNAPSHOT_NATIVE_FILE;
	f->name = UNKNOWN;
	f->pseudo = true;
	a->nunknown = (uint32_t)(f - a->s->funcs);
	return a->nunknown;
}

/* The callee's node, a new one if there is none. */
static int child_of(struct answer *a, uint32_t parent, uint32_t func, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | func;
	struct snapshot *s = a->s;

	if (func == SNAPSHOT_NONE)
		return -ENOMEM;
	if (map_get(&a->children, key, ret))
		return 0;
	if (s->nnodes >= CONTEXTS_MAX)
		return -E2BIG;
	s->nodes = snapshot_grow(s, &s->adding.nodes, s->nodes, s->nnodes, 1, sizeof(*s->nodes));
	if (!s->nodes)
		return -ENOMEM;
	*ret = s->nnodes++;
	s->nodes[*ret] = (struct snapshot_node){
		.parent = parent, .func = func, .min = {UINT64_MAX, UINT64_MAX}};
	return map_put(&a->children, key, *ret);
}

static const struct stack *find_stack(const struct answer *a, const struct stack_id *id)
{
	uint32_t at;

	if (!map_get(&a->stacks, stack_id_key(id), &at) ||
	    memcmp(a->list[at].id.bytes, id->bytes, STACK_ID_BYTES) != 0)
		return NULL;
	return &a->list[at];
}

static int node_of(struct answer *a, const struct stack_id *id, uint32_t *ret)
{
	const struct stack *st = find_stack(a, id);
	struct cells path;
	int err = 0;

	*ret = 0;
	if (memcmp(id->bytes, stack_id_root.bytes, STACK_ID_BYTES) == 0)
		return 0;
	if (!st) {
		a->unknown++;
		return child_of(a, 0, unknown_function(a), ret);
	}
	path = (struct cells){.p = st->path, .end = st->path + (size_t)st->depth * 8};
	while (!err && cells_more(&path)) {
		uint32_t func;

		if (!map_get(&a->functions, cells_u64(&path), &func))
			func = unknown_function(a);
		err = child_of(a, *ret, func, ret);
	}
	return err;
}

/* ---- samples ---- */

#define SAMPLE_BYTES (STACK_ID_BYTES + 3 * sizeof(uint64_t))

static int read_id(struct cells *c, struct stack_id *ret)
{
	const uint8_t *bytes = cells_bytes(c, STACK_ID_BYTES);

	if (!bytes)
		return -EBADMSG;
	memcpy(ret->bytes, bytes, STACK_ID_BYTES);
	return 0;
}

static int read_sample(struct answer *a, struct cells *c)
{
	struct snapshot_node *to;
	struct stack_id id;
	uint32_t node;
	int err = read_id(c, &id);

	if (!err)
		err = node_of(a, &id, &node);
	if (err)
		return err;
	to = &a->s->nodes[node];
	to->calls += cells_u64(c);
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++)
		to->self[k] += cells_u64(c);
	return c->err;
}

/* Afterwards all nodes are there, so that the columns can be allocated. */
int answer_samples(struct answer *a, const void *data, size_t n, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	int err = n % SAMPLE_BYTES ? -EBADMSG : 0;

	while (!err && cells_more(&c))
		err = read_sample(a, &c);
	if (!err)
		err = snapshot_reserve_columns(a->s, a->s->measured, a->s->nnodes);
	a->ncolumns = a->s->nnodes;
	return result(err, diag);
}

/* ---- details ---- */

struct detail_value {
	uint64_t sum, max, min;
};

static void take_detail(struct answer *a, uint32_t node, unsigned int detail,
			const struct detail_value *v)
{
	struct snapshot_node *n = &a->s->nodes[node];
	unsigned int column = detail - DETAIL_COLUMNS, clock = detail & 1;
	uint64_t sum;

	if (detail == DETAIL_YIELDS) {
		n->yields += v->sum;
	} else if (detail == DETAIL_INFLIGHT) {
		sum = n->inflight + v->sum;
		n->inflight = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	} else if (detail < DETAIL_MAX) {
		n->min[clock] = v->min < n->min[clock] ? v->min : n->min[clock];
	} else if (detail < DETAIL_COLUMNS) {
		n->max[clock] = v->max > n->max[clock] ? v->max : n->max[clock];
	} else if (a->s->measured & COLUMN_BIT(column)) {
		column_merge((int)column, &a->s->columns[column][node],
			     column_table[column].merge == COLUMN_SUM ? v->sum : v->max);
	}
}

/* A name that this version does not know is ignored. */
static bool find_detail(const char *name, size_t n, unsigned int *ret)
{
	char buf[DETAIL_NAME_MAX];
	const char *known;

	for (unsigned int i = 0; (known = detail_name(i, buf)); i++)
		if (strlen(known) == n && memcmp(known, name, n) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

/* A stack without a sample has no node yet, and no room in the columns. */
static int read_detail(struct answer *a, struct cells *c)
{
	uint64_t unknown = a->unknown; /* counted with the samples */
	struct detail_value v;
	struct stack_id id;
	const char *name;
	uint32_t node;
	unsigned int detail;
	size_t n;
	int err = read_id(c, &id);

	name = cells_str(c, &n);
	v.sum = cells_u64(c);
	v.max = cells_u64(c);
	v.min = cells_u64(c);
	if (err || c->err)
		return -EBADMSG;
	if (!find_detail(name, n, &detail))
		return 0;
	err = node_of(a, &id, &node);
	if (!err && node >= a->ncolumns)
		err = -EBADMSG;
	if (!err)
		take_detail(a, node, detail, &v);
	a->unknown = unknown;
	return err;
}

int answer_details(struct answer *a, const void *data, size_t n, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	int err = 0;

	while (!err && cells_more(&c))
		err = read_detail(a, &c);
	return result(err, diag);
}

int answer_finish(struct answer *a, struct snapshot **ret, uint64_t *ret_unknown, struct diag *diag)
{
	int err = snapshot_valid(a->s) ? snapshot_pseudo(a->s) : -EBADMSG;

	if (err < 0)
		return result(err, diag);
	*ret = TAKE_PTR(a->s);
	*ret_unknown = a->unknown;
	return 0;
}
