// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records evidence for unit/accuracy/test_replay.c: `bench_freeze PYTHON VERSION DIR PROGRAM`
 * observes a program of programs.py or windows.py in each way, and writes
 * DIR/VERSION.PROGRAM.WAY. Beside what was measured stands the truth: samples in mode sample
 * before and after all of them, the CPU time of a round directly before and after each, and the
 * number of rounds. freeze.py runs it and packs its files.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "accuracy/finish.h"
#include "base/clock.h"
#include "harness/frozen.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "profile/known_funcs.h"
#include "profile/profile_priv.h"
#include "session/set.h"

#define REFERENCE_MS   2000u /* CPU time */
#define REFERENCE_RATE 1999u /* twice that of a trace */
#define EXACT_MS       1500u
#define LIMITED_MS     2500u	/* windows begin after 0.4 s, when marks are chosen */
#define WALL_US	       5000000u /* of programs that idle most of the time */
#define BESIDE_US      700000u
#define IDLE_US	       300000u /* after the attach */
#define LOOK_US	       1000u
#define READINGS       65536u
/* Doubles are saved with nine digits. */
#define ROUNDING    1e-6
#define ROUNDING_NS 2.0

static const struct way {
	const char *name;
	struct mode_choice mode;
	unsigned int limit, ms; /* percent, 0: none; CPU time */
	bool idle;		/* at the attach */
} ways[] = {
	{"trace", {MODE_TRACE, 999}, 0, EXACT_MS, false},
	{"trace-idle", {MODE_TRACE, 999}, 0, EXACT_MS, true},
	{"count", {MODE_COUNT, 999}, 0, EXACT_MS, false},
	{"default", {MODE_TRACE, UINT32_MAX}, 10, LIMITED_MS, false},
	{"limit-5", {MODE_TRACE, UINT32_MAX}, 5, LIMITED_MS, false},
};

/*
 * What the program stores. programs.py: see there; windows.py: the number of rounds and their CPU
 * time, for each of 6 kinds.
 */
union shared {
	struct {
		_Atomic uint64_t begun, cpu_ns, done, idles;
	};
	_Atomic uint64_t slots[12];
};

/* Those of windows.py with one process and one kind of rounds */
static const char *const of_windows[] = {"busy", "sleeping", "server"};

struct reading {
	uint64_t ns, rounds;
};

struct program {
	const char *name;
	bool of_windows;
	const char *round; /* the function that is called once per round */
	struct traced t;
	char path[64];
	union shared *progress;
	/* How many rounds were made until when, while `looks` */
	struct reading readings[READINGS];
	size_t nreadings;
	atomic_bool looks;
	pthread_t reader;
};

