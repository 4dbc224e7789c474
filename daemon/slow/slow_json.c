// SPDX-License-Identifier: BSD-2-Clause
/* Slow calls as JSON: see slow.h. */
#include <stdlib.h>

#include "base/wait.h"
#include "format/names.h"
#include "slow/slow_priv.h"

/* Steps in one answer, of all calls: some 3 MB */
#define STEPS_TOLD SLOW_KEPT_STEPS

/* Strings of the target may be anything. */
static json_t *text_json(const char *s)
{
	_cleanup_free_ char *valid = name_normal(s, NAME_REPLACE_SURROGATES);

	return valid ? json_string(valid) : NULL;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* Indices stay, even if memory is short. */
static void append(json_t *list, json_t *o)
{
	json_array_append_new(list, o ? o : json_null());
}

static json_t *function_json(const char *file, int32_t line, const char *name)
{
	return json_pack("{s:o, s:i, s:o}", "file", text_json(file), "line", (int)line, "name",
			 text_json(name));
}

static json_t *functions_json(const struct slow *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->nfuncs; i++)
		append(list, function_json(s->funcs[i].file, s->funcs[i].line, s->funcs[i].name));
	return list;
}

static json_t *waits_json(const struct slow_node *n)
{
	json_t *o = json_object();

	for (int why = 0; why < WAITS; why++)
		if (n->waits[why])
			json_object_set_new(o, wait_name(why), number(n->waits[why]));
	return o;
}

static json_int_t function_index(uint32_t func)
{
	return func == SLOW_NONE ? -1 : (json_int_t)func;
}

static json_t *node_json(const struct slow_call *c, uint32_t i)
{
	const struct slow_node *n = &c->v[i];
	const json_int_t parent = n->parent == SLOW_NONE ? -1 : (json_int_t)n->parent;
	json_t *o;

	o = json_pack("{s:I, s:I, s:o, s:o, s:o}", "function", function_index(n->func), "parent",
		      parent, "calls", number(n->calls), "wall_ns", number(n->self[SNAPSHOT_WALL]),
		      "cpu_ns", number(n->self[SNAPSHOT_CPU]));
	if (o && c->waits)
		json_object_set_new(o, "waits", waits_json(n));
	return o;
}

static json_t *nodes_json(const struct slow_call *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->n; i++)
		append(list, node_json(c, i));
	return list;
}

/* [ns since the call's start, function] for a pushed frame, [ns] for a popped frame */
static json_t *steps_json(const struct slow_call *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->nsteps; i++) {
		const struct slow_step *p = &c->steps[i];
		json_t *one = json_pack("[o]", number(p->ts - c->start_ns));

		if (p->func != SLOW_POP)
			json_array_append_new(one, json_integer(function_index(p->func)));
		json_array_append_new(list, one);
	}
	return list;
}

/* As long as the answer does not become too large */
static void add_steps(json_t *o, const struct slow_call *c, uint32_t *left)
{
	const bool fits = c->nsteps <= *left;

	*left -= fits ? c->nsteps : 0;
	json_object_set_new(o, "steps", fits ? steps_json(c) : json_array());
	json_object_set_new(o, "steps_missing", number(c->steps_missing + (fits ? 0 : c->nsteps)));
}

static json_t *call_json(const struct slow *s, const struct slow_call *c)
{
	const uint64_t since = c->start_ns > s->opts.from_ns ? c->start_ns - s->opts.from_ns : 0;

	return json_pack("{s:i, s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "pid",
			 (int)s->sources[c->source]->pid, "tid", (int)c->tid, "thread",
			 text_json(c->thread), "running", c->running, "start_unix_ns",
			 number(s->opts.from_unix_ns + since), "wall_ns", number(c->wall_ns),
			 "cpu_ns", number(c->cpu_ns), "suspended_ns", number(c->suspended_ns),
			 "events", number(c->events), "gap", c->gap, "truncated",
			 number(c->truncated), "nodes", nodes_json(c));
}

/* Calls that have not returned -------------------------------------------------------------- */

