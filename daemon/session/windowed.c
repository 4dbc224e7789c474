// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of a target whose probes are limited: it is sampled all the time, as in mode sample, and its
 * calls are traced as long as the limit allows it (a stretch), or else for a moment (a window). windows.c
 * decides when, accuracy/ extrapolates from what was seen; this file connects both: it handles the
 * probe and the profile at the begin and end of a window, and accounts for the time in between
 * (gaps).
 *
 * A window begins as tracing does, with the initial stacks of the threads, and ends as tracing
 * does: functions that are still running leave the stack without having returned. The CPU clock is
 * read at both moments, so that the CPU time of each gap is known.
 *
 * Samples that hit the probes' own time are dropped, and their number in windows shows what hits really
 * cost in this process: `times` the measured cost.
 */
#include <errno.h>
#include <math.h>

#include "accuracy/evidence.h"
#include "base/priority.h"
#include "session/collector.h"
#include "session/tracee.h"

/*
 * The time in ns that opening and closing a window takes from the target: a fixed part, and per
 * site two interrupts on each of its CPUs. Includes the hits that are not counted while probes are
 * being attached and detached.
 */
#define LINK_NS	     150000.0
#define LINK_SITE_NS 30000.0

/* Before, the CPU usage is not known: first windows are short ones then, as most processes wait. */
#define KNOWN_NS     20000000ull
#define UNKNOWN_CPUS 0.1
/* As many samples would be as certain as the cost that was measured in another process: 1 / sqrt(16) = 25 %. */
#define PRIOR_SAMPLES 16.0
/* The maximum time spent reading a closed window at once, in ns. */
#define READ_NS 2000000ull

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * Updates the budget, which also pays for the slowdown after hits. The windows' own accounts already
 * include opening and closing.
 */
static void account(struct tracee *t, uint64_t now)
{
	const uint64_t slowdown = (uint64_t)cost_cold((double)t->overhead_ns);

	windows_account(&t->windowed.ctl, now, t->cpu_ns,
			windowed_taken(t) - t->windowed.links_ns + slowdown);
}

/* Returns why there are no samples, human-readable; "": there are. */
static const char *unsampled(const struct tracee *t)
{
	int r = t->probe ? probe_samples(t->probe) : 1;

	if (r > 0)
		return "";
	return r < 0 ? "the kernel refuses the sampling timers"
		     : "no thread list found in this build";
}

/*
 * Adds the CPU time that the target itself has used since the last call, by the last reading of its
 * clock.
 */
static void count_cpu_read(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	uint64_t taken;

	tracee_account_events(t);
	taken = windowed_taken(t);
	profile_own_cpu(t->profile, (double)more(t->cpu_ns, w->since_cpu_ns) -
					    (double)more(taken, w->since_taken_ns));
	w->since_cpu_ns = t->cpu_ns;
	w->since_taken_ns = taken;
}

/* What it has used in the stretch that is open, by the last reading of its clock. */
static uint64_t stretch_cpu(const struct tracee *t)
{
	const struct windowed *w = &t->windowed;

	return more(more(t->cpu_ns, w->since_cpu_ns), more(windowed_taken(t), w->since_taken_ns));
}

/* In a stretch, it is in the figures. */
static void skip_cpu(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	w->stretches_cpu_ns += stretch_cpu(t);
	w->since_cpu_ns = t->cpu_ns;
	w->since_taken_ns = windowed_taken(t);
	profile_set_stretches(t->profile, w->stretches_cpu_ns);
}

static void count_cpu(struct tracee *t)
{
	tracee_read_cpu(t);
	count_cpu_read(t);
}

static void count_gap(struct tracee *t, uint64_t now)
{
	struct windowed *w = &t->windowed;

	count_cpu(t);
	profile_gap(t->profile, more(now, w->since_ns));
	w->since_ns = now;
}

/* The factor on the measured cost of hits that samples show, and its relative standard error. */
static double times_of(const struct windowed *w, double *ret_error)
{
	*ret_error = 1 / sqrt(PRIOR_SAMPLES + w->traps);
	return (PRIOR_SAMPLES + w->traps) / (PRIOR_SAMPLES + w->expected);
}

static uint64_t lost_events(const struct tracee *t)
{
	uint64_t losses[PYP_LOSS_MAX];

	probe_losses(t->probe, losses);
	return losses[PYP_LOSS_lost_events];
}

