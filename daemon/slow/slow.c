// SPDX-License-Identifier: BSD-2-Clause
/*
 * Following calls and keeping the slow ones: see slow.h.
 *
 * Every frame that is pushed or popped on a thread arrives in order (stack/watch.h). On a thread
 * without a followed call, a call of a matching function starts one. On a thread with one, the time
 * since the last event belongs to the current node; a pushed frame leads to a child of it, a popped
 * one to its parent, and popping the call's own frame suspends or ends the call.
 */
#include "slow/slow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "slow/slow_priv.h"

#define NODES_FIRST 16u
#define STEPS_FIRST 32u
/* Larger arrays are freed with the call that needed them. */
#define NODES_REUSED 64u
#define STEPS_REUSED 256u

static uint64_t thread_key(uint32_t source, uint32_t tid)
{
	return (uint64_t)source << 32 | tid;
}

/* User addresses have 47 bits. */
static uint64_t frame_key(uint32_t source, uint64_t frame)
{
	return frame ^ (uint64_t)source << 48;
}

/* Nodes of a call --------------------------------------------------------------------------- */

/* Limits of an array of each call: its first room, the most in it, and in all calls together. */
struct limits {
	uint32_t first, most, total;
};

/* Returns the array with room for element n; NULL: there is none. used: the room in all calls. */
static void *reserve(void *v, uint32_t n, uint32_t *cap, size_t size, const struct limits *l,
		     uint32_t *used)
{
	const uint32_t had = *cap, want = had ? 2 * had : l->first;

	if (n < had)
		return v;
	if (had >= l->most || *used + (want - had) > l->total)
		return NULL;
	v = array_room(v, cap, n + 1, l->first, size);
	if (v)
		*used += *cap - had;
	return v;
}

static bool reserve_node(struct slow *s, struct slow_call *c)
{
	static const struct limits limits = {NODES_FIRST, SLOW_NODES_MAX, SLOW_NODES_TOTAL};
	struct slow_node *v = reserve(c->v, c->n, &c->cap, sizeof(*v), &limits, &s->nodes);

	c->v = v ? v : c->v;
	return v;
}

/* A new child of the current node; false: there is no room. */
static bool add_node(struct slow *s, struct slow_call *c, uint32_t func)
{
	const uint32_t parent = c->n ? c->at : SLOW_NONE;

	if (!reserve_node(s, c) ||
	    (c->n && map_put(&c->children, (uint64_t)parent << 32 | func, c->n) < 0))
		return false;
	c->v[c->n] = (struct slow_node){.func = func, .parent = parent};
	c->at = c->n++;
	return true;
}

static void push(struct slow *s, struct slow_call *c, const struct watch_event *e)
{
	uint32_t child;

	if (!c->beyond && map_get(&c->children, (uint64_t)c->at << 32 | e->func, &child))
		c->at = child;
	else if (c->beyond || !add_node(s, c, e->func))
		c->beyond++;
	if (c->beyond)
		c->truncated += e->kind == WATCH_CALL;
	else
		c->v[c->at].calls += e->kind == WATCH_CALL;
}

static bool reserve_step(struct slow *s, struct slow_call *c)
{
	static const struct limits limits = {STEPS_FIRST, SLOW_STEPS_MAX, SLOW_STEPS_TOTAL};
	struct slow_step *v = NULL;

	/* Without gaps: once one is missing, all later ones are. */
	if (c->nsteps < c->steps_cap || !c->steps_missing)
		v = reserve(c->steps, c->nsteps, &c->steps_cap, sizeof(*v), &limits, &s->steps);
	c->steps = v ? v : c->steps;
	return v;
}

static void add_step(struct slow *s, struct slow_call *c, uint64_t ts, uint32_t func)
{
	if (reserve_step(s, c))
		c->steps[c->nsteps++] = (struct slow_step){.ts = ts, .func = func};
	else
		c->steps_missing++;
}

/* The time since the last event belongs to the current node. */
static void charge(struct slow_call *c, const struct watch_event *e)
{
	const uint64_t wall = e->ts > c->ts ? e->ts - c->ts : 0;
	const uint64_t cpu = e->cpu > c->cpu ? e->cpu - c->cpu : 0;
	struct slow_node *n = &c->v[c->at];

	n->self[SNAPSHOT_WALL] += wall;
	n->self[SNAPSHOT_CPU] += cpu;
	n->waits[e->why] += wall > cpu ? wall - cpu : 0;
	c->ts += wall;
	c->cpu += cpu;
	c->cpu_ns += cpu;
}

/* Followed calls ---------------------------------------------------------------------------- */

