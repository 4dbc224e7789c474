// SPDX-License-Identifier: BSD-2-Clause
/*
 * Coroutine lifetimes from events
 *
 * An instance starts with an entry that is marked as the frame's first, and ends when its frame is
 * left without being suspended. In between, a table holds it by its frame's address, so that the
 * time from each suspension to the next entry is known, in whichever thread that occurs. While it
 * runs, its callees and awaited coroutines are above it on the stack, so its running time includes
 * them, like cumulative time.
 *
 * Some ends are not observed. A generator that is dropped while suspended need not run again
 * (3.13+), and before 3.11 a suspension looks like an end. When the memory is reused, a first entry
 * at the same address shows that the earlier instance is gone; it then ended when it was last seen.
 * Instances whose address is not reused stay suspended, and are the first to be dropped if there
 * are too many.
 *
 * An instance stores only the time of its first call and of its last change of state.
 */
#include "stack/coro.h"

#include <stdlib.h>
#include <string.h>

void coros_init(struct coros *cs)
{
	*cs = (struct coros){.free = CORO_NONE, .oldest = CORO_NONE, .newest = CORO_NONE};
}

void coros_deinit(struct coros *cs)
{
	free(cs->list);
	free(cs->sums.v);
	free(cs->greenlets.v);
	map_deinit(&cs->by_frame);
	coros_init(cs);
}

/* Sums ------------------------------------------------------------------------------------- */

struct coro_sum *coro_sum(struct coro_sums *sums, uint32_t func)
{
	uint32_t n = sums->n ? sums->n : 64;
	struct coro_sum *v;

	if (func < sums->n)
		return &sums->v[func];
	while (n <= func)
		n = n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
	v = reallocarray(sums->v, n, sizeof(*v));
	if (!v)
		return NULL;
	memset(v + sums->n, 0, (n - sums->n) * sizeof(*v));
	sums->v = v;
	sums->n = n;
	return &v[func];
}

void coro_sum_end(struct coro_sum *sum, uint64_t first, uint64_t ts)
{
	uint64_t total = ts > first ? ts - first : 0;

	sum->ended++;
	if (!first)
		return;
	sum->total += total;
	if (!sum->lifetimes++ || total < sum->min)
		sum->min = total;
	if (total > sum->max)
		sum->max = total;
}

/* The table -------------------------------------------------------------------------------- */

static void list_append(struct coros *cs, uint32_t i)
{
	struct coro *c = &cs->list[i];

	c->older = cs->newest;
	c->newer = CORO_NONE;
	if (cs->newest != CORO_NONE)
		cs->list[cs->newest].newer = i;
	else
		cs->oldest = i;
	cs->newest = i;
}

static void list_remove(struct coros *cs, uint32_t i)
{
	const struct coro *c = &cs->list[i];

	if (c->older != CORO_NONE)
		cs->list[c->older].newer = c->newer;
	else
		cs->oldest = c->newer;
	if (c->newer != CORO_NONE)
		cs->list[c->newer].older = c->older;
	else
		cs->newest = c->older;
}

static void drop(struct coros *cs, uint32_t i)
{
	struct coro *c = &cs->list[i];

	if (c->suspended)
		list_remove(cs, i);
	map_del(&cs->by_frame, c->frame);
	*c = (struct coro){.newer = cs->free};
	cs->free = i;
}

static bool grow(struct coros *cs)
{
	uint32_t cap = cs->cap ? cs->cap * 2 : 64;
	struct coro *list = reallocarray(cs->list, cap, sizeof(*list));

	if (!list)
		return false;
	cs->list = list;
	cs->cap = cap;
	return true;
}

/* Returns a free entry; if there is none, drops the instance that has been suspended longest. */
static bool place(struct coros *cs, uint32_t *ret)
{
	if (cs->free == CORO_NONE && cs->n >= CORO_LIMIT && cs->oldest != CORO_NONE) {
		cs->forgotten++;
		drop(cs, cs->oldest);
	}
	if (cs->free != CORO_NONE) {
		*ret = cs->free;
		cs->free = cs->list[*ret].newer;
		return true;
	}
	if (cs->n >= CORO_LIMIT || (cs->n == cs->cap && !grow(cs)))
		return false;
	*ret = cs->n++;
	return true;
}

