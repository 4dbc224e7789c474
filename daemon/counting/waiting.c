// SPDX-License-Identifier: BSD-2-Clause
/* Waiting of threads that send no events: see waiting.h. waiting_share.c distributes it. */
#include "counting/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "stack/waits.h"
#include "stats/func.h"

void waiting_init(struct waiting *w, struct calltree *tree, struct timing *timing)
{
	*w = (struct waiting){.kept = true, .tree = tree, .timing = timing};
}

void waiting_deinit(struct waiting *w)
{
	for (int why = 0; why < WAITS; why++)
		free(w->weights[why]);
	free(w->variances);
}

void waiting_clear(struct waiting *w)
{
	for (int why = 0; why < WAITS; why++)
		if (w->weights[why])
			memset(w->weights[why], 0, w->room * sizeof(uint64_t));
	if (w->variances)
		memset(w->variances, 0, w->room * sizeof(double));
	w->walks = 0;
}

/* The context of waits whose stacks are unknown. */
static void need_rest(struct waiting *w, struct thread *th)
{
	if (th->waiting.rest == NODE_NONE)
		th->waiting.rest = calltree_child(w->tree, th->root, FUNC_UNWALKED);
	if (th->waiting.rest == NODE_NONE)
		th->waiting.rest = NODE_TRUNCATED(th->root);
}

void waiting_clear_thread(struct waiting *w, struct thread *th, uint64_t ts)
{
	struct thread_waiting *tw = &th->waiting;

	if (ts > tw->since)
		tw->since = ts;
	tw->node = tw->next_node = tw->rest = NODE_NONE;
	memset(tw->total, 0, sizeof(tw->total));
	memset(tw->placed, 0, sizeof(tw->placed));
	th->wait.last_ns = 0;
	if (tw->off)
		need_rest(w, th);
}

/* ---- contexts ---------------------------------------------------------------------------- */

/* Makes room for this reason in a node. Columns of reasons that do not occur have none. */
static bool reserve(struct waiting *w, uint32_t node, enum wait_reason why)
{
	uint32_t room = w->room;
	double *variances;

	for (int i = 0; node >= w->room && i < WAITS; i++) {
		uint64_t *v = w->weights[i];

		room = w->room;
		if (v)
			v = array_room(v, &room, node + 1, ARRAY_FIRST, sizeof(*v));
		if (!v && w->weights[i])
			return false;
		w->weights[i] = v;
	}
	room = w->room;
	variances = array_room(w->variances, &room, node + 1, ARRAY_FIRST, sizeof(*variances));
	if (!variances)
		return false;
	w->variances = variances;
	w->room = room;
	room = 0;
	if (!w->weights[why])
		w->weights[why] = array_room(NULL, &room, w->room, w->room, sizeof(uint64_t));
	return w->weights[why];
}

static void add_column(struct waiting *w, uint32_t node, enum wait_reason why, uint64_t ns)
{
	calltree_add(w->tree, node, waits_column(why), ns);
	if (wait_is_io(why))
		calltree_add(w->tree, node, COLUMN_io, ns);
}

/* Its last wait was on this stack, for certain. */
static void place(struct waiting *w, struct thread *th, uint32_t node)
{
	const enum wait_reason why = (enum wait_reason)th->wait.last_why;
	const struct timing_waited last = {th->wait.last_ns, w->tree->nodes[node].func};

	add_column(w, node, why, th->wait.last_ns);
	th->waiting.placed[why] += th->wait.last_ns;
	th->wait.last_node = node;
	th->waiting.last_stand = 0;
	timing_keep_longest(w->timing, th, why, &last);
}

/* Its last wait was on this stack, and stands for `stand` ns of such waits. */
static void weigh(struct waiting *w, struct thread *th, uint32_t node, uint64_t stand)
{
	const enum wait_reason why = (enum wait_reason)th->wait.last_why;
	const double ns = (double)th->wait.last_ns, all = (double)stand;

	if (!reserve(w, node, why)) {
		w->tree->dropped++;
		return;
	}
	w->weights[why][node] += stand;
	w->variances[node] += all * (all - ns);
	th->wait.last_node = node;
	th->waiting.last_stand = stand;
}

/* ---- waits ------------------------------------------------------------------------------- */

/* Its wait has ended, after ns. */
static void complete(struct waiting *w, struct thread *th, uint64_t ns)
{
	struct thread_waiting *tw = &th->waiting;
	struct thread_wait *wait = &th->wait;

	tw->off = false;
	tw->total[wait->why] += ns;
	wait->last_why = wait->why;
	wait->last_ns = ns;
	wait->last_node = NODE_NONE;
	if (wait->why == WAIT_other)
		timing_count_other(w->timing, th, ns);
	if (tw->node == NODE_NONE || !ns)
		return;
	if (tw->one_in > 1)
		weigh(w, th, tw->node, ns * tw->one_in);
	else
		place(w, th, tw->node);
	tw->node = NODE_NONE;
}

/* Moves ns of the last wait, in its context, to "runnable". */
static void move_in_tree(struct waiting *w, struct thread *th, uint64_t ns)
{
	const struct thread_wait *last = &th->wait;
	const uint32_t node = last->last_node;
	const enum wait_reason why = (enum wait_reason)last->last_why;
	uint64_t stand = th->waiting.last_stand;

	if (!stand) {
		waits_move(w->tree, node, why, WAIT_runnable, ns);
		th->waiting.placed[why] -= ns;
		th->waiting.placed[WAIT_runnable] += ns;
	} else if (reserve(w, node, WAIT_runnable)) {
		stand = (uint64_t)((unsigned __int128)stand * ns / last->last_ns);
		w->weights[why][node] -= stand;
		w->weights[WAIT_runnable][node] += stand;
	}
}

