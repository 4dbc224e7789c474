// SPDX-License-Identifier: BSD-2-Clause
/*
 * A timeline being recorded: see timeline.h.
 *
 * Buffered records are in pieces that are fetched as a whole. When the buffer is full,
 * frames that are entered are refused (stack/watch.c counts them) until a quarter of it has been
 * fetched. Frames that are left and ends of threads may use half as much in addition, so that the
 * end of a recorded frame is almost always recorded.
 *
 * If only the recent past is wanted, records are kept in recent.c instead, where the oldest ones give
 * way, and become available at the end.
 */
#include "timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/pieces.h"
#include "timeline/recent.h"
#include "timeline/wire.h"

#define PIECE ((size_t)1 << 20)

_Static_assert(PIECE >= TIMELINE_TEXT_MAX + sizeof(struct timeline_rec), "a record fits a piece");

struct source {
	struct timeline *timeline;
	struct profile *profile; /* NULL: ended */
	uint16_t number;
	uint32_t pid;
	uint8_t *known; /* bit per function: its names were sent */
	uint32_t known_cap;
};

struct timeline {
	struct timeline_opts opts;
	struct pieces waiting; /* to be fetched */
	struct recent *recent; /* NULL: everything is to be fetched */
	uint64_t end_ns;       /* later events are ignored; UINT64_MAX: none so far */
	struct source **sources;
	uint32_t nsources;
	uint64_t dropped, truncated; /* sums of ended sources */
	bool mark_due;		     /* the trigger's mark is still to be recorded */
	bool finished;
};

/* Buffer ------------------------------------------------------------------------------------ */

/* The buffer's limit for a record of this type. */
static uint64_t limit_of(const struct timeline *t, unsigned int type)
{
	uint64_t limit = t->opts.buffer;

	/* Of a recent timeline, what is to be fetched is its end, which was limited already. */
	if (type == TIMELINE_END || t->recent)
		return UINT64_MAX;
	if (type < WATCH_KIND_MAX && watch_kind_step((enum watch_kind)type) <= 0)
		limit += limit / 2;
	return limit;
}

/* Append a record with its text, and set its size. */
static bool append(struct timeline *t, struct timeline_rec *r, const char *text, size_t ntext)
{
	const size_t n = sizeof(*r) + ntext;
	/* The first piece is small, as most recordings contain little. */
	const size_t size = t->waiting.last ? PIECE : n > PIECE / 16 ? n : PIECE / 16;

	if (t->waiting.n + n > limit_of(t, r->type) ||
	    (!pieces_fits(&t->waiting, n) && pieces_grow(&t->waiting, size) < 0))
		return false;
	pieces_put(&t->waiting, r, text, ntext);
	return true;
}

void timeline_take(struct timeline *t, char **ret_data, size_t *ret_n)
{
	struct piece *p = NULL;

	*ret_data = NULL;
	*ret_n = 0;
	/* Pieces may have become empty, which would mean that there is nothing at present. */
	do {
		piece_free(p);
		p = pieces_shift(&t->waiting);
	} while (p && !p->n);
	if (!p)
		return;
	*ret_data = TAKE_PTR(p->data);
	*ret_n = p->n;
	piece_free(p);
}

/* Recording --------------------------------------------------------------------------------- */

static bool reserve_known(struct source *s, uint32_t func)
{
	uint32_t cap = s->known_cap ? s->known_cap : 4096;
	uint8_t *known;

	while (cap <= func)
		cap *= 2;
	if (cap == s->known_cap)
		return true;
	known = realloc(s->known, cap / 8);
	if (!known)
		return false;
	memset(known + s->known_cap / 8, 0, (cap - s->known_cap) / 8);
	s->known = known;
	s->known_cap = cap;
	return true;
}

/* Send a function's names, NUL-terminated and truncated to the limit. */
static bool send_func(struct source *s, uint32_t func)
{
	const struct profile_func f = profile_func(s->profile, func);
	const char *names[] = {f.filename, f.name, f.qualname};
	struct timeline_rec r = {
		.type = TIMELINE_FUNC, .source = s->number, .func = func, .line = f.firstlineno};
	struct recent *recent = s->timeline->recent;
	const size_t max = recent ? RECENT_NAME_MAX : TIMELINE_TEXT_MAX / 3 - 1;
	_cleanup_free_ char *text = NULL;
	size_t length[3], n = 0, at = 0;

	for (int i = 0; i < 3; i++) {
		length[i] = names[i] ? strnlen(names[i], max) : 0;
		n += length[i] + 1;
	}
	text = calloc(1, n);
	if (!text)
		return false;
	for (int i = 0; i < 3; i++) {
		if (length[i])
			memcpy(text + at, names[i], length[i]);
		at += length[i] + 1;
	}
	return recent ? recent_name(recent, &r, text, n) : append(s->timeline, &r, text, n);
}

