// SPDX-License-Identifier: BSD-2-Clause
/*
 * Subtracting the cost of probes
 *
 * An event delays its thread before and after the program reads the clock. The time between two
 * events is charged to the function that runs then. It therefore includes the cost of the first
 * event after its clock and the cost of the second one before it. The numbers of events that begin
 * and end the intervals of a context follow from existing counts:
 *
 * 	begun by its own entry		number of its calls
 * 	ended by its own end		number of its calls that have ended
 * 	ended by a callee's entry	number of its callees' calls
 * 	begun by a callee's end		number of its callees' calls that have ended
 *
 * The only additional count at run time is that of ends that were suspensions, if they cost a
 * different amount. The slowdown after hits is subtracted by solve.c, and only if there are
 * samples: the part of it that shows in a short function is in the cost of a hit. Only self times
 * are corrected. Cumulative times derive from them, so callers at all levels become correct as
 * well; a thread's total remains the sum over its contexts.
 *
 * From the shortest and the longest activation, the costs of their own two events are subtracted,
 * which is exact, and the mean cost of their callees' events, which is exact if each activation
 * makes the same calls. An activation shorter than that mean loses the minimum cost of a call. If
 * nothing is left, the duration is unknown, and it is never reported as 0.
 *
 * The mean cost may exceed a context's time if hits were cheaper than usual; the time is then 0 and
 * the context is counted. Calls in "(truncated)" are charged to it, because their callers are
 * unknown.
 */
#include "accuracy/finish.h"

#include <errno.h>
#include <string.h>

#include "accuracy/solve.h"
#include "snapshot/pseudo.h"
#include "snapshot/waits.h"

struct work {
	struct snapshot *s;
	struct below {
		struct cost_ends callees; /* sums over its children */
		uint64_t cost;		  /* of all its events, including descendants */
	} * below;			  /* per node */
	uint64_t *taken; /* per node: the amount subtracted, or that would have been */
	struct snapshot_target **target; /* per thread; NULL: its cost is unknown */
};

/* The target that a node's costs are of, or NULL */
static struct snapshot_target *target_of(const struct work *w, uint32_t node)
{
	return w->target[w->s->nodes[node].thread];
}

/* Returns whether the node has no events of its own. */
static bool is_pseudo(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func != SNAPSHOT_NONE && s->funcs[n->func].pseudo &&
	       !snapshot_func_is_gc(&s->funcs[n->func]);
}

static struct cost_ends ends_of(const struct snapshot *s, const struct snapshot_node *n)
{
	uint64_t ended = n->calls > n->inflight ? n->calls - n->inflight : 0;
	uint64_t yields = n->yields < ended ? n->yields : ended;

	if (n->parent == SNAPSHOT_NONE)
		return (struct cost_ends){0};
	if (n->func != SNAPSHOT_NONE && s->funcs[n->func].instant)
		return (struct cost_ends){.instants = n->calls};
	return (struct cost_ends){.calls = n->calls, .leaves = ended - yields, .yields = yields};
}

static uint64_t node_cost(const struct work *w, uint32_t i)
{
	const struct snapshot_target *t = target_of(w, i);
	struct cost_ends own = ends_of(w->s, &w->s->nodes[i]);

	if (!t)
		return 0;
	return cost_taken(&t->cost, &own,
			  is_pseudo(w->s, &w->s->nodes[i]) ? &own : &w->below[i].callees);
}

static void take(uint64_t *from, uint64_t n)
{
	*from -= *from < n ? *from : n;
}

/* The minimum cost of a call: its own two events. */
static uint64_t least_cost(const struct cost *c)
{
	uint32_t leave = c->before[COST_LEAVE], yield = c->before[COST_YIELD];

	return c->after[COST_ENTER] + (leave < yield ? leave : yield);
}

/*
 * Corrects the shortest and the longest activation. The mean cost is subtracted unless it exceeds
 * one of them. In that case only the minimum cost is certain, and the rest is an upper bound. If
 * nothing is left, the result is SNAPSHOT_MIN_UNKNOWN, which is 0.
 */
static void correct_extreme(uint64_t *min, uint64_t *max, uint64_t mean, uint64_t least)
{
	take(min, *min > mean ? mean : least);
	take(max, *max > mean ? mean : least);
	if (*max < *min)
		*max = *min;
}

/*
 * Corrects them by one activation's share of the cost of the context's events, including
 * descendants.
 */
static void correct_extremes(const struct work *w, uint32_t i)
{
	struct snapshot_node *n = &w->s->nodes[i];
	uint64_t mean = n->calls ? w->below[i].cost / n->calls : 0;
	uint64_t least = least_cost(&target_of(w, i)->cost);

	for (int c = 0; c < SNAPSHOT_CLOCKS && mean; c++)
		if (n->min[c] != UINT64_MAX)
			correct_extreme(&n->min[c], &n->max[c], mean, least);
}

static void correct_node(const struct work *w, uint32_t i, uint64_t cost)
{
	struct snapshot_node *n = &w->s->nodes[i];
	struct snapshot_thread *th = &w->s->threads[n->thread];
	struct snapshot_target *target = target_of(w, i);
	bool clamped = false;

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t taken = n->self[c] < cost ? n->self[c] : cost;

		/* Roots are excluded, because the time outside Python is often 0. */
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
			t->corrected = true;
		}
	}
}