/* The time in run queues is known up to the end of the last wait; moves that part to its reason. */
static void split_last(struct waiting *w, struct thread *th, uint64_t delay)
{
	struct thread_wait *last = &th->wait;
	uint64_t ns = delay > last->delay ? delay - last->delay : 0;

	if (ns > last->last_ns)
		ns = last->last_ns;
	if (last->delay_known && !last->delay_wrong && ns && last->last_why != WAIT_runnable) {
		th->waiting.total[last->last_why] -= ns;
		th->waiting.total[WAIT_runnable] += ns;
		if (last->last_node != NODE_NONE)
			move_in_tree(w, th, ns);
	}
	last->last_ns = 0;
	last->delay = delay;
	last->delay_known = delay > 0;
	last->delay_wrong = false;
}

/* Its switch-in was not reported. The scheduler's run time says how long it had a CPU. */
static void complete_unseen(struct waiting *w, struct thread *th, uint64_t ts, uint64_t runtime)
{
	const struct thread_waiting *tw = &th->waiting;
	uint64_t ns = ts > tw->since ? ts - tw->since : 0;
	uint64_t ran = tw->runtime && runtime > tw->runtime ? runtime - tw->runtime : 0;

	w->timing->missed++;
	complete(w, th, ns > ran ? ns - ran : 0);
}

static void begin(struct waiting *w, struct thread *th, uint64_t ts, const struct event_switch *sw)
{
	struct thread_waiting *tw = &th->waiting;

	split_last(w, th, sw->delay);
	need_rest(w, th);
	th->wait.why = (uint8_t)waits_reason(sw);
	th->wait.syscall = sw->syscall;
	th->wait.fd = wait_takes_fd(sw->syscall) ? (int32_t)sw->arg[0] : -1;
	tw->off = true;
	tw->node = tw->next_node;
	tw->one_in = tw->next_one_in;
	tw->next_node = NODE_NONE;
	tw->since = ts;
	tw->runtime = sw->runtime;
}

void waiting_switch(struct waiting *w, struct thread *th, uint64_t ts,
		    const struct event_switch *sw, bool in)
{
	struct thread_waiting *tw = &th->waiting;

	if (ts > th->last_ts)
		th->last_ts = ts;
	if (in && tw->off)
		complete(w, th, ts > tw->since ? ts - tw->since : 0);
	else if (!in && tw->off)
		complete_unseen(w, th, ts, sw->runtime);
	if (!in)
		begin(w, th, ts, sw);
}

void waiting_stack(struct waiting *w, struct thread *th, const struct event_sample *s,
		   uint32_t node)
{
	w->walks++;
	if (s->flags & PYP_SAMPLE_AHEAD) {
		th->waiting.next_node = node;
		th->waiting.next_one_in = s->period;
		return;
	}
	if (th->waiting.off || !th->wait.last_ns || th->wait.last_node != NODE_NONE)
		return;
	if (s->period > th->wait.last_ns)
		weigh(w, th, node, s->period);
	else
		place(w, th, node);
}

void waiting_initial(struct waiting *w, struct thread *th, uint64_t begin, uint32_t node)
{
	struct thread_waiting *tw = &th->waiting;

	tw->off = true;
	tw->since = begin;
	tw->runtime = 0;
	tw->node = node;
	tw->one_in = 0;
	need_rest(w, th);
	th->wait.why = WAIT_other;
	th->wait.syscall = th->wait.fd = -1;
}

void waiting_go_on(struct waiting *w, struct thread *th, uint64_t ts)
{
	struct thread_waiting *tw = &th->waiting;

	tw->off = true;
	tw->since = ts;
	tw->runtime = 0;
	tw->node = th->node;
	tw->one_in = 0;
	tw->next_node = NODE_NONE;
	th->wait.last_ns = 0;
	th->wait.delay_known = false;
	need_rest(w, th);
}

bool waiting_is_unplaced(const struct thread *th, uint64_t ts)
{
	return th->waiting.off && th->waiting.node == NODE_NONE && th->waiting.since < ts;
}

void waiting_stop(struct waiting *w, struct thread *th, uint64_t ts)
{
	const struct thread_waiting *tw = &th->waiting;

	if (tw->off)
		complete(w, th, ts > tw->since ? ts - tw->since : 0);
	th->waiting.node = th->waiting.next_node = NODE_NONE;
	th->waiting.runtime = 0;
	th->wait.last_ns = 0;
	th->wait.delay_known = false;
}

/* ---- folding ----------------------------------------------------------------------------- */

void waiting_move(struct waiting *w, uint32_t from, uint32_t to)
{
	if (from >= w->room)
		return;
	for (int why = 0; why < WAITS; why++) {
		uint64_t weight = w->weights[why] ? w->weights[why][from] : 0;

		if (!weight)
			continue;
		w->weights[why][from] = 0;
		if (reserve(w, to, (enum wait_reason)why))
			w->weights[why][to] += weight;
		else
			w->tree->dropped++;
	}
	if (to < w->room)
		w->variances[to] += w->variances[from];
	w->variances[from] = 0;
}

void waiting_fold(struct waiting *w, struct thread *row, const struct thread *th)
{
	need_rest(w, row);
	for (int why = 0; why < WAITS; why++) {
		row->waiting.total[why] += th->waiting.total[why];
		row->waiting.placed[why] += th->waiting.placed[why];
	}
}
