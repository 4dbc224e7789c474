// SPDX-License-Identifier: BSD-2-Clause
/* Samples, and counts, a process for a moment: see survey.h. */
#include "session/survey.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "event/decode.h"
#include "plan/plan.h"
#include "probe/probe.h"
#include "profile/profile.h"
#include "python/python.h"
#include "target/target.h"

/*
 * Samples per second: hundreds in a short interval of a busy process. Each takes the process 10 to 20 us, i.e. a
 * few percent for a moment. A survey's result does not contain their cost.
 */
#define RATE	   3989
#define RING_BYTES (4u << 20)

/* -EOPNOTSUPP: this build cannot be sampled */
static int opts_of(const struct target *t, const struct python *py, uint8_t when,
		   struct probe_opts *ret)
{
	*ret = (struct probe_opts){
		.pid = t->pid,
		.tid = t->tid,
		.via = py->via,
		.bias = py->bias,
		.ring_bytes = RING_BYTES,
		.layout = &py->layout,
		.mode = MODE_SAMPLE,
		.sampling = {.rate = RATE,
			     .momentary = true,
			     .when = when,
			     .top = true,
			     .interp_head = python_interp_head(py),
			     .code_type = python_code_type(py)},
	};
	return ret->sampling.interp_head && ret->sampling.code_type ? 0 : -EOPNOTSUPP;
}

static bool is_sample(const struct event *e)
{
	return e->type == PYP_REC_SAMPLE && e->u.sample.flags & PYP_SAMPLE_LAST;
}

/* ---- the reference ---- */

struct reference {
	struct probe *probe;
	struct profile *profile; /* during reference_take only */
	uint64_t samples;
	bool on; /* it was started */
};

void reference_free(struct reference *r)
{
	if (!r)
		return;
	probe_free(r->probe);
	free(r);
}

int reference_begin(const struct target *t, const struct python *py, struct reference **ret)
{
	_cleanup_(reference_freep) struct reference *r = calloc(1, sizeof(*r));
	struct probe_opts po;
	int err = opts_of(t, py, PYP_SAMPLING_ALONE, &po);

	if (!r)
		return -ENOMEM;
	if (err == 0)
		err = probe_open_begin(&po, &r->probe, NULL);
	if (err == 0)
		*ret = TAKE_PTR(r);
	return err;
}

bool reference_is_ready(const struct reference *r)
{
	return probe_is_ready(r->probe);
}

int reference_start(struct reference *r)
{
	uint64_t ts;
	int err = probe_opened(r->probe, NULL);

	if (err == 0)
		err = probe_attach(r->probe, &ts, NULL);
	r->on = err == 0;
	return err;
}

static void on_reference(void *ctx, const void *data, size_t size)
{
	struct reference *r = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	r->samples += is_sample(&e);
	profile_sample_before(r->profile, &e);
}

void reference_turn(struct reference *r, uint64_t now_ns)
{
	probe_jitter(r->probe, now_ns);
}

/* Its timers would slow down what is measured afterwards: 3,989 Hz took some 10 % of the CPU time. */
void reference_end(struct reference *r)
{
	if (r->on)
		probe_detach(r->probe);
}

uint64_t reference_take(struct reference *r, struct profile *p)
{
	if (!r->on)
		return 0;
	r->profile = p;
	reference_end(r);
	(void)probe_drain(r->probe, 0, on_reference, r);
	return r->samples;
}

/* ---- the survey ---- */

struct survey {
	struct survey_of of;	/* times: intervals left */
	bool on;		/* the probes are attached, for one interval */
	bool of_yields;		/* this is the last interval, which traces yields */
	uint64_t calls, yields; /* in it */
	struct probe *probe;
	struct forecast_reading reading;
};

static void on_record(void *ctx, const void *data, size_t size)
{
	struct survey *s = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	s->reading.samples += is_sample(&e);
	s->calls += e.type == PYP_REC_ENTER || e.type == PYP_REC_THROW;
	s->yields += e.type == PYP_REC_YIELD;
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

static bool yields_are_stepped(const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].kind == PYP_SITE_YIELD &&
		    plan->sites[i].cost == PLAN_COST_STEPPED)
			return true;
	return false;
}

