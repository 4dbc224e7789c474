// SPDX-License-Identifier: BSD-2-Clause
/* Calls per call of the caller: see per_call.h. */
#include "stats/per_call.h"

#include <math.h>
#include <stdlib.h>

#include "base/square.h"
#include "base/student.h"

/*
 * The least number of windows. One window does not show by how much windows differ; at 1.5, of two
 * windows one has four times as many whole calls as the other.
 */
#define WINDOWS_LEAST 1.5
/* A part of the square of the expected calls. Rounding errors are smaller, deviations larger. */
#define ROUNDING 1e-9

static const struct per_call unknown = {.calls = -1, .error = 0};

enum per_call_source per_call_source(const struct snapshot *s, uint32_t thread)
{
	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];

		if (t->pid != s->threads[thread].pid)
			continue;
		if (t->mode == MODE_SAMPLE)
			return PER_CALL_NONE;
		return t->windows.sampled ? PER_CALL_WINDOWS : PER_CALL_EXACT;
	}
	return PER_CALL_EXACT;
}

void per_call_add(struct per_call_evidence *to, const struct snapshot *s, uint32_t node,
		  enum per_call_source source)
{
	if (source == PER_CALL_EXACT)
		to->exact += s->nodes[node].calls;
	if (source != PER_CALL_WINDOWS)
		return;
	to->windowed += s->nodes[node].calls;
	if (s->wholes)
		snapshot_add_whole(&to->whole, &s->wholes[node]);
}

void per_call_merge(struct per_call_evidence *to, const struct per_call_evidence *e)
{
	to->exact += e->exact;
	to->windowed += e->windowed;
	snapshot_add_whole(&to->whole, &e->whole);
}

uint64_t per_call_windows(const struct snapshot *s, uint32_t pid)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].windows.sampled && (!pid || s->targets[i].pid == pid))
			n += s->targets[i].windows.n;
	return n;
}

static struct per_call ratio_of_sums(const struct snapshot_whole *callee,
				     const struct snapshot_whole *caller, uint64_t windows)
{
	double y = caller->y, r, n, square_sum;

	if (y <= 0 || callee->x <= 0 || caller->y2 <= 0)
		return unknown;
	/* as many windows as if each had as many whole calls */
	n = fmin(square(y) / caller->y2, (double)windows);
	if (n < WINDOWS_LEAST)
		return unknown;
	r = callee->x / y;
	square_sum = square_residual(callee->x2, callee->xy, caller->y2, r);
	if (square_sum <= ROUNDING * square(r) * caller->y2)
		return (struct per_call){.calls = r};
	return (struct per_call){
		.calls = r,
		.error = sqrt(student_widened(square_sum / square(y) * n / (n - 1), n)),
	};
}

struct per_call per_call_of(const struct per_call_evidence *callee,
			    const struct per_call_evidence *caller, uint64_t windows)
{
	if (caller->windowed || caller->whole.y > 0)
		return caller->exact ? unknown
				     : ratio_of_sums(&callee->whole, &caller->whole, windows);
	if (!caller->exact || !callee->exact)
		return unknown;
	return (struct per_call){.calls = (double)callee->exact / (double)caller->exact};
}

struct per_call_evidence *per_call_contexts(const struct snapshot *s, const uint32_t *into,
					    uint32_t n)
{
	struct per_call_evidence *ret = calloc((size_t)n + 1, sizeof(*ret));
	enum per_call_source *sources = calloc((size_t)s->nthreads + 1, sizeof(*sources));

	for (uint32_t t = 0; sources && t < s->nthreads; t++)
		if (snapshot_thread_mode(s, t) != MODE_COUNT)
			sources[t] = per_call_source(s, t);
	for (uint32_t i = 0; ret && sources && i < s->nnodes; i++)
		if (!into || into[i] != SNAPSHOT_NONE)
			per_call_add(&ret[into ? into[i] : i], s, i, sources[s->nodes[i].thread]);
	if (!sources) {
		free(ret);
		return NULL;
	}
	free(sources);
	return ret;
}