/* Send the function's names if the reader does not have them. */
static bool send_func_once(struct source *s, uint32_t func)
{
	if (func == WATCH_NO_FUNC)
		return true;
	if (!reserve_known(s, func))
		return false;
	if (s->known[func / 8] & 1u << func % 8)
		return true;
	if (!send_func(s, func))
		return false;
	s->known[func / 8] |= (uint8_t)(1u << func % 8);
	return true;
}

/* The condition is met: what ends at end_ns is what is to be kept. */
static void condition_met(struct timeline *t, uint64_t end_ns)
{
	const struct trigger_hit *hit = trigger_hit(t->opts.trigger);

	t->end_ns = end_ns > hit->ts ? end_ns : hit->ts;
	t->mark_due = true;
}

/* The mark is among its thread's events, of which earlier ones can still be in the ring. */
static bool mark_precedes(const struct source *s, const struct watch_event *e)
{
	const struct trigger_hit *hit = trigger_hit(s->timeline->opts.trigger);

	return hit->source == s->number && hit->tid == e->tid && hit->ts <= e->ts;
}

static void put_mark(struct timeline *t)
{
	const struct trigger_hit *hit = trigger_hit(t->opts.trigger);
	struct timeline_rec r = {
		.type = TIMELINE_TRIGGER,
		.source = (uint16_t)hit->source,
		.tid = hit->tid,
		.func = hit->func,
		.caller = WATCH_NO_FUNC,
		.ts = hit->ts,
	};

	t->mark_due = false;
	recent_add(t->recent, &r, hit->text, strlen(hit->text) + 1);
}

/* Returns whether the event is part of the timeline. */
static bool is_wanted(struct source *s, const struct watch_event *e)
{
	struct timeline *t = s->timeline;

	if (e->kind == WATCH_WAIT || e->ts > t->end_ns)
		return false;
	if (t->opts.trigger && trigger_event(t->opts.trigger, s->number, e))
		condition_met(t, e->ts);
	if (t->mark_due && mark_precedes(s, e))
		put_mark(t);
	return true;
}

static bool on_watch(void *ctx, const struct watch_event *e)
{
	struct source *s = ctx;
	struct timeline *t = s->timeline;
	const size_t nname = e->name ? strlen(e->name) + 1 : 0;
	struct timeline_rec r = {
		.type = (uint16_t)e->kind,
		.source = s->number,
		.tid = e->tid,
		.func = e->func,
		.caller = e->caller,
		.ts = e->ts,
		.cpu = e->cpu,
		.count = e->count,
	};

	if (!is_wanted(s, e))
		return true;
	if (!send_func_once(s, e->func) || !send_func_once(s, e->caller))
		return false;
	return t->recent ? recent_add(t->recent, &r, e->name, nname)
			 : append(t, &r, e->name, nname);
}

static bool on_ready(void *ctx)
{
	const struct source *s = ctx;

	return s->timeline->recent || s->timeline->waiting.n <= s->timeline->opts.buffer / 4 * 3;
}

/* Start and end ----------------------------------------------------------------------------- */

static bool append_begin(struct timeline *t, uint64_t from_ns)
{
	struct timeline_rec r = {.type = TIMELINE_BEGIN,
				 .func = TIMELINE_VERSION,
				 .caller = WATCH_NO_FUNC,
				 .ts = from_ns,
				 .cpu = t->opts.from_unix_ns + (from_ns - t->opts.from_ns)};

	return append(t, &r, NULL, 0);
}

static bool append_source(struct timeline *t, const struct source *s)
{
	struct timeline_rec r = {
		.type = TIMELINE_SOURCE, .source = s->number, .tid = s->pid, .func = WATCH_NO_FUNC};

	return append(t, &r, NULL, 0);
}

static struct recent *new_recent(const struct timeline *t)
{
	const struct recent_opts o = {
		.from_ns = t->opts.from_ns,
		.keep_ns = t->opts.keep_ns,
		.max_bytes = t->opts.buffer,
	};

	return recent_new(&o);
}

struct timeline *timeline_new(const struct timeline_opts *opts)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opts = *opts;
	t->opts.trigger = NULL;
	t->end_ns = UINT64_MAX;
	if (!t->opts.buffer)
		t->opts.buffer = opts->keep_ns ? TIMELINE_BUFFER_RECENT : TIMELINE_BUFFER;
	if (opts->keep_ns)
		t->recent = new_recent(t);
	if (opts->keep_ns ? t->recent != NULL : append_begin(t, opts->from_ns)) {
		t->opts.trigger = opts->trigger;
		return t;
	}
	timeline_free(t);
	return NULL;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nsources; i++) {
		free(t->sources[i]->known);
		free(t->sources[i]);
	}
	free(t->sources);
	pieces_deinit(&t->waiting);
	recent_free(t->recent);
	trigger_free(t->opts.trigger);
	free(t);
}

static int reserve_source(struct timeline *t)
{
	struct source **v;

	if (t->nsources == TIMELINE_SOURCES_MAX)
		return -ENOSPC;
	v = reallocarray(t->sources, t->nsources + 1, sizeof(struct source *));
	if (!v)
		return -ENOMEM;
	t->sources = v;
	v[t->nsources] = calloc(1, sizeof(struct source));
	return v[t->nsources] ? 0 : -ENOMEM;
}

