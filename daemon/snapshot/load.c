// SPDX-License-Identifier: BSD-2-Clause
/*
 * Snapshots from files: see load.h.
 *
 * jansson reads values, but not the file as a whole: as one tree of values a snapshot would take
 * many times its size in memory. The outermost object and its long arrays are walked here, and
 * jansson reads one element of them at a time.
 */
#include "snapshot/load.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "base/metrics.h"
#include "snapshot/pseudo.h"

#define READ_CHUNK ((size_t)64 * 1024)

/* Elements as they come, before their number is known. */
struct list {
	void *data;
	size_t n, cap, size;
};

struct loader {
	const char *name;
	const char *data, *p, *end;
	struct snapshot *s;
	struct list targets, threads, funcs, nodes, metrics, coros;
	unsigned int sections; /* those that were there: bits, by their number */
	const char *section;   /* the one at hand, or NULL */
	size_t element;
	int err; /* the first error; what follows does nothing */
	struct diag *diag;
};

static void loader_deinit(struct loader *l)
{
	free(l->targets.data);
	free(l->threads.data);
	free(l->funcs.data);
	free(l->nodes.data);
	free(l->metrics.data);
	free(l->coros.data);
}

/* ---- errors ---- */

__attribute__((format(printf, 2, 3))) static int damaged(struct loader *l, const char *fmt, ...)
{
	char what[160], where[64] = "";
	va_list ap;

	if (l->err)
		return l->err;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (l->section)
		snprintf(where, sizeof(where), ", element %zu of %s", l->element, l->section);
	l->err = diag_set(l->diag, -EBADMSG, PYP_EXIT_FAILURE, "it is damaged or was cut off",
			  "cannot read '%s' (at byte %zu%s): %s", l->name, (size_t)(l->p - l->data),
			  where, what);
	return l->err;
}

static int no_memory(struct loader *l)
{
	if (!l->err)
		l->err = diag_errno(l->diag, ENOMEM, "cannot read '%s'", l->name);
	return l->err;
}

static int not_ours(struct loader *l)
{
	if (!l->err)
		l->err = diag_set(l->diag, -EINVAL, PYP_EXIT_USAGE,
				  "`pyprofctl snapshot -o FILE.json` saves one",
				  "'%s' is not a saved snapshot", l->name);
	return l->err;
}

/* ---- values ---- */

static void skip_blanks(struct loader *l)
{
	while (l->p < l->end && strchr(" \t\r\n", *l->p) && *l->p)
		l->p++;
}

/* The next character that is no blank; 0 at the end. */
static char peek(struct loader *l)
{
	skip_blanks(l);
	return l->p < l->end ? *l->p : '\0';
}

static bool accept(struct loader *l, char c)
{
	if (peek(l) != c)
		return false;
	l->p++;
	return true;
}

