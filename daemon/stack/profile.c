// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profile of one target: dispatches events to the threads they belong to, and keeps threads'
 * lives. See profile.h; the rules of matching are in rebuild.c, those of time in timing.c.
 */
#include "stack/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/profile_priv.h"

#define DEFAULT_NODES	     (4u << 20)
#define DEFAULT_FUNCS	     (1u << 20)
#define DEFAULT_THREADS	     65536u
#define DEFAULT_DEPTH	     262144u
#define DEFAULT_FRAMES	     (UINT64_C(4) << 20)
#define DEFAULT_STRING_BYTES (UINT64_C(256) << 20)

/* Construction ----------------------------------------------------------------------------- */

static struct profile_limits effective_limits(const struct profile_limits *l)
{
	struct profile_limits none = {0};

	if (!l)
		l = &none;
	return (struct profile_limits){
		.nodes = l->nodes ? l->nodes : DEFAULT_NODES,
		.funcs = l->funcs ? l->funcs : DEFAULT_FUNCS,
		.threads = l->threads ? l->threads : DEFAULT_THREADS,
		.depth = l->depth ? l->depth : DEFAULT_DEPTH,
		.frames = l->frames ? l->frames : DEFAULT_FRAMES,
		.string_bytes = l->string_bytes ? l->string_bytes : DEFAULT_STRING_BYTES,
	};
}

static int reserve_thread(struct profile *p)
{
	uint32_t cap = p->threads_cap ? p->threads_cap * 2 : 16;
	struct thread **threads;

	if (p->nthreads < p->threads_cap)
		return 0;
	threads = reallocarray(p->threads, cap, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	p->threads = threads;
	p->threads_cap = cap;
	return 0;
}

struct thread *profile_new_thread(struct profile *p, uint32_t tid)
{
	struct thread *th;
	uint32_t root;

	if (reserve_thread(p))
		return NULL;
	root = calltree_add_root(&p->rb.tree);
	if (root == NODE_NONE)
		return NULL;
	th = thread_new(tid, root);
	if (!th) {
		calltree_remove_root(&p->rb.tree, root);
		return NULL;
	}
	th->room = &p->room;
	th->at = p->nthreads;
	p->threads[p->nthreads++] = th;
	return th;
}

void profile_remove_thread(struct profile *p, struct thread *th)
{
	struct thread *moved = p->threads[--p->nthreads];

	/* Cannot fail: the key is there, nothing grows. */
	if (moved->alive)
		map_put(&p->by_tid, moved->tid, th->at);
	p->threads[th->at] = moved;
	moved->at = th->at;
	thread_free(th);
}

/* A new thread, or NULL if it does not fit. The overflow thread and rows come on top of the cap. */
static struct thread *add_thread(struct profile *p, uint32_t tid, uint64_t ts)
{
	struct thread *th;

	if (p->nthreads - p->ended.nrows > p->limits.threads)
		return NULL;
	th = profile_new_thread(p, tid);
	if (!th)
		return NULL;
	th->start_ns = th->end_ns = ts;
	if (th->at != PROFILE_OVERFLOW_THREAD && map_put(&p->by_tid, tid, th->at)) {
		calltree_remove_root(&p->rb.tree, th->root);
		th->alive = false;
		profile_remove_thread(p, th);
		return NULL;
	}
	return th;
}

struct profile *profile_new(const struct profile_limits *limits, profile_resolve_fn resolve,
			    void *ctx)
{
	_cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->limits = effective_limits(limits);
	p->tracing = true; /* profile_begin only tells since when */
	p->rb.max_depth = p->limits.depth;
	p->room.limit = p->limits.frames;
	calltree_init(&p->rb.tree, p->limits.nodes);
	coros_init(&p->rb.coros);
	if (codes_init(&p->codes, &p->limits, resolve, ctx))
		return NULL;
	if (!add_thread(p, 0, 0))
		return NULL;
	thread_set_name(p->threads[PROFILE_OVERFLOW_THREAD], "(truncated)");
	p->threads[PROFILE_OVERFLOW_THREAD]->alive = false;
	return TAKE_PTR(p);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->nthreads; i++)
		thread_free(p->threads[i]);
	free(p->threads);
	ended_deinit(&p->ended);
	watch_free(p->watch);
	map_deinit(&p->by_tid);
	estimate_deinit(&p->estimate);
	codes_deinit(&p->codes);
	tally_deinit(&p->tally);
	calltree_deinit(&p->rb.tree);
	coros_deinit(&p->rb.coros);
	free(p);
}

