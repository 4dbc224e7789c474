// SPDX-License-Identifier: BSD-2-Clause
/*
 * The most recent part of a timeline: see recent.h.
 *
 * Records are in pieces, which are discarded as a whole while recording; at the end, the records
 * that are too old are removed from the pieces that are left. The frames that discarded records
 * leave open are remembered per thread (base): they are the stacks with which the rest begins.
 *
 * Times are in order within a thread only, so at the end each thread has a limit of its own: its
 * records up to the first one that is kept are discarded.
 */
#include "timeline/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define PIECES	    16u /* of the memory */
#define PIECE_MAX   ((uint64_t)1 << 20)
#define THREAD_NAME 64u

/* A thread as the discarded records leave it */
struct base {
	uint16_t source;
	uint32_t tid;
	bool used, named;
	bool kept; /* at the end: one of its records is kept */
	uint64_t cpu;
	uint32_t *v; /* functions of its open frames, outermost first */
	uint32_t n, cap;
	char name[THREAD_NAME];
};

struct recent {
	struct recent_opts opts;
	struct pieces names, events;
	struct base *base;
	uint32_t nbase, base_cap;
	struct map by_thread; /* source and tid → index in base */
	uint32_t *unused;     /* indices in base */
	uint32_t nunused, unused_cap;
	uint64_t newest, beyond_ns; /* latest time of all, and of what was discarded for its size */
	struct recent_counts counts;
	bool failed; /* out of memory */
};

struct recent *recent_new(const struct recent_opts *opts)
{
	struct recent *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return NULL;
	rc->opts = *opts;
	rc->counts.from_ns = opts->from_ns;
	return rc;
}

void recent_free(struct recent *rc)
{
	if (!rc)
		return;
	for (uint32_t i = 0; i < rc->nbase; i++)
		free(rc->base[i].v);
	free(rc->base);
	free(rc->unused);
	map_deinit(&rc->by_thread);
	pieces_deinit(&rc->names);
	pieces_deinit(&rc->events);
	free(rc);
}

struct recent_counts recent_counts(const struct recent *rc)
{
	return rc->counts;
}

/* The threads' stacks ----------------------------------------------------------------------- */

