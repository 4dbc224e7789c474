// SPDX-License-Identifier: BSD-2-Clause
/*
 * How CPU time is derived. Events carry wall time only, because reading a thread's CPU time at each
 * event would cost more than everything else. The ring also contains the thread's context switches,
 * in order, each with the scheduler's run time of the thread.
 *
 * - On a CPU, CPU time advances with wall time. Off the CPU it stands still.
 * - At every switch, the scheduler's run time is compared with the CPU time charged since the run
 *   time was first known. The interval that ends there (from the thread's last event) absorbs the
 *   difference, between zero and its own length. A remainder is not lost: both sides of the
 *   comparison are totals, so the next one includes it.
 * - If charged CPU time exceeds the scheduler's run time by more than NOISE, a hypervisor had the
 *   CPU meanwhile, which the scheduler accounts for and events do not show. Stolen time comes in
 *   pieces far longer than the usual time between two events, so it is subtracted where the longest
 *   intervals since the last switch were charged. Clocks of stacks are not turned back: activations
 *   that ran then keep the time, so the longest of them may exceed their sum.
 * - A remainder above CARRY_MAX means that switches are missing. Missing CPU time is charged to
 *   "(lost)" if events were lost since the last comparison, and otherwise to "(switch not
 *   reported)", because some kernels do not report all switches. Excess CPU time that no interval
 *   can absorb stays: the run time is adopted as the new base, and the case is counted.
 *
 * A thread that is first seen by an event is on a CPU; its run time is unknown before its first
 * switch. An event of a thread that is believed to be off its CPU proves that the kernel did not
 * report its switch-in. (One such kernel does not report when a thread of its init process leaves a
 * CPU, and therefore not the switch to the next thread either.)
 *
 * At that first switch, too, more may have been charged than the thread can have used: more than
 * its run time since its start, the only bound for a new thread, or more than since its initial
 * stack, whose run time may be one tick old and is therefore never too high.
 *
 * Three kinds of time have a CPU share that only the next switch reveals: a gap (events were lost),
 * a blocked thread's time up to its first event, and the time before an unreported switch-in.
 * gap_wall and gap_node store that time and the node to charge.
 */
#include "stack/timing.h"

#include <string.h>

#include "stack/waits.h"
#include "stats/func.h"

#define CARRY_MAX ((int64_t)1000000) /* ns; far more than the two clocks differ */
#define NOISE	  ((int64_t)10000)   /* ns; the clocks differ by less from switch to switch */

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

/* Charges a node other than the current one, so the current stack's clocks stand still. */
static void charge_other(struct calltree *t, struct thread *th, uint32_t node, uint64_t wall,
			 uint64_t cpu, enum wait_reason why)
{
	charge_node(t, th, node, wall, cpu, why);
	th->cur.clock[SNAPSHOT_WALL] += wall;
	th->cur.clock[SNAPSHOT_CPU] += cpu;
}

/* Returns and consumes the ns up to ts. Never negative, whatever the timestamps are. */
static uint64_t take_elapsed(struct thread *th, uint64_t ts)
{
	uint64_t d;

	if (ts <= th->last_ts)
		return 0;
	d = ts - th->last_ts;
	th->last_ts = ts;
	return d;
}

/* Keeps the longest intervals, longest first. */
static void keep_interval(struct thread *th, uint64_t cpu)
{
	uint32_t i = THREAD_INTERVALS - 1;

	for (; i > 0 && th->intervals[i - 1].cpu < cpu; i--)
		th->intervals[i] = th->intervals[i - 1];
	th->intervals[i] = (struct cpu_interval){.cpu = cpu, .node = th->node};
}

static void forget_intervals(struct thread *th)
{
	memset(th->intervals, 0, sizeof(th->intervals));
	th->switch_cpu = th->total[SNAPSHOT_CPU];
}

static inline void charge_interval(struct calltree *t, struct thread *th, uint64_t wall,
				   uint64_t cpu)
{
	charge_current(t, th, wall, cpu);
	if (__builtin_expect(cpu > th->intervals[THREAD_INTERVALS - 1].cpu, 0))
		keep_interval(th, cpu);
}

/* Returns the ns charged. */
static inline uint64_t charge(struct calltree *t, struct thread *th, uint64_t ts)
{
	uint64_t wall = take_elapsed(th, ts);

	charge_interval(t, th, wall, th->on_cpu ? wall : 0);
	return wall;
}

void timing_charge(struct calltree *t, struct thread *th, uint64_t ts)
{
	charge(t, th, ts);
}

