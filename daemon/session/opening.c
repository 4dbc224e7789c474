// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaching to a process, up to loaded programs: see tracee.h. Its files and its memory are read
 * by another process (inspect/inspect.h).
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "session/collector.h"
#include "session/tracee.h"
#include "target/deadline.h"

/* After this time without an answer, something is wrong. */
#define UNREADABLE_NS 5000000000ull

/* A process that hardly runs is surveyed twice. */
#define SURVEY_TIMES 2

/* What samples may take of a limited target's CPU time: this, and this part of the limit */
#define SAMPLES_MOST 0.02
#define SAMPLES_PART 0.4

/* Some microseconds each. */
#define WALKS_PER_S 500
/* Traces that cost less have no need of the pace, as a part of the CPU time. */
#define PACE_COST 0.3

#define HOLD_GAP " were not traced after the thread that owned the probes ended"

/* Samples alone do not show when a code object is freed. */
static int tracee_resolve(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	const struct tracee *t = ctx;
	int r = inspect_code(t->inspect, code, ret);

	if (r < 0 || !announced_ns || t->opts.mode.mode == MODE_SAMPLE || !t->probe ||
	    probe_code_lives(t->probe, code, announced_ns))
		return r;
	code_names_deinit(ret);
	*ret = (struct code_names){0};
	return -ESTALE;
}

static int tracee_read_lines(void *ctx, uint64_t code, struct code_lines *ret)
{
	const struct tracee *t = ctx;

	return inspect_lines(t->inspect, code, ret);
}

/* The file that is mapped at an address. */
static int tracee_find_native(void *ctx, uint64_t address, struct native_code *ret)
{
	const struct tracee *t = ctx;
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	int r = target_maps_read(t->target, &maps, NULL);

	return r < 0 ? r : target_maps_code(&maps, address, ret);
}

__attribute__((format(printf, 2, 3))) static void warn(struct tracee *t, const char *fmt, ...)
{
	size_t n = strlen(t->warning);
	va_list ap;

	if (n)
		n += (size_t)snprintf(t->warning + n, sizeof(t->warning) - n, "; ");
	if (n >= sizeof(t->warning))
		return;
	va_start(ap, fmt);
	vsnprintf(t->warning + n, sizeof(t->warning) - n, fmt, ap);
	va_end(ap);
}

/* What may hide calls as last seen, and what else is to be known of this target's data. */
void tracee_warn_text(struct tracee *t)
{
	uint64_t late = t->late_before + inspect_late(t->inspect);

	memcpy(t->warning, t->hidden, sizeof(t->warning));
	if (t->no_calls)
		warn(t, "no call was seen, though it uses CPU time: it runs C code or a loop, or "
			"Python in a way that probes do not see");
	if (t->breaker.text[0])
		warn(t, "%s", t->breaker.text);
	if (t->hold_gap_ns)
		warn(t, "%.3f seconds" HOLD_GAP, (double)t->hold_gap_ns / 1e9);
	if (t->hidden_ns && tracee_now() > t->hidden_ns + UNREADABLE_NS)
		warn(t, "the target's memory cannot be read; it may wait for a file system");
	else if (late)
		warn(t, "the target's memory could not be read in time (%llu times)",
		     (unsigned long long)late);
	/* What was missed stays missed. */
	t->misses_calls |= t->hidden_misses || t->hold_gap_ns;
	/* Compiled code does not store in its frame where it is. */
	if (t->hidden_misses && t->profile)
		profile_refuse_lines(t->profile);
}

/* Looked at again before each report, since a JIT starts when it is warm. */
void tracee_warn(struct tracee *t)
{
	char text[sizeof(t->hidden)];
	bool misses;

	if (t->state == SESSION_ENDED || !target_alive(t->target))
		return;
	if (inspect_hidden(t->inspect, &misses, text, sizeof(text)) == 0) {
		memcpy(t->hidden, text, sizeof(t->hidden));
		t->hidden_misses = misses;
		t->hidden_ns = tracee_now();
	}
	tracee_warn_text(t);
	strangers_again(t);
	tracee_find_gils(t);
	t->warned_ns = tracee_now();
}

static void add_text(char *to, size_t size, const char *text)
{
	size_t n = strnlen(to, size);

	snprintf(to + n, size - n, "%s", text);
}

