// SPDX-License-Identifier: BSD-2-Clause
/* Recorded evidence: see frozen.h. */
#include "harness/frozen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/finish.h"

#define VERSION 1u
#define PID	1u

/* Of a function */
#define INSTANT 1u
#define PSEUDO	2u

/* ---- writing ---- */

static void write_cost(const struct cost *c, FILE *out)
{
	fprintf(out, "cost %d", c->known);
	for (int k = 0; k < COST_KINDS; k++)
		fprintf(out, " %" PRIu32 " %" PRIu32, c->before[k], c->after[k]);
	fputc('\n', out);
}

static void write_target(const struct snapshot_target *t, FILE *out)
{
	const struct snapshot_estimate *e = &t->estimate;
	const struct snapshot_beside *b = &t->beside;

	fprintf(out,
		"target %d %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %.9g %d %" PRIu64 "\n",
		t->mode, e->rate, e->period_ns, e->samples, e->of_probes, t->cost_scale,
		t->waits.walked, t->own_cpu_ns);
	write_cost(&t->cost, out);
	fprintf(out, "beside %d %" PRIu64 " %d %" PRIu64 " %.9g %.9g %.9g\n", !!b->trace.of,
		b->trace.outside, !!b->before.of, b->before.outside, b->undisturbed_ns,
		b->undisturbed_error, b->process_cpu_ns);
}

static uint64_t sampled(const struct snapshot_sampled *s, uint32_t func)
{
	return s->of && func < s->n ? s->of[func] : 0;
}

/* Without directories and blanks */
static void write_file(const char *path, FILE *out)
{
	const char *slash = strrchr(path, '/');

	for (const char *c = slash ? slash + 1 : path; *c; c++)
		fputc(*c == ' ' ? '_' : *c, out);
}

static void write_funcs(const struct frozen *f, FILE *out)
{
	const struct snapshot_beside *b = &f->s->targets[0].beside;

	fprintf(out, "funcs %" PRIu32 "\n", f->s->nfuncs);
	for (uint32_t i = 0; i < f->s->nfuncs; i++) {
		const struct snapshot_func *fn = &f->s->funcs[i];
		const struct frozen_func *truth = &f->truth.funcs[i];

		fprintf(out,
			"%u %" PRIu64 " %" PRIu64 " %.9g %" PRIu64 " %" PRIu64 " %.9g %" PRId32 " ",
			(fn->instant ? INSTANT : 0) | (fn->pseudo ? PSEUDO : 0),
			sampled(&b->trace, i), sampled(&b->before, i),
			fn->variance[SNAPSHOT_TOT_CPU], truth->samples[0], truth->samples[1],
			truth->calls, fn->firstlineno);
		write_file(fn->filename, out);
		fprintf(out, " %s\n", fn->name);
	}
}

static void write_nodes(const struct snapshot *s, FILE *out)
{
	fprintf(out, "nodes %" PRIu32 "\n", s->nnodes);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		const bool root = n->parent == SNAPSHOT_NONE;

		/* A parent by its distance, a function by its number from 1: 0 is a root's. */
		fprintf(out,
			"%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 "\n",
			root ? 0 : i - n->parent, root ? 0 : n->func + 1, n->calls, n->yields,
			n->inflight, n->self[SNAPSHOT_CPU]);
	}
}

static void write_evidence_nodes(const struct evidence *e, FILE *out)
{
	fprintf(out, "seen %" PRIu32 "\n", e->n);
	for (uint32_t i = 0; i < e->n; i++) {
		const struct evidence_node *n = &e->nodes[i];

		fprintf(out,
			"%.9g %.9g %.9g %.9g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			n->calls, n->yields, n->cpu, n->taken, n->samples, n->within,
			n->heavy.calls, n->heavy.yields);
	}
}

