// SPDX-License-Identifier: BSD-2-Clause
/* The interval between two snapshots: see since.h. */
#include "snapshot/since.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "snapshot/merge.h"

#define ENTRY_DEPTH 8 /* callers of a folded thread's entry function, as of threading.py */

struct subtraction {
	struct snapshot *s;
	const struct snapshot *before;
	struct map funcs;			  /* hash of a function of s → its index */
	struct map children;			  /* (parent, function) of s → node */
	uint32_t *func_at;			  /* of `before` → of s; SNAPSHOT_NONE: none */
	uint32_t *thread_at;			  /* the same */
	uint32_t *node_at;			  /* the same */
	const struct snapshot_target **target_at; /* per target of s: of `before`, or NULL */
};

static void subtraction_deinit(struct subtraction *d)
{
	map_deinit(&d->funcs);
	map_deinit(&d->children);
	free(d->func_at);
	free(d->thread_at);
	free(d->node_at);
	free(d->target_at);
}

/* Figures never decrease, except after an error that is counted elsewhere. */
static void take(uint64_t *from, uint64_t n)
{
	*from -= n < *from ? n : *from;
}

static bool str_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- what corresponds ---- */

static void find_targets(struct subtraction *d)
{
	for (uint32_t i = 0; i < d->s->ntargets; i++)
		for (uint32_t k = 0; k < d->before->ntargets; k++) {
			const struct snapshot_target *t = &d->s->targets[i];
			const struct snapshot_target *b = &d->before->targets[k];

			if (t->pid == b->pid && t->start_ns == b->start_ns &&
			    t->traced_ns >= b->traced_ns && t->events >= b->events)
				d->target_at[i] = b;
		}
}

static bool is_found(const struct subtraction *d, uint32_t pid)
{
	for (uint32_t i = 0; i < d->s->ntargets; i++)
		if (d->s->targets[i].pid == pid)
			return d->target_at[i] != NULL;
	return false;
}

static int find_funcs(struct subtraction *d)
{
	uint32_t at;

	for (uint32_t i = 0; i < d->s->nfuncs; i++)
		if (map_put(&d->funcs, snapshot_func_hash(&d->s->funcs[i]), i) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < d->before->nfuncs; i++) {
		const struct snapshot_func *f = &d->before->funcs[i];

		d->func_at[i] = SNAPSHOT_NONE;
		if (map_get(&d->funcs, snapshot_func_hash(f), &at) &&
		    snapshot_func_equal(&d->s->funcs[at], f))
			d->func_at[i] = at;
	}
	return 0;
}

static bool thread_same(const struct snapshot_thread *a, const struct snapshot_thread *b)
{
	if (a->pid != b->pid || a->tid != b->tid || !a->folded != !b->folded)
		return false;
	return a->folded ? str_equal(a->entry, b->entry) : a->start_ns == b->start_ns;
}

/* The first functions of a thread's stack. Returns their number. */
static uint32_t first_funcs(const struct snapshot *s, uint32_t thread,
			    const struct snapshot_func *ret[ENTRY_DEPTH])
{
	uint32_t n = 0;

	for (uint32_t i = s->threads[thread].root; i < s->nnodes && n < ENTRY_DEPTH; i++)
		if (s->nodes[i].thread == thread && s->nodes[i].func != SNAPSHOT_NONE)
			ret[n++] = &s->funcs[s->nodes[i].func];
	return n;
}

/* The row that an ended thread was folded into: that of one of its first functions. */
static uint32_t find_folded(const struct subtraction *d, uint32_t thread)
{
	const struct snapshot_func *first[ENTRY_DEPTH];
	uint32_t ret = SNAPSHOT_NONE, n = first_funcs(d->before, thread, first);

	for (uint32_t i = 0; i < d->s->nthreads; i++) {
		const struct snapshot_thread *t = &d->s->threads[i];

		if (!t->folded || t->pid != d->before->threads[thread].pid)
			continue;
		for (uint32_t k = 0; k < n && t->entry; k++)
			if (str_equal(first[k]->name, t->entry) ||
			    str_equal(first[k]->qualname, t->entry))
				return i;
		if (!t->entry)
			ret = i;
	}
	return ret;
}

