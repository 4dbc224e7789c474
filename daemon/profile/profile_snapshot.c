// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profile's part of a snapshot. Everything is copied: threads, nodes with figures and their
 * functions, which are merged by identity with those of other profiles in the snapshot. Time since
 * a thread's last event is added to the copy of its current node; the profile itself does not
 * change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/rest.h"
#include "counting/samples.h"
#include "profile/known_funcs.h"
#include "profile/profile_priv.h"
#include "profile/take_waits.h"
#include "stack/greenlet.h"
#include "stack/waits.h"

struct taker {
	const struct profile *p;
	struct snapshot *s;
	uint64_t now_ns;
	uint32_t pid;
	uint32_t *inflight;		    /* per node */
	uint64_t (*extra)[SNAPSHOT_CLOCKS]; /* per thread: time since its last event */
	uint32_t *charged;		    /* per node: 1 + the thread that adds time to it */
	uint32_t *node_map;		    /* node → snapshot's; SNAPSHOT_NONE: left out */
	uint32_t *func_map;   /* function → snapshot's; SNAPSHOT_NONE: not copied yet */
	const char **strings; /* per string id; NULL: not copied yet */
	struct coro_sums coros, greenlets; /* including running instances */
	uint64_t waiting;		   /* columns of the reasons that threads wait for now */
	struct rest rest;		   /* if traced in windows */
	uint32_t first;			   /* node of the snapshot */
	struct waiting_shares shares;	   /* of threads that send no events */
};

static void taker_deinit(struct taker *t)
{
	rest_deinit(&t->rest);
	free(t->coros.v);
	free(t->greenlets.v);
	free(t->inflight);
	free(t->extra);
	free(t->charged);
	free(t->node_map);
	free(t->func_map);
	free(t->strings);
	waiting_shares_deinit(&t->shares);
}

static uint32_t *none_array(size_t n)
{
	uint32_t *a = reallocarray(NULL, n + 1, sizeof(*a));

	if (a)
		memset(a, 0xff, (n + 1) * sizeof(*a));
	return a;
}

static int taker_init(struct taker *t)
{
	const struct profile *p = t->p;
	size_t nodes = p->rb.tree.n, funcs = p->codes.funcs.n;

	t->inflight = calloc(nodes + 1, sizeof(*t->inflight));
	t->charged = calloc(nodes + 1, sizeof(*t->charged));
	t->extra = calloc((size_t)p->threads.n + 1, sizeof(*t->extra));
	t->strings = calloc((size_t)p->codes.funcs.strings.n + 1, sizeof(*t->strings));
	t->node_map = none_array(nodes);
	t->func_map = none_array(funcs);
	if (!t->inflight || !t->charged || !t->extra || !t->strings || !t->node_map || !t->func_map)
		return -ENOMEM;
	return waiting_share(&p->waiting, &p->threads, t->now_ns, &t->shares);
}

/* Running activations ---------------------------------------------------------------------- */

static void stack_inflight(struct taker *t, const struct thread *th, const struct stack *s)
{
	for (uint32_t i = 0; i < s->depth; i++)
		t->inflight[s->acts[i].node]++;
	t->inflight[NODE_TRUNCATED(th->root)] += s->overflow;
}

static void thread_inflight(struct taker *t, uint32_t i)
{
	const struct thread *th = t->p->threads.v[i];
	uint64_t wall;

	if (!th->live || !t->p->tracing)
		return;
	stack_inflight(t, th, &th->cur);
	for (uint32_t k = 0; k < th->nslots; k++)
		if (th->parked[k].parked)
			stack_inflight(t, th, &th->parked[k].stack);
	if (t->now_ns <= th->last_ts)
		return;
	wall = t->now_ns - th->last_ts;
	t->extra[i][SNAPSHOT_WALL] = wall;
	t->extra[i][SNAPSHOT_CPU] = th->on_cpu ? wall : 0;
	t->charged[th->node] = i + 1;
}

/* Running coroutines ----------------------------------------------------------------------- */

static int copy_sums(struct coro_sums *to, const struct coro_sums *from)
{
	to->v = calloc((size_t)from->n + 1, sizeof(*to->v));
	if (!to->v)
		return -ENOMEM;
	to->n = from->n;
	if (from->n)
		memcpy(to->v, from->v, from->n * sizeof(*to->v));
	return 0;
}