static int take_builtins(struct tracee *t, const struct verify_result *v, struct diag *diag)
{
	char text[192];

	add_text(t->self_test, sizeof(t->self_test), "; calls of C functions: ");
	add_text(t->self_test, sizeof(t->self_test), verify_builtins_text(v, text, sizeof(text)));
	if (v->verdict != VERIFY_WRONG)
		return 0;
	return diag_set(diag, -EPROTO, PYP_EXIT_UNTRACEABLE,
			"without --builtins it can be traced; please report this build",
			"this build of Python fails the self-test of calls of C functions: %s",
			v->reason);
}

/* Without their rows all else is as it is. */
static void check_collections(struct tracee *t, const struct verify_result *v)
{
	if (v->gc_wrong[0]) {
		t->plan.ngc = 0;
		snprintf(t->plan.gc_missing, sizeof(t->plan.gc_missing), "self-test: %.110s",
			 v->gc_wrong);
	}
	if (t->plan.ngc)
		return;
	add_text(t->self_test, sizeof(t->self_test), "; collections have no rows: ");
	add_text(t->self_test, sizeof(t->self_test), t->plan.gc_missing);
}

/* Valid as long as the target is being attached. */
static struct verify_opts verify_opts_of(const struct tracee *t)
{
	return (struct verify_opts){.python = t->python,
				    .plan = &t->plan,
				    .target = t->target,
				    .builtins = t->opts.builtins};
}

/* Wrong counts are worse than none. Every report states that the proof could not be made. */
static int take_verdict(struct tracee *t, const struct selftest_result *result, struct diag *diag)
{
	const struct verify_result *v = &result->plan;
	const struct verify_opts vo = verify_opts_of(t);

	t->cost = calibration_before(&vo, &t->cost_of_other);
	t->self_test_ns = v->event_ns;
	verify_text(v, t->self_test, sizeof(t->self_test));
	check_collections(t, v);
	if (result->has_builtins)
		return take_builtins(t, &result->builtins, diag);
	if (v->verdict != VERIFY_WRONG)
		return 0;
	return diag_set(diag, -EPROTO, PYP_EXIT_UNTRACEABLE,
			"please report this build; --no-verify traces it all the same",
			"this build of Python fails the self-test: %s", v->reason);
}

/* The self-test of what is about to be placed, if it is wanted; tracee_verified() takes the result. */
static int begin_verifying(struct tracee *t, struct diag *diag)
{
	const struct selftest_result skipped = {.plan.verdict = VERIFY_SKIPPED};
	const struct verify_opts vo = verify_opts_of(t);

	if (!t->collector->probes) {
		snprintf(t->self_test, sizeof(t->self_test), "not needed: no probes are placed");
		return 0;
	}
	if (!t->opts.verify)
		return take_verdict(t, &skipped, diag);
	t->selftest = selftest_start(&vo);
	return t->selftest ? 0 : diag_errno(diag, ENOMEM, "cannot attach to %d", t->target->pid);
}

static void drop_loading(struct tracee *t)
{
	reference_free(TAKE_PTR(t->reference));
	survey_free(TAKE_PTR(t->survey));
	probe_free(TAKE_PTR(t->loading));
}

bool tracee_verified(struct tracee *t)
{
	struct selftest_result result;

	if (!t->selftest)
		return true;
	if (!selftest_poll(t->selftest, &result))
		return false;
	selftest_free(TAKE_PTR(t->selftest));
	t->prepared_err = take_verdict(t, &result, &t->prepared_diag);
	if (t->prepared_err)
		drop_loading(t);
	return true;
}

struct probe_sampling tracee_sampling(const struct tracee *t, const struct target_opts *opts,
				      const struct python *py)
{
	struct probe_sampling s = {
		.rate = target_opts_rate(opts),
		.when = t->collector->sampling,
		.top = t->collector->samples_top,
		.interp_head = python_interp_head(py),
		.code_type = python_code_type(py),
	};

	for (int i = 0; i < PYP_OWN_CODE; i++)
		if (py->own_code[i].size)
			s.own[i] =
				(struct pyp_code_range){.start = py->own_code[i].start + py->bias,
							.size = py->own_code[i].size};
	if (t->collector->windows)
		s.share = fmin(SAMPLES_MOST, SAMPLES_PART * target_opts_limit(opts) / 100);
	if (!s.interp_head || !s.code_type)
		s.rate = 0;
	return s;
}

