// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes timelines to files: see writer.h.
 *
 * Each thread has a stack of the frames that are open in the file, so that they can be closed
 * whatever records follow. A row is written only if the rows that close all open frames and the end
 * of the file still fit.
 */
#include "timeline/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "timeline/outcome.h"
#include "timeline/rows.h"
#include "timeline/wire.h"

#define TAIL_ROOM   (UINT64_C(64) << 10) /* reserved for the data after the last row ... */
#define TAIL_SOURCE UINT64_C(8192)	 /* ... and for each process in it */
#define THREADS_MAX (1u << 20)
#define FUNCS_MAX   (1u << 22)

#define COMMAND_MAX 512 /* limit of a process's name */

struct text_func {
	char *row, *caller; /* NULL: unknown */
	size_t nrow, ncaller;
};

struct text_source {
	uint32_t pid;
	struct text_func *funcs;
	uint32_t nfuncs, cap;
	struct map by_number; /* the daemon's function number → index in funcs */
};

struct open_frame {
	uint32_t func;
	uint32_t closing; /* bytes reserved for its end */
};

struct open_thread {
	uint32_t tid;
	uint16_t source;
	struct open_frame *v;
	uint32_t n, cap;
	uint64_t ts, cpu;
	char name[64];
};

struct timeline_writer {
	const struct timeline_format *format;
	FILE *out;
	uint64_t max, written, closing;
	char *pending; /* an incomplete record */
	size_t npending;
	char *line; /* buffer for rows */
	size_t line_size;
	struct text_source *sources;
	uint32_t nsources;
	struct open_thread *threads;
	uint32_t nthreads, threads_cap;
	struct map by_tid; /* source and tid → index in threads */
	struct timeline_writer_counts counts;
	struct outcome outcome;
	bool begun, ended, full, finished, any;
};

static const struct timeline_format *const known_formats[] = {&timeline_chrome, &timeline_csv,
							      NULL};

/* Formats ----------------------------------------------------------------------------------- */

static const struct timeline_format *find_format(const char *name)
{
	for (const struct timeline_format *const *f = known_formats; *f; f++)
		if (strcmp((*f)->name, name) == 0)
			return *f;
	return NULL;
}

bool timeline_format_known(const char *name)
{
	return find_format(name);
}

const char *timeline_format_of_file(const char *path)
{
	size_t n = strlen(path);

	for (const struct timeline_format *const *f = known_formats; *f; f++) {
		size_t ne = strlen((*f)->extension);

		if (n > ne && strcmp(path + n - ne, (*f)->extension) == 0)
			return (*f)->name;
	}
	return NULL;
}

/* Start and end ----------------------------------------------------------------------------- */

int timeline_writer_new(const struct timeline_writer_opts *opts, FILE *out,
			struct timeline_writer **ret, struct diag *diag)
{
	_cleanup_(timeline_writer_freep) struct timeline_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return diag_errno(diag, ENOMEM, "cannot write a timeline");
	w->format = find_format(opts->format);
	if (!w->format)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected chrome or csv",
				"unknown timeline format '%s'", opts->format);
	w->out = out;
	w->max = opts->max_bytes > TIMELINE_SIZE_MIN ? opts->max_bytes : TIMELINE_SIZE_MIN;
	w->format->head(out);
	*ret = TAKE_PTR(w);
	return 0;
}

static void free_source(struct text_source *s)
{
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		free(s->funcs[i].row);
		free(s->funcs[i].caller);
	}
	free(s->funcs);
	map_deinit(&s->by_number);
}

void timeline_writer_free(struct timeline_writer *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->nsources; i++)
		free_source(&w->sources[i]);
	for (uint32_t i = 0; i < w->nthreads; i++)
		free(w->threads[i].v);
	free(w->sources);
	free(w->threads);
	free(w->pending);
	free(w->line);
	map_deinit(&w->by_tid);
	free(w);
}

bool timeline_writer_ended(const struct timeline_writer *w)
{
	return w->ended;
}

bool timeline_writer_full(const struct timeline_writer *w)
{
	return w->full;
}

struct timeline_writer_counts timeline_writer_counts(const struct timeline_writer *w)
{
	struct timeline_writer_counts c = w->counts;

	c.older = w->outcome.older;
	c.beyond_size = w->outcome.beyond_size;
	c.refused = w->outcome.refused;
	return c;
}

const char *timeline_writer_trigger(const struct timeline_writer *w)
{
	return w->outcome.met ? w->outcome.what : NULL;
}

