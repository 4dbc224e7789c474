// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof's profile: gzip-compressed protobuf, see pprof.proto. One sample per calling context, with
 * its number of calls and its self time on both clocks; labels name the thread and process. A
 * location is a function in a process. There are no addresses; the mapping only identifies the
 * Python executable.
 *
 * A sampled function has more locations, of its lines. A context's CPU time is divided among those of
 * its innermost function, in proportion to that function's samples in all contexts; number of calls,
 * wall time and what has no line are at the function's first line.
 *
 * Concatenated protobuf messages parse as one message with the repeated fields joined. The writer
 * uses this to emit the profile as many small Profile messages, so its memory does not grow with
 * the number of samples.
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/map.h"
#include "base/strtab.h"
#include "format/names.h"
#include "format/pprof.pb-c.h"
#include "format/provenance.h"
#include "format/quantiles.h"
#include "format/stacks.h"
#include "format/writers.h"
#include "snapshot/lines.h"

#define GZIP	    16 /* for deflateInit2: a gzip header and trailer */
#define OUT_SIZE    16384
#define LINES_LEAST 1000 /* the part of all CPU time that a context has to be divided for */

/* A buffer that packed messages are appended to. */
struct gzip {
	ProtobufCBuffer base; /* must be first: callbacks receive a pointer to it */
	z_stream z;
	FILE *out;
	unsigned char buf[OUT_SIZE];
};

struct writer {
	const struct snapshot *s;
	struct gzip *gz;
	struct strtab strings;
	struct map locations;	/* (target, function) → its number, if already written */
	struct map lines;	/* (location, line) → the number of the line's location */
	struct map functions;	/* set of functions already written */
	uint32_t *target_of;	/* per thread; ntargets: no target */
	uint64_t last_location; /* the highest number so far */
	uint64_t ids[STACKS_MAX_FRAMES];
	Pprof__Label labels[3]; /* of thread labels_of */
	bool durations;		/* functions have durations */
	bool has_lines;		/* functions have lines */
	uint64_t least; /* contexts with less CPU time are not divided; bounds the file's size */
	Pprof__Label quantiles[QUANTILES * SNAPSHOT_CLOCKS]; /* of function quantiles_of */
	size_t nquantiles;
	uint32_t quantiles_of;
	uint32_t labels_of;
};

/* ---- gzip ---- */

static void gzip_run(struct gzip *gz, const uint8_t *data, size_t n, int flush)
{
	int r;

	gz->z.next_in = (unsigned char *)data;
	gz->z.avail_in = (uInt)n;
	do {
		gz->z.next_out = gz->buf;
		gz->z.avail_out = sizeof(gz->buf);
		r = deflate(&gz->z, flush);
		fwrite(gz->buf, 1, sizeof(gz->buf) - gz->z.avail_out, gz->out);
	} while (r == Z_OK && (gz->z.avail_in || !gz->z.avail_out || flush == Z_FINISH));
}

/* A string fits in memory, but zlib counts in 32 bits. */
static void gzip_append(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
	struct gzip *gz = (struct gzip *)base;

	for (size_t done = 0, part; done < n; done += part) {
		part = n - done < (1u << 30) ? n - done : 1u << 30;
		gzip_run(gz, data + done, part, Z_NO_FLUSH);
	}
}

static struct gzip *gzip_new(FILE *out)
{
	struct gzip *gz = calloc(1, sizeof(*gz));

	if (!gz)
		return NULL;
	gz->base.append = gzip_append;
	gz->out = out;
	if (deflateInit2(&gz->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + GZIP, 8,
			 Z_DEFAULT_STRATEGY) == Z_OK)
		return gz;
	free(gz);
	return NULL;
}

static void gzip_free(struct gzip *gz)
{
	if (!gz)
		return;
	deflateEnd(&gz->z);
	free(gz);
}
DEFINE_FREEP(struct gzip, gzip_free)

/* ---- pieces ---- */

static void put(struct writer *w, const Pprof__Profile *piece)
{
	pprof__profile__pack_to_buffer(piece, &w->gz->base);
}

/* Sets *ret to the number of a string, which is written if it is new. */
static int put_string(struct writer *w, const char *s, int64_t *ret)
{
	_cleanup_free_ char *utf8 = name_escape(s);
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	uint32_t before = w->strings.n, id;

	if (!utf8 || strtab_add(&w->strings, utf8, &id) < 0)
		return -ENOMEM;
	if (id == before) {
		piece.n_string_table = 1;
		piece.string_table = &utf8;
		put(w, &piece);
	}
	*ret = id;
	return 0;
}

