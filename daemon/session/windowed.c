// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target that is watched in windows. windows.c says when, estimate/estimate.c makes estimates of what
 * was seen; here the two are brought together: what a window's beginning and end mean for the probe
 * and the profile, and the accounts of what passed between.
 *
 * A window begins like tracing does, with the stacks that the threads have then, and ends like
 * tracing does: what runs on is on the stack no more, but has not returned. The CPU clock is read at
 * both moments, so that it is known what a gap was worth. In gaps, clocks sample what runs: that they
 * are taken into account is the profile's business, what they take is ours.
 */
#include "session/collector.h"
#include "session/tracee.h"

/*
 * What opening and closing a window takes of the target: an interrupt on each of its CPUs for each
 * site, twice, and what hits cost that nobody counts while probes are put on and taken off.
 */
#define LINK_NS	     150000.0
#define LINK_SITE_NS 30000.0
/* What a sample takes of it: an interrupt, and the walk. */
#define SAMPLE_NS 20000u

#define PART_NS 1000000000ull
/* What reading a window that was closed may take at once. */
#define READ_NS 2000000ull

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* By hits and samples. */
static uint64_t looking(const struct tracee *t)
{
	return t->overhead_ns + SAMPLE_NS * profile_samples(t->profile);
}

uint64_t windowed_taken(const struct tracee *t)
{
	return looking(t) + t->windowed.links_ns;
}

/* What opening and closing takes is in the windows' accounts already. */
static void account(struct tracee *t, uint64_t now)
{
	windows_account(&t->windowed.ctl, now, t->cpu_ns, looking(t));
}

/* Why it is not sampled between windows, for people; "": it is. */
static const char *unsampled(const struct tracee *t)
{
	int r = t->probe ? probe_samples(t->probe) : 1;

	if (r > 0)
		return "";
	return r < 0 ? "the kernel refuses the sampling clocks"
		     : "no thread list found in this build";
}

/* What the target has used for itself since that was last counted, by the clock as it was read. */
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

static int open_window(struct tracee *t, struct diag *diag)
{
	struct windowed *w = &t->windowed;
	struct cost cost = tracee_cost(t);
	uint64_t ts;
	int r;

	/* What is on its way from the last one must not be taken for this one's. */
	tracee_drain_all(t);
	r = probe_window_open(t->probe, &ts, diag);
	if (r < 0)
		return r;
	/* The first one begins with the tracing itself. */
	if (w->since_ns)
		count_gap(t, ts);
	else
		count_cpu(t);
	w->links_ns += (uint64_t)windows_link_ns(&w->ctl);
	w->opened_overhead_ns = t->overhead_ns;
	w->opened_gauge = tracee_gauge(t);
	w->opened_scale = tracee_scale(t, NULL);
	w->part_ns = ts;
	windows_opened(&w->ctl, ts);
	tracee_begin(t, ts);
	cost = cost_scaled(&cost, w->opened_scale);
	profile_limit(t->profile, w->ctl.length_ns, &cost);
	tracee_seed(t);
	return 0;
}

/* How much dearer hits were in the window; too few of them: what they were before. */
static double scale_of_window(const struct tracee *t)
{
	const struct windowed *w = &t->windowed;

	if (tracee_gauge(t).n - w->opened_gauge.n < COST_GAUGES)
		return w->opened_scale;
	return tracee_scale(t, &w->opened_gauge);
}

/* What the window that was closed has recorded is read. */
static void end_window(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	const uint64_t ts = w->closed_ns;
	const struct cost cost = tracee_cost(t);
	double scale = scale_of_window(t), dearer = scale / w->opened_scale;
	uint64_t shown, own, taken;

	w->closed_ns = 0;
	/* The system's word comes late: what ran since would be a large part of a short window. There
	 * the process's clock tells. */
	if (!w->ctl.length_ns)
		tracee_runtimes(t);
	t->cpu_ns = w->closed_cpu_ns;
	tracee_account_events(t);
	shown = profile_window_end(t->profile, ts, more(t->cpu_ns, w->since_cpu_ns), dearer);
	count_cpu_read(t);
	taken = (uint64_t)(dearer * (double)more(t->overhead_ns, w->opened_overhead_ns));
	own = more(more(ts, t->started_ns), taken);
	profile_fold(t->profile, shown, &cost, scale);
	/* It was to go on, and ended because times have changed: what comes next is not like it. */
	if (!w->ctl.length_ns)
		profile_fold_end(t->profile);
	/* The end came late: what has passed since it should have come belongs to the next gap. */
	if (w->ctl.length_ns)
		profile_gap(t->profile, more(own, shown));
	t->traced_ns += more(ts, t->started_ns);
	t->started_ns = 0;
	w->since_ns = ts;
	account(t, ts);
	windows_closed(&w->ctl, ts);
}

