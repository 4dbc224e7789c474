// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of mode trace: records every call and every return from start to stop. With --rate,
 * timers also sample, which shows how much of the time the probes take: see accuracy/solve.h.
 */
#include "session/collector.h"
#include "session/tracee.h"

static int trace_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	int r = collector_attach(t, ret_ts, diag);

	if (r < 0)
		return r;
	tracee_add_initial(t);
	collector_pace_start(t);
	return 0;
}

static void trace_interrupt(struct tracee *t, uint64_t ts)
{
	pace_forget(&t->pace);
	tracee_cease(t, ts);
}

static void trace_report(const struct tracee *t, struct snapshot_target *slot)
{
	collector_report_samples(t, slot);
	collector_pace_report(t, slot);
}

const struct collector collector_trace = {
	.probes = true,
	.stacks = true,
	.moves = true,
	.sampling = PYP_SAMPLING_BESIDE,
	.samples_top = true,
	.check = collector_can_sample,
	.start = trace_start,
	.stop = collector_pace_stop,
	.finish = collector_finish,
	.stopped = collector_pace_stopped,
	.interrupt = trace_interrupt,
	.clear = collector_pace_clear,
	.turn = collector_pace_check,
	.marks_ns = collector_pace_marks_ns,
	.costs_change = tracee_costs_change,
	.report = trace_report,
};