static void set_free(struct slow *s, uint32_t i)
{
	struct slow_call *c = s->followed[i];

	if (c->cap > NODES_REUSED) {
		s->nodes -= c->cap;
		free(c->v);
		c->v = NULL;
		c->cap = 0;
		map_deinit(&c->children);
	}
	if (c->steps_cap > STEPS_REUSED) {
		s->steps -= c->steps_cap;
		free(c->steps);
		c->steps = NULL;
		c->steps_cap = 0;
	}
	c->n = 0;
	s->free[s->nfree++] = i;
}

/* An index in followed; SLOW_NONE: no room. */
static uint32_t take_free(struct slow *s)
{
	uint32_t i;

	if (s->nfree)
		return s->free[--s->nfree];
	if (s->nfollowed == SLOW_FOLLOWED)
		return SLOW_NONE;
	i = s->nfollowed;
	s->followed[i] = calloc(1, sizeof(struct slow_call));
	if (!s->followed[i])
		return SLOW_NONE;
	s->nfollowed++;
	return i;
}

/* Its name may change meanwhile. */
static void set_thread(struct slow_call *c, const struct watch_event *e)
{
	snprintf(c->thread, sizeof(c->thread), "%s", e->thread ? e->thread : "");
}

static void begin(struct slow *s, uint32_t source, const struct watch_event *e)
{
	uint32_t i = take_free(s);
	struct slow_call *c;

	if (i == SLOW_NONE) {
		s->refused++;
		return;
	}
	c = s->followed[i];
	map_clear(&c->children);
	*c = (struct slow_call){
		.source = source,
		.tid = e->tid,
		.frame = e->frame,
		.start_ns = e->ts,
		.ts = e->ts,
		.cpu = e->cpu,
		.active = true,
		.v = c->v,
		.cap = c->cap,
		.steps = c->steps,
		.steps_cap = c->steps_cap,
		.children = c->children,
	};
	if (!add_node(s, c, e->func) || map_put(&s->by_thread, thread_key(source, e->tid), i) < 0) {
		s->refused++;
		set_free(s, i);
		return;
	}
	c->v[0].calls = 1;
	add_step(s, c, e->ts, e->func);
	set_thread(c, e);
}

static void suspend(struct slow *s, uint32_t i, const struct watch_event *e)
{
	struct slow_call *c = s->followed[i];

	map_del(&s->by_thread, thread_key(c->source, e->tid));
	c->active = false;
	if (map_put(&s->by_frame, frame_key(c->source, c->frame), i) == 0)
		return;
	s->refused++;
	set_free(s, i);
}

/* The frame at this address is another one now: the suspended call was never ended. */
static void forget(struct slow *s, uint32_t i)
{
	map_del(&s->by_frame, frame_key(s->followed[i]->source, s->followed[i]->frame));
	s->interrupted++;
	set_free(s, i);
}

/* A suspended call goes on, perhaps on another thread. */
static void resume(struct slow *s, uint32_t i, const struct watch_event *e)
{
	struct slow_call *c = s->followed[i];

	map_del(&s->by_frame, frame_key(c->source, c->frame));
	if (map_put(&s->by_thread, thread_key(c->source, e->tid), i) < 0) {
		s->refused++;
		set_free(s, i);
		return;
	}
	c->suspended_ns += e->ts > c->ts ? e->ts - c->ts : 0;
	c->tid = e->tid;
	c->ts = e->ts;
	c->cpu = e->cpu;
	c->active = true;
	add_step(s, c, e->ts, e->func);
}

/* Keeping ----------------------------------------------------------------------------------- */

uint64_t slow_elapsed(const struct slow_call *c, uint64_t now_ns)
{
	return now_ns > c->start_ns ? now_ns - c->start_ns : 0;
}

uint64_t slow_length(const struct slow *s, const struct slow_call *c)
{
	return s->opts.clock == SNAPSHOT_CPU ? c->cpu_ns : c->wall_ns;
}

static char *copy_text(const char *s)
{
	return s ? strndup(s, SLOW_TEXT_MAX) : strdup("");
}

static uint32_t add_func(struct slow *s, uint64_t key, const struct profile_func *f)
{
	struct slow_func *v;

	if (s->nfuncs == SLOW_FUNCS_MAX)
		return SLOW_NONE;
	v = array_room(s->funcs, &s->funcs_cap, s->nfuncs + 1, 64, sizeof(*v));
	if (!v)
		return SLOW_NONE;
	s->funcs = v;
	v = &s->funcs[s->nfuncs];
	*v = (struct slow_func){.file = copy_text(f->filename),
				.name = copy_text(f->qualname ? f->qualname : f->name),
				.line = f->firstlineno};
	if (v->file && v->name && map_put(&s->func_of, key, s->nfuncs) == 0)
		return s->nfuncs++;
	free(v->file);
	free(v->name);
	return SLOW_NONE;
}

