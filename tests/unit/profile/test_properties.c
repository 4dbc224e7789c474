// SPDX-License-Identifier: BSD-2-Clause
/*
 * Properties of profiles, over thousands of random event streams with fixed seeds. Well-formed
 * streams come from a simulated program that keeps its own simple account of each context; the
 * profile must agree exactly. Malformed streams, and very deep stacks, must preserve the invariants.
 */
#include "harness/numbered.h"
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
	e.u.call.code = NUMBERED_CODE(func);
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
	snap = profile_take(s->p, s->now);
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

static void simulate(uint64_t seed, int steps, int greenlets)
{
	struct sim *s = calloc(1, sizeof(*s));

	cr_assert_not_null(s);
	rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	s->p = profile_new(NULL, numbered_resolve, NULL);
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
	for (uint64_t seed = 1; seed <= 500; seed++)
		simulate(seed, 20 + (int)(seed % 300), 0);
	simulate(1, 20000, 0);
	check_no_leaks();
}

Test(property, well_formed_with_greenlets)
{
	for (uint64_t seed = 1; seed <= 500; seed++)
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
			frames[i] = (struct pyp_chain_frame){1 + rnd(12), NUMBERED_CODE(rnd(5))};
		e.u.chain.frames = frames;
		e.u.chain.count = rnd(9);
		e.u.chain.first = rnd(4) ? 0 : rnd(9);
		e.u.chain.flags = (uint16_t)(rnd(8) | (rnd(4) ? PYP_CHAIN_LAST : 0));
		break;
	case PYP_REC_CODE:
	case PYP_REC_CODE_FREE:
		e.u.code.code = NUMBERED_CODE(rnd(5));
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
		e.u.call.code = NUMBERED_CODE(rnd(5));
		e.u.call.caller = rnd(13);
	}
	profile_event(p, &e);
}

static void random_call(struct profile *p, uint64_t *now)
{
	struct pyp_chain_frame frames[3] = {{1 + rnd(12), NUMBERED_CODE(0)},
					    {1 + rnd(12), NUMBERED_CODE(1)}};
	struct initial_stack initial = {
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
		profile_add_initial(p, *now + rnd(50), &initial);
		break;
	case 2:
		profile_update_runtime(p, initial.tid, *now, rnd(2000));
		break;
	case 3:
		profile_clear(p, *now);
		break;
	default:
		profile_set_thread_name(p, initial.tid, "renamed");
	}
}

static void check_invariants(const struct profile *p, uint64_t now, int durations)
{
	struct snapshot *s = profile_take(p, now);
	struct profile_counts c = profile_counts(p);

	check_threads(s);
	check_view(s, c.calls, durations);
	snapshot_free(s);
}

static void malformed(uint64_t seed, const struct profile_limits *limits, bool calls)
{
	struct profile *p = profile_new(limits, seed % 2 ? numbered_resolve : NULL, NULL);
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
	for (uint64_t seed = 1; seed <= 1000; seed++)
		malformed(seed, NULL, false);
	check_no_leaks();
}

Test(property, malformed_with_calls)
{
	for (uint64_t seed = 1; seed <= 1000; seed++)
		malformed(seed, NULL, true);
	check_no_leaks();
}

Test(property, malformed_at_the_caps)
{
	for (unsigned int seed = 1; seed <= 1000; seed++) {
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

/* Very deep stacks -------------------------------------------------------------------------- */

Test(threads, deep_stack)
{
	const struct profile_limits limits = {.depth = 65536};
	struct profile *p = profile_new(&limits, NULL, NULL);
	const uint64_t n = 70000;

	for (uint64_t i = 1; i <= n; i++)
		profile_send(p, i, PYP_REC_ENTER, i, 5, i - 1);
	check_invariants(p, n, SNAPSHOT_CLOCKS);
	cr_assert_eq(profile_counts(p).truncated, n - 65536);
	for (uint64_t i = n; i > 0; i--)
		profile_send(p, 2 * n - i, PYP_REC_LEAVE, i, 0, 0);
	cr_assert_eq(profile_counts(p).unmatched + profile_counts(p).unstarted, 0);
	check_invariants(p, 2 * n, SNAPSHOT_CLOCKS);
	profile_free(p);
	check_no_leaks();
}