static int64_t clamp(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int put_value_type(struct writer *w, const char *type, const char *unit, bool is_default)
{
	Pprof__ValueType message = PPROF__VALUE_TYPE__INIT, *list = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	if (put_string(w, type, &message.type) < 0 || put_string(w, unit, &message.unit) < 0)
		return -ENOMEM;
	piece.n_sample_type = 1;
	piece.sample_type = &list;
	piece.default_sample_type = is_default ? message.type : 0;
	put(w, &piece);
	return 0;
}

/* has_functions and similar fields keep readers from symbolising the profile themselves. */
static int put_mapping(struct writer *w, uint32_t target)
{
	const struct snapshot_target *t = &w->s->targets[target];
	const char *file = t->python_file && t->python_file[0] ? t->python_file : t->exe;
	Pprof__Mapping message = PPROF__MAPPING__INIT, *list = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	message.id = target + 1;
	if (put_string(w, file, &message.filename) < 0 ||
	    put_string(w, t->build_id, &message.build_id) < 0)
		return -ENOMEM;
	message.has_functions = message.has_filenames = message.has_line_numbers = true;
	piece.n_mapping = 1;
	piece.mapping = &list;
	put(w, &piece);
	return 0;
}

/*
 * The system name always differs from the name, otherwise pprof would take `<lambda>` for a C++
 * template and remove it. func SNAPSHOT_NONE stands for the frames left out of a stack.
 */
static int put_function(struct writer *w, uint32_t func, uint64_t id)
{
	static const struct snapshot_func left_out = {
		.filename = "", .name = STACKS_LEFT_OUT, .pseudo = true};
	const struct snapshot_func *f = func == SNAPSHOT_NONE ? &left_out : &w->s->funcs[func];
	const char *file = f->pseudo || !f->filename ? "" : f->filename;
	_cleanup_free_ char *system_name = name_std(file, f->firstlineno, f->name ? f->name : "");
	Pprof__Function message = PPROF__FUNCTION__INIT, *list = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	uint32_t known;

	if (map_get(&w->functions, func, &known))
		return 0;
	message.id = id;
	message.start_line = f->firstlineno;
	if (!system_name || put_string(w, name_of_func(f), &message.name) < 0 ||
	    put_string(w, system_name, &message.system_name) < 0 ||
	    put_string(w, file, &message.filename) < 0)
		return -ENOMEM;
	piece.n_function = 1;
	piece.function = &list;
	put(w, &piece);
	return map_put(&w->functions, func, 0);
}

/* Writes a new location, whose number is w->last_location. */
static void put_location_at(struct writer *w, uint32_t target, uint64_t function, int32_t at)
{
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	Pprof__Location message = PPROF__LOCATION__INIT, *list = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	line.function_id = function;
	line.line = at;
	message.id = w->last_location;
	message.mapping_id = target < w->s->ntargets ? target + 1 : 0;
	message.n_line = 1;
	message.line = &lines;
	piece.n_location = 1;
	piece.location = &list;
	put(w, &piece);
}

/* Sets *ret to the location of a function in a target, which is written if it is new. */
static int put_location(struct writer *w, uint32_t target, uint32_t func, uint64_t *ret)
{
	uint64_t key = (uint64_t)target << 32 | func;
	uint64_t function = func == SNAPSHOT_NONE ? (uint64_t)w->s->nfuncs + 1 : func + 1ull;
	uint32_t known;

	if (map_get(&w->locations, key, &known)) {
		*ret = known;
		return 0;
	}
	if (put_function(w, func, function) < 0 ||
	    map_put(&w->locations, key, (uint32_t)++w->last_location) < 0)
		return -ENOMEM;
	put_location_at(w, target, function,
			func == SNAPSHOT_NONE ? 0 : w->s->funcs[func].firstlineno);
	*ret = w->last_location;
	return 0;
}

/* The same for a line of a function, whose own location is `of`. */
static int put_line(struct writer *w, uint32_t target, uint32_t func, int32_t line, uint64_t of,
		    uint64_t *ret)
{
	uint64_t key = of << 32 | (uint32_t)line;
	uint32_t known;

	if (map_get(&w->lines, key, &known)) {
		*ret = known;
		return 0;
	}
	if (map_put(&w->lines, key, (uint32_t)++w->last_location) < 0)
		return -ENOMEM;
	put_location_at(w, target, func + 1ull, line);
	*ret = w->last_location;
	return 0;
}

/* ---- samples ---- */

static int set_label(struct writer *w, Pprof__Label *label, const char *key, const char *str,
		     int64_t num)
{
	pprof__label__init(label);
	if (put_string(w, key, &label->key) < 0 || (str && put_string(w, str, &label->str) < 0))
		return -ENOMEM;
	label->num = num;
	return 0;
}

/* Caches the labels of one thread, because consecutive samples mostly belong to the same thread. */
static int set_labels(struct writer *w, uint32_t thread)
{
	const struct snapshot_thread *t = &w->s->threads[thread];
	Pprof__Label *labels = w->labels;

	if (w->labels_of == thread)
		return 0;
	w->labels_of = thread;
	if (set_label(w, &labels[0], "thread", t->name && t->name[0] ? t->name : "thread", 0) < 0 ||
	    set_label(w, &labels[1], "pid", NULL, t->pid) < 0 ||
	    set_label(w, &labels[2], "tid", NULL, t->tid) < 0)
		return -ENOMEM;
	return 0;
}

/*
 * Quantiles of the innermost function's call durations, as labels, because pprof has no histograms.
 */
static int set_quantiles(struct writer *w, uint32_t func)
{
	static const char *const clocks[SNAPSHOT_CLOCKS] = {"cpu", "wall"};

	if (w->quantiles_of == func)
		return 0;
	w->quantiles_of = func;
	w->nquantiles = 0;
	for (int i = 0; w->durations && func != SNAPSHOT_NONE && i < QUANTILES * SNAPSHOT_CLOCKS;
	     i++) {
		Pprof__Label *label = &w->quantiles[w->nquantiles];
		enum snapshot_clock clock = (enum snapshot_clock)(i / QUANTILES);
		struct quantiles q = {.max = 0};
		char key[16];
		uint64_t ns;

		quantiles_add(&q, w->s->funcs[func].durations, clock);
		ns = quantiles_get(&q, (enum quantile)(i % QUANTILES));
		if (!ns)
			continue;
		snprintf(key, sizeof(key), "%s_%s", clocks[clock], quantile_names[i % QUANTILES]);
		if (set_label(w, label, key, NULL, clamp(ns)) < 0 ||
		    put_string(w, "nanoseconds", &label->num_unit) < 0)
			return -ENOMEM;
		w->nquantiles++;
	}
	return 0;
}

/* Writes a sample with these values; labels and locations are set. */
static void put_values(struct writer *w, size_t n, int64_t values[3])
{
	Pprof__Label *labels[3 + QUANTILES * SNAPSHOT_CLOCKS] = {&w->labels[0], &w->labels[1],
								 &w->labels[2]};
	Pprof__Sample message = PPROF__SAMPLE__INIT, *list = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	if (!values[0] && !values[1] && !values[2])
		return;
	for (size_t i = 0; i < w->nquantiles; i++)
		labels[3 + i] = &w->quantiles[i];
	message.n_location_id = n;
	message.location_id = w->ids;
	message.n_value = 3;
	message.value = values;
	message.n_label = 3 + w->nquantiles;
	message.label = labels;
	piece.n_sample = 1;
	piece.sample = &list;
	put(w, &piece);
}

/* Writes the CPU time of lines, and subtracts it from *cpu. */
static int put_lines(struct writer *w, const struct stack *stack, uint32_t target, int64_t *cpu)
{
	const uint32_t func = w->s->nodes[stack->node].func;
	const struct snapshot_func *f = &w->s->funcs[func];
	const struct snapshot_line sum = snapshot_lines_sum(f);
	const uint64_t all = (uint64_t)*cpu, own = w->ids[0];

	for (uint32_t i = 0; i < f->nlines; i++) {
		uint64_t part = snapshot_line_part(&f->lines[i], &sum, all, (uint64_t)*cpu);
		int64_t values[3] = {0, (int64_t)part, 0};

		if (!part)
			continue;
		if (put_line(w, target, func, f->lines[i].line, own, &w->ids[0]) < 0)
			return -ENOMEM;
		put_values(w, stack->n, values);
		*cpu -= (int64_t)part;
	}
	w->ids[0] = own;
	return 0;
}

static int put_sample(void *ctx, const struct stack *stack)
{
	struct writer *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[stack->node];
	uint32_t target = w->target_of[stack->thread];
	int64_t values[] = {clamp(n->calls), clamp(n->self[SNAPSHOT_CPU]),
			    clamp(n->self[SNAPSHOT_WALL])};

	if (!values[0] && !values[1] && !values[2])
		return 0;
	if (set_labels(w, stack->thread) < 0 || set_quantiles(w, n->func) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < stack->n; i++)
		if (put_location(w, target, stack->funcs[stack->n - 1 - i], &w->ids[i]) < 0)
			return -ENOMEM;
	if (w->has_lines && n->self[SNAPSHOT_CPU] >= w->least &&
	    put_lines(w, stack, target, &values[1]) < 0)
		return -ENOMEM;
	put_values(w, stack->n, values);
	return 0;
}

/* ---- the whole profile ---- */

struct comments {
	struct writer *w;
	int err;
};

static void put_comment(void *ctx, const char *label, const char *value)
{
	struct comments *c = ctx;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	_cleanup_free_ char *text = NULL;
	int64_t id;

	if (asprintf(&text, "%s: %s", label, value) < 0)
		text = NULL;
	if (!text || put_string(c->w, text, &id) < 0) {
		c->err = -ENOMEM;
		return;
	}
	piece.n_comment = 1;
	piece.comment = &id;
	put(c->w, &piece);
}

/* Start and duration over all selected targets. */
static void put_times(struct writer *w, const struct format_opts *o)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	uint64_t start = UINT64_MAX, traced = 0;

	for (uint32_t i = 0; i < w->s->ntargets; i++) {
		const struct snapshot_target *t = &w->s->targets[i];

		if (!provenance_selects(w->s, &o->filter, t))
			continue;
		start = t->start_unix_ns < start ? t->start_unix_ns : start;
		traced = t->traced_ns > traced ? t->traced_ns : traced;
	}
	piece.time_nanos = start == UINT64_MAX ? 0 : clamp(start);
	piece.duration_nanos = clamp(traced);
	put(w, &piece);
}