static int find_threads(struct subtraction *d)
{
	struct map by_tid = {0}; /* (pid, tid) → the last thread of s with them */
	int err = 0;

	for (uint32_t i = 0; i < d->s->nthreads && !err; i++)
		if (!d->s->threads[i].folded)
			err = map_put(&by_tid,
				      (uint64_t)d->s->threads[i].pid << 32 | d->s->threads[i].tid,
				      i);
	for (uint32_t i = 0; i < d->before->nthreads && !err; i++) {
		const struct snapshot_thread *t = &d->before->threads[i];
		uint32_t at;

		d->thread_at[i] = SNAPSHOT_NONE;
		if (!is_found(d, t->pid))
			continue;
		if (map_get(&by_tid, (uint64_t)t->pid << 32 | t->tid, &at) &&
		    thread_same(&d->s->threads[at], t))
			d->thread_at[i] = at;
		for (at = 0; at < d->s->nthreads && d->thread_at[i] == SNAPSHOT_NONE; at++)
			if (thread_same(&d->s->threads[at], t))
				d->thread_at[i] = at;
		if (d->thread_at[i] == SNAPSHOT_NONE)
			d->thread_at[i] = find_folded(d, i);
	}
	map_deinit(&by_tid);
	return err;
}

static int find_nodes(struct subtraction *d)
{
	for (uint32_t i = 0; i < d->s->nnodes; i++) {
		const struct snapshot_node *n = &d->s->nodes[i];

		if (n->parent != SNAPSHOT_NONE &&
		    map_put(&d->children, (uint64_t)n->parent << 32 | n->func, i) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < d->before->nnodes; i++) {
		const struct snapshot_node *n = &d->before->nodes[i];
		uint32_t thread = d->thread_at[n->thread], at;

		d->node_at[i] = SNAPSHOT_NONE;
		if (thread == SNAPSHOT_NONE)
			continue;
		if (n->parent == SNAPSHOT_NONE)
			d->node_at[i] = d->s->threads[thread].root;
		else if (d->node_at[n->parent] != SNAPSHOT_NONE &&
			 d->func_at[n->func] != SNAPSHOT_NONE &&
			 map_get(&d->children,
				 (uint64_t)d->node_at[n->parent] << 32 | d->func_at[n->func], &at))
			d->node_at[i] = at;
	}
	return 0;
}

/* ---- contexts and threads ---- */

static void subtract_node(struct snapshot_node *from, const struct snapshot_node *n)
{
	take(&from->calls, n->calls);
	take(&from->yields, n->yields);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		take(&from->self[c], n->self[c]);
		from->min[c] = UINT64_MAX;
		from->max[c] = 0;
	}
}

/* Sums of squares have rounding errors. */
static void subtract_whole(struct snapshot_whole *from, const struct snapshot_whole *b)
{
	from->x -= fmin(from->x, b->x);
	from->y -= fmin(from->y, b->y);
	from->x2 -= fmin(from->x2, b->x2);
	from->xy -= fmin(from->xy, b->xy);
	from->y2 -= fmin(from->y2, b->y2);
}

