// SPDX-License-Identifier: BSD-2-Clause
/* One target: see tracee.h. */
#include "session/tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "event/decode.h"
#include "session/collector.h"

/* The maximum age of the warning about hidden calls in status reports, in ns. */
#define WARN_AGAIN_NS 2000000000ull
/*
 * Closing a link takes tens of milliseconds, whatever it covers. One sweep therefore serves all
 * children that were forked within this time (ns).
 */
#define SWEEP_DELAY_NS 100000000ull

uint64_t tracee_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t tracee_unix_now(void)
{
	return clock_ns(CLOCK_REALTIME);
}

void tracee_free(struct tracee *t)
{
	if (!t)
		return;
	tracee_timeline_end(t);
	tracee_slow_end(t);
	selftest_free(t->selftest); /* it uses plan, python and target */
	calibration_free(t->calibration);
	progress_end(&t->windowed.progress);
	opcodes_free(t->opcodes);
	counting_deinit(&t->counting);
	probe_free(t->probe);
	probe_free(t->old_probe);
	profile_free(t->profile);
	inspect_free(t->inspect);
	inspect_free(t->looking);
	reference_free(t->reference);
	survey_free(t->survey);
	probe_free(t->loading);
	free(t->workers);
	inspect_result_deinit(&t->found);
	python_free(t->python);
	target_free(t->target);
	free(t);
}

/* ---- events ------------------------------------------------------------------------------ */

void tracee_sweep_child(struct tracee *t, pid_t child)
{
	t->sweep_child = child;
	if (!t->sweep_ns)
		t->sweep_ns = tracee_now() + SWEEP_DELAY_NS;
}

static void tracee_announce(struct tracee *t, const struct event *e)
{
	if (t->nnews == TRACEE_MAX_NEWS) {
		t->children.failed++;
		tracee_sweep_child(t, (pid_t)e->u.process.child);
		return;
	}
	t->news[t->nnews++] = (struct tracee_news){
		.pid = (pid_t)e->u.process.child,
		.parent = (pid_t)e->u.process.parent,
		.ts = e->ts,
		.executed = e->type == PYP_REC_EXEC,
	};
}

/*
 * Handles a fork. A vfork child shares its parent's memory until it executes, so there is nothing
 * to follow or to sweep.
 */
static void tracee_forked(struct tracee *t, const struct event *e)
{
	if (e->arg & PYP_FORK_SHARED)
		return;
	if (t->opts.follow)
		tracee_announce(t, e);
	else
		tracee_sweep_child(t, (pid_t)e->u.process.child);
}

static void tracee_exec_record(struct tracee *t, const struct event *e)
{
	if (e->u.process.child) {
		tracee_announce(t, e);
		return;
	}
	t->executed = true;
	t->exec_ns = e->ts;
	t->exec_other = e->arg & PYP_EXEC_OTHER_THREAD;
}

static void tracee_record(void *ctx, const void *data, size_t size)
{
	struct tracee *t = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK) {
		t->decode_errors++;
		return;
	}
	/* The new probe records these events as well: see tracee_hold_on. */
	if (t->until_ns && e.ts >= t->until_ns)
		return;
	if (e.type == PYP_REC_THREAD_EXIT && t->collector->probes &&
	    e.tid == (uint32_t)t->target->tid && !(e.arg & PYP_EXIT_GROUP)) {
		t->lost_hold = true;
		t->lost_hold_ns = e.ts;
	}
	if (e.type == PYP_REC_FORK)
		tracee_forked(t, &e);
	else if (e.type == PYP_REC_EXEC)
		tracee_exec_record(t, &e);
	else if (!t->collector->record || !t->collector->record(t, &e))
		profile_event(t->profile, &e);
}

/* Removes breakpoints that children have inherited; one sweep serves all children. */
static void tracee_sweep(struct tracee *t)
{
	if (!t->sweep_ns || tracee_now() < t->sweep_ns)
		return;
	t->sweep_ns = 0;
	/* EPERM: the child belongs to another user, but it exists. */
	if (probe_attached(t->probe) && (kill(t->sweep_child, 0) == 0 || errno == EPERM))
		probe_sweep_child(t->probe, t->sweep_child, NULL);
}