static int open_window(struct tracee *t, struct diag *diag)
{
	struct windowed *w = &t->windowed;
	struct cost cost = tracee_cost(t);
	double error;
	uint64_t ts;
	int r;

	/* Records from the last window must not count for this one. */
	tracee_drain_all(t);
	priority_raise();
	r = probe_window_open(t->probe, &ts, diag);
	if (r < 0) {
		priority_lower();
		return r;
	}
	/* The first window begins when tracing starts, so there is no gap before it. */
	if (w->since_ns)
		count_gap(t, ts);
	else
		count_cpu(t);
	w->links_ns += (uint64_t)windows_link_ns(&w->ctl);
	w->opened_overhead_ns = t->overhead_ns;
	w->opened_cpu_ns = t->cpu_ns;
	w->opened_traps = tracee_traps(t);
	w->opened_lost = lost_events(t);
	w->opened_latency = tracee_latency(t);
	w->opened_scale = tracee_scale(t, NULL);
	w->opened_times = times_of(w, &error);
	windows_opened(&w->ctl, ts);
	tracee_begin(t, ts);
	cost = cost_scaled(&cost, w->opened_scale * w->opened_times);
	profile_limit(t->profile, &(struct profile_limit){w->ctl.length_ns, &cost, w->ctl.whole});
	/*
	 * Threads without an event matter to a stretch only. Their stacks are read by another process, which may
	 * have to wait for a CPU.
	 */
	if (!w->ctl.length_ns || !w->since_ns)
		tracee_add_initial(t);
	return 0;
}

/* taken_ns: the probes' time in the window, by the costs that limited it. */
static void learn_times(struct tracee *t, uint64_t taken_ns)
{
	struct windowed *w = &t->windowed;

	/* Hits whose records were lost took their time, too. */
	if (probe_samples(t->probe) <= 0 || !t->period_ns || lost_events(t) != w->opened_lost)
		return;
	w->traps += (double)more(w->closed_traps, w->opened_traps);
	w->expected += (double)taken_ns / w->opened_times / (double)t->period_ns;
}

/*
 * Returns the factor on the cost of hits in the window by their latency. With too few measurements of it, it is
 * the one from when the window opened.
 */
static double scale_of_window(const struct tracee *t)
{
	const struct windowed *w = &t->windowed;

	if (tracee_latency(t).n - w->opened_latency.n < COST_LATENCIES)
		return w->opened_scale;
	return tracee_scale(t, &w->opened_latency);
}

/*
 * Called when all records of the closed window have been processed. last: nothing is observed any more, so a
 * stretch without a gap before is all that there is.
 */
static void end_window(struct tracee *t, bool last)
{
	struct windowed *w = &t->windowed;
	const uint64_t ts = w->closed_ns;
	const double scale = scale_of_window(t);
	const struct cost measured = tracee_cost(t), cost = cost_scaled(&measured, scale);
	const double factor = scale / w->opened_scale;
	struct snapshot_windows so_far;
	uint64_t shown, own, taken, tail;
	double error;

	w->closed_ns = 0;
	priority_lower();
	/*
	 * The kernel's run times are read after the window was closed, and the time since then
	 * would be a large part of a short window.
	 */
	if (!w->ctl.length_ns)
		tracee_runtimes(t);
	t->cpu_ns = w->closed_cpu_ns;
	tracee_account_events(t);
	taken = more(t->overhead_ns, w->opened_overhead_ns);
	learn_times(t, taken);
	tail = profile_tail_ns(t->profile, ts);
	shown = profile_window_end(t->profile, ts, factor);
	taken = (uint64_t)(factor * (double)taken);
	own = more(more(ts, t->started_ns), taken);
	if (w->ctl.length_ns) {
		count_cpu_read(t);
		profile_fold(t->profile,
			     &(struct evidence_window){
				     .length_ns = (double)shown,
				     .cpu_ns = (double)more(w->closed_cpu_ns, w->opened_cpu_ns),
				     .cost = &cost,
				     .times = times_of(w, &error),
			     });
		/* It was closed late: the time beyond its planned length belongs to the next gap. */
		profile_gap(t->profile, more(own, shown));
	} else {
		profile_windows(t->profile, &so_far);
		profile_keep(t->profile,
			     (last && !so_far.sampled) ||
				     profile_is_light(t->profile,
						      more(t->cpu_ns, w->since_cpu_ns)));
		if (!last && !so_far.sampled)
			w->whole_ns = w->span_ns + more(ts, w->begun_ns);
		skip_cpu(t);
	}
	t->traced_ns += more(ts, t->started_ns);
	t->started_ns = 0;
	w->since_ns = ts;
	account(t, ts);
	windows_closed(&w->ctl, ts, own > shown ? own : shown, tail);
}

