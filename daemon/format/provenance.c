// SPDX-License-Identifier: BSD-2-Clause
/* Provenance: see provenance.h. */
#include "format/provenance.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "format/names.h"
#include "format/overhead.h"

#define NS 1000000000u

struct loss {
	const char *name, *text;
};

static const struct loss losses[PYP_LOSS_MAX] = {
#define PYP_X(name_, text_) [PYP_LOSS_##name_] = {#name_, text_},
	PYP_LOSSES(PYP_X)
#undef PYP_X
};

static const char *clock_name(enum snapshot_clock clock)
{
	return clock == SNAPSHOT_WALL ? "wall" : "cpu";
}

/* Formats a time as UTC with milliseconds: 2025-01-31T12:00:00.000Z. 0 is an unknown time. */
static const char *iso8601(uint64_t unix_ns, char out[40])
{
	time_t seconds = (time_t)(unix_ns / NS);
	struct tm tm;
	size_t n = 0;

	if (unix_ns && gmtime_r(&seconds, &tm))
		n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 40 - n, n ? ".%03uZ" : "unknown", (unsigned)(unix_ns % NS / 1000000));
	return out;
}

/*
 * The number of independent samples has a Poisson distribution, so its standard deviation is its
 * square root.
 */
double provenance_sampling_error(uint64_t samples)
{
	return samples ? 1 / sqrt((double)samples) : 1;
}

json_t *provenance_integer(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

json_t *provenance_string(const char *s)
{
	_cleanup_free_ char *utf8 = NULL;

	if (!s)
		return json_null();
	utf8 = name_normal(s, NAME_REPLACE_SURROGATES);
	return utf8 ? json_string(utf8) : NULL;
}

bool provenance_exact(const struct snapshot *s, const struct snapshot_target *t)
{
	struct snapshot one = *s;

	/* snapshot_exact() decides for a whole snapshot; make one with this target alone. */
	one.targets = (struct snapshot_target *)t;
	one.ntargets = 1;
	return snapshot_exact(&one);
}

uint64_t provenance_lost(const struct snapshot_target *t)
{
	return t->losses[PYP_LOSS_lost_events] + t->losses[PYP_LOSS_fault_frame];
}

bool provenance_selects(const struct snapshot *s, const struct view_filter *filter,
			const struct snapshot_target *t)
{
	if (!filter->tid)
		return !filter->pid || filter->pid == t->pid;
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (s->threads[i].pid == t->pid && view_selects(filter, &s->threads[i]))
			return true;
	return false;
}

static bool all_exact(const struct snapshot *s, const struct format_opts *o)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i]) &&
		    !provenance_exact(s, &s->targets[i]))
			return false;
	return true;
}

/* ---- for machines ---- */

/* Adds a value, which may be NULL if out of memory; *ok records that. */
static void set(json_t *object, const char *key, json_t *value, bool *ok)
{
	if (json_object_set_new(object, key, value) < 0)
		*ok = false;
}

