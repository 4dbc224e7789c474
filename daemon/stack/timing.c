// SPDX-License-Identifier: BSD-2-Clause
/*
 * How CPU time is known. Events carry wall time only; reading a thread's CPU time at each would
 * cost more than all the rest. Instead the thread's moves on and off the CPUs come in the same
 * ring, in order, each with the scheduler's own account of its run time. So:
 *
 *   - On a CPU, CPU time passes as wall time does. Off it, it stands still.
 *   - At every switch the scheduler's account is compared with what has been charged since the
 *     account was first known. The stretch that ends there (from the thread's last event) takes the
 *     difference, as far as it can hold it: between nothing and its own length. What is left over
 *     is not forgotten: as both sides of the comparison are totals, the next one finds it again.
 *   - More than NOISE too much was charged: a hypervisor had the CPU meanwhile, which the scheduler
 *     knows, and events do not. It comes in pieces far longer than what usually lies between two
 *     events, so it is taken back from where the longest stretches since the last switch were
 *     charged. Clocks of stacks are not turned back: activations that ran then keep it, so the
 *     longest of them may be longer than all of them together.
 *   - More than CARRY_MAX that is left means that switches are missing. Missing CPU time goes to
 *     "(lost)" if events were lost since the last comparison, else to "(switch not reported)": some
 *     kernels do not report all switches, and nothing was lost then. Superfluous CPU time that no stretch can hold stays: the account is adopted as it
 *     is, and counted.
 *
 * A thread first seen by an event is on a CPU, with an account that is not known before its first
 * switch. An event of a thread that is thought to be off its CPU proves the opposite: the kernel did
 * not tell of its return. (Seen: one that does not tell when a thread of its init leaves a CPU, so
 * that whoever follows it is never told of, either.)
 *
 * At that first switch as well more may have been charged than a thread can have used: more than in
 * all its life, which for a new one is all that there is to know; or than since the seed, whose
 * account may be a tick old, and so is never ahead.
 *
 * A gap (events were lost), a blocked thread's time up to its first event and such a return have a
 * CPU share that only the next switch tells: gap_wall and gap_node remember who is to get it.
 */
#include "stack/timing.h"

#include <string.h>

#include "stack/waits.h"
#include "stats/func.h"

#define CARRY_MAX ((int64_t)1000000) /* ns; far above what the two clocks differ by */
#define NOISE	  ((int64_t)10000)   /* ns; they differ by less from switch to switch */

static void charge_node(struct calltree *t, struct thread *th, uint32_t node, uint64_t wall,
			uint64_t cpu, enum wait_reason why)
{
	struct node *n = &t->nodes[node];
	uint64_t waits = waits_of(n);

	if (__builtin_expect(!n->self[SNAPSHOT_WALL], 0))
		calltree_touch(t, node);
	n->self[SNAPSHOT_WALL] += wall;
	n->self[SNAPSHOT_CPU] += cpu;
	th->total[SNAPSHOT_WALL] += wall;
	th->total[SNAPSHOT_CPU] += cpu;
	if (__builtin_expect(wall != cpu, 0))
		waits_change(t, node, waits, why);
}

static void charge_current(struct calltree *t, struct thread *th, uint64_t wall, uint64_t cpu)
{
	charge_node(t, th, th->node, wall, cpu, th->wait.why);
}

/* To a node that is not the current one: the current stack's clocks stand still. */
static void charge_other(struct calltree *t, struct thread *th, uint32_t node, uint64_t wall,
			 uint64_t cpu, enum wait_reason why)
{
	charge_node(t, th, node, wall, cpu, why);
	th->cur.clock[SNAPSHOT_WALL] += wall;
	th->cur.clock[SNAPSHOT_CPU] += cpu;
}