/* The sums exist, because the function was entered. */
static struct coro_sum *sum_of(struct coro_sums *sums, const struct activation *a)
{
	return activation_func(a) < sums->n ? &sums->v[activation_func(a)] : NULL;
}

static void activation_running(struct taker *t, const struct activation *a, const uint64_t *clock)
{
	struct coro_sum *sum = a->func_kind & ACTIVATION_SUSPENDS ? sum_of(&t->coros, a) : NULL;

	if (!sum || a->enter[SNAPSHOT_WALL] == ACTIVATION_PARTIAL)
		return;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		sum->running[c] += clock[c] - a->enter[c];
}

static void stack_running(struct taker *t, const struct stack *s, const uint64_t *clock)
{
	struct coro_sum *sum = s->greenlet && s->depth ? sum_of(&t->greenlets, &s->acts[0]) : NULL;

	for (uint32_t i = 0; i < s->depth; i++)
		activation_running(t, &s->acts[i], clock);
	if (sum)
		greenlet_charge(sum, s, clock, t->now_ns);
}

static void thread_running(struct taker *t, uint32_t i)
{
	const struct thread *th = t->p->threads.v[i];
	uint64_t clock[SNAPSHOT_CLOCKS];

	if (!th->live || !t->p->tracing)
		return;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		clock[c] = thread_clock(th, c) + t->extra[i][c];
	stack_running(t, &th->cur, clock);
	for (uint32_t k = 0; k < th->nslots; k++)
		if (th->parked[k].parked)
			stack_running(t, &th->parked[k].stack, th->parked[k].stack.clock);
}

/* Adds the current waiting of suspended instances, unless their end was missed. */
static void coros_waiting(struct taker *t)
{
	const struct coros *cs = &t->p->rb.coros;

	for (uint32_t i = 0; i < cs->n && !cs->ends_hidden; i++) {
		const struct coro *c = &cs->list[i];

		if (c->used && c->suspended && t->now_ns > c->since && c->func < t->coros.n)
			t->coros.v[c->func].suspended += t->now_ns - c->since;
	}
}

static int coros_inflight(struct taker *t)
{
	const struct coros *cs = &t->p->rb.coros;

	if (copy_sums(&t->coros, &cs->sums) || copy_sums(&t->greenlets, &cs->greenlets))
		return -ENOMEM;
	coros_waiting(t);
	for (uint32_t i = 0; i < t->p->threads.n; i++)
		thread_running(t, i);
	return 0;
}

static bool sum_used(const struct coro_sum *sum)
{
	return sum->started || sum->partial || sum->steps || sum->ended;
}

/* Functions -------------------------------------------------------------------------------- */

static const char *copy_string(struct taker *t, uint32_t id)
{
	if (id == STRTAB_NONE)
		return NULL;
	if (!t->strings[id])
		t->strings[id] = snapshot_str(t->s, strtab_get(&t->p->codes.funcs.strings, id));
	return t->strings[id];
}

static int add_func(struct taker *t, uint32_t func)
{
	const struct func *fn = &t->p->codes.funcs.list[func];
	struct snapshot_func *out = &t->s->funcs[t->s->nfuncs];

	*out = (struct snapshot_func){
		.filename = copy_string(t, fn->filename),
		.name = copy_string(t, fn->name),
		.qualname = copy_string(t, fn->qualname),
		.firstlineno = fn->firstlineno,
		.variant = fn->variant,
		.instant = fn->instant,
		.pseudo = func_is_pseudo(func),
	};
	if (!out->filename || !out->name || (fn->qualname != STRTAB_NONE && !out->qualname))
		return -ENOMEM;
	t->func_map[func] = t->s->nfuncs++;
	known_funcs_add(t->s);
	return 0;
}

static int take_func(struct taker *t, uint32_t func)
{
	struct func_identity id;

	if (func == SNAPSHOT_NONE || t->func_map[func] != SNAPSHOT_NONE)
		return 0;
	id = funcs_identity(&t->p->codes.funcs, func);
	t->func_map[func] = known_funcs_find(t->s, &id, t->p->codes.funcs.list[func].variant,
					     func_is_pseudo(func));
	return t->func_map[func] == SNAPSHOT_NONE ? add_func(t, func) : 0;
}

static uint32_t mark_needed(struct taker *t, uint32_t func)
{
	if (func == SNAPSHOT_NONE || t->func_map[func] != SNAPSHOT_NONE)
		return 0;
	t->func_map[func] = 0;
	return 1;
}