/* Threads ---------------------------------------------------------------------------------- */

static struct thread *find_thread(const struct profile *p, uint32_t tid)
{
	uint32_t i;

	return map_get(&p->by_tid, tid, &i) ? p->threads[i] : NULL;
}

struct thread *profile_thread(struct profile *p, uint32_t tid, uint64_t ts)
{
	struct thread *th = find_thread(p, tid);

	return th ? th : add_thread(p, tid, ts);
}

static struct thread *live_thread(const struct profile *p, uint32_t tid)
{
	struct thread *th = find_thread(p, tid);

	return th && th->live ? th : NULL;
}

/* The thread of an event that shows it running, made known if it is not; NULL: it does not fit. */
static struct thread *running_thread(struct profile *p, uint32_t tid, uint64_t ts)
{
	struct thread *th = profile_thread(p, tid, ts);

	/* Its probe was on its way when the window before this one was closed. */
	if (p->windows && ts < p->begin_ts && !(th && th->live))
		return NULL;
	if (th && !th->live) {
		timing_first_seen(th, ts);
		th->live = true;
	}
	return th;
}

/*
 * The first event of a seeded thread. The seed's stack was right, unless it is newer than the
 * event; then the thread's time so far belongs to whatever the event finds on the stack.
 */
static void confirm_seed(struct profile *p, struct thread *th, uint64_t ts)
{
	bool outdated = ts < th->seed_ts;

	th->seed_ts = 0;
	if (outdated)
		rebuild_drop_all(&p->rb, th, false);
	if (outdated && th->os_cpu) {
		th->os_cpu = false;
		th->on_cpu = false;
		th->runtime_known = false;
	} else if (th->os_cpu) {
		timing_take_over(&p->rb.tree, th, ts, !p->windows);
	}
}

/* A thread ends: nothing of it runs any more. */
static void end_thread(struct profile *p, struct thread *th, uint64_t ts)
{
	if (th->live)
		timing_charge(&p->rb.tree, th, ts);
	if (p->watch)
		watch_end_thread(p->watch, th, ts);
	rebuild_drop_all(&p->rb, th, true);
	thread_drop_chain(th);
	codes_thread_exit(&p->codes, th->tid);
	th->live = th->alive = th->on_cpu = false;
	if (ts > th->end_ns)
		th->end_ns = ts;
	map_del(&p->by_tid, th->tid);
	if (p->last == th)
		p->last = NULL;
	ended_add(p, th);
}

/* Events ----------------------------------------------------------------------------------- */

static void refuse_call(struct profile *p, const struct event *e)
{
	struct thread *th = p->threads[PROFILE_OVERFLOW_THREAD];

	if (e->type != PYP_REC_ENTER && e->type != PYP_REC_THROW)
		return;
	calltree_touch(&p->rb.tree, NODE_TRUNCATED(th->root));
	p->rb.tree.nodes[NODE_TRUNCATED(th->root)].calls++;
	p->rb.calls++;
	p->rb.truncated++;
}

/* All that is not the same thread going on. NULL: it does not fit. */
static struct thread *call_thread_slow(struct profile *p, const struct event *e)
{
	struct thread *th = running_thread(p, e->tid, e->ts);

	if (!th) {
		if (!p->windows || e->ts >= p->begin_ts)
			refuse_call(p, e);
		return NULL;
	}
	if (th->seed_ts)
		confirm_seed(p, th, e->ts);
	/* A chain whose last record was lost is of no use. */
	th->chain_n = 0;
	th->metrics_gap = false;
	p->last = th;
	return th;
}

static inline struct thread *call_thread(struct profile *p, const struct event *e)
{
	struct thread *th = p->last;

	if (__builtin_expect(th && th->tid == e->tid && !th->chain_n, 1))
		return th;
	return call_thread_slow(p, e);
}