/* What has passed up to ts, which is taken. Time never goes backwards, whatever comes in. */
static uint64_t take_elapsed(struct thread *th, uint64_t ts)
{
	uint64_t d;

	if (ts <= th->last_ts)
		return 0;
	d = ts - th->last_ts;
	th->last_ts = ts;
	return d;
}

/* The longest come first; the last one is the shortest that is kept. */
static void keep_stretch(struct thread *th, uint64_t cpu)
{
	uint32_t i = THREAD_STRETCHES - 1;

	for (; i > 0 && th->stretches[i - 1].cpu < cpu; i--)
		th->stretches[i] = th->stretches[i - 1];
	th->stretches[i] = (struct stretch){.cpu = cpu, .node = th->node};
}

static void forget_stretches(struct thread *th)
{
	memset(th->stretches, 0, sizeof(th->stretches));
	th->switch_cpu = th->total[SNAPSHOT_CPU];
}

static inline void charge_stretch(struct calltree *t, struct thread *th, uint64_t wall,
				  uint64_t cpu)
{
	charge_current(t, th, wall, cpu);
	if (__builtin_expect(cpu > th->stretches[THREAD_STRETCHES - 1].cpu, 0))
		keep_stretch(th, cpu);
}

/* Returns what has passed. */
static inline uint64_t charge(struct calltree *t, struct thread *th, uint64_t ts)
{
	uint64_t wall = take_elapsed(th, ts);

	charge_stretch(t, th, wall, th->on_cpu ? wall : 0);
	return wall;
}

void timing_charge(struct calltree *t, struct thread *th, uint64_t ts)
{
	charge(t, th, ts);
}

static void defer(struct thread *th, uint32_t node, uint64_t wall)
{
	th->gap_node = node;
	th->gap_wall = wall;
	th->wait.gap_why = th->wait.why;
}

void timing_event(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts)
{
	uint64_t wall = charge(t, th, ts);

	if (__builtin_expect(th->on_cpu, 1))
		return;
	th->on_cpu = true;
	if (th->runtime_known) {
		tm->missed++;
		defer(th, th->node, wall);
	}
	th->wait.why = WAIT_runnable;
}

void timing_charge_gap(struct calltree *t, struct thread *th, uint64_t ts)
{
	uint64_t wall = take_elapsed(th, ts);
	uint32_t lost = NODE_LOST(th->root);

	th->lost = true;
	if (th->runtime_known) {
		charge_other(t, th, lost, wall, 0, th->wait.why);
		defer(th, lost, th->gap_wall + wall);
	} else {
		charge_other(t, th, lost, wall, th->on_cpu ? wall : 0, th->wait.why);
	}
}

void timing_first_seen(struct thread *th, uint64_t ts)
{
	th->last_ts = ts;
	th->on_cpu = true;
	th->runtime_known = th->forgive = th->os_cpu = th->lost = false;
	th->gap_wall = 0;
	forget_stretches(th);
	th->seed_ts = 0;
	th->wait = (struct thread_wait){.why = WAIT_runnable, .syscall = -1};
}

static void adopt(struct thread *th, uint64_t runtime)
{
	th->runtime_base = runtime - th->total[SNAPSHOT_CPU];
	th->runtime_known = true;
	th->forgive = false;
}

/* By how much the scheduler's account is ahead of what has been charged. */
static int64_t ahead(const struct thread *th, uint64_t runtime)
{
	return (int64_t)(runtime - th->runtime_base - th->total[SNAPSHOT_CPU]);
}

static uint64_t clamp(int64_t x, uint64_t most)
{
	if (x <= 0)
		return 0;
	return (uint64_t)x < most ? (uint64_t)x : most;
}

/* The current stack's clock stands still, and what was told of the thread's stays told. */
static void take_back(struct calltree *t, struct thread *th, uint32_t node, uint64_t cpu)
{
	uint64_t waits = waits_of(&t->nodes[node]);

	calltree_touch(t, node);
	t->nodes[node].self[SNAPSHOT_CPU] -= cpu;
	waits_change(t, node, waits, WAIT_runnable);
	th->total[SNAPSHOT_CPU] -= cpu;
	th->cur.clock[SNAPSHOT_CPU] -= cpu;
	th->cpu_cleared += cpu;
}