static uint32_t mark_sums(struct taker *t, const struct coro_sums *sums)
{
	uint32_t needed = 0;

	for (uint32_t i = 0; i < sums->n; i++)
		if (sum_used(&sums->v[i]))
			needed += mark_needed(t, i);
	return needed;
}

/* Copies durations for the snapshot's functions, if all of its targets were traced continuously. */
static int take_durations(struct taker *t)
{
	int err = 0;

	for (uint32_t i = 0; i < t->p->codes.funcs.n && !err; i++)
		if (t->func_map[i] != SNAPSHOT_NONE)
			err = durations_take(&t->p->rb.durations, i, t->s,
					     &t->s->funcs[t->func_map[i]]);
	return err;
}

static int take_sums_funcs(struct taker *t, const struct coro_sums *sums)
{
	for (uint32_t i = 0; i < sums->n; i++)
		if (sum_used(&sums->v[i]) && take_func(t, i))
			return -ENOMEM;
	return 0;
}

/* Copies functions on demand; the array has room for all of them. */
static int take_funcs(struct taker *t)
{
	const struct calltree *tree = &t->p->rb.tree;
	struct snapshot_func *funcs;
	uint32_t needed = 0;

	for (uint32_t i = 0; i < tree->n; i++) {
		if (t->node_map[i] != SNAPSHOT_NONE)
			needed += mark_needed(t, tree->nodes[i].func);
	}
	needed += mark_sums(t, &t->coros) + mark_sums(t, &t->greenlets);
	memset(t->func_map, 0xff, t->p->codes.funcs.n * sizeof(*t->func_map));
	funcs = snapshot_grow(t->s, &t->s->adding.funcs, t->s->funcs, t->s->nfuncs, needed,
			      sizeof(*funcs));
	if (!funcs)
		return -ENOMEM;
	t->s->funcs = funcs;
	if (known_funcs_prepare(t->s, needed))
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->n; i++)
		if (t->node_map[i] != SNAPSHOT_NONE && take_func(t, tree->nodes[i].func))
			return -ENOMEM;
	return take_sums_funcs(t, &t->coros) || take_sums_funcs(t, &t->greenlets) ? -ENOMEM : 0;
}

/* Coroutines ------------------------------------------------------------------------------- */

static enum snapshot_coro_kind kind_of(const struct taker *t, uint32_t func)
{
	uint32_t flags = t->p->codes.funcs.list[func].flags;

	if (flags & PYP_CO_ASYNC_GENERATOR)
		return SNAPSHOT_ASYNC_GENERATOR;
	return flags & PYP_CO_COROUTINE ? SNAPSHOT_COROUTINE : SNAPSHOT_GENERATOR;
}

static void take_sum(struct taker *t, const struct coro_sum *sum, uint32_t func,
		     enum snapshot_coro_kind kind)
{
	if (!sum_used(sum))
		return;
	t->s->coros[t->s->ncoros++] = (struct snapshot_coro){
		.pid = t->pid,
		.func = t->func_map[func],
		.kind = kind,
		.ends_hidden = t->p->rb.coros.ends_hidden && kind != SNAPSHOT_GREENLET,
		.started = sum->started,
		.partial = sum->partial,
		.ended = sum->ended,
		.steps = sum->steps,
		.running = {sum->running[SNAPSHOT_CPU], sum->running[SNAPSHOT_WALL]},
		.suspended = sum->suspended,
		.lifetimes = sum->lifetimes,
		.total = sum->total,
		.min = sum->min,
		.max = sum->max,
	};
}

static int take_coros(struct taker *t)
{
	struct snapshot_coro *coros;

	coros = snapshot_grow(t->s, &t->s->adding.coros, t->s->coros, t->s->ncoros,
			      t->coros.n + t->greenlets.n, sizeof(*coros));
	if (!coros)
		return -ENOMEM;
	t->s->coros = coros;
	for (uint32_t i = 0; i < t->coros.n; i++)
		take_sum(t, &t->coros.v[i], i, kind_of(t, i));
	for (uint32_t i = 0; i < t->greenlets.n; i++)
		take_sum(t, &t->greenlets.v[i], i, SNAPSHOT_GREENLET);
	return 0;
}

/* Nodes and threads ------------------------------------------------------------------------ */