uint16_t tracee_walks(const struct tracee *t, const struct python *py)
{
	if (t->opts.light || (t->opts.mode.mode == MODE_TRACE && !t->collector->windows) ||
	    !python_interp_head(py) || !python_code_type(py))
		return 0;
	return WALKS_PER_S;
}

static int check_builtins(const struct tracee *t, struct diag *diag)
{
	const char *missing = t->plan.native_missing;

	if (t->plan.nnative && t->python->native_types.function)
		return 0;
	return diag_set(
		diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE, "without --builtins it can be traced",
		"C functions cannot be traced in this build of Python: no proven site for %s",
		missing[0] ? missing : "their type (no symbol PyCFunction_Type)");
}

static int tracee_plan(struct tracee *t, struct diag *diag)
{
	const struct inspect_result *f = &t->found;

	if (f->plan_err)
		return diag_set(diag, f->plan_err, f->plan_diag.exit, f->plan_diag.hint, "%s",
				f->plan_diag.msg);
	t->plan = f->plan;
	return t->opts.builtins ? check_builtins(t, diag) : 0;
}

/* Check that what it needs is there. */
static int tracee_check(struct tracee *t, struct diag *diag)
{
	int r = t->collector->probes ? tracee_plan(t, diag) : 0;

	return r == 0 && t->collector->check ? t->collector->check(t, diag) : r;
}

/* Is it sampled while every call is traced or counted? */
static bool is_sampled_beside(const struct tracee *t)
{
	return t->collector->probes && !t->collector->windows && target_opts_rate(&t->opts);
}

/* See session/pace.h. */
static bool has_pace(const struct tracee *t)
{
	return is_sampled_beside(t) && t->plan.nmarks;
}

static struct probe_opts load_opts(const struct tracee *t)
{
	return (struct probe_opts){
		.pid = t->target->pid,
		.tid = t->target->tid,
		.via = t->python->via,
		.bias = t->python->bias,
		.counters = t->opts.counters,
		.builtins = t->opts.builtins,
		.collections = true,
		.native = python_native_types(t->python),
		.ring_bytes = t->opts.ring_bytes,
		.marks = t->collector->windows || has_pace(t),
		.mark_records = t->collector->windows,
		.light = t->opts.light,
		.layout = &t->python->layout,
		.plan = t->collector->probes ? &t->plan : NULL,
		.mode = t->opts.mode.mode,
		.plain = !t->warning[0],
		.sampling = tracee_sampling(t, &t->opts, t->python),
		.walks = tracee_walks(t, t->python),
	};
}

/* Will it be sampled and surveyed? */
static void begin_observers(struct tracee *t)
{
	if (!t->collector->probes)
		return;
	if (is_sampled_beside(t))
		(void)reference_begin(t->target, t->python, &t->reference);
	/* A limited target needs no forecast. */
	if (t->collector->windows)
		return;
	(void)survey_begin(&(struct survey_of){.target = t->target,
					       .python = t->python,
					       .plan = &t->plan,
					       .builtins = t->opts.builtins,
					       .plain = !t->hidden[0],
					       .times = SURVEY_TIMES},
			   &t->survey, NULL);
}

/* An error is reported by the next attempt. */
void tracee_load_begin(struct tracee *t, bool observe)
{
	struct probe_opts po;

	if (t->prepared_err)
		return;
	if (observe)
		begin_observers(t);
	po = load_opts(t);
	(void)probe_open_begin(&po, &t->loading, NULL);
}

bool tracee_observers_are_loaded(const struct tracee *t)
{
	return (!t->reference || reference_is_ready(t->reference)) &&
	       (!t->survey || survey_is_ready(t->survey));
}

bool tracee_is_loaded(const struct tracee *t)
{
	return !t->loading || probe_is_ready(t->loading);
}

/* Another client may have asked for the target with other options. */
static int take_loaded(struct tracee *t, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = t->probe ? TAKE_PTR(t->probe)
							  : TAKE_PTR(t->loading);
	const struct probe_opts po = load_opts(t);
	int r;

	if (!p || !probe_opens(p, &po))
		return probe_open(&po, &t->probe, diag);
	r = probe_opened(p, diag);
	if (r == 0)
		t->probe = TAKE_PTR(p);
	return r;
}