/* More than was charged since the last switch cannot have been stolen: it is another account. */
static void take_back_stolen(struct calltree *t, struct thread *th, uint64_t excess)
{
	if (excess > th->total[SNAPSHOT_CPU] - th->switch_cpu + (uint64_t)CARRY_MAX)
		return;
	for (uint32_t i = 0; i < THREAD_STRETCHES && excess > 0; i++) {
		uint64_t cpu = clamp((int64_t)excess, th->stretches[i].cpu);

		take_back(t, th, th->stretches[i].node, cpu);
		excess -= cpu;
	}
}

/* Who gets the CPU time that was used between switches that are missing. */
static uint32_t missing_node(struct calltree *t, const struct thread *th)
{
	uint32_t node = th->lost ? NODE_LOST(th->root)
				 : calltree_child(t, th->root, FUNC_UNREPORTED);

	return node != NODE_NONE ? node : NODE_TRUNCATED(th->root);
}

static void settle_rest(struct calltree *t, struct thread *th, uint64_t runtime)
{
	int64_t rest = ahead(th, runtime);

	if (rest > CARRY_MAX && !th->forgive)
		charge_other(t, th, missing_node(t, th), 0, (uint64_t)rest, th->wait.why);
	else if (rest > CARRY_MAX || rest < -CARRY_MAX || th->forgive)
		adopt(th, runtime);
}

/* Charge up to ts what the scheduler's account says. lags: it is up to a tick behind. */
static void settle(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime, bool lags)
{
	uint64_t wall = take_elapsed(th, ts);

	charge_current(t, th, wall, clamp(ahead(th, runtime), wall));
	if (th->gap_wall)
		charge_other(t, th, th->gap_node, 0, clamp(ahead(th, runtime), th->gap_wall),
			     th->wait.gap_why);
	th->gap_wall = 0;
	if (ahead(th, runtime) < -NOISE && !lags)
		take_back_stolen(t, th, (uint64_t)-ahead(th, runtime));
	settle_rest(t, th, runtime);
}

/* Its first account: what it has used in all its life. */
static void settle_first(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime,
			 bool lags)
{
	uint64_t charged;

	timing_charge(t, th, ts);
	charged = th->total[SNAPSHOT_CPU] - th->switch_cpu;
	if (charged > runtime && charged - runtime > (uint64_t)NOISE && !lags)
		take_back_stolen(t, th, charged - runtime);
	adopt(th, runtime);
}

static void compare(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime, bool lags)
{
	/* An account older than the seed's: the seed's state is ahead of the events. */
	if (th->os_cpu && ts < th->seed_ts)
		th->runtime_known = false;
	th->os_cpu = false;
	if (th->runtime_known)
		settle(t, th, ts, runtime, lags);
	else
		settle_first(t, th, ts, runtime, lags);
	th->lost = false;
	forget_stretches(th);
}

/* How long it has waited in run queues is known up to the wait that ended last. */
static void split_last_wait(struct calltree *t, struct thread *th, uint64_t delay)
{
	struct thread_wait *w = &th->wait;

	if (w->delay_known && w->last_ns && delay > w->delay)
		waits_move(t, w->last_node, w->last_why, WAIT_runnable,
			   clamp((int64_t)(delay - w->delay), w->last_ns));
	w->last_ns = 0;
	w->delay = delay;
	w->delay_known = delay > 0;
}

static void begin_wait(struct calltree *t, struct thread *th, const struct event_switch *sw)
{
	split_last_wait(t, th, sw->delay);
	th->wait.why = waits_reason(sw);
	th->wait.syscall = sw->syscall;
}

