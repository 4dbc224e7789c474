// SPDX-License-Identifier: BSD-2-Clause
/* The live view's source in continuous mode: see top_history.h. */
#include "top_history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/format.h"
#include "history.h"
#include "history/sum.h"

#define NS	   UINT64_C(1000000000)
#define LATE_MIN   (300 * UINT64_C(1000000))
#define LATE_MAX   (2 * NS)
#define INTERVAL_S 10u

/* ---- time ---- */

static const json_t *continuous_of(const json_t *status)
{
	const json_t *c = json_object_get(status, "continuous");

	return json_is_object(c) ? c : NULL;
}

bool top_history_has(const json_t *status, pid_t pid)
{
	const json_t *t;
	size_t i;

	if (!continuous_of(status))
		return false;
	json_array_foreach(json_object_get(status, "targets"), i, t)
	{
		if (pid && json_integer_value(json_object_get(t, "pid")) == pid)
			return json_is_true(json_object_get(t, "light"));
	}
	return true;
}

static uint64_t length_of(const json_t *status)
{
	json_int_t v = json_integer_value(json_object_get(continuous_of(status), "interval_ns"));

	return v > 0 ? (uint64_t)v : INTERVAL_S * NS;
}

/* Processes are cut one after the other, and intervals are completed in a thread. */
static uint64_t late(uint64_t length)
{
	const uint64_t ns = length / 10;

	return ns < LATE_MIN ? LATE_MIN : ns > LATE_MAX ? LATE_MAX : ns;
}

struct when_span top_history_span(const json_t *status, uint64_t now_ns)
{
	const uint64_t length = length_of(status);
	const uint64_t to = (now_ns - late(length)) / length * length;

	return (struct when_span){.from_ns = to - length, .to_ns = to};
}

uint64_t top_history_wait_ns(const json_t *status, uint64_t now_ns)
{
	const uint64_t length = length_of(status);

	return top_history_span(status, now_ns).to_ns + length + late(length) - now_ns;
}

/* ---- processes ---- */

struct adding {
	struct sum *sum;
	json_t *processes;
};

static uint32_t hottest(const struct snapshot *s)
{
	_cleanup_free_ uint64_t *self = calloc((size_t)s->nfuncs + 1, sizeof(*self));
	uint32_t most = SNAPSHOT_NONE;

	for (uint32_t i = 0; self && i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE)
			self[s->nodes[i].func] += s->nodes[i].self[SNAPSHOT_CPU];
	for (uint32_t i = 0; self && i < s->nfuncs; i++)
		if (!s->funcs[i].pseudo && self[i] &&
		    (most == SNAPSHOT_NONE || self[i] > self[most]))
			most = i;
	return most;
}

static json_t *process_of(const struct interval *iv)
{
	const struct snapshot *s = iv->snapshot;
	const char *service = interval_label(iv, INTERVAL_SERVICE);
	const uint32_t f = hottest(s);
	json_int_t samples = 0, cpu = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		samples += (json_int_t)s->targets[i].estimate.samples;
	for (uint32_t i = 0; i < s->nnodes; i++)
		cpu += (json_int_t)s->nodes[i].self[SNAPSHOT_CPU];
	return json_pack("[I, s, I, I, s, i, s]", (json_int_t)(s->ntargets ? s->targets[0].pid : 0),
			 service ? service : "", samples, cpu,
			 f == SNAPSHOT_NONE ? "" : s->funcs[f].filename,
			 f == SNAPSHOT_NONE ? 0 : s->funcs[f].firstlineno,
			 f == SNAPSHOT_NONE ? "(outside Python)" : s->funcs[f].name);
}

static int add_one(void *ctx, struct interval *iv, struct diag *diag)
{
	const struct adding *a = ctx;

	/* NULL is not appended: the process is shown without its service. */
	(void)json_array_append_new(a->processes, process_of(iv));
	return sum_add(a->sum, iv, diag);
}

/* ---- rows ---- */

static bool has_thread(const struct snapshot *s, const struct top_history_of *of)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if ((!of->pid || s->threads[i].pid == (uint32_t)of->pid) &&
		    (!of->tid || s->threads[i].tid == (uint32_t)of->tid))
			return true;
	return false;
}

static int rows_of(const struct snapshot *s, const struct top_history_of *of, json_t **ret,
		   struct diag *diag)
{
	const struct format_opts o = {
		.clock = s->clock,
		.filter = {.pid = (uint32_t)of->pid, .tid = (uint32_t)of->tid},
		.restrict_ = &of->callee,
		.nrestrict = of->callee != NULL,
	};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r = out ? format_write(format_find("rows"), s, &o, out, diag) : -ENOMEM;

	if (out && fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == -ENOMEM)
		return diag_errno(diag, ENOMEM, "cannot add up the intervals");
	*ret = r == 0 ? json_loadb(text, size, 0, NULL) : NULL;
	return r < 0 || *ret ? r : diag_errno(diag, EBADMSG, "cannot add up the intervals");
}

/* If nothing ran, there is no interval, or none of this thread. */
static int rows_or_none(struct sum *sum, const struct top_history_of *of, json_t **ret,
			struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	int r = sum_count(sum) ? sum_take(sum, &s, diag) : 0;
	bool counted = false;

	if (r == 0 && s && has_thread(s, of)) {
		r = rows_of(s, of, ret, diag);
		for (uint32_t i = 0; i < s->ntargets; i++)
			counted = counted || s->targets[i].mode != MODE_SAMPLE;
	} else if (r == 0) {
		*ret = json_pack("{s:[], s:[], s:[]}", "functions", "threads", "callers");
	}
	if (r == 0)
		json_object_set_new(*ret, "uncounted", json_boolean(!counted));
	return r;
}

int top_history_rows(const struct top_history_of *of, json_t **ret, struct diag *diag)
{
	_cleanup_(sum_freep) struct sum *sum = sum_new();
	_cleanup_(json_decrefp) json_t *processes = json_array();
	struct adding adding = {.sum = sum, .processes = processes};
	char condition[32];
	const char *where = condition;
	const struct history_of history = {
		.socket = of->socket, .span = of->span, .where = &where, .nwhere = of->pid != 0};
	int r;

	if (!sum || !processes)
		return diag_errno(diag, ENOMEM, "cannot read the history");
	snprintf(condition, sizeof(condition), "pid=^%d$", (int)of->pid);
	r = history_each(&history, add_one, &adding, diag);
	if (r == 0)
		r = rows_or_none(sum, of, ret, diag);
	if (r < 0)
		return r;
	json_object_set(*ret, "processes", processes);
	json_object_set_new(*ret, "interval",
			    json_pack("[I, I]", (json_int_t)of->span.from_ns,
				      (json_int_t)of->span.to_ns));
	return 0;
}