/* As it is now: the time since its last event is its current node's, or it is suspended. */
static struct slow_call *as_of(struct slow *s, const struct slow_call *c, uint64_t now_ns)
{
	const uint64_t since = now_ns > c->ts ? now_ns - c->ts : 0;
	struct slow_call *ret = slow_copy(c);

	if (!ret)
		return NULL;
	slow_name(s, ret);
	ret->running = true;
	ret->wall_ns = slow_elapsed(c, now_ns);
	if (c->active)
		ret->v[c->at].self[SNAPSHOT_WALL] += since;
	else
		ret->suspended_ns += since;
	return ret;
}

struct shown {
	struct slow_call *v[SLOW_KEPT_MAX + SLOW_FOLLOWED];
	uint32_t n; /* those that run are owned */
};

static int by_length(const void *a, const void *b, void *ctx)
{
	const struct slow_call *x = *(struct slow_call *const *)a;
	const struct slow_call *y = *(struct slow_call *const *)b;
	const uint64_t lx = slow_length(ctx, x), ly = slow_length(ctx, y);

	return lx != ly ? (lx < ly) - (lx > ly)
			: (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_followed(const struct slow_call *c)
{
	return c->n > 0;
}

static struct shown *collect(struct slow *s, uint64_t now_ns)
{
	struct shown *ret = calloc(1, sizeof(*ret));

	if (!ret)
		return NULL;
	for (uint32_t i = 0; i < s->nkept; i++)
		ret->v[ret->n++] = s->kept[i];
	for (uint32_t i = 0; i < s->nfollowed; i++) {
		const struct slow_call *c = s->followed[i];
		const uint64_t length = s->opts.clock == SNAPSHOT_CPU ? c->cpu_ns
								      : slow_elapsed(c, now_ns);

		/* Without a limit, all that run would be shown. */
		if (is_followed(c) && s->opts.over_ns && length >= s->opts.over_ns &&
		    (ret->v[ret->n] = as_of(s, c, now_ns)))
			ret->n++;
	}
	qsort_r(ret->v, ret->n, sizeof(*ret->v), by_length, (void *)s);
	return ret;
}

static void shown_free(struct shown *sh)
{
	for (uint32_t i = 0; i < sh->n; i++)
		if (sh->v[i]->running)
			slow_call_free(sh->v[i]);
	free(sh);
}

static json_t *calls_json(struct slow *s, uint64_t now_ns, bool steps)
{
	struct shown *sh = collect(s, now_ns);
	json_t *list = json_array(), *o;
	uint32_t left = STEPS_TOLD;

	if (!sh)
		return list;
	for (uint32_t i = 0; i < sh->n && i < s->opts.n; i++) {
		o = call_json(s, sh->v[i]);
		if (steps)
			add_steps(o, sh->v[i], &left);
		json_array_append_new(list, o);
	}
	shown_free(sh);
	return list;
}

/* ------------------------------------------------------------------------------------------- */

static bool is_active(const struct slow *s)
{
	for (uint32_t i = 0; i < s->nsources; i++)
		if (s->sources[i]->profile)
			return true;
	return false;
}

json_t *slow_json(struct slow *s, uint64_t now_ns, enum slow_detail detail)
{
	json_t *o;

	o = json_pack("{s:o, s:o, s:i, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "match",
		      s->match.pattern ? text_json(s->match.pattern) : json_null(), "over_ns",
		      number(s->opts.over_ns), "n", (int)s->opts.n, "clock",
		      s->opts.clock == SNAPSHOT_CPU ? "cpu" : "wall", "elapsed_ns",
		      number(now_ns > s->opts.from_ns ? now_ns - s->opts.from_ns : 0), "active",
		      is_active(s), "seen", number(s->seen), "over", number(s->over),
		      "unknown_start", number(s->unknown_start), "refused", number(s->refused),
		      "interrupted", number(s->interrupted), "unsearched",
		      number(s->match.unsearched));
	if (!o || detail == SLOW_COUNTERS)
		return o;
	json_object_set_new(o, "calls", calls_json(s, now_ns, detail == SLOW_STEPS));
	json_object_set_new(o, "functions", functions_json(s));
	return o;
}