/* ---- intervals ---- */

/* -EOPNOTSUPP: this build cannot be counted and sampled */
static int survey_opts(const struct survey_of *of, struct probe_opts *ret)
{
	int r = opts_of(of->target, of->python, PYP_SAMPLING_BESIDE, ret);

	ret->plan = of->plan;
	ret->mode = MODE_COUNT;
	ret->plain = of->plain;
	ret->builtins = of->builtins && of->plan->nnative;
	ret->native = python_native_types(of->python);
	return of->plan->twice[0] ? -EOPNOTSUPP : r;
}

static int probes_on(struct survey *s, struct diag *diag)
{
	uint64_t ts;
	int r = probe_opened(s->probe, diag);

	if (r < 0)
		return r;
	s->reading.period_ns = s->of_yields ? s->reading.period_ns : (double)probe_period(s->probe);
	r = probe_attach(s->probe, &ts, diag);
	s->on = r == 0;
	return r < 0 ? r : 1;
}

static void probes_off(struct survey *s)
{
	probe_silence(s->probe);
	probe_detach(s->probe);
	s->on = false;
}

static int read_counted(struct survey *s, struct diag *diag)
{
	struct forecast_reading *r = &s->reading;
	struct pyp_trap_samples traps;

	if (probe_samples(s->probe) <= 0)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE, NULL,
				"the kernel refuses the sampling timers");
	(void)probe_drain(s->probe, SIZE_MAX, on_record, s);
	traps = probe_trap_samples(s->probe);
	r->of_probes = traps.in_kernel + traps.after;
	return add_calls(s->probe, r);
}

static void read_yields(struct survey *s)
{
	(void)probe_drain(s->probe, 0, on_record, s);
	if (s->calls)
		s->reading.yields = fmin(1, (double)s->yields / (double)s->calls);
}

/* Counting does not observe how calls end, so one more interval is traced. */
static int begin_yields(struct survey *s, struct diag *diag)
{
	struct probe_opts po;
	int r;

	(void)survey_opts(&s->of, &po);
	po.mode = MODE_TRACE;
	po.builtins = false;
	po.sampling = (struct probe_sampling){0};
	probe_free(TAKE_PTR(s->probe));
	s->of_yields = true;
	r = probe_open_begin(&po, &s->probe, diag);
	return r < 0 ? r : 1;
}

bool survey_is_ready(const struct survey *s)
{
	return probe_is_ready(s->probe);
}

int survey_next(struct survey *s, struct diag *diag)
{
	int r;

	if (!s->on)
		return probes_on(s, diag);
	probes_off(s);
	if (s->of_yields) {
		read_yields(s);
		return 0;
	}
	r = read_counted(s, diag);
	if (r == 0 && s->of.times-- > 1 && !forecast_suffices(&s->reading))
		return probes_on(s, diag);
	return r == 0 && yields_are_stepped(s->of.plan) ? begin_yields(s, diag) : r;
}

int survey_begin(const struct survey_of *of, struct survey **ret, struct diag *diag)
{
	_cleanup_(survey_freep) struct survey *s = calloc(1, sizeof(*s));
	struct probe_opts po;
	int r;

	if (!s)
		return diag_errno(diag, ENOMEM, "cannot survey process %d", of->target->pid);
	s->of = *of;
	if (survey_opts(of, &po) < 0)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, NULL,
				"this build of Python cannot be counted and sampled");
	r = probe_open_begin(&po, &s->probe, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct forecast_reading survey_reading(const struct survey *s)
{
	return s->reading;
}

void survey_free(struct survey *s)
{
	if (!s)
		return;
	probe_free(s->probe);
	free(s);
}

int survey_run(const struct survey_of *of, struct forecast_reading *ret, struct diag *diag)
{
	const struct timespec pause = {.tv_nsec = SURVEY_NS};
	_cleanup_(survey_freep) struct survey *s = NULL;
	int r = survey_begin(of, &s, diag);

	if (r == 0)
		r = survey_next(s, diag);
	while (r > 0) {
		nanosleep(&pause, NULL);
		r = survey_next(s, diag);
	}
	*ret = s ? survey_reading(s) : (struct forecast_reading){0};
	return r;
}