bool tracee_pace_begin(struct tracee *t)
{
	const struct cost cost = tracee_cost(t);

	if (!has_pace(t) || !t->reference || !t->loading || !t->forecast.known ||
	    forecast_cost(&t->forecast, &t->opts) < PACE_COST || take_loaded(t, NULL) < 0)
		return false;
	pace_begin(&t->pace, t->probe, t->target->pid, t->plan.nmarks, cost_mark(&cost));
	return true;
}

static int tracee_load(struct tracee *t, struct diag *diag)
{
	int r = take_loaded(t, diag);

	if (r < 0)
		return r;
	t->mechanism = probe_mechanism(t->probe);
	t->period_ns = probe_period(t->probe);
	r = tracee_make_profile(t, diag);
	if (r == 0 && t->reference) {
		t->samples_before = reference_take(t->reference, t->profile);
		reference_free(TAKE_PTR(t->reference));
	}
	return r;
}

int tracee_make_profile(struct tracee *t, struct diag *diag)
{
	t->profile = profile_new(NULL, tracee_resolve, t);
	if (!t->profile || profile_keep_columns(t->profile, probe_columns(t->probe)) < 0)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", t->target->pid);
	profile_traces_calls(t->profile, t->collector->stacks);
	if (t->opts.mode.mode == MODE_TRACE && !t->collector->windows &&
	    profile_keep_waits(t->profile) < 0)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", t->target->pid);
	if (tracee_walks(t, t->python) && profile_keep_walks(t->profile) < 0)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", t->target->pid);
	profile_names_natives(t->profile, tracee_find_native, t);
	if (target_opts_rate(&t->opts) && !t->opts.light)
		profile_reads_lines(t->profile, tracee_read_lines, t);
	if (t->python->layout.model == LAYOUT_FRAME_OBJECT)
		profile_ends_are_hidden(t->profile);
	if (t->collector->stacks && is_sampled_beside(t))
		profile_is_sampled(t->profile);
	return 0;
}