static json_t *checked(json_t *value, bool ok)
{
	if (ok)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *losses_json(const struct snapshot_target *t)
{
	json_t *ret = json_object();
	bool ok = ret;

	for (int i = 0; i < PYP_LOSS_MAX; i++)
		set(ret, losses[i].name, provenance_integer(t->losses[i]), &ok);
	return checked(ret, ok);
}

static json_t *python_json(const struct snapshot_target *t)
{
	json_t *ret = json_object();
	bool ok = ret;

	set(ret, "version", provenance_string(t->python_version), &ok);
	set(ret, "file", provenance_string(t->python_file), &ok);
	set(ret, "build_id", provenance_string(t->build_id), &ok);
	return checked(ret, ok);
}

static void set_times(json_t *ret, const struct snapshot_target *t, bool *ok)
{
	char buf[40];

	set(ret, "start", json_string(iso8601(t->start_unix_ns, buf)), ok);
	set(ret, "end", json_string(iso8601(t->end_unix_ns, buf)), ok);
	set(ret, "start_unix_ns", provenance_integer(t->start_unix_ns), ok);
	set(ret, "end_unix_ns", provenance_integer(t->end_unix_ns), ok);
	set(ret, "start_ns", provenance_integer(t->start_ns), ok);
	set(ret, "end_ns", provenance_integer(t->end_ns), ok);
	set(ret, "traced_ns", provenance_integer(t->traced_ns), ok);
	set(ret, "traced_seconds", json_real((double)t->traced_ns / NS), ok);
}

static void set_quality(json_t *ret, const struct snapshot *s, const struct snapshot_target *t,
			bool *ok)
{
	set(ret, "exact", json_boolean(provenance_exact(s, t)), ok);
	set(ret, "lost", provenance_integer(provenance_lost(t)), ok);
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		set(ret, f->key, provenance_integer(snapshot_fact_of(t, f)), ok);
	set(ret, "losses", losses_json(t), ok);
}

static json_t *hit_json(const struct cost *c, enum cost_kind k)
{
	return json_pack("{s:o, s:o}", "before", provenance_integer(c->before[k]), "after",
			 provenance_integer(c->after[k]));
}

/* Unknown costs are null. */
static json_t *overhead_json(const struct snapshot_target *t)
{
	const double ratio = snapshot_overhead(t->overhead_ns, t->own_cpu_ns);
	json_t *ret = json_object(), *hits = t->cost.known ? json_object() : json_null();
	bool ok = ret && hits;

	if (t->cost.known) {
		set(hits, "call", hit_json(&t->cost, COST_ENTER), &ok);
		set(hits, "return", hit_json(&t->cost, COST_LEAVE), &ok);
		set(hits, "yield", hit_json(&t->cost, COST_YIELD), &ok);
	}
	set(ret, "ratio", ratio < 0 ? json_null() : json_real(ratio), &ok);
	set(ret, "overhead_ns", provenance_integer(t->overhead_ns), &ok);
	set(ret, "own_cpu_ns", provenance_integer(t->own_cpu_ns), &ok);
	set(ret, "hit_ns", hits, &ok);
	if (t->cost_scale > 0)
		set(ret, "scale", json_real(t->cost_scale), &ok);
	set(ret, "subtracted", json_boolean(t->corrected), &ok);
	set(ret, "subtracted_cpu_ns", provenance_integer(t->subtracted[SNAPSHOT_CPU]), &ok);
	set(ret, "subtracted_wall_ns", provenance_integer(t->subtracted[SNAPSHOT_WALL]), &ok);
	set(ret, "clamped", provenance_integer(t->clamped), &ok);
	return checked(ret, ok);
}

/* Adds only the values that differ from the defaults. */
static void set_process_tree(json_t *ret, const struct snapshot_target *t, bool *ok)
{
	const struct snapshot_children *c = &t->children;
	json_t *children = t->follows ? json_object() : NULL;

	if (t->folded)
		set(ret, "folded", provenance_integer(t->folded), ok);
	if (t->parent)
		set(ret, "forked_from", provenance_integer(t->parent), ok);
	if (t->parent || t->folded)
		set(ret, "fork_gap_ns", provenance_integer(t->fork_gap_ns), ok);
	if (t->execs) {
		set(ret, "execs", provenance_integer(t->execs), ok);
		set(ret, "exec_gap_ns", provenance_integer(t->exec_gap_ns), ok);
	}
	if (!t->follows)
		return;
	set(children, "followed", provenance_integer(c->followed), ok);
	set(children, "over_limit", provenance_integer(c->over_limit), ok);
	set(children, "ended_first", provenance_integer(c->ended_first), ok);
	set(children, "failed", provenance_integer(c->failed), ok);
	set(ret, "children", children, ok);
}

static json_t *estimate_json(const struct snapshot_estimate *e)
{
	json_t *ret = json_object();
	bool ok = ret;

	set(ret, "rate_hz", provenance_integer(e->rate), &ok);
	set(ret, "period_ns", provenance_integer(e->period_ns), &ok);
	set(ret, "samples", provenance_integer(e->samples), &ok);
	if (e->of_probes)
		set(ret, "samples_of_probes", provenance_integer(e->of_probes), &ok);
	if (e->before)
		set(ret, "samples_before", provenance_integer(e->before), &ok);
	set(ret, "relative_error", json_real(provenance_sampling_error(e->samples)), &ok);
	return checked(ret, ok);
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 1;
}

/* The reason "other" by system call, and the share of GIL waits with a known holder. */
static json_t *waits_json(const struct snapshot_target *t)
{
	const struct snapshot_waits *w = &t->waits;
	json_t *calls = json_array();
	bool ok = true;

	for (uint32_t i = 0; i < w->nother; i++)
		ok &= json_array_append_new(calls,
					    json_pack("{s:o, s:o, s:o}", "syscall",
						      provenance_string(w->other[i].name), "ns",
						      provenance_integer(w->other[i].ns), "count",
						      provenance_integer(w->other[i].n))) == 0;
	if (!ok) {
		json_decref(calls);
		return NULL;
	}
	return json_pack("{s:b, s:o, s:o, s:o*}", "gil_known", w->gil_known, "gil_pairs_dropped_ns",
			 provenance_integer(w->pairs_dropped), "other", calls, "walks",
			 w->walked ? provenance_integer(w->walks) : NULL);
}

static json_t *windows_json(const struct snapshot_target *t)
{
	const struct snapshot_windows *w = &t->windows;
	json_t *ret = json_object();
	bool ok = ret;

	set(ret, "max_overhead_percent", provenance_integer(w->max_overhead), &ok);
	set(ret, "sampled", json_boolean(w->sampled), &ok);
	set(ret, "count", provenance_integer(w->n), &ok);
	set(ret, "failed", provenance_integer(w->failed), &ok);
	set(ret, "span_ns", provenance_integer(w->span_ns), &ok);
	set(ret, "whole_ns", provenance_integer(w->whole_ns), &ok);
	set(ret, "seen_cpu_ns", provenance_integer(w->seen_cpu_ns), &ok);
	set(ret, "all_cpu_ns", provenance_integer(w->all_cpu_ns), &ok);
	set(ret, "cpu_share", json_real(share_of(w->seen_cpu_ns, w->all_cpu_ns)), &ok);
	set(ret, "time_share", json_real(share_of(t->traced_ns, w->span_ns)), &ok);
	set(ret, "samples", provenance_integer(w->samples), &ok);
	if (w->samples_factor > 0)
		set(ret, "samples_factor", json_real(w->samples_factor), &ok);
	if (w->unsampled)
		set(ret, "unsampled", provenance_string(w->unsampled), &ok);
	return checked(ret, ok);
}

static json_t *target_json(const struct snapshot *s, const struct snapshot_target *t)
{
	json_t *ret = json_object();
	bool ok = ret;

	set(ret, "pid", provenance_integer(t->pid), &ok);
	set(ret, "cmdline", provenance_string(t->cmdline), &ok);
	set(ret, "exe", provenance_string(t->exe), &ok);
	set(ret, "python", python_json(t), &ok);
	if (t->mechanism)
		set(ret, "mechanism", provenance_string(t->mechanism), &ok);
	if (t->self_test)
		set(ret, "self_test", provenance_string(t->self_test), &ok);
	if (t->warnings)
		set(ret, "warnings", provenance_string(t->warnings), &ok);
	set(ret, "mode", json_string(mode_names[t->mode]), &ok);
	if (t->estimate.rate || t->mode == MODE_SAMPLE)
		set(ret, "estimate", estimate_json(&t->estimate), &ok);
	set(ret, "builtins", json_boolean(t->builtins), &ok);
	set(ret, "misses_calls", json_boolean(t->misses_calls), &ok);
	set(ret, "alive", json_boolean(t->alive), &ok);
	set(ret, "tracing", json_boolean(t->tracing), &ok);
	if (t->since)
		set(ret, "since", json_true(), &ok);
	set_process_tree(ret, t, &ok);
	set_times(ret, t, &ok);
	set_quality(ret, s, t, &ok);
	set(ret, "overhead", overhead_json(t), &ok);
	if (t->windows.max_overhead || t->windows.sampled)
		set(ret, "windows", windows_json(t), &ok);
	if (t->waits.measured)
		set(ret, "waits", waits_json(t), &ok);
	return checked(ret, ok);
}

static json_t *targets_json(const struct snapshot *s, const struct format_opts *o)
{
	json_t *ret = json_array();
	bool ok = ret;

	for (uint32_t i = 0; i < s->ntargets && ok; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i]))
			ok = json_array_append_new(ret, target_json(s, &s->targets[i])) == 0;
	return checked(ret, ok);
}