uint32_t slow_func(struct slow *s, uint32_t source, uint32_t func)
{
	const uint64_t key = (uint64_t)source << 32 | func;
	const struct slow_source *from = s->sources[source];
	struct profile_func f;
	uint32_t i;

	if (map_get(&s->func_of, key, &i))
		return i;
	if (!from->profile || func == WATCH_NO_FUNC)
		return SLOW_NONE;
	f = profile_func(from->profile, func);
	return add_func(s, key, &f);
}

static void find_least(struct slow *s)
{
	s->least = 0;
	for (uint32_t i = 1; i < s->nkept; i++)
		if (slow_length(s, s->kept[i]) < slow_length(s, s->kept[s->least]))
			s->least = i;
}

void slow_call_free(struct slow_call *c)
{
	if (!c)
		return;
	free(c->steps);
	free(c->v);
	free(c);
}

struct slow_call *slow_copy(const struct slow_call *c)
{
	_cleanup_(slow_call_freep) struct slow_call *ret = malloc(sizeof(*ret));

	if (!ret)
		return NULL;
	*ret = *c;
	ret->children = (struct map){0};
	ret->v = calloc(c->n + 1, sizeof(*ret->v));
	ret->steps = calloc(c->nsteps + 1, sizeof(*ret->steps));
	if (!ret->v || !ret->steps)
		return NULL;
	memcpy(ret->v, c->v, c->n * sizeof(*c->v));
	memcpy(ret->steps, c->steps, c->nsteps * sizeof(*c->steps));
	ret->cap = c->n;
	ret->steps_cap = c->nsteps;
	return TAKE_PTR(ret);
}

void slow_name(struct slow *s, struct slow_call *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->v[i].func = slow_func(s, c->source, c->v[i].func);
	for (uint32_t i = 0; i < c->nsteps; i++)
		if (c->steps[i].func != SLOW_POP)
			c->steps[i].func = slow_func(s, c->source, c->steps[i].func);
}

static void unkeep(struct slow *s, uint32_t i)
{
	s->kept_nodes -= s->kept[i]->n;
	s->kept_steps -= s->kept[i]->nsteps;
	slow_call_free(s->kept[i]);
	s->kept[i] = s->kept[--s->nkept];
	find_least(s);
}

/* It is kept as a copy, whose steps give way first. */
static struct slow_call *copy_to_keep(struct slow *s, const struct slow_call *c)
{
	struct slow_call *copy = slow_copy(c);

	if (!copy)
		return NULL;
	if (copy->nsteps > SLOW_KEPT_STEPS - s->kept_steps) {
		copy->steps_missing += copy->nsteps;
		copy->nsteps = 0;
	}
	slow_name(s, copy);
	return copy;
}

/* Keep it if it is among the n slowest. */
static void keep(struct slow *s, const struct slow_call *c)
{
	struct slow_call *copy;

	if (s->nkept == s->opts.n) {
		if (slow_length(s, c) <= slow_length(s, s->kept[s->least]))
			return;
		unkeep(s, s->least);
	}
	copy = copy_to_keep(s, c);
	if (!copy) {
		s->refused++;
		return;
	}
	s->kept_nodes += copy->n;
	s->kept_steps += copy->nsteps;
	s->kept[s->nkept++] = copy;
	find_least(s);
	while (s->kept_nodes > SLOW_KEPT_NODES && s->nkept > 1)
		unkeep(s, s->least);
}

static void finish(struct slow *s, uint32_t i, const struct watch_event *e)
{
	struct slow_call *c = s->followed[i];

	map_del(&s->by_thread, thread_key(c->source, e->tid));
	c->wall_ns = slow_elapsed(c, e->ts);
	set_thread(c, e);
	if (e->kind == WATCH_CLOSE) {
		s->interrupted++;
	} else {
		s->seen++;
		if (slow_length(s, c) >= s->opts.over_ns) {
			s->over++;
			keep(s, c);
		}
	}
	set_free(s, i);
}

/* Events ------------------------------------------------------------------------------------ */

static void pop(struct slow *s, uint32_t i, const struct watch_event *e)
{
	struct slow_call *c = s->followed[i];

	if (c->beyond)
		c->beyond--;
	else if (c->at)
		c->at = c->v[c->at].parent;
	else if (e->kind == WATCH_YIELD || e->kind == WATCH_SWITCH_OUT)
		suspend(s, i, e);
	else
		finish(s, i, e);
}

/* An event of a thread with a followed call */
static void follow(struct slow *s, uint32_t i, const struct watch_event *e)
{
	struct slow_call *c = s->followed[i];
	const int step = watch_kind_step(e->kind);

	if (e->kind == WATCH_THREAD)
		return;
	charge(c, e);
	c->waits |= e->kind == WATCH_WAIT;
	c->gap |= e->kind == WATCH_LOST || e->kind == WATCH_DROPPED;
	c->events += step != 0;
	if (step)
		add_step(s, c, e->ts, step > 0 ? e->func : SLOW_POP);
	if (step > 0)
		push(s, c, e);
	else if (step < 0)
		pop(s, i, e);
}