/* A new reference, or NULL after an error. */
static json_t *value(struct loader *l)
{
	json_error_t error;
	json_t *ret;

	if (l->err)
		return NULL;
	skip_blanks(l);
	ret = json_loadb(l->p, (size_t)(l->end - l->p),
			 JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	if (!ret) {
		damaged(l, "%s", error.text);
		return NULL;
	}
	l->p += error.position;
	return ret;
}

static json_t *member(struct loader *l, const json_t *object, const char *key)
{
	json_t *ret = json_object_get(object, key);

	if (!ret)
		damaged(l, "there is no \"%s\"", key);
	return ret;
}

static uint64_t unsigned_of(struct loader *l, const json_t *v, const char *key, uint64_t max)
{
	json_int_t n = json_integer_value(v);

	if (!v)
		return 0;
	if (json_is_integer(v) && n >= 0 && (uint64_t)n <= max)
		return (uint64_t)n;
	damaged(l, "\"%s\" is not a number from 0 to %" PRIu64, key, max);
	return 0;
}

static uint64_t get_u64(struct loader *l, const json_t *object, const char *key)
{
	return unsigned_of(l, member(l, object, key), key, INT64_MAX);
}

static uint32_t get_u32(struct loader *l, const json_t *object, const char *key)
{
	return (uint32_t)unsigned_of(l, member(l, object, key), key, UINT32_MAX - 1);
}

/* Figures that only say how it went; files of other versions may not have them all. */
static uint64_t get_count(struct loader *l, const json_t *object, const char *key)
{
	return unsigned_of(l, json_object_get(object, key), key, INT64_MAX);
}

static uint32_t get_index(struct loader *l, const json_t *object, const char *key)
{
	const json_t *v = member(l, object, key);

	if (json_is_null(v))
		return SNAPSHOT_NONE;
	return (uint32_t)unsigned_of(l, v, key, UINT32_MAX - 1);
}

static bool bool_of(struct loader *l, const json_t *v, const char *key)
{
	if (v && !json_is_boolean(v))
		damaged(l, "\"%s\" is neither true nor false", key);
	return json_is_true(v);
}

static bool get_bool(struct loader *l, const json_t *object, const char *key)
{
	return bool_of(l, member(l, object, key), key);
}

static const char *string_of(struct loader *l, const json_t *v, const char *key)
{
	const char *ret;

	if (!v || json_is_null(v))
		return NULL;
	if (!json_is_string(v)) {
		damaged(l, "\"%s\" is not a string", key);
		return NULL;
	}
	ret = snapshot_strn(l->s, json_string_value(v), json_string_length(v));
	if (!ret)
		no_memory(l);
	return ret;
}

static const char *get_string(struct loader *l, const json_t *object, const char *key)
{
	return string_of(l, member(l, object, key), key);
}

/* Said for people; files of other versions may not have it. */
static const char *get_remark(struct loader *l, const json_t *object, const char *key)
{
	return string_of(l, json_object_get(object, key), key);
}

/* {"cpu": …, "wall": …}; null leaves what is there. */
static void get_clocks(struct loader *l, const json_t *object, const char *key,
		       uint64_t ns[SNAPSHOT_CLOCKS])
{
	const json_t *v = member(l, object, key);

	if (!v || json_is_null(v))
		return;
	ns[SNAPSHOT_CPU] = get_u64(l, v, "cpu");
	ns[SNAPSHOT_WALL] = get_u64(l, v, "wall");
}

/* null: it is not known. */
static uint64_t get_known(struct loader *l, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? SNAPSHOT_MIN_UNKNOWN
							  : get_u64(l, object, key);
}

/* null: there is none yet. */
static void get_extreme(struct loader *l, const json_t *object, const char *key,
			uint64_t ns[SNAPSHOT_CLOCKS])
{
	const json_t *v = member(l, object, key);

	if (!v || json_is_null(v))
		return;
	ns[SNAPSHOT_CPU] = get_known(l, v, "cpu");
	ns[SNAPSHOT_WALL] = get_known(l, v, "wall");
}

/* ---- elements ---- */

/* A new, zeroed element at the end; NULL: out of memory. */
static void *append(struct loader *l, struct list *list)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		void *data = reallocarray(list->data, cap, list->size);

		if (!data) {
			no_memory(l);
			return NULL;
		}
		list->data = data;
		list->cap = cap;
	}
	return memset((char *)list->data + list->n++ * list->size, 0, list->size);
}

static void read_counters(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	static const char *const names[PYP_CNT_MAX] = {
#define PYP_X(name, text) [PYP_CNT_##name] = #name,
		PYP_COUNTERS(PYP_X)
#undef PYP_X
	};

	for (int i = 0; i < PYP_CNT_MAX; i++)
		t->counters[i] = get_count(l, v, names[i]);
}

static void read_quality(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	t->events = get_count(l, v, "events");
	t->unmatched = get_count(l, v, "unmatched");
	t->unseen = get_count(l, v, "unseen");
	t->unstarted = get_count(l, v, "unstarted");
	t->stack_switches = get_count(l, v, "stack_switches");
	t->resyncs = get_count(l, v, "resyncs");
	t->truncated = get_count(l, v, "truncated");
	t->decode_errors = get_count(l, v, "decode_errors");
	t->missed_switches = get_count(l, v, "missed_switches");
	/* Older files do not say. */
	t->misses_calls = json_is_true(json_object_get(v, "misses_calls"));
	t->forgotten = get_count(l, v, "forgotten_coroutines");
	read_counters(l, member(l, v, "counters"), t);
}