static void write_evidence_funcs(const struct evidence *e, FILE *out)
{
	fprintf(out, "sums %" PRIu32 "\n", e->nfuncs);
	for (uint32_t i = 0; i < e->nfuncs; i++) {
		const struct evidence_func *f = &e->funcs[i];

		fprintf(out, "%.9g %.9g %.9g %.9g %.9g %.9g\n", f->by_cpu.sum, f->by_cpu.square,
			f->by_cpu.product, f->by_marks.sum, f->by_marks.square,
			f->by_marks.product);
	}
}

static void write_limited(const struct frozen *f, FILE *out)
{
	const struct evidence_progress *p = &f->e.progress;
	const struct evidence_marked *m = &p->marked;
	const struct evidence *e = &f->e;

	fprintf(out, "limited %d %d %d %.9g %.9g\n", e->partial, f->given.stretch, f->given.light,
		f->given.times, f->given.error);
	fprintf(out, "windows %" PRIu64 " %.9g %.9g %.9g %.9g %.9g\n", e->windows, e->own_cpu,
		e->all_cpu, e->size, e->size2, e->calls);
	fprintf(out, "marks %.9g %.9g %.9g %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", p->shown,
		p->cpu_before, m->total, m->all_marks, m->all_calls, m->calls.sum, m->marks,
		m->calls.square, m->marks2, m->calls.product);
	write_evidence_nodes(e, out);
	write_evidence_funcs(e, out);
}

void frozen_write(const struct frozen *f, FILE *out)
{
	const struct frozen_truth *t = &f->truth;

	fprintf(out, "frozen %u %s %s %s\n", VERSION, f->python, f->program, f->way);
	fprintf(out, "truth %.9g %.9g %.9g %" PRIu64 " %" PRIu64 "\n", t->rounds, t->round_ns[0],
		t->round_ns[1], t->other[0], t->other[1]);
	write_target(&f->s->targets[0], out);
	write_funcs(f, out);
	write_nodes(f->s, out);
	if (f->limited)
		write_limited(f, out);
	fputs("end\n", out);
}

/* ---- reading ---- */

struct reader {
	const char *at, *end;
	bool bad; /* all values from here on are 0 */
};

/* The next word, which ends with a blank or a line feed; "" if there is none, or it is too long. */
static void read_word(struct reader *r, char word[FROZEN_NAME])
{
	size_t left = r->bad ? 0 : (size_t)(r->end - r->at), n = 0;

	while (n < left && r->at[n] != ' ' && r->at[n] != '\n')
		n++;
	if (n == 0 || n == left || n >= FROZEN_NAME || memchr(r->at, '\0', n)) {
		r->bad = true;
		n = 0;
	} else {
		memcpy(word, r->at, n);
		r->at += n + 1;
	}
	word[n] = '\0';
}

static bool read_key(struct reader *r, const char *key)
{
	char word[FROZEN_NAME];

	read_word(r, word);
	r->bad |= strcmp(word, key) != 0;
	return !r->bad;
}

static uint64_t read_number(struct reader *r, uint64_t max)
{
	char word[FROZEN_NAME], *end;
	uint64_t value;

	read_word(r, word);
	errno = 0;
	value = strtoull(word, &end, 10);
	if (r->bad || word[0] < '0' || word[0] > '9' || *end || errno || value > max) {
		r->bad = true;
		return 0;
	}
	return value;
}

static uint64_t read_u64(struct reader *r)
{
	return read_number(r, UINT64_MAX);
}

static bool read_bool(struct reader *r)
{
	return read_number(r, 1);
}

static double read_double(struct reader *r)
{
	char word[FROZEN_NAME], *end;
	double value;

	read_word(r, word);
	value = strtod(word, &end);
	r->bad |= *end != '\0' || !(value > -1e300 && value < 1e300);
	return r->bad ? 0 : value;
}

/* The number of lines that follow, each of which has a byte at least */
static uint32_t read_count(struct reader *r, const char *key)
{
	read_key(r, key);
	return (uint32_t)read_number(r, r->bad ? 0 : (uint64_t)(r->end - r->at));
}