static void add(struct coros *cs, struct coro c)
{
	uint32_t i;

	if (!place(cs, &i)) {
		cs->forgotten++;
		return;
	}
	c.used = true;
	cs->list[i] = c;
	if (map_put(&cs->by_frame, c.frame, i)) {
		cs->forgotten++;
		cs->list[i] = (struct coro){.newer = cs->free};
		cs->free = i;
		return;
	}
	if (c.suspended)
		list_append(cs, i);
}

bool coro_is_suspended(const struct coros *cs, uint64_t frame)
{
	uint32_t i;

	return map_get(&cs->by_frame, frame, &i) && cs->list[i].suspended;
}

/* Events ----------------------------------------------------------------------------------- */

static uint64_t elapsed(uint64_t since, uint64_t ts)
{
	return ts > since ? ts - since : 0;
}

/* Another instance has its address: it ended when it was last seen. */
static void end_unseen(struct coros *cs, uint32_t i)
{
	const struct coro *c = &cs->list[i];
	struct coro_sum *sum = coro_sum(&cs->sums, c->func);

	if (sum)
		coro_sum_end(sum, c->first, c->since);
	drop(cs, i);
}

static void resume(struct coros *cs, uint32_t i, struct coro_sum *sum, uint64_t ts)
{
	struct coro *c = &cs->list[i];

	if (!c->suspended)
		return;
	sum->suspended += elapsed(c->since, ts);
	list_remove(cs, i);
	c->suspended = false;
}

void coro_enter(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts, bool start)
{
	struct coro_sum *sum = coro_sum(&cs->sums, func);
	uint32_t i;
	bool there = map_get(&cs->by_frame, frame, &i);

	if (!sum)
		return;
	sum->steps++;
	if (there && !start && cs->list[i].func == func) {
		resume(cs, i, sum, ts);
		return;
	}
	if (there)
		end_unseen(cs, i);
	if (start)
		sum->started++;
	else
		sum->partial++;
	add(cs, (struct coro){.frame = frame, .func = func, .first = start ? ts : 0, .since = ts});
}

void coro_leave(struct coros *cs, uint64_t frame, uint32_t func, uint64_t ts,
		const uint64_t running[SNAPSHOT_CLOCKS], bool suspended)
{
	struct coro_sum *sum = coro_sum(&cs->sums, func);
	uint32_t i;

	if (!sum)
		return;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		sum->running[c] += running[c];
	if (!map_get(&cs->by_frame, frame, &i) || cs->list[i].suspended)
		return;
	cs->list[i].since = ts;
	if (suspended || cs->ends_hidden) {
		cs->list[i].suspended = true;
		list_append(cs, i);
		return;
	}
	coro_sum_end(sum, cs->list[i].first, ts);
	drop(cs, i);
}

/* All of them ------------------------------------------------------------------------------ */

static void forget_sums(struct coro_sums *sums)
{
	if (sums->n)
		memset(sums->v, 0, sums->n * sizeof(*sums->v));
}

void coros_clear(struct coros *cs, uint64_t ts)
{
	forget_sums(&cs->sums);
	forget_sums(&cs->greenlets);
	cs->forgotten = 0;
	for (uint32_t i = 0; i < cs->n; i++) {
		struct coro_sum *sum;

		if (!cs->list[i].used)
			continue;
		cs->list[i].first = 0;
		cs->list[i].since = ts;
		sum = coro_sum(&cs->sums, cs->list[i].func);
		if (sum)
			sum->partial++;
	}
}

void coros_stop(struct coros *cs, uint64_t ts)
{
	for (uint32_t i = 0; i < cs->n; i++) {
		const struct coro *c = &cs->list[i];
		struct coro_sum *sum = c->used ? coro_sum(&cs->sums, c->func) : NULL;

		if (sum && c->suspended && !cs->ends_hidden)
			sum->suspended += elapsed(c->since, ts);
		/*
		 * Removed individually, because the map may still have the size of an earlier,
		 * larger window.
		 */
		if (c->used)
			map_del(&cs->by_frame, c->frame);
	}
	cs->n = 0;
	cs->free = cs->oldest = cs->newest = CORO_NONE;
}
