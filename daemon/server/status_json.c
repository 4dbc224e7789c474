// SPDX-License-Identifier: BSD-2-Clause
/* A target's status as JSON: see status_json.h. */
#include "server/status_json.h"

#include "base/utf8_clean.h"

static const char *const loss_names[PYP_LOSS_MAX] = {
#define PYP_X(name, text) [PYP_LOSS_##name] = #name,
	PYP_LOSSES(PYP_X)
#undef PYP_X
};

static json_t *losses_json(const struct session_status *st)
{
	json_t *o = json_object();

	for (size_t i = 0; i < PYP_LOSS_MAX; i++)
		json_object_set_new(o, loss_names[i], json_integer((json_int_t)st->losses[i]));
	return o;
}

static void set_text(json_t *o, const char *key, const char *text)
{
	char clean[512];

	json_object_set_new(o, key, json_string(utf8_clean(text, clean, sizeof(clean))));
}

static void set_count(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* Origin and children of the target */
static void set_process_tree(json_t *o, const struct session_status *st)
{
	json_t *children = json_object();

	if (st->parent) {
		set_count(o, "forked_from", (uint64_t)st->parent);
		set_count(o, "fork_gap_ns", st->fork_gap_ns);
	}
	if (st->execs) {
		set_count(o, "execs", st->execs);
		set_count(o, "exec_gap_ns", st->exec_gap_ns);
	}
	json_object_set_new(o, "over", json_boolean(st->over));
	json_object_set_new(o, "follow_children", json_boolean(st->follows));
	set_count(children, "followed", st->children.followed);
	set_count(children, "over_limit", st->children.over_limit);
	set_count(children, "ended_first", st->children.ended_first);
	set_count(children, "failed", st->children.failed);
	if (st->follows)
		json_object_set(o, "children", children);
	json_decref(children);
}

/* Windows, with their share of CPU time and of elapsed time */
static json_t *windows_json(const struct session_status *st)
{
	const struct snapshot_windows *w = &st->windows;
	double cpu = (double)w->all_cpu_ns, time = (double)w->span_ns;

	return json_pack("{s:i, s:b, s:I, s:I, s:f, s:f, s:I, s:s}", "max_overhead_percent",
			 (int)w->max_overhead, "sampled", w->sampled, "count", (json_int_t)w->n,
			 "failed", (json_int_t)w->failed, "cpu_share",
			 cpu > 0 ? (double)w->seen_cpu_ns / cpu : 1.0, "time_share",
			 time > 0 ? (double)st->traced_ns / time : 1.0, "samples",
			 (json_int_t)w->samples, "unsampled", w->unsampled ? w->unsampled : "");
}

json_t *json_of_overhead(uint64_t overhead_ns, uint64_t own_cpu_ns)
{
	const double ratio = snapshot_overhead(overhead_ns, own_cpu_ns);

	return ratio < 0 ? json_null() : json_real(ratio);
}

json_t *json_of_forecast(const struct forecast *f)
{
	if (!f->known)
		return json_null();
	return json_pack("{s:f, s:f, s:f}", "calls_per_s", f->calls_per_s, "trace", 100 * f->trace,
			 "count", 100 * f->count);
}

json_t *json_of_workers(const struct workers_use *u)
{
	char text[WORKERS_TEXT];
	const double span = u->span_ns ? (double)u->span_ns : 1;
	json_t *pids;

	if (!workers_text(u, text))
		return json_null();
	pids = json_array();
	for (size_t i = 0; i < u->n; i++)
		json_array_append_new(pids, json_integer(u->pid[i]));
	return json_pack("{s:I, s:o, s:f, s:f, s:s}", "count", (json_int_t)u->n, "pids", pids,
			 "cpus", (double)u->theirs_ns / span, "own_cpus", (double)u->own_ns / span,
			 "text", text);
}

json_t *json_of_status(const struct session_status *st)
{
	json_t *o = json_object();

	set_count(o, "pid", (uint64_t)st->pid);
	set_text(o, "state", session_state_name(st->state));
	set_text(o, "mode", mode_names[st->mode.mode]);
	if (st->mode.rate)
		set_count(o, "rate_hz", st->mode.rate);
	if (st->light)
		json_object_set_new(o, "light", json_true());
	set_text(o, "cmdline", st->cmdline);
	set_text(o, "python_version", st->python_version);
	set_text(o, "python_file", st->python_file);
	set_text(o, "build_id", st->build_id);
	set_count(o, "pending_bytes", st->pending);
	set_count(o, "traced_ns", st->traced_ns);
	set_count(o, "events", st->events);
	set_count(o, "events_per_s", st->events_per_s);
	json_object_set_new(o, "overhead", json_real(st->overhead));
	json_object_set_new(o, "overhead_in_all",
			    json_of_overhead(st->overhead_ns, st->own_cpu_ns));
	set_count(o, "overhead_ns", st->overhead_ns);
	set_count(o, "own_cpu_ns", st->own_cpu_ns);
	json_object_set_new(o, "forecast", json_of_forecast(&st->forecast));
	if (st->windows.max_overhead)
		json_object_set_new(o, "windows", windows_json(st));
	set_count(o, "lost", st->lost);
	json_object_set_new(o, "exact", json_boolean(st->lost == 0 && !st->windows.sampled));
	set_count(o, "unmatched", st->unmatched);
	set_count(o, "unseen", st->unseen);
	set_count(o, "unstarted", st->unstarted);
	set_count(o, "threads", st->threads);
	set_count(o, "functions", st->funcs);
	set_count(o, "nodes", st->nodes);
	json_object_set_new(o, "losses", losses_json(st));
	set_process_tree(o, st);
	set_text(o, "end_reason", st->end_reason);
	if (st->mechanism)
		set_text(o, "mechanism", st->mechanism);
	set_text(o, "self_test", st->self_test);
	set_text(o, "warning", st->warning);
	return o;
}

json_t *json_of_targets(struct sessions *ss, pid_t pid)
{
	json_t *list = json_array();

	for (size_t i = 0; i < sessions_count(ss); i++) {
		struct session_status st;

		sessions_status(ss, i, &st);
		if (!pid || st.pid == pid)
			json_array_append_new(list, json_of_status(&st));
	}
	return list;
}

json_t *json_of_dropped(const struct dropped_clients *d)
{
	return json_pack("{s:I, s:I, s:I}", "late", (json_int_t)d->late, "unread",
			 (json_int_t)d->unread, "crowded", (json_int_t)d->crowded);
}

json_t *json_of_attaching(const struct sessions *ss)
{
	struct session_attaching a;
	json_t *list = json_array();

	for (size_t i = 0; sessions_attaching(ss, i, &a); i++)
		json_array_append_new(list,
				      json_pack("{s:i, s:s}", "pid", (int)a.pid, "step", a.step));
	return list;
}