/* A frame is pushed on a thread without a followed call. */
static void look(struct slow *s, struct slow_source *from, const struct watch_event *e)
{
	const bool anew = e->kind == WATCH_CALL;
	uint32_t i;

	if (map_get(&s->by_frame, frame_key(from->number, e->frame), &i)) {
		if (!anew && s->followed[i]->v[0].func == e->func) {
			resume(s, i, e);
			return;
		}
		forget(s, i);
	}
	if (!match_func(&s->match, &from->known, from->profile, e->func))
		return;
	if (anew)
		begin(s, from->number, e);
	else
		s->unknown_start += e->kind == WATCH_OPEN || e->kind == WATCH_RESUME;
}

static bool on_watch(void *ctx, const struct watch_event *e)
{
	struct slow_source *from = ctx;
	struct slow *s = from->slow;
	uint32_t i;

	if (map_get(&s->by_thread, thread_key(from->number, e->tid), &i))
		follow(s, i, e);
	else if (watch_kind_step(e->kind) > 0)
		look(s, from, e);
	return true;
}

static bool on_ready(void *ctx)
{
	(void)ctx;
	return true;
}

/* Start and end ----------------------------------------------------------------------------- */

static int check(const struct slow_opts *o, struct diag *diag)
{
	if (o->n > SLOW_KEPT_MAX)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "at most %u calls can be kept",
				SLOW_KEPT_MAX);
	return 0;
}

int slow_new(const struct slow_opts *opts, struct slow **ret, struct diag *diag)
{
	_cleanup_(slow_freep) struct slow *s = NULL;
	int r = check(opts, diag);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return diag_errno(diag, ENOMEM, "cannot record slow calls");
	r = match_init(&s->match, opts->match, diag);
	if (r < 0)
		return r;
	s->opts = *opts;
	s->opts.match = s->match.pattern;
	s->opts.n = opts->n ? opts->n : SLOW_KEPT;
	*ret = TAKE_PTR(s);
	return 0;
}

void slow_free(struct slow *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nsources; i++) {
		match_known_deinit(&s->sources[i]->known);
		free(s->sources[i]);
	}
	for (uint32_t i = 0; i < s->nfollowed; i++) {
		map_deinit(&s->followed[i]->children);
		slow_call_free(s->followed[i]);
	}
	for (uint32_t i = 0; i < s->nkept; i++)
		slow_call_free(s->kept[i]);
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		free(s->funcs[i].file);
		free(s->funcs[i].name);
	}
	map_deinit(&s->by_thread);
	map_deinit(&s->by_frame);
	map_deinit(&s->func_of);
	free(s->sources);
	free(s->funcs);
	match_deinit(&s->match);
	free(s);
}

static struct slow_source *new_source(struct slow *s)
{
	struct slow_source **v;

	v = reallocarray(s->sources, s->nsources + 1, sizeof(struct slow_source *));
	if (!v)
		return NULL;
	s->sources = v;
	return v[s->nsources] = calloc(1, sizeof(struct slow_source));
}

int slow_add(struct slow *s, uint32_t pid, struct profile *p, uint32_t *ret)
{
	struct watcher w = {.fn = on_watch,
			    .ready = on_ready,
			    .from_ns = s->opts.from_ns,
			    .until_ns = UINT64_MAX};
	struct slow_source *from;
	int r;

	if (s->nsources == SLOW_SOURCES_MAX)
		return -ENOSPC;
	from = new_source(s);
	if (!from)
		return -ENOMEM;
	*from = (struct slow_source){.slow = s, .profile = p, .pid = pid, .number = s->nsources};
	w.ctx = from;
	/* Frames that are on the stacks now are reported at once. */
	s->nsources++;
	r = profile_watch(p, &w);
	if (r < 0) {
		s->nsources--;
		free(from);
		return r;
	}
	*ret = from->number;
	return 0;
}

/* Suspended calls of this source will not go on. */
static void end_suspended(struct slow *s, uint32_t source)
{
	for (uint32_t i = 0; i < s->nfollowed; i++) {
		struct slow_call *c = s->followed[i];

		if (c->n && c->source == source && !c->active)
			forget(s, i);
	}
}

void slow_end_source(struct slow *s, uint32_t source, uint64_t ts)
{
	struct slow_source *from = s->sources[source];

	if (!from->profile)
		return;
	profile_unwatch(from->profile, ts);
	end_suspended(s, source);
	from->profile = NULL;
}
