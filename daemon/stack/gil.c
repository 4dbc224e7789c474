// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who holds the GIL
 *
 *   - A call or return of a thread proves that it holds the GIL: only the holder runs Python code. It
 *     holds it until another thread is proven to, or until it waits for it itself.
 *   - A thread that blocks otherwise may have released the GIL or not (a page fault, code in C that does
 *     not release it). If it has, a waiter gets it at once and proves that; if nobody does, it still holds
 *     it.
 *   - A waiter that runs again has got the GIL, or its wait timed out (every switch interval, 5 ms): then it
 *     asks the holder to release it and waits again within microseconds. As long as that is open, time
 *     is pending. It is the waiter's from its waking on, if it has an event, if it blocks in something else
 *     than the GIL, or if it has run for LONG_NS before it waits again; it is the holder's if all such
 *     waiters wait again before.
 *   - Where the holder has begun to wait and nobody is proven to hold the GIL, time is pending, too, and
 *     belongs to the next thread that is.
 *
 * Limits: code in C that has released the GIL, runs on, and has no events is not told from code that
 * holds it, until somebody else proves to hold it. Holding it for less than LONG_NS without any event
 * is not seen. A waiter waits until it runs: where all CPUs are busy, that is longer than until it gets the
 * GIL, and the time in which nobody runs who could is the next holder's. What runs when a snapshot is taken counts up to the last switch or event of those concerned.
 */
#include "stack/gil.h"

#include <stdlib.h>
#include <string.h>

#include "stack/waits.h"

#define LONG_NS UINT64_C(50000) /* far more than a timed out waiter needs to wait again */

void gils_deinit(struct gils *g)
{
	free(g->pairs);
	g->pairs = NULL;
}

void gils_clear(struct gils *g)
{
	free(g->pairs);
	g->pairs = NULL;
	g->npairs = 0;
	g->dropped = 0;
	for (int i = 0; i < PYP_GIL_RANGES; i++) {
		g->of[i].pending = 0;
		for (uint32_t k = 0; k < GIL_GROUPS; k++)
			g->of[i].groups[k].pending = 0;
	}
}

static void add_pair(struct gils *g, uint32_t holder, uint32_t waiter, uint64_t ns)
{
	uint32_t at = (holder * 2654435761u ^ waiter * 40503u) & (GIL_PAIRS - 1);

	if (!ns)
		return;
	if (!g->pairs)
		g->pairs = calloc(GIL_PAIRS, sizeof(*g->pairs));
	for (uint32_t i = 0; g->pairs && i < GIL_PAIRS; i++) {
		struct gil_pair *p = &g->pairs[(at + i) & (GIL_PAIRS - 1)];

		if (!p->ns && g->npairs > GIL_PAIRS / 2)
			break;
		if (!p->ns)
			g->npairs++;
		else if (p->holder != holder || p->waiter != waiter)
			continue;
		p->holder = holder;
		p->waiter = waiter;
		p->ns += ns;
		return;
	}
	g->dropped += ns;
}

/* ---- who waits --------------------------------------------------------------------------- */

/* The group of a function; what does not fit is added to the last one, whatever that is of. */
static uint8_t group_of(struct gil *of, uint32_t func)
{
	uint8_t free_one = GIL_GROUPS - 1;

	for (uint32_t i = GIL_GROUPS; i-- > 0;) {
		if (of->groups[i].n || of->groups[i].pending) {
			if (of->groups[i].func == func)
				return (uint8_t)i;
		} else {
			free_one = (uint8_t)i;
		}
	}
	if (!of->groups[free_one].n && !of->groups[free_one].pending)
		of->groups[free_one].func = func;
	return free_one;
}

static void begin_waiting(struct gil *of, struct thread *th, uint32_t func)
{
	th->gil.waits = true;
	th->gil.group = group_of(of, func);
	of->groups[th->gil.group].n++;
	of->waiting++;
}

static void end_waiting(struct gil *of, struct thread *th)
{
	if (!th->gil.waits)
		return;
	th->gil.waits = false;
	of->groups[th->gil.group].n--;
	of->waiting--;
}

static void end_awake(struct gil *of, struct thread *th)
{
	of->awake -= th->gil.awake;
	th->gil.awake = false;
}

/* ---- who pays ---------------------------------------------------------------------------- */

/* What is pending is this thread's. */
static void resolve(struct gils *g, struct calltree *t, struct gil *of, const struct thread *th)
{
	uint32_t func = t->nodes[th->node].func;

	if (!of->pending)
		return;
	if (waits_kept(t))
		calltree_add(t, th->node, COLUMN_gil_held_ns, of->pending);
	for (uint32_t i = 0; i < GIL_GROUPS; i++) {
		add_pair(g, func, of->groups[i].func, of->groups[i].pending);
		of->groups[i].pending = 0;
	}
	of->pending = 0;
}

/* Up to ts: the holder's, unless that is open. */
static void charge(struct gils *g, struct calltree *t, struct gil *of, uint64_t ts)
{
	uint64_t d = ts > of->ts ? ts - of->ts : 0;

	if (ts > of->ts)
		of->ts = ts;
	if (!of->waiting || !d)
		return;
	of->pending += d;
	for (uint32_t i = 0; i < GIL_GROUPS; i++)
		of->groups[i].pending += d * of->groups[i].n;
	if (of->holder && !of->awake)
		resolve(g, t, of, of->holder);
}

void gil_proves(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	struct gil *of = &g->of[th->gil.of];

	charge(g, t, of, ts);
	/* It runs, whatever was reported of it. */
	end_waiting(of, th);
	end_awake(of, th);
	resolve(g, t, of, th);
	of->holder = th;
}

static void get_cpu(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		    uint64_t runtime)
{
	struct gil *of = &g->of[th->gil.of];

	if (!th->gil.waits)
		return;
	charge(g, t, of, ts);
	end_waiting(of, th);
	th->gil.awake = true;
	th->gil.runtime = runtime;
	of->awake++;
}

/* Has it held the GIL since it was woken? */
static bool has_held(const struct thread *th, const struct event_switch *sw)
{
	if (sw->wait == PYP_WAIT_GIL)
		return sw->runtime > th->gil.runtime && sw->runtime - th->gil.runtime >= LONG_NS;
	return sw->wait != PYP_WAIT_CPU;
}

static void leave_cpu(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		      const struct event_switch *sw)
{
	struct gil *of = &g->of[th->gil.of];

	if (th->gil.awake && has_held(th, sw))
		gil_proves(g, t, th, ts);
	if (sw->wait != PYP_WAIT_GIL)
		return;
	if (th->gil.of != sw->gil) {
		gil_forget(g, t, th, ts);
		th->gil.of = sw->gil;
		of = &g->of[sw->gil];
	}
	charge(g, t, of, ts);
	if (of->holder == th)
		of->holder = NULL;
	if (th->gil.awake) {
		end_awake(of, th);
		/* It has not held it: the one that does is the same as before. */
		if (of->holder && !of->awake)
			resolve(g, t, of, of->holder);
	}
	if (!th->gil.waits)
		begin_waiting(of, th, t->nodes[th->node].func);
}

void gil_switch(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts,
		const struct event_switch *sw, bool in)
{
	if (in)
		get_cpu(g, t, th, ts, sw->runtime);
	else
		leave_cpu(g, t, th, ts, sw);
}

void gil_forget(struct gils *g, struct calltree *t, struct thread *th, uint64_t ts)
{
	struct gil *of = &g->of[th->gil.of];

	charge(g, t, of, ts);
	end_waiting(of, th);
	end_awake(of, th);
	if (of->holder == th)
		of->holder = NULL;
}
