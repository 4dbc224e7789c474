// SPDX-License-Identifier: BSD-2-Clause
/*
 * Properties of profiles, over thousands of random event streams with fixed seeds. Well-formed
 * streams come from a simulated program that keeps its own simple account of each context; the
 * profile must agree exactly. Malformed streams must preserve the invariants. In addition: parts
 * that event scripts do not cover (names, merging, resolving).
 */
#include "profile/profile.h"

#include <time.h>

#include "harness/event_script.h"
#include "harness/test.h"
#include "stats/view.h"

static uint64_t rng_state;

static uint32_t rnd(uint32_t n)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 33) % n;
}

/* The simulated program --------------------------------------------------------------------- */

#define SIM_THREADS 3
#define SIM_STACKS  6
#define SIM_DEPTH   24
#define SIM_FUNCS   7
#define SIM_NODES   20000
#define SIM_GENS    4
#define CODE(f)	    (0x1000u + (uint64_t)(f)*0x10)

struct sim_node {
	int parent, func, thread;
	uint64_t calls, self[SNAPSHOT_CLOCKS];
	uint32_t inflight;
};

struct sim_frame {
	uint64_t frame;
	int node, func, gen; /* gen: number of the generator, -1: a function */
};

struct sim_thread {
	struct sim_frame stack[SIM_STACKS][SIM_DEPTH];
	int depth[SIM_STACKS], cur, root, charged;
	uint64_t last, runtime;
	bool seen, on_cpu;
};

struct sim {
	struct profile *p;
	struct sim_thread t[SIM_THREADS];
	struct sim_node node[SIM_NODES];
	int nodes, greenlets;
	bool gen_running[SIM_GENS];
	uint64_t now, enters, events, next_frame;
};

static void sim_send(struct sim *s, int t, struct event *e)
{
	e->ts = s->now;
	e->tid = (uint32_t)t + 1;
	profile_event(s->p, e);
}

static int sim_child(struct sim *s, int t, int parent, int func)
{
	for (int i = 0; i < s->nodes; i++)
		if (s->node[i].parent == parent && s->node[i].func == func &&
		    s->node[i].thread == t)
			return i;
	cr_assert_lt(s->nodes, SIM_NODES);
	s->node[s->nodes] = (struct sim_node){.parent = parent, .func = func, .thread = t};
	return s->nodes++;
}

static void sim_charge(struct sim *s, int t)
{
	struct sim_thread *th = &s->t[t];
	uint64_t d = s->now - th->last;

	s->node[th->charged].self[SNAPSHOT_WALL] += d;
	if (th->on_cpu) {
		s->node[th->charged].self[SNAPSHOT_CPU] += d;
		th->runtime += d;
	}
	th->last = s->now;
}

static void sim_first(struct sim *s, int t)
{
	struct sim_thread *th = &s->t[t];

	if (th->seen)
		return;
	th->seen = true;
	th->on_cpu = true;
	th->last = s->now;
	th->runtime = 1000 + rnd(1000);
	th->root = th->charged = sim_child(s, t, -1, -1);
}

static void sim_enter(struct sim *s, int t, int func, int gen)
{
	struct sim_thread *th = &s->t[t];
	int *depth = &th->depth[th->cur];
	struct sim_frame *f = &th->stack[th->cur][*depth];
	struct event e = {.type = gen >= 0 && !rnd(4) ? PYP_REC_THROW : PYP_REC_ENTER};

	sim_first(s, t);
	sim_charge(s, t);
	f->gen = gen;
	f->func = func;
	f->frame = gen >= 0 ? 0x9000u + (uint64_t)gen * 16 : s->next_frame++;
	f->node = sim_child(s, t, *depth ? f[-1].node : th->root, func);
	e.u.call.frame = f->frame;
	e.u.call.code = CODE(func);
	e.u.call.caller = *depth ? f[-1].frame : 0;
	sim_send(s, t, &e);
	if (!rnd(8)) /* E1: the event is sent twice */
		sim_send(s, t, &e);
	s->node[f->node].calls++;
	s->node[f->node].inflight++;
	th->charged = f->node;
	s->enters++;
	++*depth;
}

static void sim_leave(struct sim *s, int t)
{
	struct sim_thread *th = &s->t[t];
	struct sim_frame *f = &th->stack[th->cur][--th->depth[th->cur]];
	struct event e = {.type = f->gen >= 0 ? PYP_REC_YIELD : PYP_REC_LEAVE};

	sim_charge(s, t);
	e.u.call.frame = f->frame;
	sim_send(s, t, &e);
	s->node[f->node].inflight--;
	if (f->gen >= 0)
		s->gen_running[f->gen] = false;
	th->charged = th->depth[th->cur] ? f[-1].node : th->root;
}