static inline void apply(struct profile *p, struct thread *th, const struct event *e)
{
	if (e->type == PYP_REC_ENTER || e->type == PYP_REC_THROW) {
		const struct rebuild_entry entry = {
			.frame = e->u.call.frame,
			.caller = e->u.call.caller,
			.func = codes_func(&p->codes, e->u.call.code),
			.thrown = e->type == PYP_REC_THROW,
			.arg = e->arg,
		};

		rebuild_enter(&p->rb, th, &entry);
		return;
	}
	rebuild_leave(&p->rb, th, e->u.call.frame, e->type == PYP_REC_YIELD);
}

static void apply_watched(struct profile *p, struct thread *th, const struct event *e)
{
	uint64_t calls = p->rb.calls, switches = p->rb.stack_switches;

	apply(p, th, e);
	watch_call(p->watch, th, e, p->rb.calls != calls, p->rb.stack_switches != switches);
}

static uint64_t count_cost(struct profile *p, const struct event *e)
{
	enum cost_kind kind = e->type == PYP_REC_YIELD	 ? COST_YIELD
			      : e->type == PYP_REC_LEAVE ? COST_LEAVE
							 : COST_ENTER;

	p->taken += p->cost[kind];
	return p->cost[kind];
}

/* How much of the program's own time has been shown up to ts. */
static uint64_t shown_until(const struct profile *p, uint64_t ts)
{
	uint64_t passed = ts > p->begin_ts ? ts - p->begin_ts : 0;
	uint64_t own = passed > p->window_taken ? passed - p->window_taken : 0;
	uint64_t least = p->window_events * ESTIMATE_OWN_NS;

	if (own < least)
		own = least < passed ? least : passed;
	return own;
}

/* The window ends before this event: between events the program's time passes as the clock does. */
static bool window_over(struct profile *p, const struct event *e)
{
	uint64_t shown = shown_until(p, e->ts), cost = count_cost(p, e);

	if (shown < p->limit_ns) {
		p->window_events++;
		p->window_taken += cost;
		return false;
	}
	p->events--;
	profile_pause(p, e->ts - (shown - p->limit_ns));
	p->shown_ns = p->limit_ns;
	return true;
}

static void on_call(struct profile *p, const struct event *e)
{
	struct thread *th;

	if (!p->tracing) {
		if (p->windows)
			count_cost(p, e);
		return;
	}
	p->events++;
	if (__builtin_expect(p->limit_ns != 0, 0) && window_over(p, e))
		return;
	th = call_thread(p, e);
	if (!th)
		return;
	timing_event(&p->rb.tree, th, &p->timing, e->ts);
	if (__builtin_expect(p->watch != NULL, 0))
		apply_watched(p, th, e);
	else
		apply(p, th, e);
}

static void on_switch(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? live_thread(p, e->tid) : NULL;

	if (!th || (p->windows && e->ts < p->begin_ts))
		return;
	/* Nobody knows what it was doing: not what was on its stack before the loss. */
	if (e->arg & PYP_SWITCH_LOST)
		timing_charge_gap(&p->rb.tree, th, e->ts);
	timing_switch(&p->rb.tree, th, &p->timing, e->ts, e->u.sw.runtime,
		      e->type == PYP_REC_SWITCH_IN);
}

bool profile_chain_reserve(struct thread *th, uint32_t n)
{
	struct chain_frame *chain;
	uint32_t cap = th->chain_cap ? th->chain_cap : PYP_CHAIN_FRAMES;

	if (n > PYP_CHAIN_MAX_DEPTH)
		return false;
	while (cap < n)
		cap *= 2;
	if (cap == th->chain_cap)
		return true;
	chain = reallocarray(th->chain, cap, sizeof(*chain));
	if (!chain)
		return false;
	th->chain = chain;
	th->chain_cap = cap;
	return true;
}

