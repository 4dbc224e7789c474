// SPDX-License-Identifier: BSD-2-Clause
/* Stacks of what runs, by a clock on each CPU: no probe is placed, no plan and no proof is needed. */
#include <errno.h>

#include "session/collector.h"
#include "session/tracee.h"

static int sample_check(struct tracee *t, struct diag *diag)
{
	const struct probe_sampling s = tracee_sampling(t, t->python);

	if (!s.interp_head || !s.code_type)
		return diag_set(
			diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "--mode trace does not need that",
			"this build of Python does not show its threads: it cannot be sampled");
	return 0;
}

static void sample_report(const struct tracee *t, struct snapshot_target *slot)
{
	slot->estimate = (struct snapshot_estimate){
		.rate = t->opts.mode.rate,
		.period_ns = t->period_ns,
		.samples = profile_counts(t->profile).events,
	};
}

const struct collector collector_sample = {
	.mechanism = "a clock on each CPU; nothing in the process",
	.no_timeline = "is not traced",
	.timeline_hint = "attach to it with --mode trace",
	.check = sample_check,
	.start = collector_attach,
	.finish = collector_finish,
	.interrupt = tracee_cease,
	.report = sample_report,
};