static bool node_used(const struct taker *t, uint32_t i)
{
	const struct node *n = &t->p->rb.tree.nodes[i];

	return n->calls || n->self[SNAPSHOT_CPU] || n->self[SNAPSHOT_WALL] || t->inflight[i] ||
	       t->charged[i] || (t->shares.sum && t->shares.sum[i]) ||
	       (t->p->windows && evidence_has(&t->p->evidence, i)) ||
	       (!t->p->traces_calls && profile_has_memory(t->p, i));
}

/* Marks the nodes to copy and their ancestors, then numbers them in order. */
static uint32_t number_nodes(struct taker *t)
{
	const struct calltree *tree = &t->p->rb.tree;
	uint32_t count = 0, first = t->s->nnodes;

	for (uint32_t i = tree->n; i-- > 0;) {
		uint32_t parent = tree->parents[i];

		if (t->node_map[i] == SNAPSHOT_NONE && !node_used(t, i))
			continue;
		t->node_map[i] = 0;
		if (parent != NODE_NONE)
			t->node_map[parent] = 0;
	}
	for (uint32_t i = 0; i < t->p->threads.n; i++)
		if (i != THREADS_OVERFLOW)
			t->node_map[t->p->threads.v[i]->root] = 0;
	for (uint32_t i = 0; i < tree->n; i++)
		if (t->node_map[i] != SNAPSHOT_NONE)
			t->node_map[i] = first + count++;
	return count;
}

/* The open stretch shows times, too: always if there is nothing else. */
static bool is_light(const struct profile *p)
{
	return p->stretch && (p->accuracy.light || !p->evidence.partial);
}

/*
 * The figures of the tree; or of light stretches, to which the tree's belong if one is open.
 */
static void take_figures(const struct taker *t, uint32_t i, struct snapshot_node *out)
{
	const struct profile *p = t->p;
	const struct calltree *tree = &p->rb.tree;
	const struct evidence_exact none = {0}, *exact = p->windows && i < p->evidence.n
								 ? &p->evidence.nodes[i].exact
								 : &none;
	const bool in = !p->windows || is_light(p);

	out->calls = exact->calls + (in ? tree->nodes[i].calls : 0);
	out->yields = exact->yields + (in ? tree->yields[i] : 0);
	out->self[SNAPSHOT_CPU] = exact->cpu;
	if (in)
		out->self[SNAPSHOT_CPU] += tree->nodes[i].self[SNAPSHOT_CPU];
	out->self[SNAPSHOT_WALL] = p->windows ? out->self[SNAPSHOT_CPU]
					      : tree->nodes[i].self[SNAPSHOT_WALL];
	if (t->shares.sum)
		out->self[SNAPSHOT_WALL] = out->self[SNAPSHOT_CPU] + t->shares.sum[i];
}

/* Time since the last event. In windows, samples show it, and waiting without stretches. */
static void add_extra(const struct taker *t, uint32_t i, struct snapshot_node *out)
{
	const uint64_t *extra = t->charged[i] ? t->extra[t->charged[i] - 1] : NULL;
	const struct profile *p = t->p;

	if (!extra || (p->windows && !p->stretch))
		return;
	out->self[SNAPSHOT_WALL] += extra[SNAPSHOT_WALL];
	if (!p->windows || is_light(p))
		out->self[SNAPSHOT_CPU] += extra[SNAPSHOT_CPU];
	else
		out->self[SNAPSHOT_WALL] -= extra[SNAPSHOT_CPU];
}

static int take_nodes(struct taker *t, uint32_t count)
{
	const struct calltree *tree = &t->p->rb.tree;
	struct snapshot_node *nodes;

	nodes = snapshot_grow(t->s, &t->s->adding.nodes, t->s->nodes, t->s->nnodes, count,
			      sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	t->s->nodes = nodes;
	t->s->nnodes += count;
	for (uint32_t i = 0; i < tree->n; i++) {
		const struct node *n = &tree->nodes[i];
		struct snapshot_node *out;

		if (t->node_map[i] == SNAPSHOT_NONE)
			continue;
		out = &nodes[t->node_map[i]];
		out->parent = tree->parents[i] == NODE_NONE ? SNAPSHOT_NONE
							    : t->node_map[tree->parents[i]];
		out->func = n->func == SNAPSHOT_NONE ? SNAPSHOT_NONE : t->func_map[n->func];
		out->inflight = t->inflight[i];
		take_figures(t, i, out);
		add_extra(t, i, out);
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			out->min[c] = n->min[c];
			out->max[c] = n->max[c];
		}
	}
	return 0;
}