static void subtract_nodes(struct subtraction *d)
{
	for (uint32_t i = 0; i < d->before->nnodes; i++) {
		uint32_t at = d->node_at[i];

		if (at == SNAPSHOT_NONE)
			continue;
		subtract_node(&d->s->nodes[at], &d->before->nodes[i]);
		if (d->s->rest && d->before->rest) {
			take(&d->s->rest[at].calls, d->before->rest[i].calls);
			take(&d->s->rest[at].yields, d->before->rest[i].yields);
			take(&d->s->rest[at].cpu, d->before->rest[i].cpu);
		}
		if (d->s->wholes && d->before->wholes)
			subtract_whole(&d->s->wholes[at], &d->before->wholes[i]);
		/* What is live is a level, not a sum over time. */
		for (int c = 0; c < COLUMNS; c++)
			if (c != COLUMN_live && d->s->columns[c] && d->before->columns[c])
				take(&d->s->columns[c][at], d->before->columns[c][i]);
	}
	for (uint32_t i = 0; i < d->before->nthreads; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS && d->thread_at[i] != SNAPSHOT_NONE; c++)
			take(&d->s->threads[d->thread_at[i]].total[c],
			     d->before->threads[i].total[c]);
}

/* ---- functions ---- */

/* Buckets of `before` that s does not have hold nothing that could be subtracted. */
static void subtract_durations(struct snapshot_durations *from,
			       const struct snapshot_durations *before)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < from->histogram.len; i++) {
		uint32_t bucket = from->histogram.first + i;

		if (histogram_has(&before->histogram, bucket))
			take(&from->histogram.n[i],
			     before->histogram.n[bucket - before->histogram.first]);
		if (from->histogram.n[i])
			longest = histogram_upper(bucket);
	}
	from->max = longest < from->max ? longest : from->max;
}

static void subtract_funcs(struct subtraction *d)
{
	for (uint32_t i = 0; i < d->before->nfuncs; i++) {
		const struct snapshot_func *b = &d->before->funcs[i];
		uint32_t at = d->func_at[i];
		struct snapshot_func *f;

		if (at == SNAPSHOT_NONE)
			continue;
		f = &d->s->funcs[at];
		for (int c = 0; c < SNAPSHOT_CLOCKS && f->durations && b->durations; c++)
			subtract_durations(&f->durations[c], &b->durations[c]);
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			f->variance[k] = -1;
	}
}

/* ---- coroutines and the GIL ---- */

static void subtract_coro(struct snapshot_coro *from, const struct snapshot_coro *b)
{
	uint64_t begun = b->started + b->partial;
	uint64_t open = begun > b->ended ? begun - b->ended : 0;

	take(&from->started, b->started);
	take(&from->partial, b->partial);
	take(&from->ended, b->ended);
	take(&from->steps, b->steps);
	take(&from->suspended, b->suspended);
	take(&from->lifetimes, b->lifetimes);
	take(&from->total, b->total);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		take(&from->running[c], b->running[c]);
	from->partial += open;
	from->min = from->max = SNAPSHOT_MIN_UNKNOWN;
}

static void subtract_coros(struct subtraction *d)
{
	for (uint32_t i = 0; i < d->before->ncoros; i++)
		for (uint32_t k = 0; k < d->s->ncoros; k++) {
			const struct snapshot_coro *b = &d->before->coros[i];
			struct snapshot_coro *c = &d->s->coros[k];

			if (c->pid != b->pid || c->kind != b->kind ||
			    c->func != d->func_at[b->func] || !is_found(d, b->pid))
				continue;
			subtract_coro(c, b);
			break;
		}
}

static uint32_t func_of(const struct subtraction *d, uint32_t func)
{
	return func == SNAPSHOT_NONE ? func : d->func_at[func];
}

static int compare_pairs(const void *left, const void *right)
{
	const struct snapshot_gil_pair *a = left, *b = right;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

static void subtract_pairs(struct subtraction *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->before->ngil_pairs; i++)
		for (uint32_t k = 0; k < d->s->ngil_pairs; k++) {
			const struct snapshot_gil_pair *b = &d->before->gil_pairs[i];
			struct snapshot_gil_pair *p = &d->s->gil_pairs[k];

			if (p->pid == b->pid && p->holder == func_of(d, b->holder) &&
			    p->waiter == func_of(d, b->waiter) && is_found(d, b->pid))
				take(&p->ns, b->ns);
		}
	for (uint32_t k = 0; k < d->s->ngil_pairs; k++)
		if (d->s->gil_pairs[k].ns)
			d->s->gil_pairs[n++] = d->s->gil_pairs[k];
	d->s->ngil_pairs = n;
	/* as before, targets stay apart: equal pids are adjacent */
	for (uint32_t k = 0, end; k < n; k = end) {
		for (end = k; end < n && d->s->gil_pairs[end].pid == d->s->gil_pairs[k].pid;)
			end++;
		qsort(&d->s->gil_pairs[k], end - k, sizeof(*d->s->gil_pairs), compare_pairs);
	}
}