static void start_program(struct program *p, const char *python)
{
	int fd;

	snprintf(p->path, sizeof(p->path), "/tmp/bench_freeze.XXXXXX");
	fd = mkstemp(p->path);
	cr_assert(fd >= 0 && ftruncate(fd, sizeof(*p->progress)) == 0);
	p->progress = mmap(NULL, sizeof(*p->progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(p->progress != MAP_FAILED);
	close(fd);
	if (!p->of_windows) {
		traced_start(&p->t, python, "../bench/programs.py", p->name, p->path, NULL);
		traced_expect(&p->t, "ready");
		return;
	}
	traced_start(&p->t, python, "../bench/windows.py", "--program", p->name, p->path, NULL);
	while (!p->progress->slots[0])
		usleep(LOOK_US);
}

static void end_program(struct program *p)
{
	traced_stop(&p->t);
	munmap(p->progress, sizeof(*p->progress));
	unlink(p->path);
}

/* ---- rounds ---- */

static struct reading read_rounds(const struct program *p, uint64_t *ret_cpu_ns)
{
	uint64_t done, begun;

	do {
		done = p->progress->done;
		*ret_cpu_ns = p->progress->cpu_ns;
		begun = p->progress->begun;
	} while (!p->of_windows && begun != done);
	/* What windows.py stores is without its own work between two rounds. */
	if (p->of_windows)
		*ret_cpu_ns = (uint64_t)(1e9 * traced_cpu_seconds(&p->t));
	return (struct reading){clock_monotonic_ns(), begun};
}

static void *read_on(void *arg)
{
	struct program *p = arg;
	uint64_t cpu_ns;

	while (p->looks && p->nreadings < READINGS) {
		p->readings[p->nreadings++] = read_rounds(p, &cpu_ns);
		usleep(LOOK_US);
	}
	return NULL;
}

static void look(struct program *p)
{
	p->nreadings = 0;
	p->looks = true;
	cr_assert(pthread_create(&p->reader, NULL, read_on, p) == 0);
}

static void look_no_more(struct program *p)
{
	p->looks = false;
	pthread_join(p->reader, NULL);
	cr_assert(p->nreadings > 1);
}

static double rounds_at(const struct program *p, uint64_t ns)
{
	const struct reading *r = p->readings;
	size_t i = 1;

	while (i < p->nreadings - 1 && r[i].ns < ns)
		i++;
	return (double)r[i - 1].rounds + ((double)ns - (double)r[i - 1].ns) *
						 (double)(r[i].rounds - r[i - 1].rounds) /
						 (double)(r[i].ns - r[i - 1].ns);
}

static double round_ns(const struct program *p)
{
	uint64_t begin_ns, end_ns;
	const struct reading begin = read_rounds(p, &begin_ns);
	struct reading end;

	usleep(BESIDE_US);
	end = read_rounds(p, &end_ns);
	return (double)(end_ns - begin_ns) / (double)(end.rounds - begin.rounds);
}

/* ---- recording ---- */

static void run_for(struct traced *t, uint64_t us)
{
	const uint64_t until = clock_monotonic_ns() + us * 1000;

	while (clock_monotonic_ns() < until)
		cr_assert(sd_event_run(t->event, LOOK_US) >= 0);
}

/*
 * Observes the program. The sessions are kept: the evidence is in the profile. *ret_rounds: the
 * number of rounds from the start to the stop, if there is a limit; else the counts have it.
 */
static struct snapshot *record(struct program *p, const struct way *way, double *ret_rounds)
{
	struct traced *t = &p->t;
	struct snapshot *s;
	uint64_t stop_ns;

	t->mode = way->mode;
	t->max_overhead = way->limit;
	t->asked = way->limit != 10;
	t->observe = true;
	look(p);
	if (way->idle)
		p->progress->idles = 1;
	if (way->idle)
		run_for(t, IDLE_US);
	traced_attach_verified(t);
	if (way->idle)
		run_for(t, IDLE_US);
	if (way->idle)
		p->progress->idles = 0;
	if (p->of_windows)
		run_for(t, WALL_US);
	else
		traced_work(t, way->ms);
	stop_ns = clock_monotonic_ns();
	traced_halt(t);
	s = traced_snapshot(t);
	look_no_more(p);
	*ret_rounds = 0;
	if (way->limit)
		*ret_rounds = rounds_at(p, stop_ns) -
			      rounds_at(p, stop_ns - s->targets[0].windows.span_ns);
	return s;
}

static void forget(struct traced *t)
{
	sessions_free(TAKE_PTR(t->sessions));
}

static struct snapshot *sample(struct program *p)
{
	const struct way way = {"sample", {MODE_SAMPLE, REFERENCE_RATE}, 0, REFERENCE_MS, false};
	struct snapshot *s;
	double rounds;

	s = record(p, &way, &rounds);
	forget(&p->t);
	return s;
}

/* ---- evidence ---- */

static uint32_t func_of(const struct profile *p, const struct snapshot *s, uint32_t func)
{
	struct func_identity id;

	if (func == SNAPSHOT_NONE)
		return SNAPSHOT_NONE;
	id = funcs_identity(&p->codes.funcs, func);
	return known_funcs_find(s, &id, p->codes.funcs.list[func].variant, func_is_pseudo(func));
}

static bool is_root_of(const struct profile *p, uint32_t node, uint32_t tid)
{
	for (uint32_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i]->root == node)
			return p->threads.v[i]->tid == tid;
	return false;
}

/* Returns the snapshot's node by node of the profile: those that it has are in the same order. */
static uint32_t *map_nodes(const struct profile *p, const struct snapshot *s)
{
	const struct calltree *tree = &p->rb.tree;
	uint32_t *map = calloc((size_t)tree->n + 1, sizeof(*map)), k = 0;

	cr_assert(map);
	for (uint32_t i = 0; i < tree->n; i++) {
		const struct snapshot_node *n = &s->nodes[k];
		const uint32_t parent = tree->parents[i];
		bool same = k < s->nnodes;

		if (same && parent == NODE_NONE)
			same = n->parent == SNAPSHOT_NONE &&
			       is_root_of(p, i, s->threads[n->thread].tid);
		else if (same)
			same = map[parent] != SNAPSHOT_NONE && map[parent] == n->parent &&
			       func_of(p, s, tree->nodes[i].func) == n->func;
		map[i] = same ? k++ : SNAPSHOT_NONE;
	}
	cr_assert_eq(k, s->nnodes);
	return map;
}

static void take_evidence(struct frozen *f, const struct profile *p)
{
	struct snapshot *s = f->s;
	uint32_t *map = map_nodes(p, s);

	f->limited = true;
	f->e = p->evidence;
	f->e.n = s->nnodes;
	f->e.nodes = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*f->e.nodes));
	f->e.nfuncs = s->nfuncs;
	f->e.funcs = snapshot_alloc(s, (size_t)s->nfuncs + 1, sizeof(*f->e.funcs));
	cr_assert(f->e.nodes && f->e.funcs);
	for (uint32_t i = 0; i < p->evidence.n; i++)
		if (map[i] != SNAPSHOT_NONE)
			f->e.nodes[map[i]] = p->evidence.nodes[i];
	for (uint32_t i = 0; i < p->evidence.nfuncs; i++) {
		const uint32_t func = func_of(p, s, i);

		if (func != SNAPSHOT_NONE)
			f->e.funcs[func] = p->evidence.funcs[i];
	}
	/* Nothing of an open stretch is left in the tree after the stop. */
	for (uint32_t i = 0; i < p->rb.tree.n; i++)
		cr_assert(p->rb.tree.nodes[i].calls == 0);
	f->given.stretch = p->stretch;
	f->given.light = p->stretch && (p->accuracy.light || !p->evidence.partial);
	f->given.times = p->accuracy.times;
	f->given.error = p->accuracy.error;
	free(map);
}