static void read_hit(struct loader *l, const json_t *v, const char *key, struct cost *c,
		     enum cost_kind k)
{
	const json_t *hit = member(l, v, key);

	c->before[k] = get_u32(l, hit, "before");
	c->after[k] = get_u32(l, hit, "after");
}

/* Files from before it was measured do not have it. */
static void read_overhead(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *hits = json_object_get(v, "hit_ns");

	if (!json_is_object(v))
		return;
	if (json_is_object(hits)) {
		t->cost.known = true;
		read_hit(l, hits, "call", &t->cost, COST_ENTER);
		read_hit(l, hits, "return", &t->cost, COST_LEAVE);
		read_hit(l, hits, "yield", &t->cost, COST_YIELD);
		if (json_object_get(v, "drag_ns"))
			t->cost.drag = get_u32(l, v, "drag_ns");
	}
	t->cost_scale = json_number_value(json_object_get(v, "scale"));
	if (t->cost_scale < 0)
		t->cost_scale = 0;
	t->corrected = get_bool(l, v, "subtracted");
	t->subtracted[SNAPSHOT_CPU] = get_u64(l, v, "subtracted_cpu_ns");
	t->subtracted[SNAPSHOT_WALL] = get_u64(l, v, "subtracted_wall_ns");
	t->clamped = get_count(l, v, "clamped");
}

/* Each is there only where it says something. */
static void read_family(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *children = json_object_get(v, "children");

	if (json_object_get(v, "folded"))
		t->folded = get_u32(l, v, "folded");
	if (json_object_get(v, "forked_from"))
		t->parent = get_u32(l, v, "forked_from");
	if (json_object_get(v, "fork_gap_ns"))
		t->fork_gap_ns = get_u64(l, v, "fork_gap_ns");
	if (json_object_get(v, "execs")) {
		t->execs = get_u32(l, v, "execs");
		t->exec_gap_ns = get_u64(l, v, "exec_gap_ns");
	}
	t->follows = json_is_object(children);
	if (!t->follows)
		return;
	t->children.followed = get_count(l, children, "followed");
	t->children.over_limit = get_count(l, children, "over_limit");
	t->children.ended_first = get_count(l, children, "ended_first");
	t->children.failed = get_count(l, children, "failed");
}

/* Version 1 knows of no modes: everything was traced. */
static void read_mode(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *mode = json_object_get(v, "mode"), *estimate = json_object_get(v, "estimate");
	int number = json_is_string(mode) ? mode_parse(json_string_value(mode)) : MODE_TRACE;

	if (number < 0 || (mode && !json_is_string(mode))) {
		damaged(l, "\"mode\" is none");
		return;
	}
	t->mode = (enum mode)number;
	if (t->mode != MODE_SAMPLE)
		return;
	if (!json_is_object(estimate)) {
		damaged(l, "there is no \"estimate\"");
		return;
	}
	t->estimate.rate = get_u32(l, estimate, "rate_hz");
	t->estimate.period_ns = get_u64(l, estimate, "period_ns");
	t->estimate.samples = get_u64(l, estimate, "samples");
}

/* Only where it was watched in windows. */
static void read_windows(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	struct snapshot_windows *w = &t->windows;

	if (!json_is_object(v))
		return;
	w->sampled = get_bool(l, v, "sampled");
	w->max_overhead = get_u32(l, v, "max_overhead_percent");
	w->n = get_u64(l, v, "count");
	w->span_ns = get_u64(l, v, "span_ns");
	w->seen_cpu_ns = get_u64(l, v, "seen_cpu_ns");
	w->all_cpu_ns = get_u64(l, v, "all_cpu_ns");
	w->samples = get_count(l, v, "samples");
	/* Files of other versions may not have these. */
	w->samples_factor = json_real_value(json_object_get(v, "samples_factor"));
	w->unsampled = get_remark(l, v, "unsampled");
}

