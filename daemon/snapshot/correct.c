// SPDX-License-Identifier: BSD-2-Clause
/*
 * Taking the probes' own time out
 *
 * Each event costs its thread some time before its clock is read and some after. The time between
 * two events, which is charged to the function running then, therefore holds what the first one
 * costs after its reading and what the second one costs before it. Which events begin and end the
 * stretches of a context follows from counts that are there anyway:
 *
 *	begun by its own entry		as often as it was called
 *	ended by its own end		as often as it was called and does not run any more
 *	ended by a callee's entry	as often as its callees were called
 *	begun by a callee's end		as often as these do not run any more
 *
 * So nothing needs to be counted for this at run time, but how many ends were suspensions, where
 * these cost something else. The stretches of a context are as many as begin; what they are dragged
 * by depends on how long they are, which is taken to be the same for all of them. Self times are
 * corrected, and since all else is derived from them, callers and their callers are right as well;
 * threads' totals stay the sums of their contexts.
 *
 * The shortest and the longest activation lose the costs of their own two events, which is exact,
 * and the mean of what their callees' events cost, which is exact where each calls the same. Where
 * one is shorter than that mean, it loses the least that a call costs; a duration of which nothing is
 * left is not known, and is never shown as 0.
 *
 * A mean cost may be more than a context has, where hits were cheaper than usual: it is 0 then, and
 * counted. What is summed in "(truncated)" pays for its calls itself: its callers are not known.
 */
#include "snapshot/correct.h"

#include <errno.h>
#include <string.h>

#include "snapshot/reconcile.h"
#include "snapshot/waits.h"

struct ends {
	uint64_t calls, leaves, yields;
	uint64_t instants; /* calls of C functions that have no end: all of it is their caller's */
};

struct work {
	struct snapshot *s;
	struct ends *callees;	  /* by node: sums over its children */
	uint64_t *below;	  /* by node: what all events of it and below cost */
	uint64_t *taken;	  /* by node: what was subtracted, or should have been */
	const struct cost **cost; /* by thread; NULL: not known */
	struct snapshot_target **target;
};

/* Has it no events of its own? */
static bool is_pseudo(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func != SNAPSHOT_NONE && s->funcs[n->func].pseudo &&
	       !snapshot_func_is_gc(&s->funcs[n->func]);
}

static struct ends ends_of(const struct snapshot *s, const struct snapshot_node *n)
{
	uint64_t ended = n->calls > n->inflight ? n->calls - n->inflight : 0;
	uint64_t yields = n->yields < ended ? n->yields : ended;

	if (n->parent == SNAPSHOT_NONE)
		return (struct ends){0};
	if (n->func != SNAPSHOT_NONE && s->funcs[n->func].instant)
		return (struct ends){.instants = n->calls};
	return (struct ends){.calls = n->calls, .leaves = ended - yields, .yields = yields};
}

/* What a function's own events leave in it ... */
static uint64_t own_cost(const struct cost *c, struct ends own)
{
	return own.calls * c->after[COST_ENTER] + own.leaves * c->before[COST_LEAVE] +
	       own.yields * c->before[COST_YIELD];
}

/* ... and in its caller. */
static uint64_t caller_cost(const struct cost *c, struct ends callees)
{
	return callees.calls * c->before[COST_ENTER] + callees.leaves * c->after[COST_LEAVE] +
	       callees.yields * c->after[COST_YIELD] +
	       callees.instants * (c->before[COST_ENTER] + c->after[COST_ENTER]);
}

/* What it goes on slower after hits, besides. */
static uint64_t slowdown_cost(const struct cost *c, const struct snapshot_node *n, struct ends own,
			      struct ends callees, uint64_t hits)
{
	uint64_t stretches = own.calls + callees.leaves + callees.yields + callees.instants;
	uint64_t cpu = n->self[SNAPSHOT_CPU];

	return cpu > hits ? (uint64_t)cost_slowdown(c, stretches, (double)(cpu - hits)) : 0;
}

static uint64_t node_cost(const struct work *w, uint32_t i)
{
	const struct snapshot_node *n = &w->s->nodes[i];
	const struct cost *c = w->cost[n->thread];
	struct ends own = ends_of(w->s, n);
	uint64_t hits;

	if (!c)
		return 0;
	if (is_pseudo(w->s, n))
		return own_cost(c, own) + caller_cost(c, own);
	hits = own_cost(c, own) + caller_cost(c, w->callees[i]);
	return hits + slowdown_cost(c, n, own, w->callees[i], hits);
}