/* What comes before the next `end`, which is passed, in the snapshot's arena */
static const char *read_until(struct reader *r, struct snapshot *s, char end)
{
	const char *at = r->bad ? NULL : memchr(r->at, end, (size_t)(r->end - r->at));
	const char *text = at ? snapshot_strn(s, r->at, (size_t)(at - r->at)) : NULL;

	r->bad |= !text;
	if (text)
		r->at = at + 1;
	return text;
}

static void *room_for(struct reader *r, struct snapshot *s, uint32_t n, size_t size)
{
	void *v = r->bad ? NULL : snapshot_alloc(s, (size_t)n + 1, size);

	r->bad |= !v;
	return v;
}

static void read_cost(struct reader *r, struct cost *c)
{
	read_key(r, "cost");
	c->known = read_bool(r);
	for (int k = 0; k < COST_KINDS; k++) {
		c->before[k] = (uint32_t)read_number(r, UINT32_MAX);
		c->after[k] = (uint32_t)read_number(r, UINT32_MAX);
	}
}

static void read_target(struct reader *r, struct snapshot *s)
{
	struct snapshot_target *t = room_for(r, s, 1, sizeof(*t));

	if (!t)
		return;
	s->targets = t;
	s->ntargets = 1;
	t->pid = PID;
	read_key(r, "target");
	t->mode = (enum mode)read_number(r, MODE_SAMPLE);
	t->estimate.rate = (uint32_t)read_number(r, UINT32_MAX);
	t->estimate.period_ns = read_u64(r);
	t->estimate.samples = read_u64(r);
	t->estimate.of_probes = read_u64(r);
	t->cost_scale = read_double(r);
	t->waits.walked = read_bool(r);
	t->own_cpu_ns = read_u64(r);
	read_cost(r, &t->cost);
}

/* Which samples there are beside a trace; read_funcs() has those of functions. */
struct has {
	bool trace, before;
};

static struct has read_beside(struct reader *r, struct snapshot *s)
{
	struct snapshot_beside *b;
	struct has has;

	read_key(r, "beside");
	if (r->bad)
		return (struct has){false};
	b = &s->targets[0].beside;
	has.trace = read_bool(r);
	b->trace.outside = read_u64(r);
	has.before = read_bool(r);
	b->before.outside = read_u64(r);
	b->undisturbed_ns = read_double(r);
	b->undisturbed_error = read_double(r);
	b->process_cpu_ns = read_double(r);
	return has;
}

static void read_func(struct reader *r, struct snapshot *s, struct snapshot_func *fn,
		      struct frozen_func *truth)
{
	fn->variance[SNAPSHOT_TOT_CPU] = read_double(r);
	truth->samples[0] = read_u64(r);
	truth->samples[1] = read_u64(r);
	truth->calls = read_double(r);
	fn->firstlineno = (int32_t)read_number(r, INT32_MAX);
	fn->filename = read_until(r, s, ' ');
	fn->name = read_until(r, s, '\n');
}

static void read_funcs(struct reader *r, struct frozen *f, const struct has *has)
{
	struct snapshot *s = f->s;
	const uint32_t n = read_count(r, "funcs");
	uint64_t *trace = room_for(r, s, n, sizeof(*trace));
	uint64_t *before = room_for(r, s, n, sizeof(*before));

	s->funcs = room_for(r, s, n, sizeof(*s->funcs));
	f->truth.funcs = room_for(r, s, n, sizeof(*f->truth.funcs));
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		const uint64_t flags = read_number(r, INSTANT | PSEUDO);

		trace[i] = read_u64(r);
		before[i] = read_u64(r);
		s->funcs[i].instant = flags & INSTANT;
		s->funcs[i].pseudo = flags & PSEUDO;
		read_func(r, s, &s->funcs[i], &f->truth.funcs[i]);
	}
	if (r->bad)
		return;
	s->nfuncs = n;
	if (has->trace) {
		s->targets[0].beside.trace.of = trace;
		s->targets[0].beside.trace.n = n;
	}
	if (has->before) {
		s->targets[0].beside.before.of = before;
		s->targets[0].beside.before.n = n;
	}
}