static json_t *filter_json(const struct view_filter *filter)
{
	json_t *ret = json_object();
	bool ok = ret;

	set(ret, "pid", filter->pid ? provenance_integer(filter->pid) : json_null(), &ok);
	set(ret, "tid", filter->tid ? provenance_integer(filter->tid) : json_null(), &ok);
	return checked(ret, ok);
}

/* Keys of the measured columns, by group. */
static json_t *columns_json(uint64_t measured)
{
	json_t *ret = json_object();
	bool ok = ret;

	for (int c = 0, end; (c = column_group_next(measured, c, &end)) < COLUMNS; c = end) {
		json_t *names = json_array();

		set(ret, column_table[c].group, names, &ok);
		for (int i = c; i < end && ok; i++)
			if (measured & COLUMN_BIT(i))
				ok = json_array_append_new(names,
							   json_string(column_table[i].name)) == 0;
	}
	return checked(ret, ok);
}

/* A higher version, so that readers that do not know modes reject a sampled or counted target. */
static json_int_t file_version(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].mode != MODE_TRACE)
			return 2;
	return 1;
}

json_t *provenance_json(const struct snapshot *s, const struct format_opts *o, const char *format)
{
	json_t *ret = json_object();
	bool ok = ret;
	char buf[40];

	set(ret, "format", json_string(format), &ok);
	set(ret, "version", json_integer(file_version(s)), &ok);
	set(ret, "program", provenance_string(s->program), &ok);
	set(ret, "host", provenance_string(s->host), &ok);
	set(ret, "kernel", provenance_string(s->kernel), &ok);
	set(ret, "taken", json_string(iso8601(s->taken_unix_ns, buf)), &ok);
	set(ret, "taken_unix_ns", provenance_integer(s->taken_unix_ns), &ok);
	set(ret, "clock", json_string(clock_name(o->clock)), &ok);
	set(ret, "exact", json_boolean(all_exact(s, o)), &ok);
	set(ret, "only_my_code", json_boolean(s->folded), &ok);
	set(ret, "strip_dirs", json_boolean(s->stripped), &ok);
	if (s->builtins_of)
		set(ret, "builtins_of", provenance_string(s->builtins_of), &ok);
	if (s->measured)
		set(ret, "columns", columns_json(s->measured), &ok);
	set(ret, "estimated", json_boolean(snapshot_estimated(s)), &ok);
	set(ret, "filter", filter_json(&o->filter), &ok);
	set(ret, "targets", targets_json(s, o), &ok);
	return checked(ret, ok);
}

