// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reporting stack changes: see watch.h.
 *
 * Each thread has a mirror: the frames that were reported as pushed and not yet as popped. After an
 * event, the thread's stack is compared with its mirror and the differences are reported: above the
 * lowest difference, the mirror's frames are popped and the stack's frames are pushed. Reports are
 * therefore balanced, whatever rule of rebuild.c changed the stack, and if the watcher could not
 * take events for a while, the next comparison catches up.
 *
 * In almost all cases the difference is one frame on top, which is detected without a full
 * comparison.
 */
#include "stack/watch.h"

#include <stdlib.h>

#include "base/map.h"
#include "stack/mirror.h"
#include "stack/thread.h"

/* Maximum number of generators whose suspension is remembered. */
#define SUSPENDED_MAX (1u << 20)

struct watch {
	struct watcher to;
	uint64_t dropped, truncated;
	struct map suspended; /* frame → function, of frames that yielded */
};

static const char *const kind_names[WATCH_KIND_MAX] = {
#define WATCH_X(name, word) word,
	WATCH_KINDS(WATCH_X)
#undef WATCH_X
};

const char *watch_kind_name(enum watch_kind kind)
{
	return (unsigned int)kind < WATCH_KIND_MAX ? kind_names[kind] : "?";
}

int watch_kind_step(enum watch_kind kind)
{
	if (kind <= WATCH_SWITCH_IN)
		return 1;
	return kind <= WATCH_SWITCH_OUT ? -1 : 0;
}

bool watch_kind_is_call(enum watch_kind kind)
{
	return kind <= WATCH_THROW;
}

struct watch *watch_new(const struct watcher *w)
{
	struct watch *ret = calloc(1, sizeof(*ret));

	if (ret)
		ret->to = *w;
	return ret;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	map_deinit(&w->suspended);
	free(w);
}

struct watch_counts watch_counts(const struct watch *w)
{
	return (struct watch_counts){.dropped = w->dropped, .truncated = w->truncated};
}

/* Reporting -------------------------------------------------------------------------------- */

static bool report(struct watch *w, const struct thread *th, struct watch_event *e)
{
	const struct mirror *m = th->mirror;

	e->tid = th->tid;
	e->thread = th->name;
	if (e->kind != WATCH_WAIT)
		e->why = th->wait.why;
	e->ts = m->ts;
	e->cpu = m->cpu;
	return w->to.fn(w->to.ctx, e);
}

static bool report_name(struct watch *w, const struct thread *th)
{
	struct watch_event e = {.kind = WATCH_THREAD,
				.func = WATCH_NO_FUNC,
				.caller = WATCH_NO_FUNC,
				.name = th->name};

	return report(w, th, &e);
}

static bool report_mark(struct watch *w, const struct thread *th, enum watch_kind kind,
			uint64_t count)
{
	struct watch_event e = {
		.kind = kind, .func = WATCH_NO_FUNC, .caller = WATCH_NO_FUNC, .count = count};

	return report(w, th, &e);
}

/* Report a push or pop. Return false if the watcher did not take it. */
static bool come(struct watch *w, struct thread *th, const struct activation *a,
		 enum watch_kind kind)
{
	struct mirror *m = th->mirror;
	struct watch_event e = {.kind = kind, .func = activation_func(a), .frame = a->frame};

	e.caller = m->n ? m->v[m->n - 1].func : WATCH_NO_FUNC;
	if (!mirror_reserve(m) || !report(w, th, &e))
		return false;
	m->v[m->n++] = (struct mirror_frame){a->frame, activation_func(a)};
	return true;
}

static bool go(struct watch *w, struct thread *th, enum watch_kind kind, bool raised)
{
	struct mirror *m = th->mirror;
	struct watch_event e = {.kind = kind,
				.func = m->v[m->n - 1].func,
				.frame = m->v[m->n - 1].frame,
				.raised = raised && kind == WATCH_RETURN};

	e.caller = m->n > 1 ? m->v[m->n - 2].func : WATCH_NO_FUNC;
	if (!report(w, th, &e))
		return false;
	m->n--;
	return true;
}

/* Comparing -------------------------------------------------------------------------------- */

/* A change of a thread's stack. */
struct change {
	/* CALL …: of the top frame; RETURN, YIELD: of `frame`; OPEN: read; CLOSE: cause unknown */
	enum watch_kind top;
	uint64_t frame;
	bool switched; /* to another stack */
	bool raised;   /* RETURN: by an exception */
};

static bool same(const struct activation *a, const struct mirror_frame *f)
{
	return a->frame == f->frame && activation_func(a) == f->func;
}

/*
 * Returns whether the stack equals the mirror below this depth. A frame is on one stack only, so
 * comparing the top suffices.
 */
static bool same_below(const struct thread *th, uint32_t depth)
{
	return !depth || same(&th->cur.acts[depth - 1], &th->mirror->v[depth - 1]);
}