/* Before frames are reported: those that are on the stacks now are at once. */
static int announce(struct timeline *t, const struct source *s)
{
	if (t->opts.trigger)
		return trigger_add(t->opts.trigger, s->number, s->pid, s->profile);
	return t->recent || append_source(t, s) ? 0 : -ENOMEM;
}

int timeline_add(struct timeline *t, uint32_t pid, struct profile *p, uint32_t *ret)
{
	struct watcher w = {.fn = on_watch,
			    .ready = on_ready,
			    .from_ns = t->opts.from_ns,
			    .until_ns = t->opts.until_ns};
	struct source *s;
	int r;

	r = reserve_source(t);
	if (r < 0)
		return r;
	s = t->sources[t->nsources];
	*s = (struct source){
		.timeline = t, .profile = p, .number = (uint16_t)t->nsources, .pid = pid};
	w.ctx = s;
	r = announce(t, s);
	if (r == 0)
		r = profile_watch(p, &w);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = t->nsources++;
	return 0;
}

void timeline_end_source(struct timeline *t, uint32_t source, uint64_t ts)
{
	struct source *s = t->sources[source];
	struct watch_counts c;

	if (!s->profile)
		return;
	c = profile_unwatch(s->profile, ts);
	t->dropped += c.dropped;
	t->truncated += c.truncated;
	if (t->opts.trigger)
		trigger_end_source(t->opts.trigger, source);
	s->profile = NULL;
}

void timeline_check(struct timeline *t, uint32_t source, const struct timeline_moment *now)
{
	struct trigger *tr = t->opts.trigger;

	if (!tr || t->finished || !t->sources[source]->profile)
		return;
	if (trigger_time(tr, source, now->current_ns) ||
	    (now->cpu_ns && trigger_cpu(tr, source, now->now_ns, now->cpu_ns)))
		condition_met(t, now->current_ns);
}

bool timeline_is_met(const struct timeline *t)
{
	return t->opts.trigger && trigger_hit(t->opts.trigger);
}

bool timeline_needs_cpu(const struct timeline *t)
{
	return t->opts.trigger && trigger_needs_cpu(t->opts.trigger) && !t->finished;
}

bool timeline_needs_raised(const struct timeline *t)
{
	return t->opts.trigger && trigger_needs_raised(t->opts.trigger);
}

/* Make what was kept available. If this fails for lack of memory, the reader misses END. */
static void finish_recent(struct timeline *t, uint64_t end_ns)
{
	const char *condition = t->opts.trigger ? trigger_condition(t->opts.trigger) : "";
	struct timeline_rec r = {.type = TIMELINE_RECENT, .func = WATCH_NO_FUNC};
	struct recent_counts c;

	recent_end(t->recent, end_ns);
	c = recent_counts(t->recent);
	r.ts = t->opts.keep_ns;
	r.cpu = c.older;
	r.count = c.beyond_size;
	r.caller = t->opts.trigger ? (uint32_t)trigger_refused(t->opts.trigger) : 0;
	append_begin(t, c.from_ns);
	append(t, &r, condition, strlen(condition) + 1);
	for (uint32_t i = 0; i < t->nsources; i++)
		append_source(t, t->sources[i]);
	if (recent_take(t->recent, &t->waiting) < 0)
		t->dropped++;
}

void timeline_finish(struct timeline *t, uint64_t now_ns)
{
	struct timeline_rec r = {.type = TIMELINE_END, .func = WATCH_NO_FUNC};

	if (t->finished)
		return;
	for (uint32_t i = 0; i < t->nsources; i++)
		timeline_end_source(t, i, now_ns);
	if (t->mark_due)
		put_mark(t);
	r.ts = now_ns < t->opts.until_ns ? now_ns : t->opts.until_ns;
	if (r.ts > t->end_ns)
		r.ts = t->end_ns;
	if (t->recent)
		finish_recent(t, r.ts);
	r.count = t->dropped;
	r.cpu = t->truncated;
	/* If this fails for lack of memory, the reader detects the missing END. */
	append(t, &r, NULL, 0);
	t->finished = true;
}

bool timeline_finished(const struct timeline *t)
{
	return t->finished;
}

bool timeline_idle(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->nsources; i++)
		if (t->sources[i]->profile)
			return false;
	return true;
}

bool timeline_drained(const struct timeline *t)
{
	return t->finished && !t->waiting.first;
}

bool timeline_is_recent(const struct timeline *t)
{
	return t->recent != NULL;
}

uint64_t timeline_until(const struct timeline *t)
{
	return t->opts.until_ns;
}

uint64_t timeline_waiting(const struct timeline *t)
{
	return t->waiting.n;
}

uint64_t timeline_dropped(const struct timeline *t)
{
	uint64_t n = t->dropped;

	for (uint32_t i = 0; i < t->nsources; i++)
		if (t->sources[i]->profile)
			n += profile_watch_counts(t->sources[i]->profile).dropped;
	return n;
}