/* If that is longer than the interval up to the next event, the next event comes before last_ts. */
void timing_skip(struct thread *th, uint64_t ts, uint64_t ns)
{
	if (ts < th->last_ts)
		return; /* the initial stack is from later */
	th->last_ts += ns;
	th->runtime_base += ns;
}

static void defer(struct thread *th, uint32_t node, uint64_t wall)
{
	th->gap_node = node;
	th->gap_wall = wall;
	th->wait.gap_why = th->wait.why;
}

void timing_keep_longest(struct timing *tm, const struct thread *th, enum wait_reason why,
			 const struct timing_waited *waited)
{
	const struct long_wait wait = {
		.ns = waited->ns,
		.end_ts = th->last_ts,
		.tid = th->tid,
		.func = waited->func,
		.syscall = th->wait.syscall,
		.fd = th->wait.fd,
	};

	if (waited->ns)
		longest_add(&tm->longest, why, &wait);
}

void timing_count_other(struct timing *tm, const struct thread *th, uint64_t ns)
{
	const uint32_t syscall = (uint32_t)th->wait.syscall;
	const uint32_t nr = syscall < WAIT_SYSCALLS ? syscall : WAIT_SYSCALLS;

	tm->other[nr].ns += ns;
	tm->other[nr].n++;
}

/* The last `waited` ns were charged to the current node, for the reason that ends now. */
static void end_wait(struct calltree *t, struct thread *th, struct timing *tm, uint64_t waited)
{
	const struct timing_waited last = {waited, t->nodes[th->node].func};
	struct thread_wait *w = &th->wait;

	w->last_node = th->node;
	w->last_why = w->why;
	w->last_ns = waited;
	if (waits_booked(t))
		timing_keep_longest(tm, th, (enum wait_reason)w->why, &last);
	if (w->why == WAIT_other && waits_booked(t))
		timing_count_other(tm, th, waited);
	w->why = WAIT_runnable;
	w->syscall = w->fd = -1;
}