void tracee_drain_all(struct tracee *t)
{
	probe_drain(t->probe, 0, tracee_record, t);
}

bool tracee_drain_until(struct tracee *t, uint64_t until_ns)
{
	probe_drain_until(t->probe, until_ns, tracee_record, t);
	return tracee_pending(t) == 0;
}

uint64_t tracee_pending(const struct tracee *t)
{
	return t->probe ? probe_written(t->probe) - probe_read(t->probe) : 0;
}

uint64_t tracee_current_ns(const struct tracee *t)
{
	if (t->state == SESSION_STOPPING)
		return 0;
	return tracee_pending(t) ? t->current_ns : UINT64_MAX;
}

int tracee_drain(struct tracee *t, uint64_t until_ns)
{
	int n;

	if (t->state == SESSION_ENDED || t->state == SESSION_STOPPING)
		return 0;
	if (!t->goal_ns) {
		t->goal_ns = tracee_now();
		t->goal_at = probe_written(t->probe);
	}
	n = probe_drain_until(t->probe, until_ns, tracee_record, t);
	if (probe_read(t->probe) >= t->goal_at) {
		t->current_ns = t->goal_ns;
		t->goal_ns = 0;
	}
	tracee_sweep(t);
	if (t->state == SESSION_TRACING && probe_lost(t->probe)) {
		tracee_end(t, "the process that held its probes was killed");
		return n;
	}
	if (t->executed || t->exec_until_ns)
		tracee_executed(t);
	else if (t->lost_hold)
		tracee_hold_on(t);
	return n;
}

/* ---- life -------------------------------------------------------------------------------- */

static const struct python_stack *stack_of(const struct python_stack *v, size_t n, pid_t tid)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].tid == tid)
			return &v[i];
	return NULL;
}

/*
 * Passes the current threads and their initial stacks to the profile. Threads that block for long
 * (e.g. in a server's accept loop) produce no events, yet their frames and times belong in the
 * first snapshot.
 */
void tracee_add_initial(struct tracee *t)
{
	struct target_thread *threads = NULL;
	struct python_stack *stacks = NULL;
	size_t nthreads = 0, nstacks = 0;
	const uint64_t asked = tracee_now();
	uint64_t ts;

	if (target_threads(t->target, &threads, &nthreads, NULL) < 0)
		return;
	/* Without initial stacks, threads appear with their first events. */
	if (inspect_stacks(t->inspect, t->target->pid, &stacks, &nstacks) < 0)
		nstacks = 0;
	/* Only then is it known which threads have been waiting since before. */
	ts = tracee_now();
	if (tracee_walks(t, t->python))
		tracee_drain_all(t);
	for (size_t i = 0; i < nthreads; i++) {
		const struct python_stack *s = stack_of(stacks, nstacks, threads[i].tid);
		const struct initial_stack initial = {
			.tid = (uint32_t)threads[i].tid,
			.name = threads[i].comm,
			.running = threads[i].state == 'R',
			.runtime = threads[i].runtime,
			.asked_ns = asked,
			.frames = s ? s->frames : NULL,
			.n = s ? s->n : 0,
		};

		profile_add_initial(t->profile, ts, &initial);
	}
	python_stacks_free(stacks, nstacks);
	free(threads);
}

void tracee_set_opts(struct tracee *t, const struct target_opts *opts)
{
	t->opts = *opts;
	t->collector = collector_of(opts);
}

bool tracee_is_on(const struct tracee *t)
{
	return t->state == SESSION_TRACING || t->state == SESSION_STOPPING;
}

/* Returns how long tracing has been on since it was last started, up to `now`, in ns. */
static uint64_t window_ns(const struct tracee *t, uint64_t now)
{
	if (t->state == SESSION_STOPPING && now > t->halt_ns)
		now = t->halt_ns;
	return tracee_is_on(t) && t->started_ns && now > t->started_ns ? now - t->started_ns : 0;
}