static enum watch_kind why_gone(struct thread *th, const struct mirror_frame *f,
				const struct change *c)
{
	uint32_t slot;

	if (f->frame == c->frame && (c->top == WATCH_RETURN || c->top == WATCH_YIELD))
		return c->top;
	if (thread_find(th, f->frame, &slot) == PLACE_PARKED)
		return WATCH_SWITCH_OUT;
	return c->top == WATCH_OPEN || c->top == WATCH_CLOSE ? WATCH_CLOSE : WATCH_UNWIND;
}

static enum watch_kind why_here(const struct thread *th, uint32_t i, const struct change *c)
{
	if (watch_kind_is_call(c->top))
		return i + 1 == th->cur.depth ? c->top : WATCH_SWITCH_IN;
	return c->top == WATCH_OPEN || c->top == WATCH_CLOSE ? WATCH_OPEN : WATCH_SWITCH_IN;
}

/*
 * Reports a return on a stack that was switched to for it, where the frame has already been
 * removed.
 */
static bool report_return_elsewhere(struct watch *w, struct thread *th, const struct change *c)
{
	const struct stack *s = &th->cur;

	if (!c->switched || (c->top != WATCH_RETURN && c->top != WATCH_YIELD) ||
	    s->depth >= s->cap || s->acts[s->depth].frame != c->frame)
		return true;
	return come(w, th, &s->acts[s->depth], WATCH_SWITCH_IN) && go(w, th, c->top, c->raised);
}

/*
 * Returns the number of outermost frames that the stack and the mirror share. After one event the
 * mirror equals the previous stack, so searching from the top stops right below the change, at any
 * depth. After a gap, frame addresses may have been reused, so everything is compared.
 */
static uint32_t common_depth(const struct thread *th, const struct change *c)
{
	const struct mirror *m = th->mirror;
	/*
	 * A frame that was just called is new, even if the end of an earlier frame at its address
	 * was not reported.
	 */
	uint32_t limit = th->cur.depth - watch_kind_is_call(c->top), keep = 0;

	if (m->n < limit)
		limit = m->n;
	if (c->top != WATCH_OPEN && c->top != WATCH_CLOSE) {
		while (!same_below(th, limit))
			limit--;
		return limit;
	}
	while (keep < limit && same(&th->cur.acts[keep], &m->v[keep]))
		keep++;
	return keep;
}

/* Reports all differences. Returns false if some could not be reported. */
static bool compare(struct watch *w, struct thread *th, const struct change *c)
{
	struct mirror *m = th->mirror;
	uint32_t keep = common_depth(th, c);
	bool reported = false;

	while (m->n > keep) {
		reported |= m->v[m->n - 1].frame == c->frame;
		if (!go(w, th, why_gone(th, &m->v[m->n - 1], c), c->raised))
			return false;
	}
	while (m->n < th->cur.depth)
		if (!come(w, th, &th->cur.acts[m->n], why_here(th, m->n, c)))
			return false;
	return reported || report_return_elsewhere(w, th, c);
}

/* Handles the usual cases directly: one frame more, one less, or no change. */
static bool change_apply(struct watch *w, struct thread *th, const struct change *c)
{
	const struct mirror *m = th->mirror;
	uint32_t depth = th->cur.depth;

	if (watch_kind_is_call(c->top)) {
		if (depth == m->n + 1 && same_below(th, m->n))
			return come(w, th, &th->cur.acts[m->n], c->top);
	} else if (depth + 1 == m->n) {
		if (m->v[depth].frame == c->frame && c->top != WATCH_OPEN && same_below(th, depth))
			return go(w, th, c->top, c->raised);
	} else if (depth == m->n && !c->switched && same_below(th, depth)) {
		return true;
	}
	return compare(w, th, c);
}

/* If the watcher is ready again after a pause, reports DROPPED and then the current stack. */
static bool catch_up(struct watch *w, struct thread *th)
{
	static const struct change unknown = {.top = WATCH_CLOSE};
	struct mirror *m = th->mirror;

	if (!w->to.ready(w->to.ctx))
		return false;
	m->named = m->named || report_name(w, th);
	if (!m->named || !report_mark(w, th, WATCH_DROPPED, m->dropped))
		return false;
	m->dropped = 0;
	return compare(w, th, &unknown);
}

static void drop(struct watch *w, struct mirror *m)
{
	m->dropped++;
	w->dropped++;
}

/* counts: the change is a call or a return. */
static void change_report(struct watch *w, struct thread *th, const struct change *c, bool counts)
{
	struct mirror *m = th->mirror;
	bool was_stale = m->stale;

	if (!was_stale)
		m->stale = !change_apply(w, th, c);
	if (counts && m->stale)
		drop(w, m);
	if (was_stale)
		m->stale = !catch_up(w, th);
}

