// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of a target's probes: the calibrated cost, the current cost, and the CPU time that
 * observing has taken so far. See tracee.h. Also stops a target whose overhead exceeds --stop-above
 * (breaker.h).
 */
#include <math.h>

#include "base/clock.h"
#include "probe/sample_cost.h"
#include "session/collector.h"
#include "session/tracee.h"

struct cost tracee_cost(const struct tracee *t)
{
	return t->cost.known ? t->cost : cost_guess(t->self_test_ns);
}

static double pair_of(const struct cost *c)
{
	return cost_hit(c, COST_ENTER) + cost_hit(c, COST_LEAVE);
}

void tracee_take_cost(struct tracee *t)
{
	const struct cost before = tracee_cost(t);
	struct cost c;

	if (t->cost_taken || !t->calibration || !calibration_wait(t->calibration, 0))
		return;
	c = calibration_result(t->calibration);
	if (!c.known)
		return;
	t->cost_taken = true;
	t->cost_of_other = false;
	if (t->collector->costs_change && pair_of(&before) > 0)
		t->collector->costs_change(t, pair_of(&c) / pair_of(&before));
	t->cost = c;
	tracee_update_cost(t);
}

struct probe_latency tracee_latency(const struct tracee *t)
{
	struct probe_latency g = t->old_latency, here;

	if (t->probe) {
		here = probe_latency(t->probe);
		g.ns += here.ns;
		g.n += here.n;
	}
	return g;
}

uint64_t tracee_traps(const struct tracee *t)
{
	struct pyp_trap_samples here = {0};

	if (t->probe)
		here = probe_trap_samples(t->probe);
	return t->old_traps + here.in_kernel + here.after;
}

/*
 * The first latency measurements are taken with cold caches and are too high. The correction gets
 * the weight n / (n + LATENCIES_HALF), where n is the number of measurements.
 */
#define LATENCIES_HALF 256

double tracee_scale(const struct tracee *t, const struct probe_latency *since)
{
	const struct probe_latency now = tracee_latency(t);

	if (!since)
		since = &t->latency_base;
	return cost_scale(&t->cost, now.ns - since->ns, now.n - since->n);
}

void tracee_update_cost(const struct tracee *t)
{
	const struct cost measured = tracee_cost(t);
	const double n = (double)(tracee_latency(t).n - t->latency_base.n);
	const double scale = 1 + (tracee_scale(t, NULL) - 1) * n / (n + LATENCIES_HALF);
	const struct cost now = cost_scaled(&measured, scale);

	profile_set_cost(t->profile, &now);
}

static double event_cost(const struct tracee *t)
{
	const struct cost c = tracee_cost(t);

	return tracee_scale(t, NULL) * pair_of(&c) / 2;
}

/* After the process has ended, cpu_ns keeps its last value. */
void tracee_read_cpu(struct tracee *t)
{
	(void)clock_process_cpu_ns(t->target->pid, &t->cpu_ns);
}

void tracee_account(struct tracee *t)
{
	tracee_read_cpu(t);
	tracee_account_events(t);
}

void tracee_account_events(struct tracee *t)
{
	if (t->collector->account)
		t->collector->account(t);
	else
		tracee_account_costs(t);
}

void tracee_account_costs(struct tracee *t)
{
	uint64_t events = profile_counts(t->profile).events;

	/* A clear resets the event count. */
	if (events < t->overhead_events)
		t->overhead_events = 0;
	t->overhead_ns += (uint64_t)((double)(events - t->overhead_events) * event_cost(t));
	t->overhead_events = events;
	tracee_update_cost(t);
}

void tracee_costs_change(struct tracee *t, double times)
{
	tracee_taken_read(t);
	t->taken.hits *= times;
	t->taken_now.hits *= times;
	t->taken_lately.hits *= times;
}

/* The CPU time without any call after which a warning is reported. */
#define NO_CALLS_NS 1000000000ull

static void look_for_calls(struct tracee *t)
{
	bool none = t->state == SESSION_TRACING && t->collector->probes && !t->collector->windows &&
		    profile_counts(t->profile).events == 0 &&
		    t->cpu_ns > t->start_cpu_ns + NO_CALLS_NS;

	if (none == t->no_calls)
		return;
	t->no_calls = none;
	tracee_warn_text(t);
}

uint64_t tracee_samples_ns(const struct tracee *t)
{
	return sample_cost_ns() * (profile_samples(t->profile) + tracee_traps(t));
}

/*
 * If the process has ended and its parent was told before, its clock is gone; what is known of its
 * threads remains.
 */
