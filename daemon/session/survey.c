// SPDX-License-Identifier: BSD-2-Clause
/* Counting and sampling a process for a moment: see survey.h. */
#include "session/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "event/decode.h"
#include "plan/plan.h"
#include "probe/probe.h"
#include "python/python.h"
#include "target/target.h"

/* Hundreds of samples in a moment of a busy process; their cost is not in the figures. */
#define RATE	   4999
#define RING_BYTES (4u << 20)

static void on_record(void *ctx, const void *data, size_t size)
{
	struct forecast_reading *r = ctx;
	struct event e;

	if (decode_event(data, size, &e) == DECODE_OK && e.type == PYP_REC_SAMPLE)
		r->samples += e.u.sample.flags & PYP_SAMPLE_LAST ? 1 : 0;
}

static int add_calls(const struct probe *p, struct forecast_reading *r)
{
	_cleanup_free_ struct probe_count *counts = NULL;
	size_t n = 0;
	int err = probe_counts(p, &counts, &n);

	for (size_t i = 0; i < n; i++) {
		r->calls += counts[i].calls;
		probe_counts_drop(p, &counts[i].edge);
	}
	return err;
}

/* The probes are on for a moment. */
static int moment(struct probe *p, struct diag *diag)
{
	const struct timespec pause = {.tv_nsec = SURVEY_NS};
	uint64_t ts;
	int err = probe_attach(p, &ts, diag);

	if (err < 0)
		return err;
	nanosleep(&pause, NULL);
	probe_silence(p);
	probe_detach(p);
	return 0;
}

static int moment_counted(struct probe *p, struct forecast_reading *r, struct diag *diag)
{
	int err = moment(p, diag);

	if (err < 0)
		return err;
	if (probe_samples(p) <= 0)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE, NULL,
				"the kernel refuses the clocks that sample");
	(void)probe_drain(p, SIZE_MAX, on_record, r);
	return add_calls(p, r);
}

/* ---- where yields are dear ---- */

struct traced {
	uint64_t calls, yields;
};

static void on_call(void *ctx, const void *data, size_t size)
{
	struct traced *t = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	t->calls += e.type == PYP_REC_ENTER || e.type == PYP_REC_THROW;
	t->yields += e.type == PYP_REC_YIELD;
}

static bool yields_are_stepped(const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].kind == PYP_SITE_YIELD &&
		    plan->sites[i].cost == PLAN_COST_STEPPED)
			return true;
	return false;
}

/* Counting does not see how calls end: a moment of tracing does. */
static int survey_yields(const struct probe_opts *counting, double *ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	struct probe_opts po = *counting;
	struct traced t = {0};
	int r;

	po.mode = MODE_TRACE;
	po.sampling = (struct probe_sampling){0};
	r = probe_open(&po, &p, diag);
	if (r == 0)
		r = moment(p, diag);
	if (r < 0)
		return r;
	(void)probe_drain(p, 0, on_call, &t);
	if (t.calls)
		*ret = t.yields < t.calls ? (double)t.yields / (double)t.calls : 1;
	return 0;
}

int survey_run(const struct target *t, const struct python *py, const struct plan *plan,
	       struct forecast_reading *ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	const struct probe_opts po = {
		.pid = t->pid,
		.tid = t->tid,
		.via = py->via,
		.bias = py->bias,
		.ring_bytes = RING_BYTES,
		.layout = &py->layout,
		.plan = plan,
		.mode = MODE_COUNT,
		.sampling = {.rate = RATE,
			     .when = PYP_SAMPLING_BESIDE,
			     .top = true,
			     .interp_head = python_interp_head(py),
			     .code_type = python_code_type(py)},
	};
	struct pyp_trap_samples traps;
	int r;

	*ret = (struct forecast_reading){0};
	if (plan->twice[0] || !po.sampling.interp_head || !po.sampling.code_type)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, NULL,
				"this build of Python cannot be counted and sampled");
	r = probe_open(&po, &p, diag);
	if (r < 0)
		return r;
	for (int i = 0; i < SURVEY_TIMES && r == 0 && !forecast_suffices(ret); i++)
		r = moment_counted(p, ret, diag);
	traps = probe_trap_samples(p);
	ret->of_probes = traps.in_kernel + traps.after;
	ret->period_ns = (double)probe_period(p);
	if (r == 0 && yields_are_stepped(plan))
		r = survey_yields(&po, &ret->yields, diag);
	return r;
}