/* ---- as text ---- */

struct lines {
	const struct snapshot *s;
	const struct format_opts *o;
	provenance_line_fn line;
	void *ctx;
	int err;
};

__attribute__((format(printf, 3, 4))) static void say(struct lines *l, const char *label,
						      const char *fmt, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (n < 0) {
		value = NULL;
		l->err = -ENOMEM;
		return;
	}
	l->line(l->ctx, label, value);
}

static const char *known(const char *s)
{
	return s && *s ? s : "unknown";
}

static void say_waits(struct lines *l, const struct snapshot_target *t)
{
	if (t->waits.walked && (t->waits.walks || t->mode != MODE_TRACE))
		say(l, "waits",
		    "by reason exact for each thread; distribution over functions estimated from "
		    "%" PRIu64 " stacks",
		    t->waits.walks);
}

static void say_mode(struct lines *l, const struct snapshot_target *t)
{
	const struct snapshot_estimate *e = &t->estimate;

	say_waits(l, t);
	if (t->mode != MODE_SAMPLE)
		say(l, "builtins", "%s",
		    t->builtins ? "C functions have rows of their own"
				: "C functions have no rows: their time is their callers'");
	if (t->mode == MODE_COUNT)
		say(l, "mode", "count: %s; recursive calls are not distinguished",
		    e->rate	      ? "every call; times are from samples"
		    : t->waits.walked ? "no CPU times"
				      : "counts only, no times");
	if (t->mode == MODE_TRACE && t->windows.max_overhead)
		say(l, "mode",
		    "trace: at most about %" PRIu32 " %% overhead; every call as long as that "
		    "allows it, else in windows",
		    t->windows.max_overhead);
	if (t->mode == MODE_TRACE && t->windows.sampled && e->rate)
		say(l, "samples",
		    "%" PRIu64 " at %" PRIu32 " Hz; CPU times are estimated from them, a time of "
		    "T with a standard error of sqrt(T * %.3f ms); %" PRIu64
		    " more fell within probes; excluded",
		    e->samples, e->rate, (double)e->period_ns / 1e6, e->of_probes);
	else if (t->mode == MODE_TRACE && e->rate)
		say(l, "samples",
		    "%" PRIu64 " without probes, %" PRIu64 " during the trace at %" PRIu32
		    " Hz, and %" PRIu64 " within probes: CPU times are %s them",
		    e->before, e->samples, e->rate, e->of_probes,
		    t->corrected ? "reconciled with" : "not corrected by");
	if (t->mode == MODE_TRACE || (t->mode == MODE_COUNT && !e->rate))
		return;
	say(l, "ESTIMATE",
	    "sampled at %" PRIu32 " Hz, %" PRIu64 " samples of %.3f ms of CPU time%s%s", e->rate,
	    e->samples, (double)e->period_ns / 1e6,
	    t->mode == MODE_SAMPLE ? "; no calls are counted" : "",
	    t->waits.measured ? "" : "; no waiting is seen");
	if (t->mode == MODE_COUNT)
		say(l, "probes",
		    "%" PRIu64 " more samples fell within probes (%.1f%% of all); excluded",
		    e->of_probes, 100 * (1 - share_of(e->samples, e->samples + e->of_probes)));
	if (e->before) {
		say(l, "corrected",
		    "by %" PRIu64 " samples without probes; JSON, CSV and HTML contain the "
		    "standard errors",
		    e->before);
		return;
	}
	say(l, "error",
	    "a time of T has a standard error of sqrt(T * %.3f ms); %.1f%% of all samples'",
	    (double)e->period_ns / 1e6, 100 * provenance_sampling_error(e->samples));
}