/* A thread per root. Its total is the sum of its nodes. */
static void read_node(struct reader *r, struct snapshot *s, uint32_t i)
{
	struct snapshot_node *n = &s->nodes[i];
	const uint32_t distance = (uint32_t)read_number(r, i);
	const uint32_t func = (uint32_t)read_number(r, distance ? s->nfuncs : 0);

	r->bad |= distance && !func;
	*n = (struct snapshot_node){
		.parent = distance ? i - distance : SNAPSHOT_NONE,
		.func = distance ? func - 1 : SNAPSHOT_NONE,
		.min = {UINT64_MAX, UINT64_MAX},
	};
	n->calls = read_u64(r);
	n->yields = read_u64(r);
	n->inflight = (uint32_t)read_number(r, UINT32_MAX);
	n->self[SNAPSHOT_CPU] = n->self[SNAPSHOT_WALL] = read_u64(r);
	if (r->bad)
		return;
	if (!distance) {
		s->threads[s->nthreads] = (struct snapshot_thread){
			.pid = PID, .tid = PID + s->nthreads, .name = "", .root = i};
		n->thread = s->nthreads++;
	} else {
		n->thread = s->nodes[n->parent].thread;
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		s->threads[n->thread].total[c] += n->self[c];
}

static void read_nodes(struct reader *r, struct snapshot *s)
{
	const uint32_t n = read_count(r, "nodes");

	s->nodes = room_for(r, s, n, sizeof(*s->nodes));
	s->threads = room_for(r, s, n, sizeof(*s->threads));
	for (uint32_t i = 0; i < n && !r->bad; i++)
		read_node(r, s, i);
	s->nnodes = r->bad ? 0 : n;
}

static void read_evidence_nodes(struct reader *r, struct frozen *f)
{
	const uint32_t n = read_count(r, "seen");

	r->bad |= n != f->s->nnodes;
	f->e.nodes = room_for(r, f->s, n, sizeof(*f->e.nodes));
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct evidence_node *e = &f->e.nodes[i];

		e->calls = read_double(r);
		e->yields = read_double(r);
		e->cpu = read_double(r);
		e->taken = read_double(r);
		e->samples = read_u64(r);
		e->within = read_u64(r);
		e->heavy.calls = read_u64(r);
		e->heavy.yields = read_u64(r);
	}
	f->e.n = r->bad ? 0 : n;
}

static void read_evidence_funcs(struct reader *r, struct frozen *f)
{
	const uint32_t n = read_count(r, "sums");

	r->bad |= n > f->s->nfuncs;
	f->e.funcs = room_for(r, f->s, n, sizeof(*f->e.funcs));
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct evidence_func *e = &f->e.funcs[i];

		e->by_cpu.sum = read_double(r);
		e->by_cpu.square = read_double(r);
		e->by_cpu.product = read_double(r);
		e->by_marks.sum = read_double(r);
		e->by_marks.square = read_double(r);
		e->by_marks.product = read_double(r);
	}
	f->e.nfuncs = r->bad ? 0 : n;
}

static void read_windows(struct reader *r, struct evidence *e)
{
	read_key(r, "windows");
	e->windows = read_u64(r);
	e->own_cpu = read_double(r);
	e->all_cpu = read_double(r);
	e->size = read_double(r);
	e->size2 = read_double(r);
	e->calls = read_double(r);
}

static void read_marks(struct reader *r, struct evidence_progress *p)
{
	struct evidence_marked *m = &p->marked;
	double *const values[] = {&p->shown,	 &p->cpu_before,   &m->total, &m->all_marks,
				  &m->all_calls, &m->calls.sum,	   &m->marks, &m->calls.square,
				  &m->marks2,	 &m->calls.product};

	read_key(r, "marks");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		*values[i] = read_double(r);
}

static bool belongs_to_caller(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func != SNAPSHOT_NONE && n->parent != SNAPSHOT_NONE &&
	       (snapshot_func_is_native(&s->funcs[n->func]) ||
		snapshot_func_is_gc(&s->funcs[n->func]));
}