/* ---- truth ---- */

static bool is_same(const struct snapshot_func *a, const struct snapshot_func *b)
{
	return !a->pseudo && !b->pseudo && a->firstlineno == b->firstlineno &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->filename, b->filename) == 0;
}

/* The first one, of several variants */
static uint32_t find_func(const struct snapshot *s, const struct snapshot_func *like)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (is_same(&s->funcs[i], like))
			return i;
	return SNAPSHOT_NONE;
}

static void take_reference(struct frozen *f, const struct snapshot *of, int which)
{
	for (uint32_t i = 0; i < of->nnodes; i++) {
		const struct snapshot_node *n = &of->nodes[i];
		const uint64_t samples = n->self[SNAPSHOT_CPU] / of->targets[0].estimate.period_ns;
		uint32_t func;

		if (n->func == SNAPSHOT_NONE || of->funcs[n->func].pseudo)
			continue;
		func = find_func(f->s, &of->funcs[n->func]);
		if (func == SNAPSHOT_NONE)
			f->truth.other[which] += samples;
		else
			f->truth.funcs[func].samples[which] += samples;
	}
}

/* By function of `of`, variants together */
static double calls_of(const struct snapshot *of, const struct snapshot_func *like)
{
	double sum = 0;

	for (uint32_t i = 0; i < of->nnodes; i++)
		if (of->nodes[i].func != SNAPSHOT_NONE &&
		    is_same(&of->funcs[of->nodes[i].func], like))
			sum += (double)of->nodes[i].calls;
	return sum;
}

static double counted_rounds(const struct snapshot *s, const char *round)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const uint32_t func = s->nodes[i].func;

		if (func != SNAPSHOT_NONE && strcmp(s->funcs[func].name, round) == 0)
			sum += (double)s->nodes[i].calls;
	}
	return sum;
}

/* exact: a trace of all calls; each round makes the same. */
static void take_calls(struct frozen *f, const struct snapshot *exact, const char *round)
{
	const double rounds = counted_rounds(exact, round);

	for (uint32_t i = 0; i < f->s->nfuncs; i++) {
		const struct snapshot_func *fn = &f->s->funcs[i];

		f->truth.funcs[i].calls = -1;
		if (!fn->pseudo && find_func(f->s, fn) == i && rounds > 0)
			f->truth.funcs[i].calls = calls_of(exact, fn) / rounds * f->truth.rounds;
	}
}

/* ---- a program ---- */

struct run {
	const char *python, *version, *dir;
};

static char *path_of(const struct run *run, const struct frozen *f)
{
	char *path;

	cr_assert(asprintf(&path, "%s/%s.%s.%s", run->dir, f->python, f->program, f->way) > 0);
	return path;
}

static void save(const struct run *run, const struct frozen *f)
{
	_cleanup_free_ char *path = path_of(run, f);
	FILE *out = fopen(path, "w");

	cr_assert(out, "%s: %s", path, strerror(errno));
	frozen_write(f, out);
	cr_assert(fclose(out) == 0);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= ROUNDING_NS + ROUNDING * fabs(a);
}

static void check_funcs(const struct snapshot *a, const struct snapshot *b, const char *path)
{
	const enum snapshot_figure compared[] = {SNAPSHOT_CALLS, SNAPSHOT_TOT_CPU};

	cr_assert_eq(a->nfuncs, b->nfuncs);
	for (uint32_t i = 0; i < a->nfuncs; i++)
		for (int k = 0; k < 2; k++)
			cr_assert(is_near(a->funcs[i].variance[compared[k]],
					  b->funcs[i].variance[compared[k]]),
				  "%s: the error of %s differs", path, a->funcs[i].name);
}