static int no_memory(struct diag *diag)
{
	return diag_errno(diag, ENOMEM, "cannot write the timeline");
}

static int bad_record(struct diag *diag)
{
	return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE, "check that this is pyprofd's socket",
			"the daemon sent an invalid timeline");
}

/* Names ------------------------------------------------------------------------------------- */

typedef int (*describe_fn)(FILE *out, const struct timeline_names *n);

static int describe(describe_fn fn, const struct timeline_names *n, char **ret, size_t *ret_n)
{
	FILE *f = open_memstream(ret, ret_n);
	int r;

	if (!f)
		return -ENOMEM;
	r = fn(f, n);
	return fclose(f) == 0 ? r : -ENOMEM;
}

/* Add a function with this number. NULL: it exists, or out of memory. */
static struct text_func *new_func(struct text_source *s, uint32_t func)
{
	uint32_t cap = s->cap ? s->cap * 2 : 64, i;
	struct text_func *v;

	if (map_get(&s->by_number, func, &i) || s->nfuncs == FUNCS_MAX)
		return NULL;
	if (s->nfuncs == s->cap) {
		v = reallocarray(s->funcs, cap, sizeof(*v));
		if (!v)
			return NULL;
		s->funcs = v;
		s->cap = cap;
	}
	if (map_put(&s->by_number, func, s->nfuncs))
		return NULL;
	s->funcs[s->nfuncs] = (struct text_func){0};
	return &s->funcs[s->nfuncs++];
}

