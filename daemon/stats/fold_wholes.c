// SPDX-License-Identifier: BSD-2-Clause
/* Whole calls of contexts whose callers are folded: see fold_wholes.h. */
#include "stats/fold_wholes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/square.h"

/* Nothing makes as many calls; products and sums of as many are finite. */
#define MOST 1e12

/* A context's calls per call of the nearest caller that is not folded, and the variance of that. */
struct step {
	uint32_t caller; /* node; SNAPSHOT_NONE: all its callers are folded */
	double calls, variance;
};

struct stepping {
	const struct snapshot *s;
	const bool *away;
	const uint32_t *host;
	struct snapshot_whole *to;
	struct step *steps; /* per node */
	struct map pairs; /* (caller's node, function) → the first node of this function below it */
	double *calls;	  /* per such node: calls per call of all of them */
};

static void stepping_deinit(struct stepping *w)
{
	free(w->steps);
	free(w->calls);
	map_deinit(&w->pairs);
}

/* Calls per call of the parent, whether that is folded or not. */
static struct step direct_step(const struct stepping *w, uint32_t i)
{
	const struct snapshot_whole *of = &w->s->wholes[i],
				    *parent = &w->s->wholes[w->s->nodes[i].parent];
	struct step ret = {.caller = w->s->nodes[i].parent};

	if (parent->y <= 0)
		return ret;
	ret.calls = of->x / parent->y;
	ret.variance = square_residual(of->x2, of->xy, parent->y2, ret.calls) / square(parent->y);
	/* only in files that somebody has made up */
	if (!(ret.calls < MOST) || !(ret.variance < MOST))
		return (struct step){.caller = ret.caller};
	return ret;
}

/* Parents come first, so that their steps are known. */
static struct step step_of(const struct stepping *w, uint32_t i)
{
	struct step ret = direct_step(w, i);
	const struct snapshot_node *parent = &w->s->nodes[ret.caller];
	const struct step *above = &w->steps[ret.caller];

	if (parent->parent == SNAPSHOT_NONE)
		return (struct step){.caller = SNAPSHOT_NONE};
	if (!w->away[parent->func])
		return ret;
	ret.variance = square(above->calls) * ret.variance + square(ret.calls) * above->variance +
		       ret.variance * above->variance;
	ret.calls *= above->calls;
	ret.caller = above->caller;
	if (!(ret.calls < MOST) || !(ret.variance < MOST))
		ret.calls = ret.variance = 0;
	return ret;
}

/*
 * As if each window had shown the mean, with the sum of squares that the variance is made of. A
 * function that is called on several ways adds up its means before they are squared.
 */
static int add_calls(struct stepping *w, uint32_t i, const struct step *step)
{
	const struct snapshot_whole *caller = &w->s->wholes[step->caller];
	struct snapshot_whole *to = &w->to[w->host[i]];
	uint64_t key = (uint64_t)step->caller << 32 | w->s->nodes[i].func;
	uint32_t first = i;
	double before;

	if (!map_get(&w->pairs, key, &first) && map_put(&w->pairs, key, i) < 0)
		return -ENOMEM;
	before = w->calls[first];
	w->calls[first] += step->calls;
	to->x += step->calls * caller->y;
	to->xy += step->calls * caller->y2;
	to->x2 += step->variance * square(caller->y) +
		  (square(w->calls[first]) - square(before)) * caller->y2;
	return 0;
}

int fold_wholes(const struct snapshot *s, const bool *away, const uint32_t *host,
		struct snapshot_whole *to)
{
	_cleanup_(
		stepping_deinit) struct stepping w = {.s = s, .away = away, .host = host, .to = to};

	w.steps = calloc((size_t)s->nnodes + 1, sizeof(*w.steps));
	w.calls = calloc((size_t)s->nnodes + 1, sizeof(*w.calls));
	if (!w.steps || !w.calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (s->nodes[i].parent == SNAPSHOT_NONE)
			continue;
		w.steps[i] = step_of(&w, i);
		if (away[s->nodes[i].func])
			continue;
		to[host[i]].y += s->wholes[i].y;
		to[host[i]].y2 += s->wholes[i].y2;
		if (w.steps[i].caller != SNAPSHOT_NONE && add_calls(&w, i, &w.steps[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}