int tracee_start(struct tracee *t, struct diag *diag)
{
	uint64_t ts = 0;
	int r;

	if (t->state == SESSION_TRACING)
		return 0;
	tracee_finish(t, 0);
	if (t->has_started)
		reference_free(TAKE_PTR(t->reference));
	if (t->state == SESSION_ENDED || !target_alive(t->target))
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "detach it, or attach another",
				"process %d has ended", t->target->pid);
	r = tracee_check_program(t, diag);
	tracee_account(t);
	tracee_taken_begin(t);
	if (!t->has_started) {
		/*
		 * The time before the first start, in which costs are measured, is not part of the
		 * profile.
		 */
		t->first_ns = tracee_now();
		t->first_unix_ns = tracee_unix_now();
	}
	if (r == 0)
		r = t->collector->start(t, &ts, diag);
	if (r < 0)
		return r;
	t->has_started = true;
	if (t->forked_ns && ts > t->forked_ns)
		t->fork_gap_ns = ts - t->forked_ns;
	t->forked_ns = 0;
	t->state = SESSION_TRACING;
	breaker_reset(&t->breaker);
	t->start_cpu_ns = t->cpu_ns;
	t->no_calls = false;
	tracee_warn_text(t);
	return 0;
}

void tracee_begin(struct tracee *t, uint64_t ts)
{
	tracee_update_cost(t);
	profile_begin(t->profile, ts);
	t->started_ns = ts;
}

void tracee_cease(struct tracee *t, uint64_t ts)
{
	profile_end(t->profile, ts);
	t->traced_ns += window_ns(t, ts);
	t->started_ns = 0;
}

void tracee_follow(struct tracee *t)
{
	t->opts.follow = true;
	probe_follow(t->probe, true);
}

/* The kernel's figures about the profile's threads. */
struct readings {
	struct target_reading *v;
	size_t n, room;
};

static void list_thread(void *ctx, uint32_t tid)
{
	struct readings *rs = ctx;

	if (rs->n == rs->room) {
		size_t room = rs->room ? 2 * rs->room : 64;
		struct target_reading *v = reallocarray(rs->v, room, sizeof(*v));

		if (!v)
			return;
		rs->v = v;
		rs->room = room;
	}
	rs->v[rs->n++] = (struct target_reading){.thread.tid = (pid_t)tid};
}

/* The CPU time of threads without a context switch while traced comes from the kernel. */
static void update_thread(struct tracee *t, const struct target_reading *r)
{
	uint32_t tid = (uint32_t)r->thread.tid;

	/*
	 * If data of a thread is kept outside the profile, its end counts only when its exit record
	 * arrives.
	 */
	if ((r->err == -ENOENT || r->err == -ESRCH) && !t->collector->sync && t->probe &&
	    target_alive(t->target))
		profile_thread_gone(t->profile, tid, probe_written(t->probe), probe_read(t->probe));
	if (r->err < 0)
		return;
	profile_set_thread_name(t->profile, tid, r->thread.comm);
	profile_update_runtime(t->profile, tid, tracee_now(), r->thread.runtime);
}

/*
 * Reads all threads in one call, which has a deadline. Figures that are not read in time stay
 * unchanged.
 */
void tracee_runtimes(struct tracee *t)
{
	struct readings rs = {0};

	if (t->executed || !target_alive(t->target))
		return;
	profile_foreach_thread(t->profile, list_thread, &rs);
	if (target_threads_update(t->target->pid, rs.v, rs.n) == 0)
		for (size_t i = 0; i < rs.n; i++)
			update_thread(t, &rs.v[i]);
	free(rs.v);
}

void tracee_release(struct tracee *t)
{
	if (!t->probe)
		return;
	probe_losses(t->probe, t->end_losses);
	t->old_latency = tracee_latency(t);
	t->old_traps = tracee_traps(t);
	probe_free(TAKE_PTR(t->probe));
	tracee_release_old(t);
}

