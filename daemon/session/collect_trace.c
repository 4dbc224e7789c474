// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of mode trace: records every call and every return from start to stop. With --rate,
 * timers also sample, which shows how much of the time the probes take: see snapshot/reconcile.h.
 */
#include "session/collector.h"
#include "session/tracee.h"

#define SAMPLES_LEAST 20

static int trace_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	int r = collector_attach(t, ret_ts, diag);

	if (r < 0)
		return r;
	tracee_add_initial(t);
	pace_start(&t->pace, t->probe);
	return 0;
}

/* Another probe may have taken over, which has no marks; the one before may be freed. */
static bool has_marks(const struct tracee *t)
{
	return !t->pace.counting || t->pace.probe == t->probe;
}

static struct pace *pace_of(struct tracee *t)
{
	if (!has_marks(t))
		pace_forget(&t->pace);
	return &t->pace;
}

static void trace_stop(struct tracee *t)
{
	pace_stop(pace_of(t));
}

static void trace_clear(struct tracee *t)
{
	pace_clear(pace_of(t));
}

static void trace_turn(struct tracee *t)
{
	pace_check(pace_of(t));
}

static void trace_interrupt(struct tracee *t, uint64_t ts)
{
	pace_forget(&t->pace);
	tracee_cease(t, ts);
}

/*
 * On a machine that is too busy for the calibration, costs are unknown. The number of samples in the
 * probes' own time shows what hits cost in all, and a usual cost how it is distributed.
 */
static void trace_report(const struct tracee *t, struct snapshot_target *slot)
{
	collector_report_samples(t, slot);
	if (has_marks(t))
		pace_report(&t->pace, &slot->beside);
	if (!slot->cost.known && slot->estimate.of_probes >= SAMPLES_LEAST)
		slot->cost = tracee_cost(t);
}

const struct collector collector_trace = {
	.probes = true,
	.stacks = true,
	.moves = true,
	.sampling = PYP_SAMPLING_BESIDE,
	.samples_top = true,
	.check = collector_can_sample,
	.start = trace_start,
	.stop = trace_stop,
	.finish = collector_finish,
	.interrupt = trace_interrupt,
	.clear = trace_clear,
	.turn = trace_turn,
	.report = trace_report,
};