static void sim_switch(struct sim *s, int t)
{
	struct sim_thread *th = &s->t[t];
	struct event e = {.type = th->on_cpu ? PYP_REC_SWITCH_OUT : PYP_REC_SWITCH_IN};

	if (!th->seen)
		return;
	sim_charge(s, t);
	th->on_cpu = !th->on_cpu;
	e.u.sw.runtime = th->runtime;
	sim_send(s, t, &e);
}

static void sim_step(struct sim *s)
{
	int t = (int)rnd(SIM_THREADS), gen = (int)rnd(SIM_GENS);
	struct sim_thread *th = &s->t[t];

	s->now += rnd(50);
	if (th->seen && (!th->on_cpu || !rnd(10))) {
		sim_switch(s, t);
		return;
	}
	if (s->greenlets && !rnd(6))
		th->cur = (int)rnd((uint32_t)s->greenlets);
	if (th->depth[th->cur] && (th->depth[th->cur] == SIM_DEPTH || rnd(100) < 48)) {
		sim_leave(s, t);
	} else if (!rnd(5) && !s->gen_running[gen]) {
		s->gen_running[gen] = true;
		sim_enter(s, t, gen, gen);
	} else {
		sim_enter(s, t, (int)rnd(SIM_FUNCS), -1);
	}
}

/* Checks ------------------------------------------------------------------------------------ */

static struct snapshot *take(const struct profile *p, uint64_t now)
{
	struct snapshot *s = snapshot_new();

	cr_assert_not_null(s);
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->ntargets = 1;
	assert_ok(profile_snapshot(p, now, 42, s, s->targets));
	cr_assert(snapshot_valid(s));
	return s;
}

static void check_threads(const struct snapshot *s)
{
	for (uint32_t t = 0; t < s->nthreads; t++) {
		uint64_t sum[SNAPSHOT_CLOCKS] = {0};

		for (uint32_t i = 0; i < s->nnodes; i++)
			for (int c = 0; s->nodes[i].thread == t && c < SNAPSHOT_CLOCKS; c++) {
				cr_assert_leq(s->nodes[i].self[c], INT64_MAX);
				sum[c] += s->nodes[i].self[c];
			}
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			cr_assert_eq(sum[c], s->threads[t].total[c]);
	}
}

/*
 * durations: the clock from which on longest <= cumulative holds. It does not hold if a limit was
 * reached or data was cleared; if CPU time was taken back, it holds on the wall clock only.
 */
static void check_view(const struct snapshot *s, uint64_t calls, int durations)
{
	struct view *v;
	uint64_t edge_calls = 0, edge_tot = 0;

	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->ncalls, calls, "%lu rows' calls, %lu made", v->ncalls, calls);
	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *r = &v->rows[i];

		cr_assert_leq(r->pcalls, r->ncalls);
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			cr_assert_geq(r->cum[c], r->tot[c]);
			if (c >= durations)
				cr_assert_leq(r->max[c], r->cum[c]);
		}
	}
	for (size_t i = 0; i < v->nedges; i++) {
		const struct view_edge *e = &v->edges[i], *prev = i ? e - 1 : NULL;

		edge_calls += e->ncalls;
		edge_tot += e->tot[SNAPSHOT_WALL];
		cr_assert_geq(e->cum[SNAPSHOT_CPU], e->tot[SNAPSHOT_CPU]);
		cr_assert(!prev || prev->callee < e->callee ||
			  (prev->callee == e->callee && prev->caller < e->caller));
	}
	cr_assert_eq(edge_calls, v->ncalls);
	cr_assert_eq(edge_tot, v->total[SNAPSHOT_WALL]);
	view_free(v);
}

static int sim_node_of(const struct sim *s, const struct snapshot *snap, uint32_t i)
{
	const struct snapshot_node *n = &snap->nodes[i];
	int thread = (int)snap->threads[n->thread].tid - 1, parent = -1, func = -1;

	if (n->parent != SNAPSHOT_NONE) {
		parent = sim_node_of(s, snap, n->parent);
		func = (int)strtol(snap->funcs[n->func].name + 1, NULL, 10);
	}
	for (int k = 0; k < s->nodes; k++)
		if (s->node[k].parent == parent && s->node[k].func == func &&
		    s->node[k].thread == thread)
			return k;
	cr_assert_fail("no such context");
	return -1;
}