static void say_windows(struct lines *l, const struct snapshot_target *t)
{
	const struct snapshot_windows *w = &t->windows;

	say(l, "ESTIMATE",
	    "counts are from %" PRIu64
	    " windows covering %.1f%% of CPU time, %.1f%% of wall time; JSON, CSV and HTML contain "
	    "the standard errors",
	    w->n, 100 * share_of(w->seen_cpu_ns, w->all_cpu_ns),
	    100 * share_of(t->traced_ns, w->span_ns));
	if (w->whole_ns)
		say(l, "windows",
		    "since %.3f seconds after the start; before, every call was traced",
		    (double)w->whole_ns / 1e9);
	if (w->unsampled && *w->unsampled)
		say(l, "unsampled", "no samples: %s", w->unsampled);
	else if (w->samples_factor > 0)
		say(l, "probe cost", "rescaled by %.3f, from samples within probes",
		    w->samples_factor);
}

static void say_quality(struct lines *l, const struct snapshot_target *t)
{
	uint64_t lost = provenance_lost(t);

	if (t->windows.sampled)
		say_windows(l, t);
	if (t->windows.failed)
		say(l, "windows",
		    "%" PRIu64
		    " failed to open: the daemon tried again later, with less data until then",
		    t->windows.failed);
	if (provenance_exact(l->s, t) && !t->events)
		say(l, "result", "no calls recorded");
	else if (provenance_exact(l->s, t))
		say(l, "result", "exact counts: %" PRIu64 " calls%s, none lost", t->events,
		    t->mode == MODE_TRACE ? " and returns" : "");
	else if (t->mode == MODE_SAMPLE && lost)
		say(l, "LOST", "%" PRIu64 " samples also lost", lost);
	else if (t->mode == MODE_SAMPLE)
		say(l, "result", "no sample was lost");
	else if (lost)
		say(l, "LOST", "%" PRIu64 " of %" PRIu64 " events: counts are lower bounds", lost,
		    t->events + lost);
	else if (!t->windows.sampled || t->truncated || t->decode_errors)
		say(l, "INCOMPLETE", "counts are lower bounds, for the reasons below");
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		if (t->losses[i])
			say(l, "note", "%" PRIu64 " %s", t->losses[i], losses[i].text);
}