/* Sets the tree and the rest of `given` from the snapshot. */
static int link_evidence(struct frozen *f)
{
	struct snapshot *s = f->s;
	struct calltree *t = &f->tree;
	uint32_t *callers = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*callers));

	t->nodes = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*t->nodes));
	t->parents = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*t->parents));
	t->yields = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*t->yields));
	if (!callers || !t->nodes || !t->parents || !t->yields)
		return -ENOMEM;
	t->n = s->nnodes;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		t->nodes[i].func = n->func;
		t->parents[i] = n->parent; /* SNAPSHOT_NONE is NODE_NONE */
		callers[i] = belongs_to_caller(s, n) ? callers[n->parent] : i;
	}
	f->given.e = &f->e;
	f->given.tree = t;
	f->given.callers = callers;
	f->given.nfuncs = s->nfuncs;
	f->given.hit_ns = cost_enter(&s->targets[0].cost) / f->given.times;
	f->given.period_ns = (double)s->targets[0].estimate.period_ns;
	s->targets[0].windows.sampled = f->e.partial;
	return 0;
}

/* "limited" has been read. */
static void read_limited(struct reader *r, struct frozen *f)
{
	f->limited = true;
	f->e.partial = read_bool(r);
	f->given.stretch = read_bool(r);
	f->given.light = read_bool(r);
	f->given.times = read_double(r);
	f->given.error = read_double(r);
	r->bad |= f->given.times <= 0;
	read_windows(r, &f->e);
	read_marks(r, &f->e.progress);
	read_evidence_nodes(r, f);
	read_evidence_funcs(r, f);
	r->bad |= !r->bad && link_evidence(f) < 0;
	read_key(r, "end");
}

static void read_truth(struct reader *r, struct frozen_truth *t)
{
	read_key(r, "truth");
	t->rounds = read_double(r);
	for (int i = 0; i < 2; i++)
		t->round_ns[i] = read_double(r);
	for (int i = 0; i < 2; i++)
		t->other[i] = read_u64(r);
}

static void read_all(struct reader *r, struct frozen *f)
{
	char word[FROZEN_NAME];
	struct has has;

	read_key(r, "frozen");
	r->bad |= read_u64(r) != VERSION;
	read_word(r, f->python);
	read_word(r, f->program);
	read_word(r, f->way);
	read_truth(r, &f->truth);
	read_target(r, f->s);
	has = read_beside(r, f->s);
	read_funcs(r, f, &has);
	read_nodes(r, f->s);
	read_word(r, word);
	if (!r->bad && strcmp(word, "limited") == 0)
		read_limited(r, f);
	else
		r->bad |= strcmp(word, "end") != 0;
}

struct frozen *frozen_read(const char **at, const char *end)
{
	struct frozen *f = calloc(1, sizeof(*f));
	struct reader r = {.at = *at, .end = end};

	if (!f)
		return NULL;
	f->s = snapshot_new();
	if (f->s)
		read_all(&r, f);
	if (!f->s || r.bad || !snapshot_valid(f->s)) {
		frozen_free(f);
		return NULL;
	}
	*at = r.at;
	return f;
}

void frozen_free(struct frozen *f)
{
	if (!f)
		return;
	snapshot_free(f->s);
	free(f);
}

/* ---- figures ---- */

static int solve_limited(struct frozen *f)
{
	_cleanup_(rest_deinit) struct rest rest = {0};
	struct snapshot *s = f->s;

	s->rest = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*s->rest));
	if (!s->rest || rest_solve(&f->given, &rest) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->rest[i] = rest_of(&f->given, &rest, i);
	for (uint32_t i = 0; i < s->nfuncs && f->e.partial; i++)
		s->funcs[i].variance[SNAPSHOT_CALLS] = rest.variance[i];
	return 0;
}

int frozen_finish(struct frozen *f)
{
	int r = f->limited ? solve_limited(f) : 0;

	return r < 0 ? r : snapshot_finish(f->s, false);
}