static int add_func(struct timeline_writer *w, const struct timeline_rec *r, const char *text,
		    size_t n)
{
	const char *names[3];
	struct timeline_names tn;
	struct text_func *f;

	for (int i = 0; i < 3; i++) {
		const char *end = memchr(text, '\0', n);

		if (!end)
			return -EBADMSG;
		names[i] = text;
		n -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	f = r->source < w->nsources ? new_func(&w->sources[r->source], r->func) : NULL;
	if (!f)
		return -EBADMSG;
	tn = (struct timeline_names){
		.file = names[0], .name = names[2][0] ? names[2] : names[1], .line = r->line};
	if (describe(w->format->describe, &tn, &f->row, &f->nrow) < 0)
		return -ENOMEM;
	return describe(w->format->describe_caller, &tn, &f->caller, &f->ncaller);
}

static const struct text_func *func_of(const struct timeline_writer *w, uint32_t source,
				       uint32_t func)
{
	static const struct text_func none;
	uint32_t i;

	if (source >= w->nsources || !map_get(&w->sources[source].by_number, func, &i))
		return &none;
	return &w->sources[source].funcs[i];
}

static int add_source(struct timeline_writer *w, const struct timeline_rec *r)
{
	struct text_source *v;

	if (r->source != w->nsources)
		return -EBADMSG;
	v = reallocarray(w->sources, w->nsources + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	w->sources = v;
	v[w->nsources++] = (struct text_source){.pid = r->tid};
	return 0;
}

static int write_name(struct timeline_writer *w, uint32_t pid, uint32_t tid, const char *name)
{
	int r;

	if (!w->format->name_of || !*name)
		return 0;
	r = w->format->name_of(w->out, pid, tid, name, !w->any);
	w->any = true;
	return r;
}

/* Threads ----------------------------------------------------------------------------------- */

static struct open_thread *add_thread(struct timeline_writer *w, const struct timeline_rec *r)
{
	uint32_t cap = w->threads_cap ? w->threads_cap * 2 : 16;
	struct open_thread *v;

	if (w->nthreads == THREADS_MAX)
		return NULL;
	if (w->nthreads == w->threads_cap) {
		v = reallocarray(w->threads, cap, sizeof(*v));
		if (!v)
			return NULL;
		w->threads = v;
		w->threads_cap = cap;
	}
	if (map_put(&w->by_tid, (uint64_t)r->source << 32 | r->tid, w->nthreads))
		return NULL;
	w->threads[w->nthreads] = (struct open_thread){.tid = r->tid, .source = r->source};
	return &w->threads[w->nthreads++];
}

static struct open_thread *thread_of(struct timeline_writer *w, const struct timeline_rec *r)
{
	uint32_t i;

	if (map_get(&w->by_tid, (uint64_t)r->source << 32 | r->tid, &i))
		return &w->threads[i];
	return add_thread(w, r);
}

static int open_push(struct open_thread *th, uint32_t func, uint32_t closing)
{
	uint32_t cap = th->cap ? th->cap * 2 : 32;
	struct open_frame *v;

	if (th->n == th->cap) {
		v = reallocarray(th->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		th->v = v;
		th->cap = cap;
	}
	th->v[th->n++] = (struct open_frame){func, closing};
	return 0;
}

/* Rows -------------------------------------------------------------------------------------- */

static size_t row_room(const struct text_func *f, const struct text_func *caller)
{
	return f->nrow + caller->ncaller + TIMELINE_ROW_MAX;
}

static int write_row(struct timeline_writer *w, const struct open_thread *th, enum watch_kind kind,
		     uint32_t func, uint32_t caller, uint64_t count)
{
	const struct text_func *f = func_of(w, th->source, func);
	const struct text_func *c = func_of(w, th->source, caller);
	const struct timeline_row row = {
		.kind = kind,
		.pid = w->sources[th->source].pid,
		.tid = th->tid,
		.ts = th->ts - w->counts.from_ns,
		.cpu = th->cpu,
		.count = count,
		.func = f->row,
		.caller = c->caller,
	};
	size_t room = row_room(f, c), n;

	if (room > w->line_size) {
		free(w->line);
		w->line_size = 0;
		w->line = malloc(room * 2);
		if (!w->line)
			return -ENOMEM;
		w->line_size = room * 2;
	}
	n = (size_t)(w->format->row(w->line, &row, !w->any) - w->line);
	w->any = true;
	w->written += n;
	return fwrite(w->line, 1, n, w->out) == n ? 0 : -EIO;
}

/* Write the end of a thread's innermost open frame. */
static int write_end(struct timeline_writer *w, struct open_thread *th, enum watch_kind kind)
{
	struct open_frame top = th->v[--th->n];

	w->closing -= top.closing;
	return write_row(w, th, kind, top.func, th->n ? th->v[th->n - 1].func : WATCH_NO_FUNC, 0);
}

static int close_thread(struct timeline_writer *w, struct open_thread *th)
{
	int r = 0;

	while (th->n && r == 0)
		r = write_end(w, th, WATCH_CLOSE);
	return r;
}

static bool fits(struct timeline_writer *w, size_t row, size_t closing)
{
	uint64_t tail = TAIL_ROOM + w->nsources * TAIL_SOURCE;

	w->full |= w->written + row + w->closing + closing + tail > w->max;
	return !w->full;
}

static int on_enter(struct timeline_writer *w, struct open_thread *th, const struct timeline_rec *r)
{
	const struct text_func *f = func_of(w, r->source, r->func);
	uint32_t caller = th->n ? th->v[th->n - 1].func : WATCH_NO_FUNC;
	size_t room = row_room(f, func_of(w, r->source, caller));
	int err;

	if (room > UINT32_MAX)
		return -EBADMSG;
	if (!fits(w, room, room))
		return 0;
	err = write_row(w, th, (enum watch_kind)r->type, r->func, caller, 0);
	if (err == 0)
		err = open_push(th, r->func, (uint32_t)room);
	if (err == 0)
		w->closing += room;
	w->counts.calls += watch_kind_is_call((enum watch_kind)r->type);
	return err;
}

static int on_leave(struct timeline_writer *w, struct open_thread *th, const struct timeline_rec *r)
{
	if (!th->n || th->v[th->n - 1].func != r->func)
		return -EBADMSG;
	w->counts.returns += r->type == WATCH_RETURN || r->type == WATCH_YIELD;
	return write_end(w, th, (enum watch_kind)r->type);
}

/* Before a thread's first frame, or after its last one */
static int on_thread(struct timeline_writer *w, struct open_thread *th, const char *text, size_t n)
{
	int r = close_thread(w, th);

	if (r < 0 || !memchr(text, '\0', n) || !fits(w, 6 * strlen(text) + TIMELINE_ROW_MAX, 0) ||
	    strncmp(th->name, text, sizeof(th->name) - 1) == 0)
		return r;
	snprintf(th->name, sizeof(th->name), "%s", text);
	w->written += 6 * strlen(th->name) + TIMELINE_ROW_MAX;
	return write_name(w, w->sources[th->source].pid, th->tid, th->name);
}

static int on_stack_record(struct timeline_writer *w, const struct timeline_rec *r,
			   const char *text, size_t n)
{
	struct open_thread *th;
	int step = watch_kind_step((enum watch_kind)r->type);

	if (r->source >= w->nsources)
		return -EBADMSG;
	th = thread_of(w, r);
	if (!th)
		return -ENOMEM;
	if (r->ts > th->ts)
		th->ts = r->ts;
	if (th->ts < w->counts.from_ns)
		th->ts = w->counts.from_ns;
	/* A tid can be reused; the new thread's CPU time starts again. */
	if (r->cpu > th->cpu || r->type == WATCH_THREAD)
		th->cpu = r->cpu;
	if (step)
		return step > 0 ? on_enter(w, th, r) : on_leave(w, th, r);
	if (r->type == WATCH_THREAD)
		return on_thread(w, th, text, n);
	w->counts.lost += r->type == WATCH_LOST;
	if (!fits(w, TIMELINE_ROW_MAX, 0))
		return 0;
	return write_row(w, th, (enum watch_kind)r->type, WATCH_NO_FUNC, WATCH_NO_FUNC,
			 r->count & INT64_MAX);
}

static int on_trigger(struct timeline_writer *w, const struct timeline_rec *r, const char *text,
		      size_t n)
{
	const struct open_thread *th;
	struct timeline_mark m;
	size_t room;
	int err;

	if (r->source >= w->nsources)
		return -EBADMSG;
	err = outcome_trigger(&w->outcome, r, w->sources[r->source].pid, text, n);
	if (err < 0)
		return err;
	th = thread_of(w, r);
	if (!th)
		return -ENOMEM;
	m = (struct timeline_mark){.pid = w->sources[r->source].pid,
				   .tid = r->tid,
				   .ts = (r->ts > th->ts ? r->ts : th->ts),
				   .cpu = th->cpu,
				   .what = w->outcome.what,
				   .condition = w->outcome.condition};
	m.ts = m.ts > w->counts.from_ns ? m.ts - w->counts.from_ns : 0;
	room = 6 * (strlen(m.what) + strlen(m.condition)) + TIMELINE_ROW_MAX;
	if (!fits(w, room, 0))
		return 0;
	err = w->format->mark(w->out, &m, !w->any);
	w->any = true;
	w->written += room;
	return err;
}

static int on_begin(struct timeline_writer *w, const struct timeline_rec *r)
{
	if (w->begun || r->func != TIMELINE_VERSION)
		return -EBADMSG;
	w->begun = true;
	w->counts.from_ns = r->ts;
	w->counts.from_unix_ns = r->cpu;
	return 0;
}

static int on_end(struct timeline_writer *w, const struct timeline_rec *r)
{
	w->ended = true;
	w->counts.until_ns = r->ts > w->counts.from_ns ? r->ts : w->counts.from_ns;
	w->counts.dropped = r->count;
	w->counts.truncated = r->cpu;
	return 0;
}

static int on_record(struct timeline_writer *w, const struct timeline_rec *r, const char *text,
		     size_t n)
{
	if (w->ended || (w->full && r->type != TIMELINE_END && r->type != TIMELINE_TRIGGER))
		return 0;
	if (r->type != TIMELINE_BEGIN && !w->begun)
		return -EBADMSG;
	switch (r->type) {
	case TIMELINE_BEGIN:
		return on_begin(w, r);
	case TIMELINE_SOURCE:
		return add_source(w, r);
	case TIMELINE_FUNC:
		return add_func(w, r, text, n);
	case TIMELINE_RECENT:
		return outcome_recent(&w->outcome, r, text, n);
	case TIMELINE_TRIGGER:
		return on_trigger(w, r, text, n);
	case TIMELINE_END:
		return on_end(w, r);
	default:
		return r->type < WATCH_KIND_MAX ? on_stack_record(w, r, text, n) : -EBADMSG;
	}
}

/* Input ------------------------------------------------------------------------------------- */

/* Process the complete records at data. Returns the number of bytes used, or an error. */
static ssize_t feed_records(struct timeline_writer *w, const char *data, size_t n)
{
	struct timeline_rec r;
	size_t at = 0;
	int err;

	while (n - at >= sizeof(r)) {
		memcpy(&r, data + at, sizeof(r));
		if (r.size < sizeof(r) || r.size > sizeof(r) + TIMELINE_TEXT_MAX)
			return -EBADMSG;
		if (n - at < r.size)
			break;
		err = on_record(w, &r, data + at + sizeof(r), r.size - sizeof(r));
		if (err < 0)
			return err;
		at += r.size;
	}
	return (ssize_t)at;
}

static int keep(struct timeline_writer *w, const char *data, size_t n)
{
	char *p;

	if (!n)
		return 0;
	p = realloc(w->pending, w->npending + n);
	if (!p)
		return -ENOMEM;
	memcpy(p + w->npending, data, n);
	w->pending = p;
	w->npending += n;
	return 0;
}

/* Process data after the incomplete record, if there is one. */
static int feed(struct timeline_writer *w, const char *data, size_t n)
{
	ssize_t used;

	if (!w->npending) {
		used = feed_records(w, data, n);
		return used < 0 ? (int)used : keep(w, data + used, n - (size_t)used);
	}
	if (keep(w, data, n) < 0)
		return -ENOMEM;
	used = feed_records(w, w->pending, w->npending);
	if (used < 0)
		return (int)used;
	w->npending -= (size_t)used;
	memmove(w->pending, w->pending + used, w->npending);
	return 0;
}

int timeline_writer_feed(struct timeline_writer *w, const void *data, size_t n, struct diag *diag)
{
	int r = feed(w, data, n);

	if (r == -ENOMEM)
		return no_memory(diag);
	if (r == -EIO)
		return diag_errno(diag, errno ? errno : EIO, "cannot write the timeline");
	return r < 0 ? bad_record(diag) : 0;
}

/* Closing the file -------------------------------------------------------------------------- */

static void set(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)(n & INT64_MAX)));
}