static void say_corrections(struct lines *l, const struct snapshot_target *t)
{
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		if (f->label && snapshot_fact_of(t, f))
			say(l, f->label, "%" PRIu64 " %s", snapshot_fact_of(t, f), f->text);
	if (t->misses_calls)
		say(l, "hidden", "some calls may be hidden, see WARNING");
}

static void say_overhead(struct lines *l, const struct snapshot_target *t)
{
	const struct cost *c = &t->cost;
	uint32_t call = c->before[COST_ENTER] + c->after[COST_ENTER];
	uint32_t leave = c->before[COST_LEAVE] + c->after[COST_LEAVE];
	char overhead[OVERHEAD_TEXT];

	if (overhead_text(t->overhead_ns, t->own_cpu_ns, t->folded > 1, overhead))
		say(l, "overhead", "%s", overhead);
	if (t->mode != MODE_TRACE || (t->windows.sampled && !t->subtracted[l->o->clock]))
		return;
	if (!t->corrected) {
		say(l, "times", "the probes' own time is in all figures%s",
		    c->known ? "" : ": it could not be measured");
		return;
	}
	say(l, "times",
	    "%.3f seconds of the probes' own time are subtracted: %" PRIu32 " ns per call, %" PRIu32
	    " ns per return",
	    (double)t->subtracted[l->o->clock] / NS, call, leave);
	if (t->clamped)
		say(l, "clamped",
		    "%" PRIu64 " contexts clamped to 0 (shorter than the mean probe cost)",
		    t->clamped);
}

static void say_threads(struct lines *l, const struct snapshot_target *t)
{
	uint64_t n = 0, alive = 0, folded = 0;

	for (uint32_t i = 0; i < l->s->nthreads; i++) {
		const struct snapshot_thread *thread = &l->s->threads[i];

		if (thread->pid != t->pid || !view_selects(&l->o->filter, thread))
			continue;
		n += thread->folded ? thread->folded : 1;
		folded += thread->folded;
		alive += thread->alive;
		if (l->o->filter.tid)
			say(l, "thread", "%" PRIu32 " (%s) only", thread->tid, known(thread->name));
	}
	if (l->o->filter.tid)
		return;
	say(l, "threads", "%" PRIu64 ", %" PRIu64 " of them alive", n, alive);
	if (folded)
		say(l, "", "%" PRIu64 " ended threads are added up by the function that they ran",
		    folded);
}

static double seconds_of(uint64_t ns)
{
	return (double)ns / NS;
}