void tracee_release_old(struct tracee *t)
{
	probe_free(TAKE_PTR(t->old_probe));
}

static void raw_losses(const struct tracee *t, uint64_t out[PYP_LOSS_MAX])
{
	if (t->probe)
		probe_losses(t->probe, out);
	else
		memcpy(out, t->end_losses, sizeof(t->end_losses));
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		out[i] += t->old_losses[i];
}

/* now: CLOCK_MONOTONIC, and the same moment as unix_now. */
static void clear_at(struct tracee *t, uint64_t now, uint64_t unix_now)
{
	raw_losses(t, t->base);
	t->latency_base = tracee_latency(t);
	t->traps_base = tracee_traps(t);
	t->samples_base = profile_samples(t->profile);
	profile_clear(t->profile, now);
	t->decode_errors = 0;
	t->misses_calls = false;
	t->traced_ns = 0;
	if (t->collector->clear)
		t->collector->clear(t);
	tracee_taken_clear(t);
	t->started_ns = t->started_ns ? now : 0;
	t->fork_gap_ns = t->exec_gap_ns = t->hold_gap_ns = 0;
	t->execs = 0;
	t->children = (struct snapshot_children){0};
	t->first_ns = now;
	t->first_unix_ns = unix_now;
	t->events_seen = 0;
}

void tracee_clear(struct tracee *t)
{
	uint64_t now = tracee_now();

	tracee_catch_up(t);
	clear_at(t, now, tracee_unix_now());
}

void tracee_catch_up(struct tracee *t)
{
	if (t->state == SESSION_TRACING)
		tracee_drain(t, 0);
	else
		tracee_finish(t, 0);
}

static int check_unwatched(const struct tracee *t, struct diag *diag)
{
	if (!t->timeline && !t->slow)
		return 0;
	return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "wait for its end",
			"%s of process %d %s already being recorded",
			t->timeline ? "a timeline" : "slow calls", t->target->pid,
			t->timeline ? "is" : "are");
}

void tracee_report_raised(const struct tracee *t)
{
	if (t->probe)
		probe_report_raised(t->probe, t->timeline && timeline_needs_raised(t->timeline));
}

static int check_raised(const struct tracee *t, const struct timeline *timeline, struct diag *diag)
{
	if (!timeline_needs_raised(timeline) || layout_distinguishes_raising(&t->python->layout))
		return 0;
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE,
			"use slow:PATTERN:DURATION or cpu:PERCENT%",
			"process %d runs Python %u.%u: exceptions that leave a function are known "
			"from 3.8 on",
			t->target->pid, t->python->layout.major, t->python->layout.minor);
}

int tracee_timeline_begin(struct tracee *t, struct timeline *timeline, struct diag *diag)
{
	int r = check_unwatched(t, diag);

	if (r == 0)
		r = check_raised(t, timeline, diag);
	if (r < 0)
		return r;
	r = timeline_add(timeline, (uint32_t)t->target->pid, t->profile, &t->timeline_source);
	if (r < 0)
		return diag_errno(diag, -r, "cannot record a timeline of process %d",
				  t->target->pid);
	t->timeline = timeline;
	tracee_report_raised(t);
	return 0;
}

void tracee_timeline_end(struct tracee *t)
{
	if (t->timeline)
		timeline_end_source(t->timeline, t->timeline_source, tracee_now());
	t->timeline = NULL;
	tracee_report_raised(t);
}

int tracee_slow_begin(struct tracee *t, struct slow *slow, struct diag *diag)
{
	int r = check_unwatched(t, diag);

	if (r < 0)
		return r;
	r = slow_add(slow, (uint32_t)t->target->pid, t->profile, &t->slow_source);
	if (r < 0)
		return diag_errno(diag, -r, "cannot record slow calls of process %d",
				  t->target->pid);
	t->slow = slow;
	return 0;
}

void tracee_slow_end(struct tracee *t)
{
	if (t->slow)
		slow_end_source(t->slow, t->slow_source, tracee_now());
	t->slow = NULL;
}