static bool chain_append(struct profile *p, struct thread *th, const struct event_chain *c)
{
	if (c->first == 0) {
		th->chain_n = 0;
		th->chain_flags = 0;
	}
	/* A record in between was lost. */
	if (c->first != th->chain_n || c->count > PYP_CHAIN_MAX_DEPTH ||
	    !profile_chain_reserve(th, c->first + c->count))
		return false;
	for (uint32_t i = 0; i < c->count; i++)
		th->chain[th->chain_n++] = (struct chain_frame){
			.frame = c->frames[i].frame,
			.func = codes_func(&p->codes, c->frames[i].code),
		};
	th->chain_flags |= c->flags;
	return true;
}

static void chain_apply(struct profile *p, struct thread *th, uint64_t ts)
{
	bool outdated = th->seed_ts && ts < th->seed_ts;
	uint32_t n = th->chain_n;
	uint64_t before;

	if (th->seed_ts)
		confirm_seed(p, th, ts);
	th->chain_n = 0;
	if (th->chain_flags & PYP_CHAIN_RESYNC) {
		p->resyncs++;
		/* Counters that follow are still of the gap; the event that does ends it. */
		th->metrics_gap = true;
		p->last = NULL;
		timing_charge_gap(&p->rb.tree, th, ts);
	} else if (!outdated) {
		timing_charge(&p->rb.tree, th, ts);
	}
	rebuild_chain(&p->rb, th, th->chain, n, th->chain_flags & PYP_CHAIN_TRUNCATED);
	/* Nothing happened before its first event, so its stack was this all the time. */
	before = th->last_ts;
	timing_charge(&p->rb.tree, th, ts);
	if (p->windows && outdated && ts > before)
		timing_defer(th, ts - before);
	th->on_cpu = true;
	if (p->watch)
		watch_chain(p->watch, th, ts, th->chain_flags & PYP_CHAIN_RESYNC);
}

static void on_chain(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? running_thread(p, e->tid, e->ts) : NULL;

	if (!th)
		return;
	if (!chain_append(p, th, &e->u.chain)) {
		th->chain_n = 0;
		return;
	}
	if (e->u.chain.flags & PYP_CHAIN_LAST)
		chain_apply(p, th, e->ts);
}

static void on_metrics(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? live_thread(p, e->tid) : NULL;
	const uint64_t *value = e->u.metrics.value;
	uint64_t *own;

	if (!th || !p->rb.tree.metrics)
		return;
	own = p->rb.tree.metrics[th->metrics_gap ? NODE_LOST(th->root) : th->node];
	for (int i = 0; i < PYP_METRICS; i++) {
		if (th->metrics_known && value[i] > th->metrics[i])
			own[i] += value[i] - th->metrics[i];
		th->metrics[i] = value[i];
	}
	th->metrics_known = true;
}

static void on_thread_exit(struct profile *p, const struct event *e)
{
	struct thread *th = find_thread(p, e->tid);

	if (!th)
		return;
	if (e->u.thread.comm[0])
		thread_set_name(th, e->u.thread.comm);
	if (th->live && e->arg & PYP_EXIT_LOST)
		timing_charge_gap(&p->rb.tree, th, e->ts);
	if (th->live && e->u.thread.runtime)
		timing_exit(&p->rb.tree, th, e->ts, e->u.thread.runtime);
	end_thread(p, th, e->ts);
}

void profile_event(struct profile *p, const struct event *e)
{
	switch (e->type) {
	case PYP_REC_ENTER:
	case PYP_REC_THROW:
	case PYP_REC_LEAVE:
	case PYP_REC_YIELD:
		on_call(p, e);
		break;
	case PYP_REC_SWITCH_OUT:
	case PYP_REC_SWITCH_IN:
		on_switch(p, e);
		break;
	case PYP_REC_CODE:
		codes_code(&p->codes, e->tid, e->u.code.code, e->u.code.firstlineno,
			   e->u.code.flags);
		break;
	case PYP_REC_STRING:
		codes_string(&p->codes, e->tid, &e->u.string);
		break;
	case PYP_REC_CODE_FREE:
		codes_free(&p->codes, e->u.code.code);
		break;
	case PYP_REC_SAMPLE:
		tally_sample(p, e);
		break;
	case PYP_REC_CODE_ID:
		tally_name(p, e->u.code.id, e->u.code.code);
		break;
	case PYP_REC_CHAIN:
		on_chain(p, e);
		break;
	case PYP_REC_THREAD_EXIT:
		on_thread_exit(p, e);
		break;
	case PYP_REC_METRICS:
		on_metrics(p, e);
		break;
	default:
		break; /* FORK and EXEC are the session's business */
	}
}