/* Describe the file's contents in its provenance. */
static void add_counts(const struct timeline_writer *w, json_t *o)
{
	const struct timeline_writer_counts *c = &w->counts;

	json_object_set_new(o, "format", json_string("pyprofd-timeline"));
	json_object_set_new(o, "times", json_string("as measured, including the probes' own time"));
	set(o, "from_unix_ns", c->from_unix_ns);
	set(o, "from_ns", c->from_ns);
	set(o, "duration_ns", c->until_ns - c->from_ns);
	set(o, "calls", c->calls);
	set(o, "returns", c->returns);
	set(o, "dropped", c->dropped);
	set(o, "gaps", c->lost);
	set(o, "truncated", c->truncated);
	if (w->outcome.recent)
		json_object_set_new(o, "recent",
				    outcome_json(&w->outcome, c->from_ns, c->from_unix_ns));
	json_object_set_new(o, "size_limit_reached", json_boolean(w->full));
	json_object_set_new(o, "complete",
			    json_boolean(w->ended && !w->full && !c->dropped && !c->lost &&
					 !c->truncated && !w->outcome.beyond_size));
}

static int close_all(struct timeline_writer *w)
{
	uint64_t last = w->counts.from_ns;
	int r = 0;

	for (uint32_t i = 0; i < w->nthreads; i++)
		if (w->threads[i].ts > last)
			last = w->threads[i].ts;
	if (!w->ended)
		w->counts.until_ns = last;
	for (uint32_t i = 0; i < w->nthreads && r == 0; i++) {
		if (w->threads[i].n && w->threads[i].ts < w->counts.until_ns)
			w->threads[i].ts = w->counts.until_ns;
		r = close_thread(w, &w->threads[i]);
	}
	return r;
}