/* Python functions. The pseudo rows come last; the others are in the same order. */
static void check_nodes(const struct snapshot *a, const struct snapshot *b, const char *path)
{
	for (uint32_t i = 0; i < a->nnodes && i < b->nnodes; i++) {
		const struct snapshot_node *n = &a->nodes[i], *m = &b->nodes[i];

		if (n->func != SNAPSHOT_NONE && !a->funcs[n->func].pseudo)
			cr_assert(n->func == m->func &&
					  is_near((double)n->calls, (double)m->calls) &&
					  is_near((double)n->self[SNAPSHOT_CPU],
						  (double)m->self[SNAPSHOT_CPU]),
				  "%s: node %u differs", path, i);
	}
}

/* What was saved has all that corrections read: it gives the figures that the snapshot gives. */
static void check_saved(const struct run *run, struct frozen *f)
{
	_cleanup_free_ char *path = path_of(run, f), *text = NULL;
	_cleanup_(frozen_freep) struct frozen *saved = NULL;
	FILE *in = fopen(path, "r");
	const char *at;
	size_t room = 0;
	ssize_t n;

	cr_assert(in);
	n = getdelim(&text, &room, '\0', in);
	fclose(in);
	cr_assert(n > 0);
	at = text;
	saved = frozen_read(&at, text + n);
	cr_assert(saved && at == text + n, "%s is invalid", path);
	assert_ok(snapshot_finish(f->s, false));
	assert_ok(frozen_finish(saved));
	check_funcs(f->s, saved->s, path);
	check_nodes(f->s, saved->s, path);
}

static void init_frozen(struct frozen *f, const struct run *run, const char *program,
			const char *way)
{
	snprintf(f->python, sizeof(f->python), "%s", run->version);
	snprintf(f->program, sizeof(f->program), "%s", program);
	snprintf(f->way, sizeof(f->way), "%s", way);
}

static void record_way(struct program *p, const struct run *run, const struct way *way,
		       struct frozen *f)
{
	double rounds;

	init_frozen(f, run, p->name, way->name);
	f->truth.round_ns[0] = round_ns(p);
	f->s = record(p, way, &rounds);
	if (way->limit)
		take_evidence(f, p->t.sessions->v[0]->tracee->profile);
	forget(&p->t);
	f->truth.round_ns[1] = round_ns(p);
	f->truth.rounds = way->limit ? rounds : counted_rounds(f->s, p->round);
	f->truth.funcs = snapshot_alloc(f->s, (size_t)f->s->nfuncs + 1, sizeof(*f->truth.funcs));
	cr_assert(f->truth.funcs);
}

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Programs of windows.py do not idle on request. */
static bool is_possible(const struct program *p, const struct way *way)
{
	return !(p->of_windows && way->idle);
}

static void record_program(const struct run *run, const char *name)
{
	static struct program p;
	struct frozen frozen[WAYS] = {0};
	struct snapshot *reference[2];

	p = (struct program){.name = name, .round = name};
	for (size_t i = 0; i < sizeof(of_windows) / sizeof(of_windows[0]); i++)
		if (strcmp(name, of_windows[i]) == 0) {
			p.of_windows = true;
			p.round = "handle";
		}
	start_program(&p, run->python);
	reference[0] = sample(&p);
	for (size_t i = 0; i < WAYS; i++)
		if (is_possible(&p, &ways[i]))
			record_way(&p, run, &ways[i], &frozen[i]);
	reference[1] = sample(&p);
	end_program(&p);
	for (size_t i = 0; i < WAYS; i++) {
		if (!is_possible(&p, &ways[i]))
			continue;
		for (int k = 0; k < 2; k++)
			take_reference(&frozen[i], reference[k], k);
		take_calls(&frozen[i], frozen[0].s, p.round);
		save(run, &frozen[i]);
	}
	for (size_t i = 0; i < WAYS; i++)
		if (is_possible(&p, &ways[i]))
			check_saved(run, &frozen[i]);
	for (size_t i = 0; i < WAYS; i++)
		snapshot_free(frozen[i].s);
	for (int k = 0; k < 2; k++)
		snapshot_free(reference[k]);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fputs("usage: bench_freeze PYTHON VERSION DIR PROGRAM\n", stderr);
		return 2;
	}
	record_program(&(struct run){argv[1], argv[2], argv[3]}, argv[4]);
	return 0;
}