static const uint64_t *column_of(const struct taker *t, int c)
{
	if (t->shares.sum && COLUMN_WAITS & COLUMN_BIT(c))
		return t->shares.of[c];
	return t->p->rb.tree.columns[c];
}

/* Earlier targets in the snapshot may lack the column; theirs is 0 then. */
static int take_column(struct taker *t, uint32_t first, int c)
{
	const struct calltree *tree = &t->p->rb.tree;
	const uint64_t *of = column_of(t, c);
	uint64_t *all;

	if (!of && !t->s->columns[c] && !(t->waiting & COLUMN_BIT(c)))
		return 0;
	all = snapshot_grow(t->s, &t->s->adding.columns[c], t->s->columns[c], first,
			    t->s->nnodes - first, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->n && of; i++)
		if (t->node_map[i] != SNAPSHOT_NONE)
			all[t->node_map[i]] = of[i];
	t->s->columns[c] = all;
	return 0;
}

/* Adds the current waiting of threads that are off their CPUs: see mark_waiting. */
static void add_waiting(struct taker *t, const struct thread *th, uint64_t wall)
{
	const struct node *n = &t->p->rb.tree.nodes[th->node];
	struct node later = *n;
	uint64_t ns;
	uint32_t node = t->node_map[th->node];

	later.self[SNAPSHOT_WALL] += wall;
	ns = waits_of(&later) - waits_of(n);
	t->s->columns[waits_column(th->wait.why)][node] += ns;
	if (wait_is_io(th->wait.why))
		t->s->columns[COLUMN_io][node] += ns;
}

static bool is_waiting(const struct taker *t, uint32_t i)
{
	return profile_is_timed(t->p) && t->extra[i][SNAPSHOT_WALL] && !t->extra[i][SNAPSHOT_CPU] &&
	       waits_kept(&t->p->rb.tree);
}

static void mark_waiting(struct taker *t)
{
	for (uint32_t i = 0; i < t->p->threads.n; i++) {
		enum wait_reason why = t->p->threads.v[i]->wait.why;

		if (is_waiting(t, i))
			t->waiting |= COLUMN_BIT(waits_column(why)) |
				      (wait_is_io(why) ? COLUMN_BIT(COLUMN_io) : 0);
	}
}

static int take_columns(struct taker *t, uint32_t first)
{
	int err = 0;

	mark_waiting(t);
	for (int c = 0; c < COLUMNS && !err; c++)
		err = take_column(t, first, c);
	t->s->measured |= t->p->measured;
	for (uint32_t i = 0; i < t->p->threads.n && !err; i++)
		if (is_waiting(t, i))
			add_waiting(t, t->p->threads.v[i], t->extra[i][SNAPSHOT_WALL]);
	return err;
}

static uint64_t thread_end(const struct taker *t, const struct thread *th)
{
	uint64_t end = th->end_ns > th->last_ts ? th->end_ns : th->last_ts;

	return th->live && t->p->tracing && t->now_ns > end ? t->now_ns : end;
}

/* A row of ended threads has the name of its entry function. */
static int take_name(struct taker *t, const struct thread *th, struct snapshot_thread *out)
{
	out->folded = th->folded;
	if (!th->folded) {
		out->name = snapshot_str(t->s, th->name);
		return out->name ? 0 : -ENOMEM;
	}
	if (th->entry != SNAPSHOT_NONE) {
		out->entry = copy_string(t, t->p->codes.funcs.list[th->entry].name);
		if (!out->entry)
			return -ENOMEM;
	}
	out->name = snapshot_folded_name(t->s, th->folded, out->entry);
	return out->name ? 0 : -ENOMEM;
}

static int take_threads(struct taker *t)
{
	const struct profile *p = t->p;
	struct snapshot_thread *threads;

	threads = snapshot_grow(t->s, &t->s->adding.threads, t->s->threads, t->s->nthreads,
				p->threads.n, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	t->s->threads = threads;
	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct thread *th = p->threads.v[i];
		struct snapshot_thread *out = &threads[t->s->nthreads];

		if (t->node_map[th->root] == SNAPSHOT_NONE)
			continue;
		out->pid = t->pid;
		out->tid = th->tid;
		if (take_name(t, th, out))
			return -ENOMEM;
		out->alive = th->alive;
		out->start_ns = th->start_ns;
		out->end_ns = thread_end(t, th);
		out->root = t->node_map[th->root];
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			out->total[c] = th->total[c] + t->extra[i][c];
		if (t->shares.total)
			out->total[SNAPSHOT_WALL] = out->total[SNAPSHOT_CPU] + t->shares.total[i];
		t->s->nodes[out->root].thread = t->s->nthreads++;
	}
	return 0;
}

