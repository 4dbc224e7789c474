// SPDX-License-Identifier: BSD-2-Clause
/* Reads the targets of a saved snapshot from JSON: see load_target.h. */
#include "snapshot/load_target.h"

#include <string.h>

static void read_losses(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	static const char *const names[PYP_LOSS_MAX] = {
#define PYP_X(name, text) [PYP_LOSS_##name] = #name,
		PYP_LOSSES(PYP_X)
#undef PYP_X
	};

	for (int i = 0; i < PYP_LOSS_MAX; i++)
		t->losses[i] = loader_get_count(l, v, names[i]);
}

static void read_quality(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		*snapshot_fact(t, f) = loader_get_count(l, v, f->key);
	/* Missing in older files. */
	t->builtins = json_is_true(json_object_get(v, "builtins"));
	t->misses_calls = json_is_true(json_object_get(v, "misses_calls"));
	read_losses(l, loader_member(l, v, "losses"), t);
}

static void read_hit(struct loader *l, const json_t *v, const char *key, struct cost *c,
		     enum cost_kind k)
{
	const json_t *hit = loader_member(l, v, key);

	c->before[k] = loader_get_u32(l, hit, "before");
	c->after[k] = loader_get_u32(l, hit, "after");
}

/* Missing in files from before it was measured. */
static void read_overhead(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *hits = json_object_get(v, "hit_ns");

	if (!json_is_object(v))
		return;
	t->overhead_ns = loader_get_count(l, v, "overhead_ns");
	t->own_cpu_ns = loader_get_count(l, v, "own_cpu_ns");
	if (json_is_object(hits)) {
		t->cost.known = true;
		read_hit(l, hits, "call", &t->cost, COST_ENTER);
		read_hit(l, hits, "return", &t->cost, COST_LEAVE);
		read_hit(l, hits, "yield", &t->cost, COST_YIELD);
	}
	t->cost_scale = json_number_value(json_object_get(v, "scale"));
	if (t->cost_scale < 0)
		t->cost_scale = 0;
	t->corrected = loader_get_bool(l, v, "subtracted");
	t->subtracted[SNAPSHOT_CPU] = loader_get_u64(l, v, "subtracted_cpu_ns");
	t->subtracted[SNAPSHOT_WALL] = loader_get_u64(l, v, "subtracted_wall_ns");
	t->clamped = loader_get_count(l, v, "clamped");
}

/* Each member is present only if it applies. */
static void read_process_tree(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *children = json_object_get(v, "children");

	if (json_object_get(v, "folded"))
		t->folded = loader_get_u32(l, v, "folded");
	if (json_object_get(v, "forked_from"))
		t->parent = loader_get_u32(l, v, "forked_from");
	if (json_object_get(v, "fork_gap_ns"))
		t->fork_gap_ns = loader_get_u64(l, v, "fork_gap_ns");
	if (json_object_get(v, "execs")) {
		t->execs = loader_get_u32(l, v, "execs");
		t->exec_gap_ns = loader_get_u64(l, v, "exec_gap_ns");
	}
	t->follows = json_is_object(children);
	if (!t->follows)
		return;
	t->children.followed = loader_get_count(l, children, "followed");
	t->children.over_limit = loader_get_count(l, children, "over_limit");
	t->children.ended_first = loader_get_count(l, children, "ended_first");
	t->children.failed = loader_get_count(l, children, "failed");
}

/* Version 1 has no modes: everything was traced. */
static void read_mode(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *mode = json_object_get(v, "mode"), *estimate = json_object_get(v, "estimate");
	int number = json_is_string(mode) ? mode_parse(json_string_value(mode)) : MODE_TRACE;

	if (number < 0 || (mode && !json_is_string(mode))) {
		loader_damaged(l, "invalid \"mode\"");
		return;
	}
	t->mode = (enum mode)number;
	if (t->mode != MODE_SAMPLE && !estimate)
		return;
	if (!json_is_object(estimate)) {
		loader_damaged(l, "missing \"estimate\"");
		return;
	}
	t->estimate.rate = loader_get_u32(l, estimate, "rate_hz");
	t->estimate.period_ns = loader_get_u64(l, estimate, "period_ns");
	t->estimate.samples = loader_get_u64(l, estimate, "samples");
	t->estimate.of_probes = loader_get_count(l, estimate, "samples_of_probes");
	t->estimate.before = loader_get_count(l, estimate, "samples_before");
}

