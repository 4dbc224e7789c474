// SPDX-License-Identifier: BSD-2-Clause
/*
 * Selects the collector of a target, and implements functions that several collectors share: see
 * collector.h.
 */
#include "session/collector.h"

#include <errno.h>

#include "session/tracee.h"

/*
 * The maximum age in ns of the halt at which thread run times are still read. Read later, they
 * would include time after the halt.
 */
#define RUNTIMES_NS 200000000ull

const struct collector *collector_of(const struct target_opts *opts)
{
	switch (opts->mode.mode) {
	case MODE_COUNT:
		return &collector_count;
	case MODE_SAMPLE:
		return &collector_sample;
	case MODE_TRACE:
		break;
	}
	return target_opts_limit(opts) ? &collector_windowed : &collector_trace;
}

int collector_can_sample(struct tracee *t, struct diag *diag)
{
	bool asked = t->opts.mode.mode == MODE_SAMPLE || t->opts.mode.rate != TARGET_OPTS_RATE_AUTO;

	if (!asked || !target_opts_rate(&t->opts) || tracee_sampling(t, &t->opts, t->python).rate)
		return 0;
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE,
			"trace it, or count it without --rate",
			"cannot sample: no thread list found in this build of Python");
}

void collector_report_samples(const struct tracee *t, struct snapshot_target *slot)
{
	const uint32_t rate = target_opts_rate(&t->opts);

	if (!rate)
		return;
	slot->estimate = (struct snapshot_estimate){
		.rate = rate,
		.period_ns = t->period_ns,
		.samples = profile_samples(t->profile) - t->samples_base,
		.of_probes = tracee_traps(t) - t->traps_base,
		.before = t->samples_before,
	};
}

void collector_pace_start(struct tracee *t)
{
	pace_start(&t->pace, t->probe);
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

void collector_pace_stop(struct tracee *t)
{
	pace_stop(pace_of(t));
}

void collector_pace_stopped(struct tracee *t)
{
	pace_again_begin(pace_of(t));
}

void collector_pace_clear(struct tracee *t)
{
	pace_clear(pace_of(t));
}

void collector_pace_check(struct tracee *t)
{
	pace_check(pace_of(t));
}

void collector_pace_report(const struct tracee *t, struct snapshot_target *slot)
{
	if (has_marks(t))
		pace_report(&t->pace, &slot->beside);
}

uint64_t collector_pace_marks_ns(const struct tracee *t)
{
	return has_marks(t) ? (uint64_t)pace_marks_ns(&t->pace) : 0;
}

int collector_attach(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	int r;

	tracee_find_gils(t);
	r = probe_attach(t->probe, ret_ts, diag);

	if (r < 0)
		return r;
	tracee_begin(t, *ret_ts);
	if (tracee_walks(t, t->python))
		tracee_add_initial(t);
	return 0;
}

void collector_finish(struct tracee *t)
{
	if (tracee_now() - t->halt_ns < RUNTIMES_NS)
		tracee_runtimes(t);
	tracee_cease(t, t->halt_ns);
}