static void sim_compare(struct sim *s)
{
	struct snapshot *snap;
	uint64_t calls = 0;

	s->now += 7;
	for (int t = 0; t < SIM_THREADS; t++)
		if (s->t[t].seen)
			sim_charge(s, t);
	snap = take(s->p, s->now);
	for (uint32_t i = 0; i < snap->nnodes; i++) {
		const struct snapshot_node *n = &snap->nodes[i];
		const struct sim_node *m = &s->node[sim_node_of(s, snap, i)];

		cr_assert_eq(n->calls, m->calls);
		cr_assert_eq(n->inflight, m->inflight);
		cr_assert_eq(n->self[SNAPSHOT_CPU], m->self[SNAPSHOT_CPU]);
		cr_assert_eq(n->self[SNAPSHOT_WALL], m->self[SNAPSHOT_WALL]);
		calls += n->calls;
	}
	cr_assert_eq(calls, s->enters);
	cr_assert_eq(snap->targets->unmatched + snap->targets->unstarted, 0);
	check_threads(snap);
	check_view(snap, s->enters, SNAPSHOT_CPU);
	snapshot_free(snap);
}

static int resolve_by_number(void *ctx, uint64_t code, struct code_names *ret)
{
	(void)ctx;
	if (asprintf(&ret->name, "f%d", (int)((code - CODE(0)) / 0x10)) < 0)
		return -1;
	ret->filename = strdup("t.py");
	ret->qualname = strdup(ret->name);
	ret->firstlineno = 1;
	return 0;
}

/*
 * A name that did not fit into its record is requested, and accepted if it begins with the known
 * part.
 */
static void announce_cut(struct profile *p, uint64_t code, const char *name)
{
	static const char *const strings[] = {"t.py", NULL, NULL};
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_STRING};

	for (uint32_t which = PYP_STR_FILENAME; which <= PYP_STR_NAME; which++) {
		const char *str = strings[which] ? strings[which] : name;

		e.u.string = (struct event_string){.code = code,
						   .which = which,
						   .units = 100,
						   .bytes = (uint32_t)strlen(str),
						   .kind = 1,
						   .data = (const uint8_t *)str};
		e.u.string.flags = which == PYP_STR_NAME ? PYP_STRING_TRUNCATED : 0;
		profile_event(p, &e);
	}
	e = (struct event){.ts = 2, .tid = 1, .type = PYP_REC_CODE};
	e.u.code.code = code;
	profile_event(p, &e);
	e = (struct event){.ts = 3, .tid = 1, .type = PYP_REC_ENTER};
	e.u.call.frame = code + 1;
	e.u.call.code = code;
	profile_event(p, &e);
	e.type = PYP_REC_LEAVE;
	profile_event(p, &e);
}

Test(profile, names_that_were_cut)
{
	struct profile *p = profile_new(NULL, resolve_by_number, NULL);
	struct snapshot *s = snapshot_new();
	struct snapshot_target target = {0};
	bool whole = false, begun = false;

	announce_cut(p, CODE(12), "f1");
	announce_cut(p, CODE(13), "g1");
	assert_ok(profile_snapshot(p, 10, 1, s, &target));
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		whole |= strcmp(s->funcs[i].name, "f12") == 0;
		begun |= strcmp(s->funcs[i].name, "g1") == 0;
	}
	cr_assert(whole && begun);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

static void simulate(uint64_t seed, int steps, int greenlets)
{
	struct sim *s = calloc(1, sizeof(*s));

	cr_assert_not_null(s);
	rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	s->p = profile_new(NULL, resolve_by_number, NULL);
	s->now = 1000;
	s->next_frame = 0x100000;
	s->greenlets = greenlets;
	for (int i = 0; i < steps; i++)
		sim_step(s);
	sim_compare(s);
	profile_free(s->p);
	free(s);
}

Test(property, well_formed)
{
	for (uint64_t seed = 1; seed <= 1500; seed++)
		simulate(seed, 20 + (int)(seed % 300), 0);
	simulate(1, 20000, 0);
	check_no_leaks();
}

Test(property, well_formed_with_greenlets)
{
	for (uint64_t seed = 1; seed <= 1500; seed++)
		simulate(seed, 20 + (int)(seed % 300), SIM_STACKS);
	simulate(1, 20000, SIM_STACKS);
	check_no_leaks();
}

/* Malformed streams ------------------------------------------------------------------------- */

