// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of a target's probes: the calibrated cost, the current cost, and the CPU time that
 * probes have taken so far. See tracee.h. Also stops a target whose probes exceed --stop-above
 * (breaker.h).
 */
#include "base/clock.h"
#include "session/collector.h"
#include "session/tracee.h"

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

void tracee_sample_overhead(struct tracee *t)
{
	double cpu, probes;
	uint64_t taken;

	tracee_account(t);
	cpu = (double)(t->cpu_ns - t->rate_cpu_ns);
	taken = windowed_taken(t);
	probes = (double)(taken - t->rate_overhead_ns);
	t->rate_cpu_ns = t->cpu_ns;
	t->rate_overhead_ns = taken;
	t->overhead = cpu > probes ? probes / (cpu - probes) : probes > 0 ? 1 : 0;
	look_for_calls(t);
	if (t->state == SESSION_TRACING &&
	    breaker_trips(&t->breaker, t->opts.stop_above, probes, cpu - probes, t->rate_ns,
			  tracee_unix_now())) {
		tracee_stop(t);
		tracee_warn_text(t);
	}
}