static void close_window(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	probe_window_silence(t->probe, &w->closed_ns);
	w->closed_at = probe_written(t->probe);
	tracee_read_cpu(t);
	w->closed_cpu_ns = t->cpu_ns;
	w->closed_traps = tracee_traps(t);
	probe_window_close(t->probe);
}

/* A window that was closed late may have recorded more than can be read at once. */
static void read_window(struct tracee *t, uint64_t now)
{
	/* What has been written since then does not belong to it. */
	if (tracee_drain_until(t, now + READ_NS) || probe_read(t->probe) >= t->windowed.closed_at)
		end_window(t, false);
}

static void windowed_stop(struct tracee *t)
{
	if (t->windowed.ctl.open && !t->windowed.closed_ns)
		close_window(t);
}

/* Starts the accounts of CPU time and probe cost at the current moment. */
static void begin_accounts(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	tracee_account(t);
	w->since_cpu_ns = t->cpu_ns;
	w->since_taken_ns = windowed_taken(t);
	w->opened_overhead_ns = t->overhead_ns;
	w->opened_cpu_ns = t->cpu_ns;
	w->opened_latency = tracee_latency(t);
	/* Of a window that is closed, everything is from before. */
	w->opened_traps = w->closed_ns ? w->closed_traps : tracee_traps(t);
	w->begun_ns = tracee_now();
}

/* The CPUs that it has used since it is known, or that windows before have measured. */
static double cpus_so_far(struct tracee *t)
{
	uint64_t now = tracee_now();

	if (t->windowed.ctl.seen_ns)
		return t->windowed.ctl.cpus;
	tracee_read_cpu(t);
	if (now < t->known_ns + KNOWN_NS)
		return UNKNOWN_CPUS;
	return (double)more(t->cpu_ns, t->known_cpu_ns) / (double)(now - t->known_ns);
}

static int windowed_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	struct windowed *w = &t->windowed;
	uint64_t failed = w->ctl.failed;
	int r;

	tracee_find_gils(t);
	r = probe_attach_windows(t->probe, diag);
	if (r < 0)
		return r;
	profile_in_windows(t->profile, tracee_now());
	windows_init(&w->ctl, target_opts_limit(&t->opts),
		     LINK_NS + LINK_SITE_NS * (double)t->plan.nsites, cpus_so_far(t),
		     tracee_now() ^ (uint64_t)t->target->pid << 32);
	/* A stop keeps the profile, so the number of failed openings stays as well. */
	w->ctl.failed = failed;
	windowed_marks_begin(t);
	begin_accounts(t);
	w->since_ns = 0;
	account(t, w->begun_ns);
	r = open_window(t, diag);
	if (r < 0) {
		probe_detach(t->probe);
		return r;
	}
	*ret_ts = t->started_ns;
	return 0;
}

static void windowed_halt(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	uint64_t now = tracee_now();

	windowed_stop(t);
	tracee_drain_all(t);
	if (w->closed_ns) {
		now = w->closed_ns;
		end_window(t, true);
	} else if (probe_attached(t->probe)) {
		count_gap(t, now);
	}
	windowed_marks_report(t);
	progress_end(&w->progress);
	probe_detach(t->probe);
	tracee_drain_all(t);
	profile_end(t->profile, now);
	w->span_ns += more(now, w->begun_ns);
	w->begun_ns = now;
}

static void windowed_clear(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	begin_accounts(t);
	w->since_ns = w->begun_ns;
	w->span_ns = w->whole_ns = w->stretches_cpu_ns = 0;
	profile_set_stretches(t->profile, 0);
	w->ctl.failed = 0;
	windowed_marks_clear(t);
}

