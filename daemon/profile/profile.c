// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profile of one target: routes each event to the modules for it. See profile.h. Input other
 * than events is handled in profile_threads.c and profile_windows.c.
 *
 * A call or return (on_call) passes these steps: check that the open window covers it; find its
 * thread; charge the time until it (stack/timing.c); change the stack (stack/rebuild.c); report the
 * change to a watcher, if any (stack/watch.c).
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>

#include "counting/samples.h"
#include "profile/profile_priv.h"
#include "stack/waits.h"

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

struct profile *profile_new(const struct profile_limits *limits, profile_resolve_fn resolve,
			    void *ctx)
{
	_cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	const struct profile_limits l = effective_limits(limits);

	if (!p)
		return NULL;
	p->tracing = true; /* profile_begin only sets the start time */
	p->traces_calls = true;
	p->accuracy.times = 1;
	p->rb.max_depth = l.depth;
	calltree_init(&p->rb.tree, l.nodes);
	coros_init(&p->rb.coros);
	if (codes_init(&p->codes, l.funcs, l.string_bytes, resolve, ctx))
		return NULL;
	if (threads_init(&p->threads, &p->rb.tree, l.threads, l.frames))
		return NULL;
	return TAKE_PTR(p);
}

void profile_names_natives(struct profile *p, natives_find_fn find, void *ctx)
{
	p->codes.natives.find = find;
	p->codes.natives.ctx = ctx;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	threads_deinit(&p->threads);
	ended_deinit(&p->ended);
	watch_free(p->watch);
	evidence_deinit(&p->evidence);
	wholes_deinit(&p->wholes);
	free(p->tail.shown);
	codes_deinit(&p->codes);
	gils_deinit(&p->gils);
	blocks_deinit(&p->blocks);
	counts_deinit(&p->counts);
	line_counts_deinit(&p->lines);
	waiting_deinit(&p->waiting);
	samples_by_func_deinit(&p->beside.trace);
	samples_by_func_deinit(&p->beside.before);
	calltree_deinit(&p->rb.tree);
	durations_deinit(&p->rb.durations);
	coros_deinit(&p->rb.coros);
	free(p);
}

/* Whose event it is ------------------------------------------------------------------------ */

static void refuse_call(struct profile *p, const struct event *e)
{
	struct thread *th = p->threads.v[THREADS_OVERFLOW];

	if (e->type != PYP_REC_ENTER && e->type != PYP_REC_THROW && e->type != PYP_REC_C_ENTER &&
	    e->type != PYP_REC_C_INSTANT)
		return;
	calltree_touch(&p->rb.tree, NODE_TRUNCATED(th->root));
	p->rb.tree.nodes[NODE_TRUNCATED(th->root)].calls++;
	p->rb.calls++;
	p->rb.truncated++;
}

/* Returns the thread of an event that proves it is running, added if new. NULL: limit reached. */
static struct thread *running_thread(struct profile *p, const struct event *e)
{
	struct thread *th = threads_get(&p->threads, e->tid, e->ts);

	/* The probe was executing when the previous window was closed. */
	if (p->windows && e->ts < p->window.begin_ts && !(th && th->live))
		return NULL;
	if (!th) {
		refuse_call(p, e);
		return NULL;
	}
	if (!th->live) {
		if (profile_is_timed(p))
			timing_first_seen(th, e->ts);
		else
			timing_first_pass(th, e->ts, true);
		th->live = true;
	}
	return th;
}

/*
 * Handles the first event of a thread with an initial stack. The initial stack was correct, unless
 * it is newer than the event; in that case the thread's time so far is charged to the stack at the
 * event.
 */
static void confirm_initial(struct profile *p, struct thread *th, uint64_t ts)
{
	bool outdated = ts < th->initial_ts;

	th->initial_ts = 0;
	if (outdated)
		rebuild_drop_all(&p->rb, th, false);
	if (outdated && th->os_cpu) {
		th->os_cpu = false;
		th->on_cpu = false;
		th->runtime_known = false;
		th->wait.why = WAIT_other;
	} else if (th->os_cpu) {
		timing_take_over(&p->rb.tree, th, ts);
	}
}

/* Handles all cases except further events of the same thread. NULL: limit reached. */
static struct thread *call_thread_slow(struct profile *p, const struct event *e)
{
	struct thread *th = running_thread(p, e);

