// SPDX-License-Identifier: BSD-2-Clause
/* A profile's waiting, if there are no events of calls: see counting/waiting.h. */
#include <errno.h>
#include <stdlib.h>

#include "counting/samples.h"
#include "profile/profile_priv.h"

int profile_keep_walks(struct profile *p)
{
	waiting_init(&p->waiting, &p->rb.tree, &p->timing);
	return profile_keep_waits(p);
}

static struct thread *waiting_thread(struct profile *p, const struct event *e)
{
	if (p->windows ? !p->observed_ns || e->ts < p->observed_ns
		       : !p->tracing || e->ts < p->window.begin_ts)
		return NULL;
	return threads_get(&p->threads, e->tid, e->ts);
}

void profile_on_wait(struct profile *p, const struct event *e)
{
	struct thread *th = waiting_thread(p, e);
	const bool in = e->type == PYP_REC_SWITCH_IN;

	if (!th)
		return;
	if (e->type == PYP_REC_DELAY) {
		timing_delay_wrong(th, &p->timing);
		return;
	}
	if (th->live && p->windows && e->ts >= p->window.begin_ts)
		timing_pass(&p->rb.tree, th, e->ts, in);
	if (p->waiting.kept)
		waiting_switch(&p->waiting, th, e->ts, &e->u.sw, in);
	gil_switch(&p->gils, &p->rb.tree, th, e->ts, &e->u.sw, in);
}

void profile_on_wait_stack(struct profile *p, const struct event *e)
{
	struct thread *th = waiting_thread(p, e);
	uint32_t node = th ? samples_add(&p->rb, &p->codes, th, &e->u.sample) : NODE_NONE;

	if (node == NODE_NONE || (p->windows && profile_is_timed(p)))
		return;
	if (!th->live)
		th->node = node;
	waiting_stack(&p->waiting, th, &e->u.sample, node);
}

static uint32_t initial_node(struct profile *p, const struct thread *th,
			     const struct initial_stack *initial)
{
	size_t n = initial->n < PYP_SAMPLE_MAX_DEPTH ? initial->n : PYP_SAMPLE_MAX_DEPTH;
	_cleanup_free_ struct chain_frame *frames = calloc(n + 1, sizeof(*frames));

	if (!frames)
		return NODE_NONE;
	for (size_t i = 0; i < n; i++)
		frames[i].func = codes_func(&p->codes, initial->frames[i].code);
	return samples_node(&p->rb, th, frames, (uint32_t)n, n < initial->n);
}

/*
 * A thread that has waited since before its stack was read at ts. That stack is the one of its wait,
 * unless the wait began later.
 */
void profile_wait_initial(struct profile *p, uint64_t ts, const struct initial_stack *initial)
{
	const uint64_t since = p->windows ? p->observed_ns : p->window.begin_ts;
	const uint64_t begin = since ? since : ts;
	const bool unknown = !threads_find(&p->threads, initial->tid);
	struct thread *th = profile_initial_thread(p, begin, initial);

	if (!th || initial->running || !p->waiting.kept)
		return;
	if (unknown)
		waiting_initial(&p->waiting, th, begin, initial_node(p, th, initial));
	else if (waiting_is_unplaced(th, ts))
		th->waiting.node = initial_node(p, th, initial);
}

bool profile_waits_since(const struct profile *p, uint64_t ts)
{
	for (uint32_t i = 0; i < p->threads.n && p->waiting.kept && p->tracing; i++)
		if (p->threads.v[i]->alive && waiting_is_unplaced(p->threads.v[i], ts))
			return true;
	return false;
}

void profile_wait_give(struct profile *p, struct thread *th, uint64_t ts)
{
	th->waiting.given = th->waiting.off;
	profile_wait_stop(p, th, ts);
}

void profile_wait_take(struct profile *p, struct thread *th, uint64_t ts)
{
	if (!p->waiting.kept)
		return;
	if (th->os_cpu ? th->os_running : th->on_cpu)
		waiting_stop(&p->waiting, th, ts);
	else
		waiting_go_on(&p->waiting, th, ts);
}

void profile_wait_stop(struct profile *p, struct thread *th, uint64_t ts)
{
	if (!p->waiting.kept)
		return;
	waiting_stop(&p->waiting, th, ts);
	gil_forget(&p->gils, &p->rb.tree, th, ts);
}

int profile_wait_errors(const struct profile *p, const struct waiting_shares *shares,
			const uint32_t *node_map, struct snapshot *s, uint32_t first_thread,
			const struct samples_cpu *cpu)
{
	_cleanup_free_ double *estimated = calloc((size_t)s->nnodes + 1, sizeof(*estimated));
	_cleanup_free_ double *variance = calloc((size_t)s->nnodes + 1, sizeof(*variance));
	const struct samples_waiting waiting = {estimated, variance};

	if (!estimated || !variance)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->rb.tree.n && shares->sum; i++)
		if (node_map[i] != SNAPSHOT_NONE) {
			estimated[node_map[i]] = shares->estimated[i];
			variance[node_map[i]] = shares->variance[i];
		}
	return samples_errors(s, first_thread, cpu, shares->sum ? &waiting : NULL);
}