static double read_clock(const struct tracee *t)
{
	uint64_t ns;

	if (clock_process_cpu_ns(t->target->pid, &ns))
		return (double)ns;
	return t->taken_read.cpu +
	       (t->ends ? fmax(0, (double)profile_cpu(t->profile) - t->taken.cpu) : 0);
}

/* All of it so far. Marks are apart: they come and go, with their numbers. */
static struct taken read_taken(struct tracee *t)
{
	tracee_account_events(t);
	t->marks_read = t->collector->marks_ns ? (double)t->collector->marks_ns(t) : 0;
	return (struct taken){.hits = (double)t->overhead_ns,
			      .other = (double)(tracee_samples_ns(t) + t->windowed.links_ns),
			      .traps = (double)tracee_traps(t),
			      .cpu = read_clock(t)};
}

static void taken_add(struct taken *to, double kept, const struct taken *more)
{
	to->hits = kept * to->hits + more->hits;
	to->other = kept * to->other + more->other;
	to->traps = kept * to->traps + more->traps;
	to->cpu = kept * to->cpu + more->cpu;
}

void tracee_taken_begin(struct tracee *t)
{
	t->taken_read = read_taken(t);
	t->taken_now = t->taken_lately = (struct taken){0};
}

void tracee_taken_clear(struct tracee *t)
{
	t->taken_read = read_taken(t);
	t->taken = (struct taken){0};
}

void tracee_taken_read(struct tracee *t)
{
	const struct taken before = t->taken_read;
	const double marks = t->marks_read;
	struct taken more;

	if (!tracee_is_on(t))
		return;
	t->taken_read = read_taken(t);
	more = (struct taken){
		.hits = fmax(0, t->taken_read.hits - before.hits),
		.other = fmax(0, t->taken_read.other - before.other) +
			 fmax(0, t->marks_read - marks),
		.traps = fmax(0, t->taken_read.traps - before.traps),
		.cpu = fmax(0, t->taken_read.cpu - before.cpu),
	};
	/* After a stop, the last records are read while it runs undisturbed. */
	if (t->state != SESSION_TRACING && !t->ends)
		more.cpu = 0;
	taken_add(&t->taken, 1, &more);
	taken_add(&t->taken_now, 1, &more);
}

/* So many samples on hits show better what hits took than their number does. */
#define TRAPS_LEAST 100.0

/*
 * Returns the CPU time of the target without what was taken from it and the slowdown after hits, in ns;
 * 0: not known.
 */
static double own_cpu(const struct tracee *t, const struct taken *k)
{
	const bool by_samples = t->collector->sampling == PYP_SAMPLING_BESIDE &&
				k->traps >= TRAPS_LEAST;
	const double hits = by_samples ? k->traps * (double)t->period_ns : k->hits;
	const double hit = event_cost(t), n = hits / hit;
	const double rest = k->cpu - hits - k->other - n * cost_each(hit);

	return rest > 0 ? cost_undisturbed(cost_cold(hit), n, rest, 1) : 0;
}

static double overhead_of(const struct tracee *t, const struct taken *k)
{
	const double own = own_cpu(t, k);

	return snapshot_overhead((uint64_t)(k->cpu - own), (uint64_t)own);
}

void tracee_overhead(const struct tracee *t, uint64_t *ret_overhead_ns, uint64_t *ret_own_cpu_ns)
{
	const double own = own_cpu(t, &t->taken);

	*ret_overhead_ns = (uint64_t)(t->taken.cpu - own);
	*ret_own_cpu_ns = (uint64_t)own;
}

double tracee_overhead_lately(const struct tracee *t)
{
	double ret;

	if (t->state != SESSION_TRACING)
		return 0;
	ret = overhead_of(t, &t->taken_lately);
	if (ret < 0)
		ret = overhead_of(t, &t->taken);
	return fmax(0, ret);
}

/*
 * The part of what was taken before that still counts after another second. Of a second alone, the
 * overhead is 2 % without a window and 47 % with one.
 */
#define LATELY_KEPT 0.8

void tracee_sample_overhead(struct tracee *t)
{
	double own, cpu;

	tracee_account(t);
	tracee_taken_read(t);
	own = own_cpu(t, &t->taken_now);
	cpu = t->taken_now.cpu;
	taken_add(&t->taken_lately, LATELY_KEPT, &t->taken_now);
	t->taken_now = (struct taken){0};
	look_for_calls(t);
	if (t->state == SESSION_TRACING && breaker_trips(&t->breaker, t->opts.stop_above, cpu - own,
							 own, t->rate_ns, tracee_unix_now())) {
		tracee_stop(t);
		tracee_warn_text(t);
	}
}