static void random_event(struct profile *p, uint64_t *now)
{
	static const uint8_t types[] = {
		PYP_REC_ENTER, PYP_REC_ENTER,	  PYP_REC_ENTER,      PYP_REC_THROW,
		PYP_REC_LEAVE, PYP_REC_LEAVE,	  PYP_REC_YIELD,      PYP_REC_CHAIN,
		PYP_REC_CODE,  PYP_REC_CODE_FREE, PYP_REC_SWITCH_OUT, PYP_REC_SWITCH_IN,
	};
	struct pyp_chain_frame frames[8];
	struct event e = {.tid = 1 + rnd(3), .type = types[rnd(sizeof(types))]};

	*now += rnd(20);
	e.ts = rnd(10) ? *now : *now - rnd(100);
	if (!rnd(200))
		e.type = PYP_REC_THREAD_EXIT;
	switch (e.type) {
	case PYP_REC_CHAIN:
		for (int i = 0; i < 8; i++)
			frames[i] = (struct pyp_chain_frame){1 + rnd(12), CODE(rnd(5))};
		e.u.chain.frames = frames;
		e.u.chain.count = rnd(9);
		e.u.chain.first = rnd(4) ? 0 : rnd(9);
		e.u.chain.flags = (uint16_t)(rnd(8) | (rnd(4) ? PYP_CHAIN_LAST : 0));
		break;
	case PYP_REC_CODE:
	case PYP_REC_CODE_FREE:
		e.u.code.code = CODE(rnd(5));
		break;
	case PYP_REC_SWITCH_IN:
	case PYP_REC_SWITCH_OUT:
		e.u.sw.runtime = rnd(3) ? *now / 2 : (uint64_t)rnd(1000) << rnd(50);
		break;
	case PYP_REC_THREAD_EXIT:
		e.u.thread.runtime = *now;
		break;
	default:
		e.u.call.frame = 1 + rnd(12);
		e.u.call.code = CODE(rnd(5));
		e.u.call.caller = rnd(13);
	}
	profile_event(p, &e);
}

static void random_call(struct profile *p, uint64_t *now)
{
	struct pyp_chain_frame frames[3] = {{1 + rnd(12), CODE(0)}, {1 + rnd(12), CODE(1)}};
	struct profile_seed seed = {
		.tid = 1 + rnd(3),
		.name = "thread",
		.running = rnd(2),
		.runtime = rnd(1000),
		.frames = frames,
		.n = rnd(3),
	};

	switch (rnd(5)) {
	case 0:
		profile_end(p, *now);
		profile_begin(p, *now + 5);
		break;
	case 1:
		profile_seed_thread(p, *now + rnd(50), &seed);
		break;
	case 2:
		profile_update_runtime(p, seed.tid, *now, rnd(2000));
		break;
	case 3:
		profile_clear(p, *now);
		break;
	default:
		profile_set_thread_name(p, seed.tid, "renamed");
	}
}

static void check_invariants(const struct profile *p, uint64_t now, int durations)
{
	struct snapshot *s = take(p, now);
	struct profile_counts c = profile_counts(p);

	check_threads(s);
	check_view(s, c.calls, durations);
	snapshot_free(s);
}

static void malformed(uint64_t seed, const struct profile_limits *limits, bool calls)
{
	struct profile *p = profile_new(limits, seed % 2 ? resolve_by_number : NULL, NULL);
	uint64_t now = 1000;
	int durations = !limits && !calls ? SNAPSHOT_WALL : SNAPSHOT_CLOCKS;

	rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 300; i++) {
		random_event(p, &now);
		if (calls && !rnd(40))
			random_call(p, &now);
		if (!rnd(100))
			check_invariants(p, now - rnd(30), durations);
	}
	check_invariants(p, now + 100, durations);
	profile_free(p);
}

Test(property, malformed)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		malformed(seed, NULL, false);
	check_no_leaks();
}

Test(property, malformed_with_calls)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		malformed(seed, NULL, true);
	check_no_leaks();
}

Test(property, malformed_at_the_caps)
{
	for (unsigned int seed = 1; seed <= 3000; seed++) {
		const struct profile_limits limits = {
			.nodes = 1 + seed % 20,
			.funcs = 1 + seed % 4,
			.threads = 1 + seed % 3,
			.depth = 1 + seed % 5,
			.string_bytes = 20 + seed % 30,
		};

		malformed(seed, &limits, seed % 2);
	}
	check_no_leaks();
}

/* Other tests ------------------------------------------------------------------------------- */