static void read_target(struct loader *l, const json_t *v)
{
	struct snapshot_target *t = append(l, &l->targets);
	const json_t *python = member(l, v, "python");

	if (!t)
		return;
	t->pid = get_u32(l, v, "pid");
	t->cmdline = get_string(l, v, "cmdline");
	t->exe = get_string(l, v, "exe");
	t->python_version = get_string(l, python, "version");
	t->python_file = get_string(l, python, "file");
	t->build_id = get_string(l, python, "build_id");
	t->mechanism = get_remark(l, v, "mechanism");
	t->self_test = get_remark(l, v, "self_test");
	t->warnings = get_remark(l, v, "warnings");
	read_mode(l, v, t);
	t->alive = get_bool(l, v, "alive");
	t->tracing = get_bool(l, v, "tracing");
	t->start_ns = get_u64(l, v, "start_ns");
	t->end_ns = get_u64(l, v, "end_ns");
	t->start_unix_ns = get_u64(l, v, "start_unix_ns");
	t->end_unix_ns = get_u64(l, v, "end_unix_ns");
	t->traced_ns = get_u64(l, v, "traced_ns");
	read_family(l, v, t);
	read_quality(l, v, t);
	read_overhead(l, json_object_get(v, "overhead"), t);
	read_windows(l, json_object_get(v, "windows"), t);
}

static void read_thread(struct loader *l, const json_t *v)
{
	struct snapshot_thread *t = append(l, &l->threads);

	if (!t)
		return;
	t->pid = get_u32(l, v, "pid");
	t->tid = get_u32(l, v, "tid");
	t->name = get_string(l, v, "name");
	t->alive = get_bool(l, v, "alive");
	t->start_ns = get_u64(l, v, "start_ns");
	t->end_ns = get_u64(l, v, "end_ns");
	get_clocks(l, v, "total", t->total);
	t->folded = get_count(l, v, "folded");
	t->entry = t->folded ? get_remark(l, v, "entry") : NULL;
	t->root = SNAPSHOT_NONE;
}

static double read_variance(struct loader *l, const json_t *v, const char *key)
{
	const json_t *error = member(l, v, key);
	double n;

	if (!error || json_is_null(error))
		return -1;
	n = (double)unsigned_of(l, error, key, INT64_MAX);
	return n * n;
}

/* Only where figures are estimates. */
static void read_errors(struct loader *l, const json_t *v, struct snapshot_func *f)
{
	const json_t *tot, *cum;

	if (!json_is_object(v))
		return;
	tot = member(l, v, "tottime");
	cum = member(l, v, "cumtime");
	f->variance[SNAPSHOT_CALLS] = read_variance(l, v, "ncalls");
	f->variance[SNAPSHOT_TOT_CPU] = read_variance(l, tot, "cpu");
	f->variance[SNAPSHOT_TOT_WALL] = read_variance(l, tot, "wall");
	f->variance[SNAPSHOT_CUM_CPU] = read_variance(l, cum, "cpu");
	f->variance[SNAPSHOT_CUM_WALL] = read_variance(l, cum, "wall");
}

static void read_func(struct loader *l, const json_t *v)
{
	struct snapshot_func *f = append(l, &l->funcs);
	const json_t *line = member(l, v, "line");
	json_int_t n = json_integer_value(line);

	if (!f)
		return;
	if (!json_is_integer(line) || n < INT32_MIN || n > INT32_MAX)
		damaged(l, "\"line\" is not a line number");
	f->firstlineno = (int32_t)n;
	f->filename = get_string(l, v, "file");
	f->name = get_string(l, v, "name");
	f->qualname = get_string(l, v, "qualname");
	f->variant = (uint32_t)unsigned_of(l, json_object_get(v, "variant"), "variant", INT32_MAX);
	f->pseudo = get_bool(l, v, "pseudo");
	read_errors(l, json_object_get(v, "error"), f);
	if (!f->filename)
		f->filename = "";
	if (!f->name)
		f->name = "";
}

/* The node's own share of the resource counters; files without any have none. */
static void read_metrics(struct loader *l, const json_t *v)
{
	uint64_t *own = append(l, &l->metrics);

	if (!own)
		return;
	for (int k = 0; k < PYP_METRICS; k++) {
		const char *name = metrics_name((enum pyp_metric)k);
		const json_t *n = json_object_get(v, name);

		if (n)
			own[k] = unsigned_of(l, n, name, INT64_MAX);
	}
}

