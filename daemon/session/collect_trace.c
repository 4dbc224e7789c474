// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of mode trace: records every call and every return from start to stop. With --rate,
 * timers also sample, which shows how much of the time the probes take: see snapshot/reconcile.h.
 */
#include "session/collector.h"
#include "session/tracee.h"

static int trace_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	int r = collector_attach(t, ret_ts, diag);

	if (r == 0)
		tracee_add_initial(t);
	return r;
}

const struct collector collector_trace = {
	.probes = true,
	.stacks = true,
	.moves = true,
	.sampling = PYP_SAMPLING_BESIDE,
	.samples_top = true,
	.check = collector_can_sample,
	.start = trace_start,
	.finish = collector_finish,
	.interrupt = tracee_cease,
	.report = collector_report_samples,
};