/* Parents come first, so a backward loop visits every node after its children. */
static void count_below(struct work *w)
{
	struct snapshot *s = w->s;

	memset(w->below, 0, s->nnodes * sizeof(*w->below));
	for (uint32_t i = s->nnodes; i-- > 0;) {
		const struct snapshot_node *n = &s->nodes[i];
		struct cost_ends own = ends_of(s, n);
		struct below *parent;

		w->below[i].cost += node_cost(w, i);
		if (n->parent == SNAPSHOT_NONE)
			continue;
		parent = &w->below[n->parent];
		parent->cost += w->below[i].cost;
		if (is_pseudo(s, n))
			continue;
		parent->callees.calls += own.calls;
		parent->callees.leaves += own.leaves;
		parent->callees.yields += own.yields;
		parent->callees.instants += own.instants;
	}
}

/* Scales the costs to the total cost of hits that each target's samples show. */
static void scale_costs(struct work *w)
{
	struct snapshot *s = w->s;

	for (uint32_t k = 0; k < s->ntargets; k++) {
		struct snapshot_target *t = &s->targets[k];
		double cpu = 0, taken = 0, samples = 0, scale;

		if (!t->beside.trace.of || !t->corrected)
			continue;
		/* samples include the slowdown; solve.c removes it */
		for (uint32_t i = 0; i < t->beside.trace.n; i++)
			samples += (double)t->beside.trace.of[i];
		samples += (double)t->beside.trace.outside;
		for (uint32_t i = 0; i < s->nnodes; i++) {
			if (target_of(w, i) != t)
				continue;
			cpu += (double)s->nodes[i].self[SNAPSHOT_CPU];
			taken += (double)node_cost(w, i);
		}
		scale = reconcile_scale(cpu, taken, samples, (double)t->estimate.period_ns);
		t->cost = cost_scaled(&t->cost, scale);
		t->cost_scale *= scale;
	}
}

/* With what is not exact, a thread's total is the sum over its contexts. */
static void add_rest(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nnodes && s->rest; i++) {
		struct snapshot_node *n = &s->nodes[i];
		struct snapshot_thread *th = &s->threads[n->thread];

		n->calls += s->rest[i].calls;
		n->yields += s->rest[i].yields;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			if (n->parent == SNAPSHOT_NONE)
				th->total[c] = 0;
			n->self[c] += s->rest[i].cpu;
			th->total[c] += n->self[c];
		}
	}
	s->rest = NULL;
}

/*
 * A minimum that is too large, because probes' time is still in it, is at most the mean. In windows, it is that
 * of a few calls, and samples show the mean.
 */
static int bound_minima(struct snapshot *s)
{
	_cleanup_free_ uint64_t *cum = calloc((size_t)s->nnodes + 1, sizeof(*cum));

	if (!cum)
		return -ENOMEM;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		memset(cum, 0, s->nnodes * sizeof(*cum));
		for (uint32_t i = s->nnodes; i-- > 0;) {
			struct snapshot_node *n = &s->nodes[i];
			uint64_t mean;

			cum[i] += n->self[c];
			if (n->parent == SNAPSHOT_NONE)
				continue;
			cum[n->parent] += cum[i];
			mean = n->calls ? cum[i] / n->calls : 0;
			if (mean && n->min[c] != UINT64_MAX && n->min[c] > mean)
				n->min[c] = mean;
		}
	}
	return 0;
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
			r = reconcile_target(s, t, NULL);
		t->beside = (struct snapshot_beside){0};
	}
	return r;
}

/* The time of an instance's steps includes the cost of its events and of all its callees'. */
static bool runs_in(const struct snapshot *s, const struct snapshot_node *n,
		    const struct snapshot_coro *c)
{
	if (n->func != c->func || s->threads[n->thread].pid != c->pid)
		return false;
	return c->kind != SNAPSHOT_GREENLET || s->nodes[n->parent].parent == SNAPSHOT_NONE;
}

/* Keeps the minimum at or below the mean, and the maximum at or above it. */
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

/* Searches linearly by function, because each has few coroutine entries. */
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
			if (runs_in(s, &s->nodes[i], &s->coros[k - 1]) && target_of(w, i)) {
				cost[k - 1] += w->below[i].cost;
				least[k - 1] = least_cost(&target_of(w, i)->cost);
			}
	for (uint32_t i = 0; i < s->ncoros; i++)
		correct_coro(&s->coros[i], cost[i], least[i]);
	return 0;
}

int snapshot_correct(struct snapshot *s)
{
	_cleanup_free_ struct below *below = calloc((size_t)s->nnodes + 1, sizeof(*below));
	_cleanup_free_ struct snapshot_target **target =
		calloc((size_t)s->nthreads + 1, sizeof(*target));
	_cleanup_free_ uint64_t *taken = calloc((size_t)s->nnodes + 1, sizeof(*taken));
	struct work w = {s, below, taken, target};
	int r;

	if (!below || !target || !taken)
		return -ENOMEM;
	find_targets(&w);
	count_below(&w);
	scale_costs(&w);
	count_below(&w);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_target *t = target_of(&w, i);

		if (!t)
			continue;
		taken[i] = node_cost(&w, i);
		/* Waiting that walks have distributed contains no probes' time. */
		if (!t->beside.trace.of && !t->waits.walked)
			correct_node(&w, i, taken[i]);
	}
	r = reconcile(&w);
	add_rest(s);
	count_below(&w);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (target_of(&w, i))
			correct_extremes(&w, i);
	snapshot_fit_waits(s);
	if (r == 0)
		r = bound_minima(s);
	return r < 0 ? r : correct_coros(&w);
}

int snapshot_finish(struct snapshot *s, bool raw)
{
	if (raw)
		add_rest(s);
	else if (snapshot_correct(s) < 0)
		return -ENOMEM;
	return snapshot_pseudo(s);
}