int profile_keep_metrics(struct profile *p, uint32_t metrics)
{
	p->metrics = metrics;
	return metrics ? calltree_keep_metrics(&p->rb.tree) : 0;
}

/* The session's calls ---------------------------------------------------------------------- */

void profile_begin(struct profile *p, uint64_t ts)
{
	p->tracing = true;
	p->begin_ts = ts;
}

void profile_pause(struct profile *p, uint64_t ts)
{
	if (!p->tracing)
		return;
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct thread *th = p->threads[i];

		if (!th->live)
			continue;
		/* One without an event, and without a last word of the OS. */
		if (th->os_cpu && p->windows)
			timing_take_over(&p->rb.tree, th, ts, false);
		timing_charge(&p->rb.tree, th, ts);
		if (th->last_ts > th->end_ns)
			th->end_ns = th->last_ts;
		if (p->watch)
			watch_end_thread(p->watch, th, ts);
		rebuild_drop_all(&p->rb, th, false);
		thread_drop_chain(th);
		th->live = th->on_cpu = th->os_cpu = th->metrics_known = false;
	}
	coros_stop(&p->rb.coros, ts);
	p->tracing = false;
	p->last = NULL;
}

void profile_end(struct profile *p, uint64_t ts)
{
	profile_pause(p, ts);
	/* While nobody watches, code objects come and go. */
	codes_forget(&p->codes);
}

void profile_in_windows(struct profile *p)
{
	p->windows = true;
	/* Out of memory: each window looks at all nodes. */
	(void)calltree_keep_touched(&p->rb.tree);
}

void profile_fold(struct profile *p, uint64_t length_ns, const struct cost *cost, double scale)
{
	/* Out of memory: the figures stay where they are, until the next fold. */
	(void)estimate_fold(&p->estimate, &p->rb.tree, p->codes.funcs.n, length_ns, cost, scale);
}

void profile_costs_change(struct profile *p, double times)
{
	estimate_costs_change(&p->estimate, times);
}

void profile_gap(struct profile *p, uint64_t ns)
{
	estimate_gap(&p->estimate, ns);
}

void profile_own_cpu(struct profile *p, double ns)
{
	estimate_own_cpu(&p->estimate, ns);
}

void profile_limit(struct profile *p, uint64_t length_ns, const struct cost *cost)
{
	/* The event's cost is known to be counted, even where there is no end. */
	p->limit_ns = length_ns ? length_ns : UINT64_MAX;
	p->shown_ns = p->folded_ns = 0;
	p->window_events = p->window_taken = 0;
	for (int k = 0; k < COST_KINDS; k++)
		p->cost[k] = cost->before[k] + cost->after[k];
}

uint64_t profile_taken(const struct profile *p)
{
	return p->taken;
}

uint64_t profile_samples(const struct profile *p)
{
	return p->samples;
}

/*
 * A thread that could run when the window was opened has run until its first event, or waited for a
 * CPU: where the scheduler has not said since, the process's CPU clock decides.
 */
static void settle_gaps(struct profile *p, uint64_t cpu_ns)
{
	struct calltree *tree = &p->rb.tree;
	double gaps = 0, part;

	for (uint32_t i = 0; i < calltree_ntouched(tree); i++) {
		uint64_t cpu = tree->nodes[calltree_touched(tree, i)].self[SNAPSHOT_CPU];

		cpu_ns = cpu_ns > cpu ? cpu_ns - cpu : 0;
	}
	for (uint32_t i = 0; i < p->nthreads; i++)
		gaps += (double)timing_gap(p->threads[i]);
	part = gaps > 0 ? (double)cpu_ns / gaps : 0;
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct thread *th = p->threads[i];

		timing_settle_gap(tree, th, (uint64_t)(part * (double)timing_gap(th)));
	}
}

