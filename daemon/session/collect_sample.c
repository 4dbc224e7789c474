// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of mode sample: a timer on each CPU samples the stacks of running threads. It
 * places no probes, so it needs neither a plan nor a self-test.
 */
#include "session/collector.h"
#include "session/tracee.h"

const struct collector collector_sample = {
	.mechanism = "a clock on each CPU; nothing in the process",
	.no_timeline = "is not traced",
	.timeline_hint = "attach to it with --exact",
	.sampling = PYP_SAMPLING_ALONE,
	.check = collector_can_sample,
	.start = collector_attach,
	.finish = collector_finish,
	.interrupt = tracee_cease,
	.report = collector_report_samples,
};