static void close_window(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	probe_window_silence(t->probe, &w->closed_ns);
	tracee_read_cpu(t);
	w->closed_cpu_ns = t->cpu_ns;
	probe_window_close(t->probe);
}

/* In a window that was closed late there may be more than can be read at once. */
static void read_window(struct tracee *t, uint64_t now)
{
	if (tracee_drain_until(t, now + READ_NS))
		end_window(t);
}

static void windowed_stop(struct tracee *t)
{
	if (t->windowed.ctl.open && !t->windowed.closed_ns)
		close_window(t);
}

/* From here on, as far as accounts go. */
static void begin_accounts(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	tracee_account(t);
	w->since_cpu_ns = t->cpu_ns;
	w->since_taken_ns = windowed_taken(t);
	w->opened_overhead_ns = t->overhead_ns;
	w->begun_ns = tracee_now();
}

static int windowed_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	struct windowed *w = &t->windowed;
	uint64_t failed = w->ctl.failed;
	int r;

	profile_in_windows(t->profile);
	r = probe_attach_windows(t->probe, diag);
	if (r < 0)
		return r;
	windows_init(&w->ctl, t->opts.max_overhead, LINK_NS + LINK_SITE_NS * (double)t->plan.nsites,
		     tracee_now() ^ (uint64_t)t->target->pid << 32);
	/* A stop keeps the profile, and so what is missing from it. */
	w->ctl.failed = failed;
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
		end_window(t);
	} else if (probe_attached(t->probe)) {
		count_gap(t, now);
	}
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
	w->span_ns = 0;
	w->ctl.failed = 0;
}

static void windowed_settle(struct tracee *t)
{
	if (t->state == SESSION_TRACING && probe_attached(t->probe) && !t->windowed.ctl.open)
		count_gap(t, tracee_now());
}

/* A window that goes on and on is taken over piece by piece, or it would count for nothing in what
 * the others are compared with. */
static void take_part(struct tracee *t, uint64_t now)
{
	const struct cost cost = tracee_cost(t);

	if (!t->windowed.ctl.open || t->windowed.ctl.length_ns ||
	    now - t->windowed.part_ns < PART_NS)
		return;
	t->windowed.part_ns = now;
	count_cpu(t);
	profile_fold(t->profile, profile_window_part(t->profile, now), &cost,
		     tracee_scale(t, NULL));
}

static void windowed_turn(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	uint64_t now = tracee_now();

	/* Nothing is on while it is not known what it has executed. */
	if (!probe_attached(t->probe))
		return;
	if (w->closed_ns) {
		read_window(t, now);
		return;
	}
	tracee_account(t);
	account(t, now);
	switch (windows_decide(&w->ctl, now)) {
	case WINDOWS_CLOSE:
		close_window(t);
		read_window(t, now);
		break;
	case WINDOWS_OPEN:
		/* It fails when the process has just gone; then its end comes next. */
		if (probe_window_ready(t->probe) && open_window(t, NULL) < 0)
			windows_failed(&w->ctl, now);
		break;
	case WINDOWS_GO_ON:
		take_part(t, now);
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
	return windows_due(&t->windowed.ctl, tracee_now()) / 1000;
}

static void windowed_account(struct tracee *t)
{
	t->overhead_ns = profile_taken(t->profile);
}

static void windowed_costs_change(struct tracee *t, double times)
{
	profile_costs_change(t->profile, times);
}

static void windowed_describe(const struct tracee *t, uint64_t now, struct snapshot_windows *ret)
{
	const struct windowed *w = &t->windowed;

	profile_windows(t->profile, ret);
	ret->max_overhead = t->opts.max_overhead;
	ret->span_ns = w->span_ns + (tracee_is_on(t) ? now - w->begun_ns : 0);
	ret->failed = w->ctl.failed;
	ret->unsampled = unsampled(t);
}

/* What windows show is corrected window by window, and compared with samples of the program as it
 * runs without probes: no slowdown has to be known for that. */
static void windowed_report(const struct tracee *t, struct snapshot_target *slot)
{
	slot->cost = t->cost;
	slot->cost.slowdown = 0;
}

const struct collector collector_windowed = {
	.probes = true,
	.stacks = true,
	.windows = true,
	.sampling = PYP_SAMPLING_BETWEEN,
	.no_timeline = "is watched in windows",
	.timeline_hint = "attach to it without --max-overhead",
	.start = windowed_start,
	.stop = windowed_stop,
	.finish = windowed_halt,
	.interrupt = windowed_interrupt,
	.clear = windowed_clear,
	.settle = windowed_settle,
	.turn = windowed_turn,
	.due_us = windowed_due_us,
	.account = windowed_account,
	.costs_change = windowed_costs_change,
	.describe = windowed_describe,
	.report = windowed_report,
};