static uint64_t window_end(struct profile *p, uint64_t ts)
{
	uint64_t shown;

	if (!p->tracing)
		return p->shown_ns; /* it had a limit, and no parts */
	shown = shown_until(p, ts);
	if (shown > p->limit_ns) {
		ts -= shown - p->limit_ns;
		shown = p->limit_ns;
	}
	profile_pause(p, ts);
	return shown > p->folded_ns ? shown - p->folded_ns : 0;
}

/* Where hits were dearer than was known while it was open, it has shown less. */
static uint64_t shown_really(const struct profile *p, uint64_t shown, double scale)
{
	double own = (double)shown - (scale - 1) * (double)p->window_taken;
	double least = (double)(p->window_events * ESTIMATE_OWN_NS);

	if (p->folded_ns)
		return shown;
	return (uint64_t)(own > least ? own : least);
}

uint64_t profile_window_end(struct profile *p, uint64_t ts, uint64_t cpu_ns, double scale)
{
	uint64_t shown = window_end(p, ts);

	settle_gaps(p, cpu_ns);
	ended_fold(p);
	return shown_really(p, shown, scale);
}

uint64_t profile_window_part(struct profile *p, uint64_t ts)
{
	uint64_t shown = p->tracing ? shown_until(p, ts) : 0, part;

	if (shown <= p->folded_ns)
		return 0;
	part = shown - p->folded_ns;
	p->folded_ns = shown;
	return part;
}

static void seed_stack(struct profile *p, struct thread *th, const struct profile_seed *seed)
{
	_cleanup_free_ struct chain_frame *frames = NULL;
	size_t n = seed->n < PYP_CHAIN_MAX_DEPTH ? seed->n : PYP_CHAIN_MAX_DEPTH;

	if (!n)
		return;
	frames = calloc(n, sizeof(*frames));
	if (!frames)
		return;
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct chain_frame){
			.frame = seed->frames[i].frame,
			.func = codes_func(&p->codes, seed->frames[i].code),
		};
	rebuild_chain(&p->rb, th, frames, (uint32_t)n, n < seed->n);
}

/* Watching --------------------------------------------------------------------------------- */

int profile_watch(struct profile *p, const struct watcher *w)
{
	if (p->watch)
		return -EBUSY;
	p->watch = watch_new(w);
	if (!p->watch)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nthreads; i++)
		if (p->threads[i]->live)
			watch_begin_thread(p->watch, p->threads[i]);
	return 0;
}

struct watch_counts profile_unwatch(struct profile *p, uint64_t ts)
{
	struct watch_counts counts = profile_watch_counts(p);

	for (uint32_t i = 0; p->watch && i < p->nthreads; i++)
		watch_end_thread(p->watch, p->threads[i], ts);
	watch_free(TAKE_PTR(p->watch));
	return counts;
}

struct watch_counts profile_watch_counts(const struct profile *p)
{
	return p->watch ? watch_counts(p->watch) : (struct watch_counts){0};
}

struct profile_func profile_func(const struct profile *p, uint32_t func)
{
	const struct func_identity id = funcs_identity(&p->codes.funcs, func);

	return (struct profile_func){
		.filename = id.filename,
		.name = id.name,
		.qualname = id.qualname,
		.firstlineno = id.firstlineno,
	};
}

void profile_seed_thread(struct profile *p, uint64_t ts, const struct profile_seed *seed)
{
	struct thread *th = find_thread(p, seed->tid);
	uint64_t begin = p->begin_ts ? p->begin_ts : ts;

	if (!p->tracing)
		return;
	if (!th)
		th = add_thread(p, seed->tid, begin);
	if (!th)
		return;
	if (seed->name)
		thread_set_name(th, seed->name);
	if (th->live)
		return;
	th->live = true;
	timing_seed(th, begin, ts, seed->running, seed->runtime);
	if (p->windows)
		timing_doubt(th);
	seed_stack(p, th, seed);
	if (p->watch)
		watch_chain(p->watch, th, ts, false);
}

void profile_update_runtime(struct profile *p, uint32_t tid, uint64_t ts, uint64_t runtime)
{
	struct thread *th = live_thread(p, tid);

	if (th)
		timing_os(&p->rb.tree, th, ts, runtime);
}