bool timing_event(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts)
{
	uint64_t wall = charge(t, th, ts);

	if (__builtin_expect(th->on_cpu, 1))
		return false;
	th->on_cpu = true;
	if (th->runtime_known) {
		tm->missed++;
		defer(th, th->node, wall);
	}
	end_wait(t, th, tm, wall);
	return true;
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

void timing_first_pass(struct thread *th, uint64_t ts, bool on_cpu)
{
	th->last_ts = ts;
	th->on_cpu = on_cpu;
	th->runtime_known = th->forgive = th->os_cpu = th->lost = false;
	th->gap_wall = 0;
	forget_intervals(th);
	th->initial_ts = 0;
}

void timing_pass(struct calltree *t, struct thread *th, uint64_t ts, bool on_cpu)
{
	charge(t, th, ts);
	th->on_cpu = on_cpu;
}

void timing_first_seen(struct thread *th, uint64_t ts)
{
	timing_first_pass(th, ts, true);
	th->wait = (struct thread_wait){.why = WAIT_runnable, .syscall = -1, .fd = -1};
}

static void adopt(struct thread *th, uint64_t runtime)
{
	th->runtime_base = runtime - th->total[SNAPSHOT_CPU];
	th->runtime_known = true;
	th->forgive = false;
}

/* Returns by how much the scheduler's run time exceeds the charged CPU time. */
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

/* The current stack's clocks stand still, and CPU time reported to a watcher is not revised. */
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

/*
 * An excess above what was charged since the last switch cannot be stolen time; the run time has
 * another base.
 */
static void take_back_stolen(struct calltree *t, struct thread *th, uint64_t excess)
{
	if (excess > th->total[SNAPSHOT_CPU] - th->switch_cpu + (uint64_t)CARRY_MAX)
		return;
	for (uint32_t i = 0; i < THREAD_INTERVALS && excess > 0; i++) {
		uint64_t cpu = clamp((int64_t)excess, th->intervals[i].cpu);

		take_back(t, th, th->intervals[i].node, cpu);
		excess -= cpu;
	}
}

/* Returns the node to charge for CPU time used between unreported switches. */
static uint32_t missing_node(struct calltree *t, const struct thread *th)
{
	uint32_t node = th->lost ? NODE_LOST(th->root)
				 : calltree_child(t, th->root, FUNC_UNREPORTED);

	return node != NODE_NONE ? node : NODE_TRUNCATED(th->root);
}

static void reconcile_rest(struct calltree *t, struct thread *th, uint64_t runtime)
{
	int64_t rest = ahead(th, runtime);

	if (rest > CARRY_MAX && !th->forgive)
		charge_other(t, th, missing_node(t, th), 0, (uint64_t)rest, th->wait.why);
	else if (rest > CARRY_MAX || rest < -CARRY_MAX || th->forgive)
		adopt(th, runtime);
}

/*
 * Charges the time up to ts according to the scheduler's run time. lags: the run time is up to one
 * tick behind.
 */
static void reconcile(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime,
		      bool lags)
{
	uint64_t wall = take_elapsed(th, ts);

	charge_current(t, th, wall, clamp(ahead(th, runtime), wall));
	if (th->gap_wall)
		charge_other(t, th, th->gap_node, 0, clamp(ahead(th, runtime), th->gap_wall),
			     th->wait.gap_why);
	th->gap_wall = 0;
	if (ahead(th, runtime) < -NOISE && !lags)
		take_back_stolen(t, th, (uint64_t)-ahead(th, runtime));
	reconcile_rest(t, th, runtime);
}

/* Handles the thread's first run time, which counts from its start. */
static void reconcile_first(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime,
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
	/* A run time older than the initial stack's: the initial state is ahead of the events. */
	if (th->os_cpu && ts < th->initial_ts)
		th->runtime_known = false;
	th->os_cpu = false;
	if (th->runtime_known)
		reconcile(t, th, ts, runtime, lags);
	else
		reconcile_first(t, th, ts, runtime, lags);
	th->lost = false;
	forget_intervals(th);
}

/* The time in run queues is known up to the end of the last wait; moves that part to its reason. */
static void split_last_wait(struct calltree *t, struct thread *th, uint64_t delay)
{
	struct thread_wait *w = &th->wait;

	if (w->delay_known && !w->delay_wrong && w->last_ns && delay > w->delay)
		waits_move(t, w->last_node, w->last_why, WAIT_runnable,
			   clamp((int64_t)(delay - w->delay), w->last_ns));
	w->last_ns = 0;
	w->delay = delay;
	w->delay_known = delay > 0;
	w->delay_wrong = false;
}

static void begin_wait(struct calltree *t, struct thread *th, const struct event_switch *sw)
{
	split_last_wait(t, th, sw->delay);
	th->wait.why = waits_reason(sw);
	th->wait.syscall = sw->syscall;
	th->wait.fd = wait_takes_fd(sw->syscall) ? (int32_t)sw->arg[0] : -1;
}

bool timing_switch(struct calltree *t, struct thread *th, struct timing *tm, uint64_t ts,
		   const struct event_switch *sw, bool in)
{
	uint64_t before = waits_of(&t->nodes[th->node]), now;
	bool waited;

	if (th->os_cpu)
		th->on_cpu = !in;
	/* A thread that leaves a CPU although it has none: that it got one was not reported. */
	waited = in || !th->on_cpu;
	tm->missed += th->on_cpu == in;
	/* The time and reason of its switch-out were not reported. */
	if (in && th->on_cpu)
		th->wait.why = WAIT_other;
	compare(t, th, ts, sw->runtime, false);
	th->on_cpu = in;
	now = waits_of(&t->nodes[th->node]);
	if (waited)
		end_wait(t, th, tm, now > before ? now - before : 0);
	if (!in)
		begin_wait(t, th, sw);
	return waited;
}

void timing_delay_wrong(struct thread *th, struct timing *tm)
{
	tm->unsplit += !th->wait.delay_wrong;
	th->wait.delay_wrong = true;
}

void timing_exit(struct calltree *t, struct thread *th, uint64_t ts, uint64_t runtime)
{
	if (th->os_cpu)
		th->on_cpu = true;
	compare(t, th, ts, runtime, true);
	th->on_cpu = false;
}

void timing_initial(struct thread *th, uint64_t begin, uint64_t ts, bool running, uint64_t runtime)
{
	uint64_t before = ts > begin ? ts - begin : 0;

	timing_first_seen(th, ts - before);
	th->on_cpu = false;
	th->os_cpu = true;
	th->os_running = running;
	th->wait.why = running ? WAIT_runnable : WAIT_other;
	th->initial_ts = ts;
	/* A running thread is assumed to have been on its CPU since tracing began. */
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

void timing_take_over(struct calltree *t, struct thread *th, uint64_t ts)
{
	uint64_t wall = take_elapsed(th, ts);

	charge_interval(t, th, wall, th->os_running ? wall : 0);
	if (!th->os_running)
		defer(th, th->node, th->gap_wall + wall);
	th->os_cpu = false;
	th->on_cpu = true;
	th->wait.why = WAIT_runnable;
}

void timing_clear(struct thread *th)
{
	th->runtime_base += th->total[SNAPSHOT_CPU];
	th->cpu_cleared += th->total[SNAPSHOT_CPU];
	th->gap_wall = 0;
	th->wait.last_ns = 0;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		th->total[c] = 0;
	forget_intervals(th);
}