static void send(struct profile *p, uint64_t ts, uint8_t type, uint64_t frame, uint64_t code,
		 uint64_t caller)
{
	struct event e = {.ts = ts, .tid = 1, .type = type};

	e.u.call.frame = frame;
	e.u.call.code = code;
	e.u.call.caller = caller;
	profile_event(p, &e);
}

static void send_string(struct profile *p, uint64_t code, uint32_t which, unsigned int kind,
			const void *data, uint32_t bytes, uint8_t flags)
{
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_STRING};

	e.u.string = (struct event_string){.code = code,
					   .which = which,
					   .kind = (uint8_t)kind,
					   .bytes = bytes,
					   .flags = flags,
					   .data = data};
	profile_event(p, &e);
}

static void send_code(struct profile *p, uint64_t code, int32_t line)
{
	struct event e = {.ts = 1, .tid = 1, .type = PYP_REC_CODE};

	e.u.code.code = code;
	e.u.code.firstlineno = line;
	profile_event(p, &e);
}

static const struct snapshot_func *only_func(const struct snapshot *s)
{
	cr_assert_eq(s->nfuncs, 1);
	return &s->funcs[0];
}

Test(names, of_all_kinds)
{
	static const uint16_t ucs2[] = {'f', 0x20ac, 0xd800};
	static const uint32_t ucs4[] = {0x1f600, 'x'};
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct snapshot *s;

	send_string(p, 5, PYP_STR_FILENAME, 1, "caf\xe9", 4, 0);
	send_string(p, 5, PYP_STR_NAME, 2, ucs2, sizeof(ucs2), 0);
	send_string(p, 5, PYP_STR_QUALNAME, 4, ucs4, sizeof(ucs4), 0);
	send_code(p, 5, 77);
	send(p, 10, PYP_REC_ENTER, 1, 5, 0);
	s = take(p, 10);
	cr_assert_str_eq(only_func(s)->filename, "caf\xc3\xa9");
	cr_assert_str_eq(only_func(s)->name, "f\xe2\x82\xac\xef\xbf\xbd");
	cr_assert_str_eq(only_func(s)->qualname, "\xf0\x9f\x98\x80x");
	cr_assert_eq(only_func(s)->firstlineno, 77);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* A string that the BPF program could not read is requested; those that it read are kept. */
Test(names, unreadable)
{
	struct profile *p = profile_new(NULL, resolve_by_number, NULL);
	struct snapshot *s;

	send_string(p, CODE(3), PYP_STR_FILENAME, 1, "mine.py", 7, 0);
	send_string(p, CODE(3), PYP_STR_NAME, 1, NULL, 0, PYP_STRING_UNREADABLE);
	send_code(p, CODE(3), 9);
	send(p, 10, PYP_REC_ENTER, 1, CODE(3), 0);
	s = take(p, 10);
	cr_assert_str_eq(only_func(s)->filename, "mine.py");
	cr_assert_str_eq(only_func(s)->name, "f3");
	cr_assert_eq(only_func(s)->firstlineno, 9);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

Test(names, unreadable_for_good)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct snapshot *s;

	send_string(p, 5, PYP_STR_NAME, 1, "f", 1, 0);
	send_code(p, 5, 9);
	send(p, 10, PYP_REC_ENTER, 1, 5, 0);
	s = take(p, 10);
	cr_assert_str_eq(only_func(s)->filename, "<unreadable>");
	cr_assert_str_eq(only_func(s)->name, "f");
	cr_assert_null(only_func(s)->qualname);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* If more announcements are in progress than are kept, the oldest ones are requested again. */
Test(names, many_in_progress)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct event e = {.ts = 1, .type = PYP_REC_STRING};

	for (uint32_t tid = 1; tid <= 200; tid++) {
		e.tid = tid;
		e.u.string = (struct event_string){
			.code = tid, .kind = 1, .bytes = 1, .data = (const uint8_t *)"x"};
		profile_event(p, &e);
	}
	profile_free(p);
	check_no_leaks();
}

Test(snapshot, two_profiles_share_functions)
{
	struct profile *p = profile_new(NULL, resolve_by_number, NULL);
	struct profile *q = profile_new(NULL, resolve_by_number, NULL);
	struct snapshot *s = snapshot_new();
	struct snapshot_target t = {0};

	send(p, 10, PYP_REC_ENTER, 1, CODE(1), 0);
	send(p, 12, PYP_REC_ENTER, 2, CODE(2), 1);
	send(q, 10, PYP_REC_ENTER, 1, CODE(2), 0);
	send(q, 15, PYP_REC_ENTER, 2, CODE(3), 1);
	assert_ok(profile_snapshot(p, 20, 100, s, &t));
	assert_ok(profile_snapshot(q, 20, 200, s, &t));
	cr_assert(snapshot_valid(s));
	cr_assert_eq(s->nthreads, 2);
	cr_assert_eq(s->nfuncs, 3);
	cr_assert_eq(s->nnodes, 6);
	cr_assert_eq(t.events, 4);
	cr_assert_eq(s->threads[1].pid, 200);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_WALL], 10);
	snapshot_free(s);
	profile_free(p);
	profile_free(q);
	check_no_leaks();
}