int tracee_look(pid_t pid, const struct target_opts *opts, struct tracee **ret, struct diag *diag)
{
	_cleanup_(tracee_freep) struct tracee *t = calloc(1, sizeof(*t));
	struct inspect_opts io = {.check = true};
	char exe[32];
	int r;

	if (!t)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", pid);
	r = target_open(pid, &t->target, diag);
	if (r == 0)
		r = target_check_native(t->target, diag);
	if (r < 0)
		return r;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", t->target->tid);
	r = target_check_mount(t->target, exe, diag);
	if (r < 0)
		return r;
	tracee_set_opts(t, opts);
	t->known_ns = tracee_now();
	(void)clock_process_cpu_ns(pid, &t->known_cpu_ns);
	t->workers = opts->light ? NULL : malloc(sizeof(*t->workers));
	if (t->workers)
		workers_find(pid, t->workers);
	t->found_err = -EINPROGRESS;
	io.target = t->target;
	/* The plan has the location of the evaluator's code. */
	io.plan = t->collector->probes || opts->builtins;
	r = inspect_start(&io, &t->inspect, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

bool tracee_looked(struct tracee *t)
{
	if (t->found_err == -EINPROGRESS)
		t->found_err = inspect_poll(t->inspect, &t->found, &t->found_diag);
	return t->found_err != -EINPROGRESS;
}

int tracee_refer(struct tracee *t)
{
	int r = t->reference ? reference_start(t->reference) : -EOPNOTSUPP;

	if (r < 0)
		reference_free(TAKE_PTR(t->reference));
	return r;
}

void tracee_refer_turn(struct tracee *t, uint64_t now_ns)
{
	if (t->reference)
		reference_turn(t->reference, now_ns);
}

void tracee_refer_end(struct tracee *t)
{
	if (t->reference)
		reference_end(t->reference);
}

/*
 * A target that idled when its probes were attached has hardly any samples from before: those after the stop are as
 * good. (Without, a recursion whose hits took 90 % of its CPU time was off by 9 points.) AFTER_LEAST: half of what
 * one busy thread has in that time.
 */
#define AFTER_LEAST 400

void tracee_refer_again(struct tracee *t)
{
	uint64_t overhead, own;

	tracee_overhead(t, &overhead, &own);
	if (!is_sampled_beside(t) || t->samples_before >= AFTER_LEAST ||
	    (double)overhead < PACE_COST * (double)own)
		return;
	t->refer_end_ns = 0;
	(void)reference_begin(t->target, t->python, &t->reference);
}

void tracee_refer_again_turn(struct tracee *t)
{
	const uint64_t now = tracee_now();

	if (!t->refer_end_ns) {
		if (!reference_is_ready(t->reference))
			return;
		t->refer_end_ns = now + REFERENCE_NS;
		(void)tracee_refer(t);
	} else if (now < t->refer_end_ns) {
		tracee_refer_turn(t, now); /* it knows when it is due */
	} else {
		if (tracee_unchanged(t))
			t->samples_before += reference_take(t->reference, t->profile);
		reference_free(TAKE_PTR(t->reference));
	}
}

int tracee_survey_next(struct tracee *t)
{
	struct forecast_reading reading;
	int r;

	if (!t->survey)
		return -EOPNOTSUPP;
	r = survey_next(t->survey, NULL);
	if (r > 0)
		return r;
	reading = survey_reading(t->survey);
	reading.cost = t->cost;
	if (r == 0)
		t->forecast = forecast_of(&reading);
	survey_free(TAKE_PTR(t->survey));
	return r;
}

/* What was found, once it is there: it belongs to the program that the process still runs. */
static int take_found(struct tracee *t, struct diag *diag)
{
	const struct diag *why = &t->found_diag;
	int r;

	if (t->found_err < 0)
		return diag_set(diag, t->found_err, why->exit, why->hint, "%s", why->msg);
	r = target_check(t->target, diag);
	if (r < 0)
		return r;
	tracee_take_found(t);
	r = target_check_mount(t->target, t->python->via, diag);
	if (r < 0)
		return r;
	r = tracee_identify(t);
	if (deadline_missed(r))
		return deadline_diag(diag, r, t->target->pid);
	return r < 0 ? diag_errno(diag, -r, "cannot look at the program of %d", t->target->pid) : 0;
}

void tracee_take_found(struct tracee *t)
{
	struct inspect_result *f = &t->found;

	if (f->python) {
		python_free(t->python);
		t->python = TAKE_PTR(f->python);
	}
	t->exec_id = f->exec_id;
	memcpy(t->target->cmdline, f->cmdline, sizeof(t->target->cmdline));
	memcpy(t->hidden, f->warning, sizeof(t->hidden));
	t->hidden_misses = f->misses;
	t->hidden_ns = tracee_now();
	tracee_warn_text(t);
	t->warned_ns = tracee_now();
}

static int prepare(struct tracee *t, struct diag *diag)
{
	int r = take_found(t, diag);

	if (r == 0)
		r = tracee_check(t, diag);
	return r < 0 ? r : begin_verifying(t, diag);
}

void tracee_prepare(struct tracee *t)
{
	t->prepared = true;
	t->prepared_err = prepare(t, &t->prepared_diag);
}

int tracee_verify_fd(const struct tracee *t)
{
	return selftest_fd(t->selftest);
}

uint64_t tracee_verify_deadline(const struct tracee *t)
{
	return selftest_deadline(t->selftest);
}

/* Costs from before are used until the new ones are known. */
static void start_calibration(struct tracee *t)
{
	const struct verify_opts vo = verify_opts_of(t);

	if (!t->calibration && t->collector->stacks && t->opts.verify)
		t->calibration = calibration_start(&vo);
}

void tracee_calibrate(struct tracee *t)
{
	if (t->prepared && !t->prepared_err && t->collector->windows)
		start_calibration(t);
}

static int check_prepared(const struct tracee *t, struct diag *diag)
{
	const struct diag *why = &t->prepared_diag;

	if (t->prepared_err < 0)
		return diag_set(diag, t->prepared_err, why->exit, why->hint, "%s", why->msg);
	if (!t->prepared || t->selftest)
		return diag_set(diag, -EBUSY, PYP_EXIT_FAILURE, "try again",
				"attaching to %d could not be completed", t->target->pid);
	return 0;
}

int tracee_open(struct tracee *t, struct diag *diag)
{
	int r = check_prepared(t, diag);

	if (r == 0)
		r = target_check(t->target, diag);
	if (r == 0)
		r = tracee_load(t, diag);
	if (r < 0)
		return r;
	strangers_find(t);
	start_calibration(t);
	free(TAKE_PTR(t->workers));
	t->first_ns = tracee_now();
	t->first_unix_ns = tracee_unix_now();
	return 0;
}