static uint64_t wait_hash(const struct snapshot_wait *w)
{
	const uint64_t identity[] = {w->pid, w->tid, w->end_ns, w->ns};

	return strtab_hash(0, identity, sizeof(identity));
}

/* Waits that the earlier snapshot has are not of the interval. -ENOMEM */
static int subtract_longest(struct subtraction *d)
{
	struct map old = {0};
	uint32_t n = 0, at;
	int r = 0;

	for (uint32_t i = 0; i < d->before->nwaits && r == 0; i++)
		r = map_put(&old, wait_hash(&d->before->waits[i]), i);
	for (uint32_t k = 0; k < d->s->nwaits && r == 0; k++)
		if (!map_get(&old, wait_hash(&d->s->waits[k]), &at))
			d->s->waits[n++] = d->s->waits[k];
	if (r == 0)
		d->s->nwaits = n;
	map_deinit(&old);
	return r;
}

/* ---- targets ---- */

static void subtract_waits(struct snapshot_waits *from, const struct snapshot_waits *b)
{
	take(&from->pairs_dropped, b->pairs_dropped);
	take(&from->walks, b->walks);
	for (uint32_t i = 0; i < from->nother; i++)
		for (uint32_t k = 0; k < b->nother; k++) {
			if (!str_equal(from->other[i].name, b->other[k].name))
				continue;
			take(&from->other[i].ns, b->other[k].ns);
			take(&from->other[i].n, b->other[k].n);
		}
}

/* Samples during the trace, by function. Those from before it are of no interval. */
static int subtract_samples(const struct subtraction *d, struct snapshot_sampled *from,
			    const struct snapshot_sampled *b)
{
	uint64_t *of;

	if (!from->of)
		return 0;
	of = snapshot_alloc(d->s, (size_t)from->n + 1, sizeof(*of));
	if (!of)
		return -ENOMEM;
	memcpy(of, from->of, from->n * sizeof(*of));
	for (uint32_t i = 0; i < b->n && b->of; i++)
		if (i < d->before->nfuncs && d->func_at[i] < from->n)
			take(&of[d->func_at[i]], b->of[i]);
	take(&from->outside, b->outside);
	from->of = of;
	return 0;
}

static void subtract_windows(struct snapshot_windows *from, const struct snapshot_windows *b)
{
	take(&from->n, b->n);
	take(&from->span_ns, b->span_ns);
	take(&from->whole_ns, b->span_ns);
	take(&from->seen_cpu_ns, b->seen_cpu_ns);
	take(&from->all_cpu_ns, b->all_cpu_ns);
	take(&from->samples, b->samples);
	take(&from->failed, b->failed);
}