/* Per node: itself; of a C function or a collection, the Python function's node */
static void find_callers(const struct profile *p, uint32_t *callers)
{
	const struct calltree *tree = &p->rb.tree;

	/* Parents come first. */
	for (uint32_t i = 0; i < tree->n; i++) {
		const uint32_t func = tree->nodes[i].func, parent = tree->parents[i];
		const bool belongs = parent != NODE_NONE && func != SNAPSHOT_NONE &&
				     (funcs_is_native(&p->codes.funcs, func) || func_is_gc(func));

		callers[i] = belongs ? callers[parent] : i;
	}
}

/* All targets have room if one needs it. */
static int reserve_rest(struct taker *t)
{
	struct snapshot *s = t->s;
	const uint32_t have = s->rest ? t->first : 0, whole = s->wholes ? t->first : 0;

	if (!t->p->windows && !s->rest)
		return 0;
	s->rest = snapshot_grow(s, &s->adding.rest, s->rest, have, s->nnodes - have,
				sizeof(*s->rest));
	s->wholes = snapshot_grow(s, &s->adding.wholes, s->wholes, whole, s->nnodes - whole,
				  sizeof(*s->wholes));
	return s->rest && s->wholes ? 0 : -ENOMEM;
}

/* What was not traced as it is: samples, and calls from windows; and calls without the times that they had. */
static int take_rest(struct taker *t, struct snapshot_target *target)
{
	const struct profile *p = t->p;
	const struct calltree *tree = &p->rb.tree;
	_cleanup_free_ uint32_t *callers = none_array(tree->n);
	const struct rest_given given = {
		.e = &p->evidence,
		.tree = tree,
		.callers = callers,
		.nfuncs = p->codes.funcs.n,
		.stretch = p->stretch,
		.light = is_light(p),
		.hit_ns = cost_enter(&target->cost) / p->accuracy.times,
		.times = p->accuracy.times,
		.error = p->accuracy.error,
		.period_ns = (double)target->estimate.period_ns,
	};

	if (!callers)
		return -ENOMEM;
	find_callers(p, callers);
	if (rest_solve(&given, &t->rest) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->n; i++)
		if (t->node_map[i] != SNAPSHOT_NONE)
			t->s->rest[t->node_map[i]] = rest_of(&given, &t->rest, i);
	for (uint32_t i = 0; i < p->wholes.n; i++)
		if (t->node_map[i] != SNAPSHOT_NONE)
			t->s->wholes[t->node_map[i]] = p->wholes.v[i].sums;
	profile_windows(p, &target->windows);
	target->windows.samples_factor = p->accuracy.times;
	return 0;
}

/* Samples in light stretches, by function */
static int take_within(const struct taker *t, struct snapshot_target *target)
{
	const struct profile *p = t->p;
	uint64_t *of = snapshot_alloc(t->s, (size_t)t->s->nfuncs + 1, sizeof(*of));
	const uint64_t period = target->estimate.period_ns ? target->estimate.period_ns : 1;

	if (!of)
		return -ENOMEM;
	target->beside.trace = (struct snapshot_sampled){.of = of, .n = t->s->nfuncs};
	for (uint32_t i = 0; i < p->evidence.n; i++) {
		const struct evidence_node *n = &p->evidence.nodes[i];
		const uint32_t func = p->rb.tree.nodes[i].func;
		const uint64_t ns = n->exact.samples + (is_light(p) ? n->within : 0);

		if (func == SNAPSHOT_NONE || t->func_map[func] == SNAPSHOT_NONE)
			target->beside.trace.outside += ns / period;
		else
			of[t->func_map[func]] += ns / period;
	}
	return 0;
}

/*
 * The errors of samples and of estimated calls. Times of stretches are known at least as well as if they were of
 * samples, whose sums have an error, too.
 */