static const char *command_of(const json_t *provenance, uint32_t pid, char out[COMMAND_MAX])
{
	const json_t *targets = json_object_get(provenance, "targets"), *t;
	size_t i;

	out[0] = '\0';
	json_array_foreach(targets, i, t) if (json_integer_value(json_object_get(t, "pid")) == pid)
		snprintf(out, COMMAND_MAX, "%s", json_string_value(json_object_get(t, "cmdline")));
	return out;
}

static int finish(struct timeline_writer *w, json_t *provenance)
{
	const struct timeline_end end = {.provenance = provenance};
	struct timeline_end e = end;
	char command[COMMAND_MAX];
	int r = close_all(w);

	for (uint32_t i = 0; i < w->nsources && r == 0; i++)
		r = write_name(w, w->sources[i].pid, 0,
			       command_of(provenance, w->sources[i].pid, command));
	if (r < 0)
		return r;
	add_counts(w, provenance);
	e.ts = w->counts.until_ns - w->counts.from_ns;
	r = w->format->tail(w->out, &e, !w->any);
	if (r == 0 && (fflush(w->out) != 0 || ferror(w->out)))
		r = -EIO;
	return r;
}

int timeline_writer_finish(struct timeline_writer *w, json_t *provenance, struct diag *diag)
{
	json_t *o = provenance ? provenance : json_object();
	int r = o ? finish(w, o) : -ENOMEM;

	json_decref(o);
	if (r == -ENOMEM)
		return no_memory(diag);
	return r < 0 ? diag_errno(diag, errno ? errno : EIO, "cannot write the timeline") : 0;
}