static void windowed_reconcile(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	const bool open = t->state == SESSION_TRACING && w->ctl.open && !w->closed_ns;
	double error, times = times_of(w, &error);

	if (t->state == SESSION_TRACING && probe_attached(t->probe) && !w->ctl.open)
		count_gap(t, tracee_now());
	if (t->state == SESSION_TRACING)
		windowed_marks_report(t);
	if (open)
		tracee_read_cpu(t);
	if (open && !w->ctl.length_ns)
		profile_set_stretches(t->profile, w->stretches_cpu_ns + stretch_cpu(t));
	profile_set_accuracy(t->profile,
			     open && profile_is_light(t->profile, more(t->cpu_ns, w->since_cpu_ns)),
			     times, error);
}

static void windowed_turn(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	uint64_t now = tracee_now();
	enum windows_act act;

	/* The probes are detached after an exec until the new program is known. */
	if (!probe_attached(t->probe))
		return;
	if (w->closed_ns) {
		read_window(t, now);
		return;
	}
	tracee_account(t);
	account(t, now);
	if (!w->ctl.open)
		count_gap(t, now);
	if (!w->ctl.open && windowed_marks_turn(t))
		return;
	act = w->ctl.open && windowed_marks_unfit(t)
		      ? WINDOWS_CLOSE
		      : windows_decide(&w->ctl, now,
				       (struct windows_shown){profile_window_is_over(t->profile),
							      profile_window_lasts(t->profile)});
	switch (act) {
	case WINDOWS_CUT:
		profile_window_cut(t->profile);
		break;
	case WINDOWS_CLOSE:
		close_window(t);
		read_window(t, now);
		break;
	case WINDOWS_OPEN:
		/* Opening fails if the process has just ended; its end is handled next. */
		if (probe_window_ready(t->probe) && open_window(t, NULL) < 0)
			windows_failed(&w->ctl, now);
		break;
	case WINDOWS_GO_ON:
		break;
	}
}

static void windowed_interrupt(struct tracee *t, uint64_t ts)
{
	(void)ts;
	windowed_halt(t);
}

static uint64_t windowed_due_us(const struct tracee *t)
{
	return windowed_marks_due_us(t, windows_due(&t->windowed.ctl, tracee_now()) / 1000);
}

static void windowed_account(struct tracee *t)
{
	t->overhead_ns = profile_taken(t->profile);
}

static void windowed_costs_change(struct tracee *t, double times)
{
	t->windowed.expected *= times;
	profile_costs_change(t->profile, times);
}

static void windowed_describe(const struct tracee *t, uint64_t now, struct snapshot_windows *ret)
{
	const struct windowed *w = &t->windowed;

	profile_windows(t->profile, ret);
	ret->max_overhead = target_opts_limit(&t->opts);
	ret->span_ns = w->span_ns + (tracee_is_on(t) ? now - w->begun_ns : 0);
	ret->whole_ns = w->whole_ns;
	ret->failed = w->ctl.failed;
	ret->unsampled = unsampled(t);
}

static void windowed_report(const struct tracee *t, struct snapshot_target *slot)
{
	const struct cost cost = tracee_cost(t);
	double error;

	collector_report_samples(t, slot);
	slot->cost_scale = times_of(&t->windowed, &error) * tracee_scale(t, NULL);
	slot->cost = cost_scaled(&cost, slot->cost_scale);
}

/* Times come from samples. */
static int windowed_check(struct tracee *t, struct diag *diag)
{
	if (tracee_sampling(t, &t->opts, t->python).rate)
		return 0;
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE,
			"--exact traces every call, whatever it costs",
			"cannot limit the overhead: no thread list found in this build of Python");
}

const struct collector collector_windowed = {
	.probes = true,
	.stacks = true,
	.windows = true,
	.sampling = PYP_SAMPLING_BESIDE,
	.no_timeline = "may be traced in windows of at most " WINDOWS_LONGEST,
	.timeline_hint = "attach to it with --exact",
	.check = windowed_check,
	.start = windowed_start,
	.stop = windowed_stop,
	.finish = windowed_halt,
	.interrupt = windowed_interrupt,
	.clear = windowed_clear,
	.reconcile = windowed_reconcile,
	.turn = windowed_turn,
	.due_us = windowed_due_us,
	.marks_ns = windowed_marks_ns,
	.account = windowed_account,
	.costs_change = windowed_costs_change,
	.describe = windowed_describe,
	.report = windowed_report,
};