static int put_head(struct writer *w, const struct format_opts *o)
{
	struct comments c = {.w = w};
	int64_t empty;
	int err;

	/* pprof requires string 0 to be empty; it stands for "none". */
	if (put_string(w, "", &empty) < 0 || put_value_type(w, "calls", "count", false) < 0 ||
	    put_value_type(w, "cpu", "nanoseconds", o->clock == SNAPSHOT_CPU) < 0 ||
	    put_value_type(w, "wall", "nanoseconds", o->clock == SNAPSHOT_WALL) < 0)
		return -ENOMEM;
	put_times(w, o);
	for (uint32_t i = 0; i < w->s->ntargets; i++)
		if (put_mapping(w, i) < 0)
			return -ENOMEM;
	err = provenance_lines(w->s, o, put_comment, &c);
	return err ? err : c.err;
}

static void find_targets(struct writer *w)
{
	for (uint32_t i = 0; i < w->s->nthreads; i++) {
		uint32_t t = 0;

		while (t < w->s->ntargets && w->s->targets[t].pid != w->s->threads[i].pid)
			t++;
		w->target_of[i] = t;
	}
}

static void writer_deinit(struct writer *w)
{
	strtab_deinit(&w->strings);
	map_deinit(&w->locations);
	map_deinit(&w->lines);
	map_deinit(&w->functions);
}

int pprof_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag)
{
	_cleanup_(gzip_freep) struct gzip *gz = gzip_new(out);
	_cleanup_free_ uint32_t *target_of = calloc((size_t)s->nthreads + 1, sizeof(*target_of));
	_cleanup_(writer_deinit) struct writer w = {.s = s,
						    .gz = gz,
						    .strings = {.limit = INT64_MAX},
						    .target_of = target_of,
						    .durations = view_has_durations(s, &o->filter),
						    .has_lines = view_has_lines(s, &o->filter),
						    .least = v->total[SNAPSHOT_CPU] / LINES_LEAST +
							     1,
						    .quantiles_of = SNAPSHOT_NONE,
						    .labels_of = SNAPSHOT_NONE};
	int err;

	(void)diag;
	if (!gz || !target_of)
		return -ENOMEM;
	find_targets(&w);
	err = put_head(&w, o);
	if (!err)
		err = stacks_each(s, &o->filter, put_sample, &w);
	if (err < 0)
		return err;
	gzip_run(gz, NULL, 0, Z_FINISH);
	return 0;
}