static int reserve_base(struct recent *rc)
{
	const uint32_t cap = rc->base_cap ? 2 * rc->base_cap : 16;
	uint32_t *unused;
	struct base *v;

	if (rc->nbase < rc->base_cap)
		return 0;
	v = reallocarray(rc->base, cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rc->base = v;
	/* As many as there are threads, so that giving one back cannot fail. */
	unused = reallocarray(rc->unused, cap, sizeof(*unused));
	if (!unused)
		return -ENOMEM;
	rc->unused = unused;
	rc->base_cap = cap;
	return 0;
}

static uint64_t thread_key(const struct timeline_rec *r)
{
	return (uint64_t)r->source << 32 | r->tid;
}

static struct base *base_get(const struct recent *rc, const struct timeline_rec *r)
{
	uint32_t i;

	return map_get(&rc->by_thread, thread_key(r), &i) ? &rc->base[i] : NULL;
}

/* NULL: out of memory. */
static struct base *base_of(struct recent *rc, const struct timeline_rec *r)
{
	struct base *b = base_get(rc, r);
	uint32_t i;

	if (b)
		return b;
	if (!rc->nunused && reserve_base(rc) < 0)
		return NULL;
	i = rc->nunused ? rc->unused[rc->nunused - 1] : rc->nbase;
	if (map_put(&rc->by_thread, thread_key(r), i) < 0)
		return NULL;
	if (rc->nunused)
		rc->nunused--;
	else
		rc->base[rc->nbase++].v = NULL;
	b = &rc->base[i];
	free(b->v);
	*b = (struct base){.source = r->source, .tid = r->tid, .used = true};
	return b;
}

static void base_drop(struct recent *rc, const struct timeline_rec *r, struct base *b)
{
	map_del(&rc->by_thread, thread_key(r));
	b->used = false;
	rc->unused[rc->nunused++] = (uint32_t)(b - rc->base);
}

static int base_push(struct base *b, uint32_t func)
{
	const uint32_t cap = b->cap ? 2 * b->cap : 16;
	uint32_t *v;

	if (b->n == b->cap) {
		v = reallocarray(b->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		b->v = v;
		b->cap = cap;
	}
	b->v[b->n++] = func;
	return 0;
}

/* THREAD: the thread's begin, or its end. */
static void base_thread(struct recent *rc, const struct timeline_rec *r, struct base *b,
			const char *text)
{
	b->n = 0;
	if (b->named) {
		base_drop(rc, r, b);
		return;
	}
	b->named = true;
	strncpy(b->name, text, sizeof(b->name) - 1);
}

static int discard_record(struct recent *rc, const struct timeline_rec *r, const char *text)
{
	const int step = r->type < WATCH_KIND_MAX ? watch_kind_step((enum watch_kind)r->type) : 0;
	struct base *b;

	if (r->type >= WATCH_KIND_MAX)
		return 0;
	b = base_of(rc, r);
	if (!b)
		return -ENOMEM;
	b->cpu = r->cpu;
	if (step > 0)
		return base_push(b, r->func);
	if (step < 0)
		b->n -= b->n > 0;
	else if (r->type == WATCH_THREAD)
		base_thread(rc, r, b, text);
	return 0;
}

/* Discarding -------------------------------------------------------------------------------- */

static bool is_call_or_return(const struct timeline_rec *r)
{
	return r->type < WATCH_KIND_MAX && (watch_kind_is_call((enum watch_kind)r->type) ||
					    r->type == WATCH_RETURN || r->type == WATCH_YIELD);
}

static int discard_piece(struct recent *rc, const struct piece *p, uint64_t *count)
{
	struct timeline_rec r;
	int err = 0;

	for (size_t at = 0; at < p->n && err == 0; at += r.size) {
		memcpy(&r, p->data + at, sizeof(r));
		*count += is_call_or_return(&r);
		err = discard_record(rc, &r, p->data + at + sizeof(r));
	}
	return err;
}

static bool too_old(const struct recent *rc, uint64_t ts)
{
	return rc->opts.keep_ns && rc->newest > rc->opts.keep_ns &&
	       ts < rc->newest - rc->opts.keep_ns;
}

/* Discard the first piece. */
static int shift(struct recent *rc)
{
	struct piece *p = pieces_shift(&rc->events);
	const bool old = too_old(rc, p->newest);
	int r = discard_piece(rc, p, old ? &rc->counts.older : &rc->counts.beyond_size);

	if (!old && p->newest > rc->beyond_ns)
		rc->beyond_ns = p->newest;
	piece_free(p);
	return r;
}

/* Room for a record, in memory that was used for the oldest ones if there is no other */
static int make_room(struct recent *rc, size_t n)
{
	uint64_t size = rc->opts.max_bytes / PIECES;
	int r = 0;

	if (pieces_fits(&rc->events, n))
		return 0;
	size = size > PIECE_MAX ? PIECE_MAX : size;
	size = size < n ? n : size;
	while (r == 0 && rc->events.first &&
	       (too_old(rc, rc->events.first->newest) ||
		rc->events.size + rc->names.size + size > rc->opts.max_bytes))
		r = shift(rc);
	return r < 0 ? r : pieces_grow(&rc->events, size);
}

/* Recording --------------------------------------------------------------------------------- */

bool recent_add(struct recent *rc, struct timeline_rec *r, const char *text, size_t ntext)
{
	if (rc->failed)
		return false;
	if (r->ts > rc->newest)
		rc->newest = r->ts;
	/* A stack that misses one frame would be wrong for good. */
	rc->failed = make_room(rc, sizeof(*r) + ntext) < 0;
	if (rc->failed)
		return false;
	pieces_put(&rc->events, r, text, ntext);
	return true;
}

bool recent_name(struct recent *rc, struct timeline_rec *r, const char *text, size_t ntext)
{
	const size_t n = sizeof(*r) + ntext;
	uint64_t size = rc->opts.max_bytes / PIECES / 4;

	if (rc->names.size + n > rc->opts.max_bytes / 2)
		return true;
	size = size > PIECE_MAX / 4 ? PIECE_MAX / 4 : size;
	if (!pieces_fits(&rc->names, n) && pieces_grow(&rc->names, size < n ? n : size) < 0)
		return false;
	pieces_put(&rc->names, r, text, ntext);
	return true;
}

/* The end ----------------------------------------------------------------------------------- */

/* Whether a record is discarded at the end */
static bool ends_before(struct recent *rc, const struct timeline_rec *r)
{
	struct base *b = base_get(rc, r);

	if (r->ts < rc->counts.from_ns && !(b && b->kept))
		return true;
	b = b ? b : base_of(rc, r);
	if (b)
		b->kept = true;
	else
		rc->failed = true;
	return false;
}

static void trim(struct recent *rc, struct piece *p)
{
	struct timeline_rec r;
	size_t kept = 0;

	for (size_t at = 0; at < p->n && !rc->failed; at += r.size) {
		memcpy(&r, p->data + at, sizeof(r));
		if (r.type < WATCH_KIND_MAX && ends_before(rc, &r)) {
			rc->counts.older += is_call_or_return(&r);
			rc->failed |= discard_record(rc, &r, p->data + at + sizeof(r)) < 0;
			continue;
		}
		memmove(p->data + kept, p->data + at, r.size);
		kept += r.size;
	}
	rc->events.n -= p->n - kept;
	p->n = kept;
}

void recent_end(struct recent *rc, uint64_t end_ns)
{
	if (rc->opts.keep_ns && end_ns > rc->opts.keep_ns &&
	    end_ns - rc->opts.keep_ns > rc->counts.from_ns)
		rc->counts.from_ns = end_ns - rc->opts.keep_ns;
	if (rc->beyond_ns > rc->counts.from_ns)
		rc->counts.from_ns = rc->beyond_ns;
	for (struct piece *p = rc->events.first; p; p = p->next)
		trim(rc, p);
}

static int put(struct pieces *ps, struct timeline_rec *r, const char *text, size_t ntext)
{
	if (!pieces_fits(ps, sizeof(*r) + ntext) && pieces_grow(ps, PIECE_MAX / 16) < 0)
		return -ENOMEM;
	pieces_put(ps, r, text, ntext);
	return 0;
}

/* A thread's name and open frames, before its first event */
static int put_base(const struct recent *rc, const struct base *b, struct pieces *to)
{
	struct timeline_rec r = {
		.type = WATCH_THREAD,
		.source = b->source,
		.tid = b->tid,
		.func = WATCH_NO_FUNC,
		.caller = WATCH_NO_FUNC,
		.ts = rc->counts.from_ns,
		.cpu = b->cpu,
	};
	int err = b->named ? put(to, &r, b->name, strlen(b->name) + 1) : 0;

	r.type = WATCH_OPEN;
	for (uint32_t i = 0; i < b->n && err == 0; i++) {
		r.caller = r.func;
		r.func = b->v[i];
		err = put(to, &r, NULL, 0);
	}
	return err;
}

int recent_take(struct recent *rc, struct pieces *to)
{
	int r = 0;

	if (rc->failed)
		return -ENOMEM;
	pieces_move(to, &rc->names);
	for (uint32_t i = 0; i < rc->nbase && r == 0; i++)
		if (rc->base[i].used)
			r = put_base(rc, &rc->base[i], to);
	if (r == 0)
		pieces_move(to, &rc->events);
	return r;
}