static int take_errors(struct taker *t, struct snapshot_target *target, uint32_t first_thread)
{
	const struct profile *p = t->p;
	_cleanup_free_ uint64_t *cpu = calloc((size_t)t->s->nnodes + 1, sizeof(*cpu));
	double variance[SNAPSHOT_FIGURES] = {0};

	if (!cpu)
		return -ENOMEM;
	if (!p->evidence.partial)
		return 0;
	for (uint32_t i = t->first; i < t->s->nnodes; i++)
		cpu[i] = t->s->nodes[i].self[SNAPSHOT_CPU] + t->s->rest[i].cpu;
	for (uint32_t i = 0; i < p->codes.funcs.n; i++) {
		if (t->func_map[i] == SNAPSHOT_NONE)
			continue;
		variance[SNAPSHOT_CALLS] = t->rest.variance[i];
		snapshot_add_variance(&t->s->funcs[t->func_map[i]], variance);
	}
	return profile_wait_errors(p, &t->shares, t->node_map, t->s, first_thread,
				   &(struct samples_cpu){cpu, target->estimate.period_ns});
}

/* Samples of functions without a context were not traced; they count as outside. */
static int take_sampled(const struct taker *t, const struct samples_by_func *b,
			struct snapshot_sampled *ret)
{
	uint64_t *of = snapshot_alloc(t->s, (size_t)t->s->nfuncs + 1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	*ret = (struct snapshot_sampled){of, t->s->nfuncs, b->outside};
	for (uint32_t i = 0; i < b->n && i < t->p->codes.funcs.n; i++)
		if (t->func_map[i] != SNAPSHOT_NONE)
			of[t->func_map[i]] += b->of[i];
		else
			ret->outside += b->of[i];
	return 0;
}

static int take_beside(const struct taker *t, struct snapshot_target *target)
{
	int r = take_sampled(t, &t->p->beside.trace, &target->beside.trace);

	return r < 0 ? r : take_sampled(t, &t->p->beside.before, &target->beside.before);
}

static void add_counters(const struct profile *p, struct snapshot_target *target)
{
	target->events += p->events;
	target->unmatched += p->rb.unmatched;
	target->unseen += p->rb.unseen;
	target->unstarted += p->rb.unstarted;
	target->stack_switches += p->rb.stack_switches;
	target->resyncs += p->resyncs;
	target->missed_switches += p->timing.missed;
	target->unsplit_waits += p->timing.unsplit;
	target->truncated += p->rb.truncated + p->rb.tree.dropped;
	target->forgotten += p->rb.coros.forgotten;
	target->durations_dropped += p->rb.durations.dropped;
}

int profile_snapshot(const struct profile *p, uint64_t now_ns, uint32_t pid, struct snapshot *s,
		     struct snapshot_target *target)
{
	_cleanup_(taker_deinit) struct taker t = {
		.p = p, .s = s, .now_ns = now_ns, .pid = pid, .first = s->nnodes};
	uint32_t first = s->nnodes, first_thread = s->nthreads, count;
	int err = taker_init(&t);

	if (err)
		return err;
	for (uint32_t i = 0; i < p->threads.n; i++)
		thread_inflight(&t, i);
	err = coros_inflight(&t);
	if (err)
		return err;
	count = number_nodes(&t);
	err = take_funcs(&t);
	if (!err)
		err = take_nodes(&t, count);
	if (!err)
		err = take_columns(&t, first);
	if (!err && !p->evidence.partial)
		err = take_durations(&t);
	if (!err)
		err = take_threads(&t);
	if (!err)
		err = take_coros(&t);
	if (err)
		return err;
	for (uint32_t i = first; i < s->nnodes; i++)
		if (s->nodes[i].parent != SNAPSHOT_NONE)
			s->nodes[i].thread = s->nodes[s->nodes[i].parent].thread;
	add_counters(p, target);
	err = reserve_rest(&t);
	if (!err)
		err = line_counts_take(&p->lines, t.func_map, s, &target->lines_dropped);
	if (err)
		return err;
	err = take_waits(p, t.func_map, s, target);
	if (err)
		return err;
	if (p->windows) {
		err = take_rest(&t, target);
		if (!err)
			err = take_within(&t, target);
		return err ? err : take_errors(&t, target, first_thread);
	}
	if (p->beside.wanted)
		return take_beside(&t, target);
	if (p->beside.before.of)
		err = take_sampled(&t, &p->beside.before, &target->beside.before);
	if (err)
		return err;
	if (target->mode != MODE_SAMPLE && !target->estimate.rate && !t.shares.sum)
		return 0;
	return profile_wait_errors(p, &t.shares, t.node_map, s, first_thread,
				   &(struct samples_cpu){NULL, target->estimate.period_ns});
}