static int subtract_target(const struct subtraction *d, struct snapshot_target *t,
			   const struct snapshot_target *b)
{
	take(&t->traced_ns, b->traced_ns);
	take(&t->overhead_ns, b->overhead_ns);
	take(&t->own_cpu_ns, b->own_cpu_ns);
	take(&t->fork_gap_ns, b->fork_gap_ns);
	take(&t->exec_gap_ns, b->exec_gap_ns);
	take(&t->estimate.samples, b->estimate.samples);
	take(&t->estimate.of_probes, b->estimate.of_probes);
	take(&t->children.followed, b->children.followed);
	take(&t->children.over_limit, b->children.over_limit);
	take(&t->children.ended_first, b->children.ended_first);
	take(&t->children.failed, b->children.failed);
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		take(snapshot_fact(t, f), snapshot_fact_of(b, f));
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		take(&t->losses[i], b->losses[i]);
	t->execs -= b->execs < t->execs ? b->execs : t->execs;
	subtract_windows(&t->windows, &b->windows);
	subtract_waits(&t->waits, &b->waits);
	t->start_ns = b->end_ns;
	t->start_unix_ns = b->end_unix_ns;
	t->since = true;
	t->beside.undisturbed_ns -= fmin(t->beside.undisturbed_ns, b->beside.undisturbed_ns);
	t->beside.process_cpu_ns -= fmin(t->beside.process_cpu_ns, b->beside.process_cpu_ns);
	return subtract_samples(d, &t->beside.trace, &b->beside.trace);
}

static int subtract_targets(struct subtraction *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->s->ntargets && !err; i++)
		if (d->target_at[i])
			err = subtract_target(d, &d->s->targets[i], d->target_at[i]);
	return err;
}

int snapshot_subtract(struct snapshot *s, const struct snapshot *before)
{
	_cleanup_(subtraction_deinit) struct subtraction d = {.s = s, .before = before};
	int err;

	d.func_at = calloc((size_t)before->nfuncs + 1, sizeof(*d.func_at));
	d.thread_at = calloc((size_t)before->nthreads + 1, sizeof(*d.thread_at));
	d.node_at = calloc((size_t)before->nnodes + 1, sizeof(*d.node_at));
	d.target_at = calloc((size_t)s->ntargets + 1, sizeof(*d.target_at));
	if (!d.func_at || !d.thread_at || !d.node_at || !d.target_at)
		return -ENOMEM;
	find_targets(&d);
	err = find_funcs(&d);
	if (!err)
		err = find_threads(&d);
	if (!err)
		err = find_nodes(&d);
	if (!err)
		err = subtract_longest(&d);
	if (err < 0)
		return err;
	subtract_nodes(&d);
	subtract_funcs(&d);
	subtract_coros(&d);
	subtract_pairs(&d);
	return subtract_targets(&d);
}

/* ---- a copy ---- */

static int copy_array(struct snapshot *to, void *ret, const void *array, size_t n, size_t size)
{
	void *copy = snapshot_alloc(to, n + 1, size);

	if (!copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, array, n * size);
	memcpy(ret, &copy, sizeof(copy));
	return 0;
}

/* What snapshot_merge() leaves out, because it has no meaning for a sum, or limits. */
static int copy_rest(struct snapshot *to, const struct snapshot *s)
{
	if (copy_array(to, &to->waits, s->waits, s->nwaits, sizeof(*s->waits)) < 0)
		return -ENOMEM;
	to->nwaits = s->nwaits;
	for (uint32_t i = 0; i < s->nwaits; i++) {
		to->waits[i].syscall = snapshot_str(to, s->waits[i].syscall);
		if (s->waits[i].syscall && !to->waits[i].syscall)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_sampled *from = &s->targets[i].beside.trace;
		struct snapshot_sampled *trace = &to->targets[i].beside.trace;

		if (!from->of)
			continue;
		*trace = *from;
		if (copy_array(to, &trace->of, from->of, from->n, sizeof(*from->of)) < 0)
			return -ENOMEM;
	}
	return 0;
}

struct snapshot *snapshot_copy(const struct snapshot *s)
{
	_cleanup_(snapshot_freep) struct snapshot *ret = NULL;

	if (snapshot_merge(&s, 1, &ret) < 0)
		return NULL;
	/* indices are equal if nothing was merged, as in every snapshot of a profile */
	if (ret->nfuncs == s->nfuncs && ret->ntargets == s->ntargets && copy_rest(ret, s) < 0)
		return NULL;
	return TAKE_PTR(ret);
}