static void set_metrics(struct loader *l, const json_t *v)
{
	const json_t *name;
	size_t i;

	json_array_foreach(v, i, name) for (int k = 0; k < PYP_METRICS;
					    k++) if (json_is_string(name) &&
						     strcmp(json_string_value(name),
							    metrics_name((enum pyp_metric)k)) == 0)
		l->s->metrics |= 1u << k;
}

static void read_node(struct loader *l, const json_t *v)
{
	struct snapshot_node *n = append(l, &l->nodes);

	if (!n)
		return;
	n->parent = get_index(l, v, "parent");
	n->func = get_index(l, v, "func");
	n->thread = get_u32(l, v, "thread");
	n->calls = get_u64(l, v, "calls");
	n->inflight = get_u32(l, v, "inflight");
	get_clocks(l, v, "self", n->self);
	n->min[SNAPSHOT_CPU] = n->min[SNAPSHOT_WALL] = UINT64_MAX;
	get_extreme(l, v, "min", n->min);
	get_extreme(l, v, "max", n->max);
	if (l->s->metrics)
		read_metrics(l, json_object_get(v, "metrics"));
}

static enum snapshot_coro_kind get_kind(struct loader *l, const json_t *v)
{
	const char *name = json_string_value(json_object_get(v, "kind"));

	for (int i = 0; name && i < SNAPSHOT_CORO_KINDS; i++)
		if (strcmp(name, snapshot_coro_kinds[i]) == 0)
			return (enum snapshot_coro_kind)i;
	damaged(l, "\"kind\" is none of a coroutine");
	return SNAPSHOT_GENERATOR;
}

static void read_coro(struct loader *l, const json_t *v)
{
	struct snapshot_coro *c = append(l, &l->coros);

	if (!c)
		return;
	c->pid = get_u32(l, v, "pid");
	c->func = get_u32(l, v, "func");
	c->kind = get_kind(l, v);
	c->ends_hidden = get_bool(l, v, "ends_hidden");
	c->started = get_u64(l, v, "started");
	c->partial = get_u64(l, v, "partial");
	c->ended = get_u64(l, v, "ended");
	c->steps = get_u64(l, v, "steps");
	get_clocks(l, v, "running", c->running);
	c->suspended = get_u64(l, v, "suspended");
	c->lifetimes = get_u64(l, v, "lifetimes");
	c->total = get_u64(l, v, "total");
	c->min = get_known(l, v, "min");
	c->max = get_known(l, v, "max");
}

/* ---- the whole ---- */

/* Files of earlier versions have none of those from OPTIONAL on. */
enum { TARGETS, THREADS, FUNCTIONS, NODES, OPTIONAL, COROUTINES = OPTIONAL, SECTIONS };

static const struct section {
	const char *name;
	void (*read)(struct loader *l, const json_t *v);
} sections[SECTIONS] = {
	[TARGETS] = {"targets", read_target},	  [THREADS] = {"threads", read_thread},
	[FUNCTIONS] = {"functions", read_func},	  [NODES] = {"nodes", read_node},
	[COROUTINES] = {"coroutines", read_coro},
};

/* An array whose elements are objects, one at a time. */
static int read_section(struct loader *l, unsigned int number)
{
	const struct section *section = &sections[number];

	if (l->sections & 1u << number)
		return damaged(l, "\"%s\" is there twice", section->name);
	l->sections |= 1u << number;
	if (!accept(l, '['))
		return damaged(l, "\"%s\" is not an array", section->name);
	l->section = section->name;
	l->element = 0;
	for (bool more = peek(l) != ']'; more && !l->err; more = !l->err && accept(l, ',')) {
		json_t *v = value(l);

		if (v)
			section->read(l, v);
		json_decref(v);
		l->element++;
	}
	if (!l->err && !accept(l, ']'))
		damaged(l, "the array does not end");
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
		damaged(l, "\"clock\" is neither cpu nor wall");
}

