// SPDX-License-Identifier: BSD-2-Clause
/* Stacks of what runs, by a clock on each CPU: no probe is placed, no plan and no proof is needed. */
#include <errno.h>

#include "session/collector.h"
#include "session/tracee.h"

static void sample_report(const struct tracee *t, struct snapshot_target *slot)
{
	slot->estimate = (struct snapshot_estimate){
		.rate = target_opts_rate(&t->opts),
		.period_ns = t->period_ns,
		.samples = profile_counts(t->profile).events,
	};
}

const struct collector collector_sample = {
	.mechanism = "a clock on each CPU; nothing in the process",
	.no_timeline = "is not traced",
	.timeline_hint = "attach to it with --mode trace",
	.sampling = PYP_SAMPLING_ALONE,
	.check = collector_can_sample,
	.start = collector_attach,
	.finish = collector_finish,
	.interrupt = tracee_cease,
	.report = sample_report,
};