/* Present only if the target was traced in windows. */
static void read_windows(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	struct snapshot_windows *w = &t->windows;

	if (!json_is_object(v))
		return;
	w->sampled = loader_get_bool(l, v, "sampled");
	w->max_overhead = loader_get_u32(l, v, "max_overhead_percent");
	w->n = loader_get_u64(l, v, "count");
	w->span_ns = loader_get_u64(l, v, "span_ns");
	w->seen_cpu_ns = loader_get_u64(l, v, "seen_cpu_ns");
	w->all_cpu_ns = loader_get_u64(l, v, "all_cpu_ns");
	w->samples = loader_get_count(l, v, "samples");
	/* Missing in files of other versions. */
	w->samples_factor = json_real_value(json_object_get(v, "samples_factor"));
	if (json_object_get(v, "whole_ns"))
		w->whole_ns = loader_get_u64(l, v, "whole_ns");
	if (json_object_get(v, "failed"))
		w->failed = loader_get_count(l, v, "failed");
	w->unsampled = loader_get_remark(l, v, "unsampled");
}

/* Present only if the target was traced without windows. */
static void read_waits(struct loader *l, const json_t *v, struct snapshot_target *t)
{
	const json_t *calls = json_object_get(v, "other");
	struct snapshot_waits *w = &t->waits;

	if (!json_is_object(v))
		return;
	w->measured = true;
	w->gil_known = loader_get_bool(l, v, "gil_known");
	w->walked = json_object_get(v, "walks") != NULL;
	if (w->walked)
		w->walks = loader_get_u64(l, v, "walks");
	w->pairs_dropped = loader_get_u64(l, v, "gil_pairs_dropped_ns");
	w->other = snapshot_alloc(l->s, json_array_size(calls) + 1, sizeof(*w->other));
	if (!w->other) {
		loader_no_memory(l);
		return;
	}
	for (size_t i = 0; i < json_array_size(calls); i++) {
		const json_t *call = json_array_get(calls, i);

		w->other[w->nother++] = (struct snapshot_call){
			.name = loader_get_string(l, call, "syscall"),
			.ns = loader_get_u64(l, call, "ns"),
			.n = loader_get_u64(l, call, "count"),
		};
	}
}

void load_target(struct loader *l, const json_t *v)
{
	struct snapshot_target *t = loader_append(l, &l->targets);
	const json_t *python = loader_member(l, v, "python");

	if (!t)
		return;
	t->pid = loader_get_u32(l, v, "pid");
	t->cmdline = loader_get_string(l, v, "cmdline");
	t->exe = loader_get_string(l, v, "exe");
	t->python_version = loader_get_string(l, python, "version");
	t->python_file = loader_get_string(l, python, "file");
	t->build_id = loader_get_string(l, python, "build_id");
	t->mechanism = loader_get_remark(l, v, "mechanism");
	t->self_test = loader_get_remark(l, v, "self_test");
	t->warnings = loader_get_remark(l, v, "warnings");
	read_mode(l, v, t);
	t->alive = loader_get_bool(l, v, "alive");
	t->tracing = loader_get_bool(l, v, "tracing");
	t->start_ns = loader_get_u64(l, v, "start_ns");
	t->end_ns = loader_get_u64(l, v, "end_ns");
	t->start_unix_ns = loader_get_u64(l, v, "start_unix_ns");
	t->end_unix_ns = loader_get_u64(l, v, "end_unix_ns");
	t->traced_ns = loader_get_u64(l, v, "traced_ns");
	read_process_tree(l, v, t);
	read_quality(l, v, t);
	read_overhead(l, json_object_get(v, "overhead"), t);
	read_windows(l, json_object_get(v, "windows"), t);
	read_waits(l, json_object_get(v, "waits"), t);
}
