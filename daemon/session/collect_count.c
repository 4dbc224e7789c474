// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector of mode count: the BPF programs add up calls in the kernel, see counting.h. With
 * --rate, timers also sample stacks: call counts are exact, CPU times are estimates. Samples that
 * hit the probes' own time are dropped, so that the remaining ones add up to the CPU time that the
 * program itself used. It runs slower after each hit; its pace shows how much (session/pace.h).
 */
#include <errno.h>

#include "session/collector.h"
#include "session/tracee.h"

static void drain_all(void *ctx)
{
	tracee_drain_all(ctx);
}

static void sync_counts(struct tracee *t, bool final)
{
	const struct counting_sync how = {t->probe, t->profile, drain_all, t, final};

	counting_sync(&t->counting, &how);
}

/*
 * Some builds can be traced but not counted: the call of a function and a repeated execution of its
 * entry site look the same.
 */
static int count_check(struct tracee *t, struct diag *diag)
{
	if (!t->plan.twice[0])
		return collector_can_sample(t, diag);
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "--mode trace counts it exactly",
			"this build of Python cannot be counted: %s may be seen twice for a call",
			t->plan.twice);
}

static int count_start(struct tracee *t, uint64_t *ret_ts, struct diag *diag)
{
	int r = collector_attach(t, ret_ts, diag);

	if (r == 0)
		collector_pace_start(t);
	return r;
}

static void count_finish(struct tracee *t)
{
	sync_counts(t, true);
	collector_finish(t);
}

/* The numbers of code objects are valid until the exec. No program counts since then. */
static void count_interrupt(struct tracee *t, uint64_t ts)
{
	pace_forget(&t->pace);
	sync_counts(t, true);
	tracee_cease(t, ts);
}

static void count_clear(struct tracee *t)
{
	if (t->probe)
		counting_clear(&t->counting, t->probe, t->profile);
	collector_pace_clear(t);
}

static bool count_record(struct tracee *t, const struct event *e)
{
	if (e->type != PYP_REC_THREAD_EXIT)
		return false;
	counting_exit(&t->counting, e);
	return true;
}

static void count_sync(struct tracee *t)
{
	sync_counts(t, false);
}

/*
 * With samples, the probes' time is the number of dropped samples times the period. Without, it is
 * estimated from the number of events.
 */
static void count_account(struct tracee *t)
{
	if (!target_opts_rate(&t->opts))
		tracee_account_costs(t);
	else
		t->overhead_ns = tracee_traps(t) * t->period_ns;
}

static void count_report(const struct tracee *t, struct snapshot_target *slot)
{
	collector_report_samples(t, slot);
	collector_pace_report(t, slot);
}

const struct collector collector_count = {
	.probes = true,
	.sampling = PYP_SAMPLING_BESIDE,
	.no_timeline = "is not traced",
	.timeline_hint = "attach to it with --exact",
	.check = count_check,
	.start = count_start,
	.stop = collector_pace_stop,
	.finish = count_finish,
	.stopped = collector_pace_stopped,
	.interrupt = count_interrupt,
	.clear = count_clear,
	.record = count_record,
	.sync = count_sync,
	.turn = collector_pace_check,
	.marks_ns = collector_pace_marks_ns,
	.account = count_account,
	.report = count_report,
};