/* Events ----------------------------------------------------------------------------------- */

/*
 * Returns the thread's mirror, advanced to this time. NULL: out of memory, or this time is not
 * reported.
 */
static struct mirror *mirror_at(struct watch *w, struct thread *th, uint64_t ts)
{
	uint64_t cpu = th->total[SNAPSHOT_CPU] + th->cpu_cleared;
	struct mirror *m = th->mirror;

	if (ts > w->to.until_ns)
		return NULL;
	if (!m) {
		m = th->mirror = calloc(1, sizeof(*m));
		if (!m)
			return NULL;
		m->ts = ts > w->to.from_ns ? ts : w->to.from_ns;
		m->cpu = cpu;
		m->named = report_name(w, th);
		m->stale = !m->named;
	}
	if (ts > m->ts)
		m->ts = ts;
	if (cpu > m->cpu)
		m->cpu = cpu;
	return m;
}

void watch_begin_thread(struct watch *w, struct thread *th)
{
	static const struct change found = {.top = WATCH_OPEN};

	if (mirror_at(w, th, w->to.from_ns))
		change_report(w, th, &found, false);
}

/* A frame that was seen to yield and is entered again is a resumed generator. */
static enum watch_kind call_kind(struct watch *w, const struct thread *th, const struct event *e)
{
	const struct activation *top = &th->cur.acts[th->cur.depth - 1];
	uint32_t func;

	if (e->type == PYP_REC_THROW) {
		map_del(&w->suspended, e->u.call.frame);
		return WATCH_THROW;
	}
	if (!map_get(&w->suspended, e->u.call.frame, &func))
		return WATCH_CALL;
	map_del(&w->suspended, e->u.call.frame);
	return func == activation_func(top) ? WATCH_RESUME : WATCH_CALL;
}

static void remember_yield(struct watch *w, const struct thread *th, uint64_t frame)
{
	const struct stack *s = &th->cur;

	/* The frame was just popped, so its array element still holds the function. */
	if (w->suspended.n < SUSPENDED_MAX && s->depth < s->cap && s->acts[s->depth].frame == frame)
		map_put(&w->suspended, frame, activation_func(&s->acts[s->depth]));
}

void watch_call(struct watch *w, struct thread *th, const struct event *e, bool called,
		bool switched)
{
	struct change c = {.frame = e->u.call.frame, .switched = switched};
	bool entry = false;

	switch (e->type) {
	case PYP_REC_ENTER:
	case PYP_REC_THROW:
		entry = true;
		if (called && th->cur.overflow) {
			w->truncated += e->ts <= w->to.until_ns;
			return;
		}
		c.top = called ? call_kind(w, th, e) : WATCH_CLOSE;
		break;
	case PYP_REC_YIELD:
		remember_yield(w, th, c.frame);
		c.top = WATCH_YIELD;
		break;
	default:
		c.top = WATCH_RETURN;
		c.raised = e->type == PYP_REC_LEAVE && e->arg & PYP_LEAVE_RAISED;
		break;
	}
	/* A duplicate entry is not an event; the return of an unknown frame changes nothing. */
	if (mirror_at(w, th, e->ts) && (called || !entry))
		change_report(w, th, &c, true);
}

void watch_chain(struct watch *w, struct thread *th, uint64_t ts, bool lost)
{
	static const struct change found = {.top = WATCH_OPEN};
	struct mirror *m = mirror_at(w, th, ts);

	if (!m)
		return;
	if (lost && !m->stale)
		m->stale = !report_mark(w, th, WATCH_LOST, 0);
	change_report(w, th, &found, false);
}

void watch_memory(struct watch *w, struct thread *th, uint64_t ts, enum watch_kind kind,
		  uint64_t bytes)
{
	const struct mirror *m = mirror_at(w, th, ts);

	if (m && !m->stale)
		(void)report_mark(w, th, kind, bytes);
}

void watch_wait(struct watch *w, struct thread *th, uint64_t ts, enum wait_reason why)
{
	struct watch_event e = {
		.kind = WATCH_WAIT, .func = WATCH_NO_FUNC, .caller = WATCH_NO_FUNC, .why = why};
	const struct mirror *m = mirror_at(w, th, ts);

	if (m && !m->stale)
		report(w, th, &e);
}

void watch_end_thread(struct watch *w, struct thread *th, uint64_t ts)
{
	struct mirror *m = th->mirror;

	if (!m)
		return;
	mirror_at(w, th, ts < w->to.until_ns ? ts : w->to.until_ns);
	if (m->dropped)
		report_mark(w, th, WATCH_DROPPED, m->dropped);
	while (m->n && go(w, th, WATCH_CLOSE, false))
		;
	/*
	 * The thread's name is known by now. If the watcher cannot take it, the next thread with
	 * this tid is announced first.
	 */
	report_name(w, th);
	mirror_free(m);
	th->mirror = NULL;
}