/* ---- reports ----------------------------------------------------------------------------- */

void tracee_losses(const struct tracee *t, uint64_t out[PYP_LOSS_MAX])
{
	raw_losses(t, out);
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		out[i] -= t->base[i];
}

static uint64_t traced_until(const struct tracee *t, uint64_t now)
{
	return t->traced_ns + window_ns(t, now);
}

static void sync_data(struct tracee *t)
{
	if (t->collector->sync)
		t->collector->sync(t);
}

void tracee_sample_rate(struct tracee *t, uint64_t now_ns)
{
	uint64_t events;

	if (t->state == SESSION_TRACING)
		sync_data(t);
	events = profile_counts(t->profile).events;
	tracee_take_cost(t);
	if (t->opts.light)
		inspect_free(TAKE_PTR(t->inspect)); /* its start, or an exec, was the last use */
	else if (now_ns > t->warned_ns + WARN_AGAIN_NS)
		tracee_warn(t);
	if (t->rate_ns && now_ns > t->rate_ns && events >= t->events_seen)
		t->events_per_s = (uint64_t)((double)(events - t->events_seen) * 1e9 /
					     (double)(now_ns - t->rate_ns));
	t->events_seen = events;
	t->rate_ns = now_ns;
	tracee_sample_overhead(t);
}

/* Copies text, truncated to size bytes. */
static void copy_cut(char *out, size_t size, const char *text)
{
	size_t n = strnlen(text, size - 1);

	memcpy(out, text, n);
	out[n] = '\0';
}

/* Returns how much of the target's time the windows covered. */
static struct snapshot_windows tracee_windows(const struct tracee *t, uint64_t now)
{
	struct snapshot_windows w = {0};

	if (t->collector->describe)
		t->collector->describe(t, now, &w);
	return w;
}

void tracee_turn(struct tracee *t)
{
	if (t->collector->turn)
		t->collector->turn(t);
}

uint64_t tracee_due_us(const struct tracee *t)
{
	return t->collector->due_us ? t->collector->due_us(t) : UINT64_MAX;
}

void tracee_status(const struct tracee *t, struct session_status *ret)
{
	const struct profile_counts c = profile_counts(t->profile);
	uint64_t now = tracee_now();

	*ret = (struct session_status){
		.pid = t->target->pid,
		.state = t->state,
		.mode = {t->opts.mode.mode, target_opts_rate(&t->opts)},
		.light = t->opts.light,
		.forecast = t->forecast,
		.traced_ns = traced_until(t, now),
		.events = c.events,
		.unmatched = c.unmatched,
		.unseen = c.unseen,
		.unstarted = c.unstarted,
		.events_per_s = t->state == SESSION_TRACING ? t->events_per_s : 0,
		.threads = c.threads,
		.funcs = c.funcs,
		.nodes = c.nodes,
		.pending = tracee_pending(t),
		.cpu_ns = t->cpu_ns,
		.mechanism = probe_mechanism_name(t->mechanism),
		.follows = t->opts.follow,
		.parent = t->parent,
		.execs = t->execs,
		.fork_gap_ns = t->fork_gap_ns,
		.exec_gap_ns = t->exec_gap_ns,
		.children = t->children,
	};
	ret->overhead = tracee_overhead_lately(t);
	tracee_overhead(t, &ret->overhead_ns, &ret->own_cpu_ns);
	ret->windows = tracee_windows(t, now);
	tracee_losses(t, ret->losses);
	ret->lost = ret->losses[PYP_LOSS_lost_events];
	copy_cut(ret->cmdline, sizeof(ret->cmdline), t->target->cmdline);
	copy_cut(ret->python_version, sizeof(ret->python_version), t->python->version);
	copy_cut(ret->python_file, sizeof(ret->python_file), t->python->file);
	python_build_id_hex(t->python, ret->build_id);
	copy_cut(ret->end_reason, sizeof(ret->end_reason), t->end_reason);
	copy_cut(ret->self_test, sizeof(ret->self_test), t->self_test);
	strangers_warnings(t, ret->warning, sizeof(ret->warning));
}