static void take(uint64_t *from, uint64_t n)
{
	*from -= *from < n ? *from : n;
}

/* What each call costs, whatever it does: its own two events. */
static uint64_t least_cost(const struct cost *c)
{
	uint32_t leave = c->before[COST_LEAVE], yield = c->before[COST_YIELD];

	return c->after[COST_ENTER] + (leave < yield ? leave : yield);
}

/*
 * The mean cost is that of the shortest and the longest as well, unless it is more than one of them
 * has: then only the least cost is known to be in it, and what is left is what it took at most.
 * Nothing left: SNAPSHOT_MIN_UNKNOWN, which is 0.
 */
static void correct_extreme(uint64_t *min, uint64_t *max, uint64_t mean, uint64_t least)
{
	take(min, *min > mean ? mean : least);
	take(max, *max > mean ? mean : least);
	if (*max < *min)
		*max = *min;
}

/* An activation's share of what its context's events, and those below, have cost. */
static void correct_extremes(const struct work *w, uint32_t i)
{
	struct snapshot_node *n = &w->s->nodes[i];
	uint64_t mean = n->calls ? w->below[i] / n->calls : 0;
	uint64_t least = least_cost(w->cost[n->thread]);

	for (int c = 0; c < SNAPSHOT_CLOCKS && mean; c++)
		if (n->min[c] != UINT64_MAX)
			correct_extreme(&n->min[c], &n->max[c], mean, least);
}

static void correct_node(const struct work *w, uint32_t i, uint64_t cost)
{
	struct snapshot_node *n = &w->s->nodes[i];
	struct snapshot_thread *th = &w->s->threads[n->thread];
	struct snapshot_target *target = w->target[n->thread];
	bool clamped = false;

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t taken = n->self[c] < cost ? n->self[c] : cost;

		/* What is outside Python is often nothing at all. */
		clamped |= taken < cost && n->parent != SNAPSHOT_NONE;
		n->self[c] -= taken;
		take(&th->total[c], taken);
		target->subtracted[c] += taken;
	}
	target->clamped += clamped;
}

static void find_targets(struct work *w)
{
	struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		for (uint32_t k = 0; k < s->ntargets; k++) {
			struct snapshot_target *t = &s->targets[k];

			if (t->pid != s->threads[i].pid || !t->cost.known)
				continue;
			w->target[i] = t;
			w->cost[i] = &t->cost;
			t->corrected = true;
		}
	}
}

/* Parents come first: backwards, every node comes after its children. */
static void count_callees(struct work *w)
{
	struct snapshot *s = w->s;

	for (uint32_t i = s->nnodes; i-- > 0;) {
		const struct snapshot_node *n = &s->nodes[i];
		struct ends own = ends_of(s, n);

		w->below[i] += node_cost(w, i);
		if (n->parent == SNAPSHOT_NONE)
			continue;
		w->below[n->parent] += w->below[i];
		if (is_pseudo(s, n))
			continue;
		w->callees[n->parent].calls += own.calls;
		w->callees[n->parent].leaves += own.leaves;
		w->callees[n->parent].yields += own.yields;
		w->callees[n->parent].instants += own.instants;
	}
}

/* What all hits of each target have cost, as its samples say: the costs become those. */
static void scale_costs(struct work *w)
{
	struct snapshot *s = w->s;

	for (uint32_t k = 0; k < s->ntargets; k++) {
		struct snapshot_target *t = &s->targets[k];
		double cpu = 0, taken = 0, scale;

		if (!t->beside.trace.of || !t->corrected)
			continue;
		/* What samples show is slowed down as well: reconcile.c takes that out. */
		if (t->estimate.samples)
			t->cost.slowdown = 0;
		for (uint32_t i = 0; i < s->nnodes; i++) {
			if (w->target[s->nodes[i].thread] != t)
				continue;
			cpu += (double)s->nodes[i].self[SNAPSHOT_CPU];
			taken += (double)node_cost(w, i);
		}
		scale = reconcile_scale(cpu, taken, (double)t->estimate.samples,
					(double)t->estimate.period_ns);
		t->cost = cost_scaled(&t->cost, scale);
		t->cost_scale *= scale;
	}
}

static void forget_callees(struct work *w)
{
	memset(w->callees, 0, w->s->nnodes * sizeof(*w->callees));
	memset(w->below, 0, w->s->nnodes * sizeof(*w->below));
}