	if (!th)
		return NULL;
	if (th->initial_ts)
		confirm_initial(p, th, e->ts);
	/* A chain whose last record was lost cannot be used. */
	th->chain_n = 0;
	th->counters_gap = false;
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

/* A wait has ended, for the reason that timing.c keeps as the last one. */
static void report_wait(struct profile *p, struct thread *th, uint64_t ts)
{
	if (p->watch && waits_kept(&p->rb.tree))
		watch_wait(p->watch, th, ts, th->wait.last_why);
}

/* Calls and returns ------------------------------------------------------------------------ */

static enum cost_kind cost_kind(const struct event *e)
{
	switch (e->type) {
	case PYP_REC_YIELD:
		return COST_YIELD;
	case PYP_REC_LEAVE:
	case PYP_REC_C_LEAVE:
	case PYP_REC_GC_STOP:
		return COST_LEAVE;
	default:
		return COST_ENTER;
	}
}

/*
 * Returns whether the open window covers this event. The first event that it does not cover closes
 * it.
 */
static inline bool is_shown(struct profile *p, const struct event *e)
{
	uint64_t end;

	if (!p->tracing) {
		if (p->windows)
			window_discard(&p->window, cost_kind(e));
		return false;
	}
	if (__builtin_expect(p->tail.end_ns != 0, 0)) {
		window_discard(&p->window, cost_kind(e));
		if (p->wholes.open)
			return true;
		profile_pause(p, e->ts);
		return false;
	}
	if (__builtin_expect(!p->window.limit_ns, 1) ||
	    window_admit(&p->window, e->ts, cost_kind(e), &end))
		return true;
	if (profile_tail_begin(p, end))
		return true;
	profile_pause(p, end);
	return false;
}

/* The thread of an event, charged up to it; NULL: the event is not shown. */
static inline struct thread *charged_thread(struct profile *p, const struct event *e)
{
	struct thread *th;

	if (!is_shown(p, e))
		return NULL;
	p->events++;
	th = call_thread(p, e);
	if (!th)
		return NULL;
	if (__builtin_expect(!profile_is_timed(p), 0))
		timing_pass(&p->rb.tree, th, e->ts, true);
	else if (timing_event(&p->rb.tree, th, &p->timing, e->ts))
		report_wait(p, th, e->ts);
	gil_event(&p->gils, &p->rb.tree, th, e->ts);
	return th;
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

/* Anything but one call or return is a correction, or a switch of stacks. */
static void apply_whole(struct profile *p, struct thread *th, const struct event *e)
{
	const uint32_t depth = th->cur.depth, node = th->node;
	const uint64_t switches = p->rb.stack_switches;

	apply(p, th, e);
	if (p->rb.stack_switches != switches)
		wholes_drop(&p->wholes, &th->whole);
	else if (th->cur.depth == depth + 1)
		wholes_enter(&p->wholes, &th->whole, th->node, depth + 1);
	else if (th->cur.depth + 1 == depth)
		wholes_leave(&p->wholes, &th->whole, node, depth);
	else
		wholes_drop(&p->wholes, &th->whole);
}

static void on_call(struct profile *p, const struct event *e)
{
	struct thread *th = charged_thread(p, e);

	if (!th)
		return;
	if (__builtin_expect(p->watch != NULL, 0))
		apply_watched(p, th, e);
	else if (p->wholes.on)
		apply_whole(p, th, e);
	else
		apply(p, th, e);
	th->probes += p->hit_ns[e->type];
	if (p->tail.end_ns)
		return;
	th->shown++;
	p->shown++;
}

static void on_mark(struct profile *p, const struct event *e)
{
	struct thread *th;

	if (!p->windows || !is_shown(p, e))
		return;
	th = threads_find(&p->threads, e->tid);
	if (th && !thread_makes_calls(th, p->shown))
		return;
	if (th)
		timing_skip(th, e->ts, p->hit_ns[e->type]);
	/* After a window's end, calls are in no sum either. */
	if (p->tail.end_ns)
		return;
	if (th)
		th->marks++;
	evidence_mark(&p->evidence, p->stretch);
}

/* Calls of C functions --------------------------------------------------------------------- */

/* Reports it to the watcher like a call or return of a Python function. */
static void watch_c(struct profile *p, struct thread *th, const struct event *e, uint8_t type,
		    uint64_t switches)
{
	struct event as = {.ts = e->ts, .tid = e->tid, .type = type};

	as.u.call.frame = activation_native(e->u.c_call.frame);
	watch_call(p->watch, th, &as, type == PYP_REC_ENTER, p->rb.stack_switches != switches);
}

static void apply_c_enter(struct profile *p, struct thread *th, const struct event *e)
{
	uint64_t switches = p->rb.stack_switches, method = e->u.c_call.method;
	uint32_t func = e->type == PYP_REC_C_INSTANT ? codes_instant(&p->codes, method)
						     : codes_func(&p->codes, method);

	rebuild_c_enter(&p->rb, th, e->u.c_call.frame, func);
	if (p->watch)
		watch_c(p, th, e, PYP_REC_ENTER, switches);
}

static void apply_c_leave(struct profile *p, struct thread *th, const struct event *e)
{
	uint64_t switches = p->rb.stack_switches;

	rebuild_c_leave(&p->rb, th, e->u.c_call.frame);
	if (p->watch)
		watch_c(p, th, e, PYP_REC_LEAVE, switches);
}

static void on_c_call(struct profile *p, const struct event *e)
{
	struct thread *th = charged_thread(p, e);
	uint32_t depth;

	if (!th)
		return;
	depth = th->cur.depth + (e->type == PYP_REC_C_ENTER) - (e->type == PYP_REC_C_LEAVE);
	if (e->type != PYP_REC_C_LEAVE)
		apply_c_enter(p, th, e);
	if (e->type != PYP_REC_C_ENTER)
		apply_c_leave(p, th, e);
	if (th->cur.depth != depth) /* a correction */
		wholes_drop(&p->wholes, &th->whole);
	th->probes += p->hit_ns[e->type];
}

/* Collections ------------------------------------------------------------------------------ */

static void apply_gc(struct profile *p, struct thread *th, const struct event *e)
{
	const bool starts = e->type == PYP_REC_GC_START;
	uint64_t switches = p->rb.stack_switches, gc = th->gc;
	struct event as = {.ts = e->ts, .tid = e->tid};

	if (starts)
		rebuild_gc_start(&p->rb, th, e->u.gc.frame, func_of_gc(e->arg));
	else
		rebuild_gc_stop(&p->rb, th);
	as.type = starts ? PYP_REC_ENTER : PYP_REC_LEAVE;
	as.u.call.frame = starts ? th->gc : gc;
	if (p->watch && as.u.call.frame)
		watch_call(p->watch, th, &as, starts, p->rb.stack_switches != switches);
}

static void on_gc(struct profile *p, const struct event *e)
{
	struct thread *th = charged_thread(p, e);

	if (!th)
		return;
	apply_gc(p, th, e);
}

/* Other events of threads ------------------------------------------------------------------ */

static void on_switch(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? profile_live_thread(p, e->tid) : NULL;
	bool in = e->type == PYP_REC_SWITCH_IN;

	if (!th || (p->windows && e->ts < p->window.begin_ts))
		return;
	if (e->type == PYP_REC_DELAY) {
		timing_delay_wrong(th, &p->timing);
		return;
	}
	/* The thread's stack dates from before the loss. */
	if (e->arg & PYP_SWITCH_LOST)
		timing_charge_gap(&p->rb.tree, th, e->ts);
	if (timing_switch(&p->rb.tree, th, &p->timing, e->ts, &e->u.sw, in))
		report_wait(p, th, e->ts);
	gil_switch(&p->gils, &p->rb.tree, th, e->ts, &e->u.sw, in);
}

static void chain_apply(struct profile *p, struct thread *th, uint64_t ts)
{
	bool outdated = th->initial_ts && ts < th->initial_ts;
	uint32_t n = th->chain_n;

	if (th->initial_ts)
		confirm_initial(p, th, ts);
	th->chain_n = 0;
	if (th->chain_flags & PYP_CHAIN_RESYNC) {
		p->resyncs++;
		th->counters_gap = true; /* it ends at the next event */
		p->last = NULL;
		timing_charge_gap(&p->rb.tree, th, ts);
	} else if (!outdated) {
		timing_charge(&p->rb.tree, th, ts);
	}
	rebuild_chain(&p->rb, th, th->chain, n, th->chain_flags & PYP_CHAIN_TRUNCATED);
	wholes_drop(&p->wholes, &th->whole);
	/* The thread had no event before this one, so its stack did not change until now. */
	timing_charge(&p->rb.tree, th, ts);
	th->on_cpu = true;
	if (profile_is_timed(p))
		th->wait.why = WAIT_runnable;
	if (p->watch)
		watch_chain(p->watch, th, ts, th->chain_flags & PYP_CHAIN_RESYNC);
}

static void on_chain(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? running_thread(p, e) : NULL;
	const struct event_chain *c = &e->u.chain;

	if (!th || !thread_chain_reserve(th, c->first, c->count, PYP_CHAIN_MAX_DEPTH))
		return;
	for (uint32_t i = 0; i < c->count; i++)
		th->chain[th->chain_n++] = (struct chain_frame){
			.frame = c->frames[i].frame,
			.func = codes_func(&p->codes, c->frames[i].code),
		};
	th->chain_flags |= c->flags;
	if (c->flags & PYP_CHAIN_LAST)
		chain_apply(p, th, e->ts);
}

static void on_thread_exit(struct profile *p, const struct event *e)
{
	struct thread *th = threads_find(&p->threads, e->tid);

	if (!th)
		return;
	if (e->u.thread.comm[0])
		thread_set_name(th, e->u.thread.comm);
	if (th->live && e->arg & PYP_EXIT_LOST)
		timing_charge_gap(&p->rb.tree, th, e->ts);
	if (th->live && e->u.thread.runtime && profile_is_timed(p))
		timing_exit(&p->rb.tree, th, e->ts, e->u.thread.runtime);
	profile_end_thread(p, th, e->ts);
}

static void on_code(struct profile *p, const struct event *e)
{
	if (e->arg & PYP_CODE_LATE) {
		codes_late(&p->codes, e->tid, e->u.code.code, e->u.code.firstlineno,
			   e->u.code.flags);
		return;
	}
	codes_code(&p->codes, e->ts, e->tid, e->u.code.code, e->u.code.firstlineno,
		   e->u.code.flags);
	line_counts_forget(&p->lines, e->u.code.code);
}

/* The router ------------------------------------------------------------------------------- */

void profile_event(struct profile *p, const struct event *e)
{
	switch (e->type) {
	case PYP_REC_ENTER:
	case PYP_REC_THROW:
	case PYP_REC_LEAVE:
	case PYP_REC_YIELD:
		on_call(p, e);
		break;
	case PYP_REC_C_ENTER:
	case PYP_REC_C_LEAVE:
	case PYP_REC_C_INSTANT:
		on_c_call(p, e);
		break;
	case PYP_REC_GC_START:
	case PYP_REC_GC_STOP:
		on_gc(p, e);
		break;
	case PYP_REC_MARK:
		on_mark(p, e);
		break;
	case PYP_REC_METHOD:
		codes_method(&p->codes, &e->u.method);
		break;
	case PYP_REC_SWITCH_OUT:
	case PYP_REC_SWITCH_IN:
	case PYP_REC_DELAY:
		if (profile_is_timed(p))
			on_switch(p, e);
		else
			profile_on_wait(p, e);
		break;
	case PYP_REC_CODE:
		on_code(p, e);
		break;
	case PYP_REC_STRING:
		codes_string(&p->codes, e->tid, &e->u.string);
		break;
	case PYP_REC_CODE_FREE:
		codes_free(&p->codes, e->u.code.code);
		line_counts_forget(&p->lines, e->u.code.code);
		break;
	case PYP_REC_SAMPLE:
		profile_on_sample(p, e);
		break;
	case PYP_REC_CODE_ID:
		counts_name(&p->counts, &p->codes, e->u.code.id, e->u.code.code);
		break;
	case PYP_REC_CHAIN:
		on_chain(p, e);
		break;
	case PYP_REC_THREAD_EXIT:
		on_thread_exit(p, e);
		break;
	case PYP_REC_COUNTERS:
		profile_count_counters(p, e);
		break;
	case PYP_REC_MEMORY:
		profile_count_memory(p, e);
		break;
	case PYP_REC_BLOCK:
		profile_count_block(p, e);
		break;
	default:
		break; /* session/ handles FORK and EXEC */
	}
}

void profile_set_calls(struct profile *p, const struct call_count *v, size_t n)
{
	counts_take_back(&p->counts, &p->rb);
	profile_fold_ended(p);
	counts_add(&p->counts, &p->rb, &p->threads, p->window.begin_ts, v, n);
	p->events = p->rb.calls;
}

/* Calls from session/ ---------------------------------------------------------------------- */

int profile_keep_columns(struct profile *p, uint64_t columns)
{
	p->measured |= columns;
	return calltree_keep(&p->rb.tree, columns);
}

void profile_set_cost(struct profile *p, const struct cost *cost)
{
	/* In windows, marks are recorded as calls are. */
	static const uint8_t types[] = {PYP_REC_ENTER,	   PYP_REC_THROW,   PYP_REC_LEAVE,
					PYP_REC_YIELD,	   PYP_REC_C_ENTER, PYP_REC_C_LEAVE,
					PYP_REC_C_INSTANT, PYP_REC_MARK};

	for (size_t i = 0; i < sizeof(types); i++) {
		enum cost_kind kind = cost_kind(&(struct event){.type = types[i]});

		p->hit_ns[types[i]] = cost->before[kind] + cost->after[kind];
	}
	p->rb.own_ns[false] = cost->before[COST_LEAVE] - cost->before[COST_ENTER];
	p->rb.own_ns[true] = cost->before[COST_YIELD] - cost->before[COST_ENTER];
}

int profile_keep_waits(struct profile *p)
{
	p->measured |= COLUMN_WAITS | COLUMN_BIT(COLUMN_gil_held_ns);
	/* The other columns are allocated with their first figure. */
	return calltree_keep(&p->rb.tree, COLUMN_BIT(COLUMN_gil));
}

void profile_ends_are_hidden(struct profile *p)
{
	p->rb.coros.ends_hidden = true;
}

void profile_traces_calls(struct profile *p, bool on)
{
	p->traces_calls = on;
}

void profile_begin(struct profile *p, uint64_t ts)
{
	if (p->blocks_old)
		profile_forget_blocks(p);
	p->blocks_old = false;
	p->tracing = true;
	p->window.begin_ts = ts;
}

void profile_pause(struct profile *p, uint64_t ts)
{
	if (!p->tracing)
		return;
	for (uint32_t i = 0; i < p->threads.n; i++) {
		struct thread *th = p->threads.v[i];

		if (!p->windows)
			profile_wait_stop(p, th, ts);
		wholes_drop(&p->wholes, &th->whole);
		if (!th->live)
			continue;
		timing_charge(&p->rb.tree, th, ts);
		if (p->windows && p->stretch)
			profile_wait_take(p, th, ts);
		if (th->last_ts > th->end_ns)
			th->end_ns = th->last_ts;
		gil_forget(&p->gils, &p->rb.tree, th, ts);
		if (p->watch)
			watch_end_thread(p->watch, th, ts);
		rebuild_drop_all(&p->rb, th, false);
		thread_drop_chain(th);
		th->live = th->on_cpu = th->os_cpu = th->counters_known = false;
	}
	coros_stop(&p->rb.coros, ts);
	p->tracing = p->stretch = false;
	p->last = NULL;
}

void profile_end(struct profile *p, uint64_t ts)
{
	profile_pause(p, ts);
	for (uint32_t i = 0; i < p->threads.n && p->windows; i++)
		profile_wait_stop(p, p->threads.v[i], ts);
	p->observed_ns = 0;
	/* While tracing is off, code objects are created and freed. */
	codes_forget(&p->codes);
	line_counts_forget_all(&p->lines);
	p->blocks_old = true;
}

void profile_clear(struct profile *p, uint64_t ts)
{
	for (uint32_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i]->live)
			timing_charge(&p->rb.tree, p->threads.v[i], ts);
	ended_clear(&p->ended);
	threads_forget_dead(&p->threads);
	coros_clear(&p->rb.coros, ts); /* before greenlets are counted again */
	/* The memory for at least as many roots exists, so replanting cannot fail. */
	calltree_clear(&p->rb.tree);
	durations_clear(&p->rb.durations);
	evidence_clear(&p->evidence);
	p->tail.n = 0;
	/* A window that has reached its end shows nothing any more. */
	if (p->windows && (!p->tracing || p->tail.end_ns))
		p->window.shown_ns = 0;
	waiting_clear(&p->waiting);
	for (uint32_t i = 0; i < p->threads.n; i++) {
		struct thread *th = p->threads.v[i];

		wholes_drop(&p->wholes, &th->whole);
		rebuild_replant(&p->rb, th);
		timing_clear(th);
		if (p->waiting.kept)
			waiting_clear_thread(&p->waiting, th, ts);
		th->start_ns = ts;
	}
	wholes_clear(&p->wholes);
	p->rb.calls = p->rb.unmatched = p->rb.unseen = p->rb.unstarted = 0;
	p->rb.stack_switches = p->rb.truncated = 0;
	p->timing = (struct timing){0};
	gils_clear(&p->gils);
	blocks_clear(&p->blocks);
	counts_clear(&p->counts);
	samples_by_func_clear(&p->beside.trace);
	line_counts_clear(&p->lines);
	p->events = p->resyncs = 0;
	window_clear(&p->window);
	if (p->tracing && ts > p->window.begin_ts)
		p->window.begin_ts = ts;
	if (p->observed_ns && ts > p->observed_ns)
		p->observed_ns = ts;
}

uint64_t profile_cpu(const struct profile *p)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < p->threads.n; i++)
		ns += p->threads.v[i]->total[SNAPSHOT_CPU];
	return ns;
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
		.threads = p->threads.n - 1 - p->threads.nrows + p->ended.folded,
		.funcs = p->codes.funcs.n - FUNC_PSEUDO_MAX,
		.nodes = p->rb.tree.contexts,
	};
}