static const char *mechanism_text(const struct tracee *t)
{
	return t->collector->mechanism ? t->collector->mechanism
				       : probe_mechanism_text(t->mechanism);
}

/* Its result, and where the cost of hits comes from that was not measured on this build. */
static const char *self_test_text(const struct tracee *t, struct snapshot *s, bool costs)
{
	const char *source = t->self_test_ns > 0 ? "measured by the self-test" : "assumed";
	char text[sizeof(t->self_test) + 64];

	if (!costs || (t->cost.known && !t->cost_of_other))
		return snapshot_str(s, t->self_test);
	if (t->cost.known)
		source = "measured on another build";
	snprintf(text, sizeof(text), "%s; cost of a hit: %s", t->self_test, source);
	return snapshot_str(s, text);
}

int tracee_snapshot(struct tracee *t, struct snapshot *s, struct snapshot_target *slot)
{
	char hex[PYTHON_BUILD_ID_HEX], warnings[sizeof(t->warning) + STRANGERS_TEXT];
	struct cost cost;
	uint64_t now;
	double scale;

	tracee_take_cost(t);
	cost = t->collector->stacks ? tracee_cost(t) : t->cost;
	if (t->state == SESSION_TRACING) {
		sync_data(t);
		tracee_runtimes(t);
		if (profile_waits_since(t->profile, tracee_now()))
			tracee_add_initial(t);
	}
	/* Later, threads wait on stacks that are not known. */
	now = t->state == SESSION_ENDED ? t->last_ns : tracee_now();
	if (t->collector->reconcile)
		t->collector->reconcile(t);
	if (!t->opts.light)
		tracee_warn(t);
	strangers_warnings(t, warnings, sizeof(warnings));
	tracee_taken_read(t);
	scale = tracee_scale(t, NULL);
	python_build_id_hex(t->python, hex);
	*slot = (struct snapshot_target){
		.pid = (uint32_t)t->target->pid,
		.cmdline = snapshot_str(s, t->target->cmdline),
		.exe = snapshot_str(s, t->target->exe),
		.python_file = snapshot_str(s, t->python->file),
		.python_version = snapshot_str(s, t->python->version),
		.build_id = snapshot_str(s, hex),
		.mechanism = snapshot_str(s, mechanism_text(t)),
		.warnings = snapshot_str(s, warnings),
		.mode = t->opts.mode.mode,
		.builtins = t->opts.builtins,
		.misses_calls = t->misses_calls,
		.alive = t->state != SESSION_ENDED,
		.tracing = t->state == SESSION_TRACING,
		.follows = t->opts.follow,
		.parent = (uint32_t)t->parent,
		.execs = t->execs,
		.fork_gap_ns = t->fork_gap_ns,
		.exec_gap_ns = t->exec_gap_ns,
		.children = t->children,
		.start_ns = t->first_ns,
		.end_ns = now,
		.start_unix_ns = t->first_unix_ns,
		.end_unix_ns = t->first_unix_ns + (now - t->first_ns),
		.traced_ns = traced_until(t, now),
		.decode_errors = t->decode_errors,
		.cost = cost_scaled(&cost, scale),
		.cost_scale = scale,
		.windows = tracee_windows(t, now),
		.waits.gil_known = t->gils > 0,
	};
	tracee_overhead(t, &slot->overhead_ns, &slot->own_cpu_ns);
	tracee_losses(t, slot->losses);
	if (t->collector->report)
		t->collector->report(t, slot);
	slot->self_test = self_test_text(t, s, slot->cost.known);
	return profile_snapshot(t->profile, now, slot->pid, s, slot);
}

int tracee_cut(struct tracee *t, struct snapshot *s, struct snapshot_target *slot)
{
	int r = tracee_snapshot(t, s, slot);

	if (r == 0)
		clear_at(t, slot->end_ns, slot->end_unix_ns);
	return r;
}