static int reconcile(const struct work *w)
{
	struct snapshot *s = w->s;
	int r = 0;

	for (uint32_t k = 0; k < s->ntargets && !r; k++) {
		struct snapshot_target *t = &s->targets[k];

		if (t->beside.trace.of && t->corrected)
			r = reconcile_target(s, t, w->taken);
		else if (t->mode == MODE_COUNT && t->estimate.samples)
			r = reconcile_counted(s, t);
		t->beside = (struct snapshot_beside){0};
	}
	return r;
}

/* The time of an instance's steps holds what its events cost, and those of all it calls. */
static bool runs_in(const struct snapshot *s, const struct snapshot_node *n,
		    const struct snapshot_coro *c)
{
	if (n->func != c->func || s->threads[n->thread].pid != c->pid)
		return false;
	return c->kind != SNAPSHOT_GREENLET || s->nodes[n->parent].parent == SNAPSHOT_NONE;
}

/* The shortest takes no more than the mean, the longest no less, whatever was taken from each. */
static void keep_mean_between(struct snapshot_coro *coro)
{
	uint64_t mean = coro->total / coro->lifetimes;
	uint64_t up = mean + (coro->total % coro->lifetimes != 0);

	if (coro->min > mean)
		coro->min = mean;
	if (coro->max < up)
		coro->max = up;
}

static void correct_coro(struct snapshot_coro *coro, uint64_t cost, uint64_t least)
{
	uint64_t instances = coro->started + coro->partial;
	uint64_t mean = instances ? cost / instances : 0;

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		take(&coro->running[c], cost);
	take(&coro->total, mean * coro->lifetimes);
	if (!mean || !coro->lifetimes)
		return;
	correct_extreme(&coro->min, &coro->max, mean, least);
	keep_mean_between(coro);
}

/* By function: the first of its coroutines; they are few for each. */
static int correct_coros(const struct work *w)
{
	struct snapshot *s = w->s;
	_cleanup_free_ uint64_t *cost = calloc((size_t)s->ncoros + 1, sizeof(*cost));
	_cleanup_free_ uint64_t *least = calloc((size_t)s->ncoros + 1, sizeof(*least));
	_cleanup_free_ uint32_t *first = calloc((size_t)s->nfuncs + 1, sizeof(*first));
	_cleanup_free_ uint32_t *next = calloc((size_t)s->ncoros + 1, sizeof(*next));

	if (!cost || !least || !first || !next)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->ncoros; i++) {
		next[i] = first[s->coros[i].func];
		first[s->coros[i].func] = i + 1;
	}
	for (uint32_t i = 0; i < s->nnodes; i++)
		for (uint32_t k = s->nodes[i].func == SNAPSHOT_NONE ? 0 : first[s->nodes[i].func];
		     k; k = next[k - 1])
			if (runs_in(s, &s->nodes[i], &s->coros[k - 1]) &&
			    w->cost[s->nodes[i].thread]) {
				cost[k - 1] += w->below[i];
				least[k - 1] = least_cost(w->cost[s->nodes[i].thread]);
			}
	for (uint32_t i = 0; i < s->ncoros; i++)
		correct_coro(&s->coros[i], cost[i], least[i]);
	return 0;
}

int snapshot_correct(struct snapshot *s)
{
	_cleanup_free_ struct ends *callees = calloc((size_t)s->nnodes + 1, sizeof(*callees));
	_cleanup_free_ uint64_t *below = calloc((size_t)s->nnodes + 1, sizeof(*below));
	_cleanup_free_ const struct cost **cost = calloc((size_t)s->nthreads + 1, sizeof(*cost));
	_cleanup_free_ struct snapshot_target **target =
		calloc((size_t)s->nthreads + 1, sizeof(*target));
	_cleanup_free_ uint64_t *taken = calloc((size_t)s->nnodes + 1, sizeof(*taken));
	struct work w = {s, callees, below, taken, cost, target};
	int r;

	if (!callees || !below || !cost || !target || !taken)
		return -ENOMEM;
	find_targets(&w);
	count_callees(&w);
	scale_costs(&w);
	forget_callees(&w);
	count_callees(&w);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (!cost[s->nodes[i].thread])
			continue;
		taken[i] = node_cost(&w, i);
		correct_extremes(&w, i);
		if (!target[s->nodes[i].thread]->beside.trace.of)
			correct_node(&w, i, taken[i]);
	}
	r = reconcile(&w);
	snapshot_fit_waits(s);
	return r < 0 ? r : correct_coros(&w);
}