/* Adding one process after another ---------------------------------------------------------- */

#define ADDED_FUNCS 20u

static struct profile *profile_of_child(uint32_t child)
{
	struct profile *p = profile_new(NULL, resolve_by_number, NULL);

	profile_keep_columns(p, COLUMN_BIT(COLUMN_vcsw));
	for (uint32_t i = 0; i < ADDED_FUNCS; i++) {
		send(p, 10 + 2 * i, PYP_REC_ENTER, 1, CODE(child * ADDED_FUNCS + i), 0);
		send(p, 11 + 2 * i, PYP_REC_LEAVE, 1, 0, 0);
	}
	return p;
}

struct added {
	double bytes, seconds;
};

static struct added add_children(uint32_t n)
{
	struct snapshot *s = snapshot_new();
	struct snapshot_target t = {0};
	struct added ret = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct profile *p = profile_of_child(i);
		struct timespec from, to;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		assert_ok(profile_snapshot(p, 1000, 100 + i, s, &t));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		ret.seconds += (double)(to.tv_sec - from.tv_sec) +
			       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
		profile_free(p);
	}
	cr_assert(snapshot_valid(s));
	cr_assert_eq(s->nthreads, n);
	cr_assert_eq(s->nfuncs, n * ADDED_FUNCS);
	ret.bytes = (double)snapshot_bytes(s);
	snapshot_free(s);
	return ret;
}

/*
 * Memory and time are proportional to the total size, even if each child has different functions.
 */
Test(snapshot, many_profiles_are_linear)
{
	struct added few = add_children(200), many = add_children(1600);

	cr_expect(many.bytes < 24 * few.bytes, "8 times as many take %.1f times the memory",
		  many.bytes / few.bytes);
	cr_expect(many.seconds < 32 * few.seconds, "8 times as many take %.1f times the time",
		  many.seconds / few.seconds);
	check_no_leaks();
}

static void count_thread(void *ctx, uint32_t tid)
{
	uint32_t *sum = ctx;

	*sum += tid;
}

Test(threads, foreach_and_names)
{
	struct profile *p = profile_new(NULL, NULL, NULL);
	struct profile_seed seed = {.tid = 7, .name = "a name that is longer than any that fits"};
	struct snapshot *s;
	uint32_t sum = 0;

	profile_begin(p, 5);
	profile_seed_thread(p, 6, &seed);
	send(p, 10, PYP_REC_ENTER, 1, 5, 0);
	profile_set_thread_name(p, 1, "main");
	profile_foreach_thread(p, count_thread, &sum);
	cr_assert_eq(sum, 7 + 1);
	s = take(p, 20);
	cr_assert_str_eq(s->threads[0].name, "a name that is longer than any ");
	cr_assert_str_eq(s->threads[1].name, "main");
	cr_assert_eq(s->threads[0].start_ns, 5);
	cr_assert_eq(s->threads[1].end_ns, 20);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

Test(threads, deep_stack)
{
	const struct profile_limits limits = {.depth = 65536};
	struct profile *p = profile_new(&limits, NULL, NULL);
	const uint64_t n = 70000;

	for (uint64_t i = 1; i <= n; i++)
		send(p, i, PYP_REC_ENTER, i, 5, i - 1);
	check_invariants(p, n, SNAPSHOT_CLOCKS);
	cr_assert_eq(profile_counts(p).truncated, n - 65536);
	for (uint64_t i = n; i > 0; i--)
		send(p, 2 * n - i, PYP_REC_LEAVE, i, 0, 0);
	cr_assert_eq(profile_counts(p).unmatched + profile_counts(p).unstarted, 0);
	check_invariants(p, 2 * n, SNAPSHOT_CLOCKS);
	profile_free(p);
	check_no_leaks();
}
