// SPDX-License-Identifier: BSD-2-Clause
/* Counting calls: see counting.h. */
#include "session/counting.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"

/*
 * The maximum number of threads that may end between two readings. Exits beyond that are lost: the
 * threads count as alive, and their counts stay in the BPF map.
 */
#define EXITS_MAX 65536u

void counting_deinit(struct counting *c)
{
	free(c->exits);
}

static bool exits_reserve(struct counting *c)
{
	size_t cap = c->cap ? 2 * c->cap : 16;
	struct event *exits;

	if (c->nexits < c->cap)
		return true;
	exits = cap <= EXITS_MAX ? reallocarray(c->exits, cap, sizeof(*exits)) : NULL;
	if (!exits)
		return false;
	c->exits = exits;
	c->cap = cap;
	return true;
}

void counting_exit(struct counting *c, const struct event *e)
{
	if (exits_reserve(c))
		c->exits[c->nexits++] = *e;
}

/* Fills *ret with the tids of the threads that have ended. */
static void exits_map(const struct counting *c, struct map *ret)
{
	for (size_t i = 0; i < c->nexits; i++)
		if (map_put(ret, c->exits[i].tid, 1) < 0)
			return;
}

/* Passes the first n exits to the profile and removes them from the list. */
static void exits_report(struct counting *c, struct profile *profile, size_t n)
{
	for (size_t i = 0; i < n; i++)
		profile_event(profile, &c->exits[i]);
	c->nexits -= n;
	/* Before the first exit there is no array, and memmove(NULL, ...) is undefined. */
	if (c->nexits)
		memmove(c->exits, c->exits + n, c->nexits * sizeof(*c->exits));
}

static int fetch(const struct probe *probe, struct probe_count **ret, size_t *ret_n)
{
	int r = probe_counts(probe, ret, ret_n);

	if (r < 0)
		log_warning("cannot read call counts: error %d", -r);
	return r;
}

static struct call_count calls_of(const struct probe_count *count, bool final)
{
	return (struct call_count){
		.tid = count->edge.tid,
		.caller = count->edge.caller,
		.callee = count->edge.callee,
		.calls = count->calls,
		.final = final,
	};
}

void counting_sync(struct counting *c, const struct counting_sync *how)
{
	_cleanup_free_ struct probe_count *counts = NULL;
	_cleanup_free_ struct call_count *calls = NULL;
	_cleanup_(map_deinit) struct map gone = {0};
	size_t n = 0, ended = c->nexits;
	uint32_t one;

	exits_map(c, &gone);
	if (fetch(how->probe, &counts, &n) < 0)
		return;
	calls = calloc(n + 1, sizeof(*calls));
	if (!calls)
		return;
	for (size_t i = 0; i < n; i++) {
		calls[i] = calls_of(&counts[i],
				    how->final || map_get(&gone, counts[i].edge.tid, &one));
		if (calls[i].final)
			probe_counts_drop(how->probe, &counts[i].edge);
	}
	how->drain(how->ctx);
	profile_set_calls(how->profile, calls, n);
	exits_report(c, how->profile, ended);
}

void counting_clear(struct counting *c, struct probe *probe, struct profile *profile)
{
	_cleanup_free_ struct probe_count *counts = NULL;
	size_t n = 0;

	if (fetch(probe, &counts, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		probe_counts_drop(probe, &counts[i].edge);
	exits_report(c, profile, c->nexits);
}