/* Reports parts of the run that were not traced: the figures are correct but lack them. */
static void say_gaps(struct lines *l, const struct snapshot_target *t)
{
	if (t->folded)
		say(l, "forked", "tracing began after the forks, %.6f seconds in total",
		    seconds_of(t->fork_gap_ns));
	else if (t->parent)
		say(l, "forked",
		    "by process %" PRIu32 "; tracing began %.6f seconds after the fork", t->parent,
		    seconds_of(t->fork_gap_ns));
	if (t->execs)
		say(l, "executed",
		    "its program again, %" PRIu32 " times; %.6f seconds after that were not traced",
		    t->execs, seconds_of(t->exec_gap_ns));
}

static void say_children(struct lines *l, const struct snapshot_target *t)
{
	const struct snapshot_children *c = &t->children;

	if (!t->follows)
		return;
	say(l, "children", "%" PRIu64 " followed", c->followed);
	if (c->over_limit)
		say(l, "NOT TRACED", "%" PRIu64 " children: too many were followed already",
		    c->over_limit);
	if (c->ended_first)
		say(l, "NOT TRACED", "%" PRIu64 " children: they ended before they could be",
		    c->ended_first);
	if (c->failed)
		say(l, "NOT TRACED", "%" PRIu64 " children: following them failed", c->failed);
}

static void say_process(struct lines *l, const struct snapshot_target *t)
{
	if (t->folded)
		say(l, "processes", "%" PRIu32 " that have ended, as one", t->folded);
	else if (t->pid) /* 0: stands for many, which its command names */
		say(l, "process", "%" PRIu32 "%s", t->pid,
		    !t->alive	 ? ", ended"
		    : t->tracing ? ", running"
				 : ", running, not being traced now");
}

static void say_target(struct lines *l, const struct snapshot_target *t)
{
	char start[40], end[40];

	say_process(l, t);
	say(l, "command", "%s", known(t->cmdline));
	say(l, "executable", "%s", known(t->exe));
	say(l, "python", "%s, %s, build-id %s", known(t->python_version), known(t->python_file),
	    known(t->build_id));
	say(l, "start", "%s%s", iso8601(t->start_unix_ns, start),
	    t->since ? ", the last snapshot" : "");
	if (t->windows.sampled)
		say(l, "end", "%s, observed for %.3f seconds, traced for %.3f of them",
		    iso8601(t->end_unix_ns, end), (double)t->windows.span_ns / NS,
		    (double)t->traced_ns / NS);
	else
		say(l, "end", "%s, traced for %.3f seconds", iso8601(t->end_unix_ns, end),
		    (double)t->traced_ns / NS);
	if (t->mechanism)
		say(l, "probes", "by %s", t->mechanism);
	if (t->self_test)
		say(l, "self-test", "%s", t->self_test);
	if (t->warnings && *t->warnings)
		say(l, "WARNING", "%s", t->warnings);
	say_gaps(l, t);
	say_children(l, t);
	say_mode(l, t);
	say_threads(l, t);
	say_overhead(l, t);
	say_quality(l, t);
	say_corrections(l, t);
}

int provenance_lines(const struct snapshot *s, const struct format_opts *o, provenance_line_fn line,
		     void *ctx)
{
	struct lines l = {.s = s, .o = o, .line = line, .ctx = ctx};
	char taken[40];

	say(&l, "program", "%s", known(s->program));
	say(&l, "host", "%s, %s", known(s->host), known(s->kernel));
	say(&l, "taken", "%s", iso8601(s->taken_unix_ns, taken));
	if (snapshot_modes(s) != 1u << MODE_COUNT)
		say(&l, "clock", "%s",
		    o->clock == SNAPSHOT_WALL ? "wall: time that passed, waiting included"
					      : "cpu: the threads' own CPU time");
	if (s->busy)
		say(&l, "busy", "waits for work are left out");
	if (s->folded)
		say(&l, "folded", "standard library and installed packages into their callers");
	if (s->builtins_of)
		say(&l, "folded", "C functions that do not match '%s' into their callers",
		    s->builtins_of);
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i]))
			say_target(&l, &s->targets[i]);
	return l.err;
}
