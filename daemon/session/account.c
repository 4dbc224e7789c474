// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of a target's probes: the calibrated cost, the current cost, and the CPU time that
 * observing has taken so far. See tracee.h. Also stops a target whose overhead exceeds --stop-above
 * (breaker.h).
 */
#include "base/clock.h"
#include "session/collector.h"
#include "session/tracee.h"
#include "session/windowed.h"

/* The cost per hit that window planning assumes until the calibration has finished. */
static const struct cost cost_guess = {
	.known = true,
	.before = {350, 350, 350},
	.after = {250, 250, 250},
};

struct cost tracee_cost(const struct tracee *t)
{
	return t->cost.known ? t->cost : cost_guess;
}

static double pair_of(const struct cost *c)
{
	return (double)c->before[COST_ENTER] + c->after[COST_ENTER] + c->before[COST_LEAVE] +
	       c->after[COST_LEAVE];
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

uint64_t tracee_samples_ns(const struct tracee *t)
{
	return (uint64_t)COST_SAMPLE_NS * (profile_samples(t->profile) + tracee_traps(t));
}

/* What was taken so far, without marks, which come and go. The slowdown is that after hits. */
static uint64_t taken_ns(const struct tracee *t)
{
	return t->overhead_ns + (uint64_t)cost_cold((double)t->overhead_ns) + tracee_samples_ns(t) +
	       t->windowed.links_ns;
}

/* What was taken so far was at another cost, too. */
static void change_costs(struct tracee *t, double times)
{
	struct taken *k = &t->taken;

	tracee_taken_read(t);
	t->collector->costs_change(t, times);
	k->ns = more(k->ns + taken_ns(t), k->read_ns);
	k->read_ns = taken_ns(t);
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
	if (t->collector->costs_change && pair_of(&before) > 0)
		change_costs(t, pair_of(&c) / pair_of(&before));
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
	t->overhead_ns = (uint64_t)(times * (double)t->overhead_ns);
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

static uint64_t marks_ns(const struct tracee *t)
{
	return windowed_marks_ns(t) + collector_pace_marks_ns(t);
}

/*
 * If the process has ended and its parent was told before, its clock is gone; what is known of its
 * threads remains.
 */
static uint64_t read_clock(const struct tracee *t)
{
	uint64_t ns = t->taken.read_cpu_ns;

	if (!clock_process_cpu_ns(t->target->pid, &ns) && t->ends)
		return ns + more(profile_cpu(t->profile), t->taken.cpu_ns);
	return ns;
}

void tracee_taken_begin(struct tracee *t)
{
	struct taken *k = &t->taken;

	k->read_ns = taken_ns(t);
	k->read_marks_ns = marks_ns(t);
	k->read_cpu_ns = read_clock(t);
	k->second_ns = k->second_cpu_ns = k->lately_ns = k->lately_cpu_ns = 0;
}

void tracee_taken_read(struct tracee *t)
{
	struct taken *k = &t->taken;
	const struct taken before = *k;
	uint64_t taken, cpu;

	if (!tracee_is_on(t))
		return;
	tracee_account_events(t);
	k->read_ns = taken_ns(t);
	k->read_marks_ns = marks_ns(t);
	taken = more(k->read_ns, before.read_ns) + more(k->read_marks_ns, before.read_marks_ns);
	k->ns += taken;
	k->second_ns += taken;
	if (t->state != SESSION_TRACING && !t->ends)
		return;
	k->read_cpu_ns = read_clock(t);
	cpu = more(k->read_cpu_ns, before.read_cpu_ns);
	k->cpu_ns += cpu;
	k->second_cpu_ns += cpu;
}

void tracee_taken_clear(struct tracee *t)
{
	struct taken *k = &t->taken;

	tracee_account_events(t);
	k->read_ns = taken_ns(t);
	k->read_marks_ns = marks_ns(t);
	k->read_cpu_ns = read_clock(t);
	k->ns = k->cpu_ns = 0;
}

uint64_t tracee_own_cpu(const struct tracee *t)
{
	return more(t->taken.cpu_ns, t->taken.ns);
}

double tracee_overhead_lately(const struct tracee *t)
{
	const struct taken *k = &t->taken;
	double ret;

	if (t->state != SESSION_TRACING)
		return 0;
	ret = snapshot_overhead(k->lately_ns, more(k->lately_cpu_ns, k->lately_ns));
	if (ret < 0)
		ret = snapshot_overhead(k->ns, tracee_own_cpu(t));
	return ret > 0 ? ret : 0;
}

/*
 * The part of what was taken before that still counts after another second. Of a second alone, the
 * overhead is 2 % without a window and 47 % with one.
 */
#define LATELY_KEPT 0.8

static void smooth(uint64_t *lately, uint64_t *second)
{
	*lately = (uint64_t)(LATELY_KEPT * (double)*lately) + *second;
	*second = 0;
}

void tracee_sample_overhead(struct tracee *t)
{
	struct taken *k = &t->taken;
	double taken, cpu;

	tracee_account(t);
	tracee_taken_read(t);
	taken = (double)k->second_ns;
	cpu = (double)k->second_cpu_ns;
	smooth(&k->lately_ns, &k->second_ns);
	smooth(&k->lately_cpu_ns, &k->second_cpu_ns);
	look_for_calls(t);
	if (t->state == SESSION_TRACING &&
	    breaker_trips(&t->breaker, t->opts.stop_above, taken, cpu - taken, t->rate_ns,
			  tracee_unix_now())) {
		tracee_stop(t);
		tracee_warn_text(t);
	}
}