/* What has no place in a snapshot is derived, or from a later version. */
static int read_member(struct loader *l, const char *key)
{
	json_t *v;

	for (unsigned int i = 0; i < SECTIONS; i++)
		if (strcmp(key, sections[i].name) == 0)
			return read_section(l, i);
	v = value(l);
	if (!v)
		return l->err;
	if (strcmp(key, "program") == 0)
		l->s->program = string_of(l, v, key);
	else if (strcmp(key, "host") == 0)
		l->s->host = string_of(l, v, key);
	else if (strcmp(key, "kernel") == 0)
		l->s->kernel = string_of(l, v, key);
	else if (strcmp(key, "taken_unix_ns") == 0)
		l->s->taken_unix_ns = unsigned_of(l, v, key, INT64_MAX);
	else if (strcmp(key, "clock") == 0)
		set_clock(l, v);
	else if (strcmp(key, "metrics") == 0)
		set_metrics(l, v);
	else if (strcmp(key, "only_my_code") == 0)
		l->s->folded = bool_of(l, v, key);
	else if (strcmp(key, "strip_dirs") == 0)
		l->s->stripped = bool_of(l, v, key);
	json_decref(v);
	return l->err;
}

/* "key": with what is before it; a new reference, or NULL after an error. */
static json_t *read_key(struct loader *l)
{
	json_t *key = value(l);

	if (json_is_string(key) && accept(l, ':'))
		return key;
	json_decref(key);
	damaged(l, "a name and a colon are missing");
	return NULL;
}

/*
 * The first two members are always "format" and "version", so that a file of something else, or of
 * a later version, is known as such before anything else about it can look wrong.
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

		skip_blanks(l);
		if ((size_t)(l->end - l->p) < n || memcmp(l->p, words[i], n) != 0)
			return not_ours(l);
		l->p += n;
	}
	v = value(l);
	version = unsigned_of(l, v, "version", INT64_MAX);
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
	while (accept(l, ',')) {
		json_t *key = read_key(l);

		if (key)
			read_member(l, json_string_value(key));
		json_decref(key);
		if (l->err)
			return l->err;
	}
	if (!accept(l, '}') || peek(l) || l->p != l->end)
		return damaged(l, "the object does not end, or something follows it");
	for (unsigned int i = 0; i < OPTIONAL; i++)
		if (!(l->sections & 1u << i))
			return damaged(l, "there are no \"%s\"", sections[i].name);
	return 0;
}

static void *settle(struct loader *l, const struct list *list, uint32_t *ret_n)
{
	void *ret = snapshot_alloc(l->s, list->n, list->size);

	if (!ret)
		no_memory(l);
	else if (list->n)
		memcpy(ret, list->data, list->n * list->size);
	*ret_n = (uint32_t)list->n;
	return ret;
}

/* Fewer than 2^32 elements fit a file. A thread's root is the node that says so. */
static int assemble(struct loader *l)
{
	struct snapshot *s = l->s;
	uint32_t nmetrics;

	s->targets = settle(l, &l->targets, &s->ntargets);
	s->threads = settle(l, &l->threads, &s->nthreads);
	s->funcs = settle(l, &l->funcs, &s->nfuncs);
	s->nodes = settle(l, &l->nodes, &s->nnodes);
	/* Were they said to be there behind some of the nodes, those had none. */
	if (s->metrics && l->metrics.n == l->nodes.n)
		s->node_metrics = settle(l, &l->metrics, &nmetrics);
	else
		s->metrics = 0;
	s->coros = settle(l, &l->coros, &s->ncoros);
	for (uint32_t i = 0; i < s->nnodes && !l->err; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->parent != SNAPSHOT_NONE)
			continue;
		if (n->thread >= s->nthreads || s->threads[n->thread].root != SNAPSHOT_NONE)
			return damaged(l, "node %" PRIu32 " is the root of no thread", i);
		s->threads[n->thread].root = i;
	}
	if (!l->err && !snapshot_valid(s))
		damaged(l, "its parts do not fit together");
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
		.metrics.size = sizeof(uint64_t[PYP_METRICS]),
		.coros.size = sizeof(struct snapshot_coro),
		.diag = diag,
	};

	if (!s)
		return no_memory(&l);
	if (read_head(&l) < 0 || read_members(&l) < 0 || assemble(&l) < 0)
		return l.err;
	*ret = TAKE_PTR(s);
	return 0;
}

/* All of a stream, which need not be a regular file. */
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
	/* Files of earlier versions do not have them. */
	if (snapshot_pseudo(s) < 0)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", path);
	*ret = TAKE_PTR(s);
	return 0;
}