void profile_set_thread_name(struct profile *p, uint32_t tid, const char *name)
{
	struct thread *th = find_thread(p, tid);

	if (!th)
		return;
	thread_set_name(th, name);
	th->missing = false;
}

void profile_thread_gone(struct profile *p, uint32_t tid, uint64_t written, uint64_t read)
{
	struct thread *th = find_thread(p, tid);

	if (!th)
		return;
	if (!th->missing) {
		th->missing = true;
		th->missing_at = written;
	} else if (read >= th->missing_at) {
		/* Nothing is known of the time since its last event. */
		end_thread(p, th, th->last_ts);
	}
}

void profile_foreach_thread(const struct profile *p, profile_thread_fn fn, void *ctx)
{
	/* Backwards: fn may end a thread, and the last one takes its place then. */
	for (uint32_t i = p->nthreads; i-- > 0;) {
		const struct thread *th = i < p->nthreads ? p->threads[i] : NULL;

		if (th && th->alive)
			fn(ctx, th->tid, th->live && th->os_cpu);
	}
}

/* Clearing --------------------------------------------------------------------------------- */

/* Dead threads go; the others move up. */
static void forget_dead_threads(struct profile *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct thread *th = p->threads[i];

		if (i != PROFILE_OVERFLOW_THREAD && !th->alive) {
			thread_free(th);
			continue;
		}
		p->threads[kept] = th;
		th->at = kept;
		/* Cannot fail: the key is there, nothing grows. */
		if (kept != PROFILE_OVERFLOW_THREAD)
			map_put(&p->by_tid, th->tid, kept);
		kept++;
	}
	p->nthreads = kept;
}

void profile_clear(struct profile *p, uint64_t ts)
{
	for (uint32_t i = 0; i < p->nthreads; i++)
		if (p->threads[i]->live)
			timing_charge(&p->rb.tree, p->threads[i], ts);
	ended_clear(&p->ended);
	forget_dead_threads(p);
	coros_clear(&p->rb.coros, ts); /* before greenlets are counted anew */
	/* The memory of at least as many roots is there already, so replanting cannot fail. */
	calltree_clear(&p->rb.tree);
	estimate_clear(&p->estimate);
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct thread *th = p->threads[i];

		rebuild_replant(&p->rb, th);
		timing_clear(th);
		th->start_ns = ts;
	}
	p->rb.calls = p->rb.unmatched = p->rb.unseen = p->rb.unstarted = 0;
	p->rb.stack_switches = p->rb.truncated = 0;
	p->timing = (struct timing){0};
	tally_clear(&p->tally);
	p->events = p->resyncs = 0;
	p->window_events = p->window_taken = p->folded_ns = 0;
	if (p->tracing && ts > p->begin_ts)
		p->begin_ts = ts;
}

void profile_ends_are_hidden(struct profile *p)
{
	p->rb.coros.ends_hidden = true;
}

void profile_windows(const struct profile *p, struct snapshot_windows *ret)
{
	const struct estimate *e = &p->estimate;

	ret->sampled = estimate_sampled(e);
	ret->n = e->windows;
	ret->samples = (uint64_t)e->samples;
	ret->seen_cpu_ns = (uint64_t)e->seen_cpu;
	ret->all_cpu_ns = (uint64_t)(e->own_cpu > e->seen_cpu ? e->own_cpu : e->seen_cpu);
}

struct profile_counts profile_counts(const struct profile *p)
{
	return (struct profile_counts){
		.events = p->events,
		.calls = p->rb.calls,
		.unmatched = p->rb.unmatched,
		.unseen = p->rb.unseen,
		.unstarted = p->rb.unstarted,
		.stack_switches = p->rb.stack_switches,
		.resyncs = p->resyncs,
		.truncated = p->rb.truncated,
		.threads = p->nthreads - 1 - p->ended.nrows + p->ended.folded,
		.funcs = p->codes.funcs.n - FUNC_PSEUDO_MAX,
		.nodes = p->rb.tree.contexts,
	};
}
