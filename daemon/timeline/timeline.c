// SPDX-License-Identifier: BSD-2-Clause
/*
 * A timeline being recorded: see timeline.h.
 *
 * Buffered records are a list of pieces that are fetched as a whole. When the buffer is full,
 * frames that are entered are refused (stack/watch.c counts them) until a quarter of it has been
 * fetched. Frames that are left and ends of threads may use half as much in addition, so that the
 * end of a recorded frame is almost always recorded.
 */
#include "timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/wire.h"

#define PIECE ((size_t)1 << 20)

_Static_assert(PIECE >= TIMELINE_TEXT_MAX + sizeof(struct timeline_rec), "a record fits a piece");

struct piece {
	struct piece *next;
	char *data;
	size_t n, size;
};

struct source {
	struct timeline *timeline;
	struct profile *profile; /* NULL: ended */
	uint16_t number;
	uint8_t *known; /* bit per function: its names were sent */
	uint32_t known_cap;
};

struct timeline {
	struct timeline_opts opts;
	struct piece *first, *last;
	uint64_t waiting;
	struct source **sources;
	uint32_t nsources;
	uint64_t dropped, truncated; /* sums of ended sources */
	bool finished;
};

/* Buffer ------------------------------------------------------------------------------------ */

static bool add_piece(struct timeline *t, size_t n)
{
	struct piece *p = calloc(1, sizeof(*p));

	/* The first piece is small, as most recordings contain little. */
	if (p)
		p->size = t->last ? PIECE : n > PIECE / 16 ? n : PIECE / 16;
	if (!p || !(p->data = malloc(p->size))) {
		free(p);
		return false;
	}
	if (t->last)
		t->last->next = p;
	else
		t->first = p;
	t->last = p;
	return true;
}

/* The buffer's limit for a record of this type. */
static uint64_t limit_of(const struct timeline *t, unsigned int type)
{
	uint64_t limit = t->opts.buffer;

	if (type == TIMELINE_END)
		return UINT64_MAX;
	if (type < WATCH_KIND_MAX && watch_kind_step((enum watch_kind)type) <= 0)
		limit += limit / 2;
	return limit;
}

static char *room_for(struct timeline *t, unsigned int type, size_t n)
{
	char *at;

	if (t->waiting + n > limit_of(t, type))
		return NULL;
	if ((!t->last || t->last->size - t->last->n < n) && !add_piece(t, n))
		return NULL;
	at = t->last->data + t->last->n;
	t->last->n += n;
	t->waiting += n;
	return at;
}

/* Append a record with its text, and set its size. */
static bool append(struct timeline *t, struct timeline_rec *r, const char *text, size_t ntext)
{
	size_t n = sizeof(*r) + ntext;
	char *at = room_for(t, r->type, n);

	if (!at)
		return false;
	r->size = (uint32_t)n;
	memcpy(at, r, sizeof(*r));
	if (ntext)
		memcpy(at + sizeof(*r), text, ntext);
	return true;
}

void timeline_take(struct timeline *t, char **ret_data, size_t *ret_n)
{
	struct piece *p = t->first;

	*ret_data = NULL;
	*ret_n = 0;
	if (!p)
		return;
	*ret_data = p->data;
	*ret_n = p->n;
	t->waiting -= p->n;
	t->first = p->next;
	if (!t->first)
		t->last = NULL;
	free(p);
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
	_cleanup_free_ char *text = NULL;
	size_t length[3], n = 0, at = 0;

	for (int i = 0; i < 3; i++) {
		length[i] = names[i] ? strnlen(names[i], TIMELINE_TEXT_MAX / 3 - 1) : 0;
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
	return append(s->timeline, &r, text, n);
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

static bool on_watch(void *ctx, const struct watch_event *e)
{
	struct source *s = ctx;
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

	if (e->kind == WATCH_WAIT)
		return true;
	return send_func_once(s, e->func) && send_func_once(s, e->caller) &&
	       append(s->timeline, &r, e->name, e->name ? strlen(e->name) + 1 : 0);
}

static bool on_ready(void *ctx)
{
	const struct source *s = ctx;

	return s->timeline->waiting <= s->timeline->opts.buffer / 4 * 3;
}

/* Start and end ----------------------------------------------------------------------------- */

struct timeline *timeline_new(const struct timeline_opts *opts)
{
	struct timeline *t = calloc(1, sizeof(*t));
	struct timeline_rec r = {.type = TIMELINE_BEGIN,
				 .func = TIMELINE_VERSION,
				 .caller = WATCH_NO_FUNC,
				 .ts = opts->from_ns,
				 .cpu = opts->from_unix_ns};

	if (!t)
		return NULL;
	t->opts = *opts;
	if (!t->opts.buffer)
		t->opts.buffer = TIMELINE_BUFFER;
	if (append(t, &r, NULL, 0))
		return t;
	timeline_free(t);
	return NULL;
}

void timeline_free(struct timeline *t)
{
	char *data;
	size_t n;

	if (!t)
		return;
	for (uint32_t i = 0; i < t->nsources; i++) {
		free(t->sources[i]->known);
		free(t->sources[i]);
	}
	free(t->sources);
	while (t->first) {
		timeline_take(t, &data, &n);
		free(data);
	}
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

int timeline_add(struct timeline *t, uint32_t pid, struct profile *p, uint32_t *ret)
{
	struct timeline_rec rec = {.type = TIMELINE_SOURCE, .tid = pid, .func = WATCH_NO_FUNC};
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
	*s = (struct source){.timeline = t, .profile = p, .number = (uint16_t)t->nsources};
	rec.source = s->number;
	w.ctx = s;
	r = append(t, &rec, NULL, 0) ? profile_watch(p, &w) : -ENOMEM;
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
	s->profile = NULL;
}

void timeline_finish(struct timeline *t, uint64_t now_ns)
{
	struct timeline_rec r = {.type = TIMELINE_END, .func = WATCH_NO_FUNC};

	if (t->finished)
		return;
	for (uint32_t i = 0; i < t->nsources; i++)
		timeline_end_source(t, i, now_ns);
	r.ts = now_ns < t->opts.until_ns ? now_ns : t->opts.until_ns;
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
	return t->finished && !t->first;
}

uint64_t timeline_until(const struct timeline *t)
{
	return t->opts.until_ns;
}

uint64_t timeline_waiting(const struct timeline *t)
{
	return t->waiting;
}

uint64_t timeline_dropped(const struct timeline *t)
{
	uint64_t n = t->dropped;

	for (uint32_t i = 0; i < t->nsources; i++)
		if (t->sources[i]->profile)
			n += profile_watch_counts(t->sources[i]->profile).dropped;
	return n;
}