/* The time up to now was charged to the current node, which waited for `before` before. */
static void end_wait(struct calltree *t, struct thread *th, struct timing *tm, uint64_t before)
{
	uint64_t now = waits_of(&t->nodes[th->node]);
	struct thread_wait *w = &th->wait;
	uint32_t nr = (uint32_t)w->syscall < WAIT_SYSCALLS ? (uint32_t)w->syscall : WAIT_SYSCALLS;

	w->last_node = th->node;
	w->last_why = w->why;
	w->last_ns = now > before ? now - before : 0;
	if (w->why == WAIT_other && waits_kept(t)) {
		tm->other[nr].ns += w->last_ns;
		tm->other[nr].n++;
	}
	w->why = WAIT_runnable;
	w->syscall = -1;
}

void timing_switch(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts,
		   const struct event_switch *sw, bool in)
{
	uint64_t before = waits_of(&t->nodes[th->node]);

	if (th->os_cpu)
		th->on_cpu = !in;
	tm->missed += th->on_cpu == in;
	/* When it left the CPU, and why, was not reported. */
	if (in && th->on_cpu)
		th->wait.why = WAIT_other;
	compare(t, th, ts, sw->runtime, false);
	th->on_cpu = in;
	if (in)
		end_wait(t, th, tm, before);
	else
		begin_wait(t, th, sw);
}

void timing_exit(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime)
{
	if (th->os_cpu)
		th->on_cpu = true;
	compare(t, th, ts, runtime, true);
	th->on_cpu = false;
}

void timing_seed(struct thread *th, uint64_t begin, uint64_t ts, bool running, uint64_t runtime)
{
	uint64_t before = ts > begin ? ts - begin : 0;

	timing_first_seen(th, ts - before);
	th->on_cpu = false;
	th->os_cpu = true;
	th->os_running = running;
	th->wait.why = running ? WAIT_runnable : WAIT_other;
	th->seed_ts = ts;
	/* A running one has been on its CPU since tracing began, as far as anyone knows. */
	adopt(th, running ? runtime - before : runtime);
	th->forgive = true;
}

void timing_os(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime)
{
	uint64_t wall;

	if (!th->os_cpu)
		return;
	wall = take_elapsed(th, ts);
	if (!th->runtime_known) {
		charge_current(t, th, wall, 0);
		defer(th, th->node, th->gap_wall + wall);
		return;
	}
	charge_current(t, th, wall, clamp(ahead(th, runtime), wall));
}

void timing_take_over(struct calltree *t, struct thread *th, uint64_t ts, bool sure)
{
	uint64_t wall = take_elapsed(th, ts);
	bool running = th->os_running && sure;

	charge_stretch(t, th, wall, running ? wall : 0);
	if (!running)
		defer(th, th->node, th->gap_wall + wall);
	th->os_cpu = false;
	th->on_cpu = true;
	th->wait.why = WAIT_runnable;
}

void timing_doubt(struct thread *th)
{
	if (th->os_running)
		th->runtime_known = false;
}

uint64_t timing_gap(const struct thread *th)
{
	return th->os_running ? th->gap_wall : 0;
}

void timing_defer(struct thread *th, uint64_t wall)
{
	defer(th, th->node, wall);
}

uint64_t timing_settle_gap(struct calltree *t, struct thread *th, uint64_t most)
{
	uint64_t cpu = th->gap_wall < most ? th->gap_wall : most;

	if (!th->gap_wall || !th->os_running)
		return 0;
	charge_other(t, th, th->gap_node, 0, cpu, th->wait.gap_why);
	th->gap_wall = 0;
	return cpu;
}

void timing_clear(struct thread *th)
{
	th->runtime_base += th->total[SNAPSHOT_CPU];
	th->cpu_cleared += th->total[SNAPSHOT_CPU];
	th->gap_wall = 0;
	th->wait.last_ns = 0;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		th->total[c] = 0;
	forget_stretches(th);
}
