// SPDX-License-Identifier: BSD-2-Clause
/* Counters of functions: see totals.h. */
#include "server/totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/names.h"
#include "format/table.h"
#include "accuracy/finish.h"
#include "snapshot/since.h"

#define HALF_LIFE_NS (300.0 * CLOCK_NS_PER_S)

/* ---- targets ---- */

static void function_deinit(struct totals *t, struct total_function *f)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		t->durations_bytes -= f->durations[c].len * sizeof(*f->durations[c].n);
		free(f->durations[c].n);
	}
}

static void target_deinit(struct totals *t, struct total_target *target)
{
	for (uint32_t i = 0; i < target->n; i++)
		function_deinit(t, &target->functions[i]);
	free(target->functions);
	strtab_deinit(&target->names);
	snapshot_free(target->before);
	*target = (struct total_target){0};
}

static void remove_target(struct totals *t, size_t i)
{
	target_deinit(t, &t->v[i]);
	t->v[i] = t->v[--t->n];
}

void totals_deinit(struct totals *t)
{
	while (t->n)
		remove_target(t, t->n - 1);
	free(t->v);
	*t = (struct totals){0};
}

static struct total_target *find_target(struct totals *t, const struct snapshot_target *of)
{
	struct total_target *v;

	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].pid != of->pid)
			continue;
		if (t->v[i].start_ns == of->start_ns)
			return &t->v[i];
		remove_target(t, i);
		break;
	}
	v = reallocarray(t->v, t->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	t->v = v;
	v[t->n] = (struct total_target){
		.pid = of->pid, .start_ns = of->start_ns, .names = {.limit = UINT64_MAX}};
	return &v[t->n++];
}

/* ---- functions ---- */

/* The name as in other reports of one line; long ones are cut in the middle. */
static char *shown_name(const char *std)
{
	char *ret = NULL;
	size_t size;
	FILE *f = open_memstream(&ret, &size);

	if (!f)
		return NULL;
	name_print(f, std, NAME_REPEATED);
	if (fclose(f) == 0)
		return ret;
	free(ret);
	return NULL;
}

/* *ret NULL: there are too many. */
static int find_function(struct total_target *target, const char *std, struct total_function **ret)
{
	_cleanup_free_ char *name = shown_name(std);
	struct total_function *v;
	uint32_t id;

	*ret = NULL;
	if (!name)
		return -ENOMEM;
	if (target->n == target->cap) {
		const uint32_t cap = target->cap ? 2 * target->cap : 64;

		v = reallocarray(target->functions, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		target->functions = v;
		target->cap = cap;
	}
	if (target->names.n >= TOTALS_FUNCTIONS)
		return 0;
	if (strtab_add(&target->names, name, &id) < 0)
		return -ENOMEM;
	if (id == target->n)
		target->functions[target->n++] = (struct total_function){0};
	*ret = &target->functions[id];
	return 0;
}

static int add_durations(struct totals *t, struct histogram *to, const struct histogram *from)
{
	for (uint32_t i = 0; i < from->len; i++) {
		const uint32_t bucket = from->first + i;

		if (!from->n[i])
			continue;
		if (!histogram_has(to, bucket)) {
			size_t bytes;

			if (t->durations_bytes > TOTALS_DURATIONS)
				continue;
			bytes = histogram_grow(to, bucket);
			if (!bytes)
				return -ENOMEM;
			t->durations_bytes += bytes;
		}
		to->n[bucket - to->first] += from->n[i];
	}
	return 0;
}

static void add_collections(struct total_target *target, const struct view_row *r)
{
	target->has_gc = true;
	target->collections += r->ncalls;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		target->gc[c] += r->tot[c];
}

static int add_row(struct totals *t, struct total_target *target, const struct view_row *r,
		   const char *std, const struct snapshot *s)
{
	const struct snapshot_func *f = &s->funcs[r->func];
	struct total_function *to;
	int err = find_function(target, std, &to);

	if (err < 0 || !to)
		return err;
	to->calls += r->ncalls;
	to->score += (double)r->tot[s->clock];
	target->has_calls |= r->ncalls > 0;
	for (int c = 0; c < SNAPSHOT_CLOCKS && !err; c++) {
		to->self[c] += r->tot[c];
		target->has_self[c] |= r->tot[c] > 0;
		if (f->durations)
			err = add_durations(t, &to->durations[c], &f->durations[c].histogram);
	}
	if (!target->has_self[s->clock])
		to->score += (double)r->ncalls;
	return err;
}

static int add_rows(struct totals *t, struct total_target *target, const struct snapshot *s)
{
	_cleanup_(table_freep) struct table *table = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	int err = view_build(s, NULL, &v);

	if (!err)
		err = table_build(v, SNAPSHOT_CPU, &table);
	for (size_t i = 0; !err && i < v->nrows; i++) {
		const struct snapshot_func *f = &s->funcs[v->rows[i].func];

		if (snapshot_func_is_gc(f))
			add_collections(target, &v->rows[i]);
		else if (!f->pseudo)
			err = add_row(t, target, &v->rows[i],
				      table->rows[table->row_of[v->rows[i].func]].std, s);
	}
	return err;
}

static void add_waits(struct total_target *target, const struct snapshot *s)
{
	target->has_waits |= s->targets[0].waits.measured;
	for (int c = 0; c < TOTALS_WAITS; c++)
		for (uint32_t i = 0; i < s->nnodes; i++)
			target->waits[c] += snapshot_figure(s, COLUMN_WAITS_FIRST + c, i);
}

/* ---- intervals ---- */

void totals_begin(struct totals *t)
{
	t->skipped = 0;
	for (size_t i = 0; i < t->n; i++)
		t->v[i].seen = false;
}

/* The snapshot becomes the interval since the last one. */
static int make_interval(struct snapshot *s, const struct snapshot *before)
{
	if (before && snapshot_subtract(s, before) < 0)
		return -ENOMEM;
	return snapshot_finish(s, false);
}

static int add_interval(struct totals *t, struct total_target *target, struct snapshot *s,
			double decay)
{
	int err = make_interval(s, target->before);

	for (uint32_t i = 0; i < target->n; i++)
		target->functions[i].score *= decay;
	if (!err)
		err = add_rows(t, target, s);
	if (err)
		return err;
	add_waits(target, s);
	target->probes_ns += s->targets[0].subtracted[SNAPSHOT_CPU];
	return 0;
}

static size_t bytes_before(const struct totals *t)
{
	size_t ret = 0;

	for (size_t i = 0; i < t->n; i++)
		ret += t->v[i].before_bytes;
	return ret;
}

int totals_add(struct totals *t, struct snapshot *owned, uint64_t now_ns)
{
	_cleanup_(snapshot_freep) struct snapshot *s = owned;
	_cleanup_(snapshot_freep) struct snapshot *copy = snapshot_copy(s);
	const double decay = t->at_ns ? exp2(-(double)(now_ns - t->at_ns) / HALF_LIFE_NS) : 1;
	struct total_target *target = find_target(t, &s->targets[0]);
	const size_t max = t->max ? t->max : TOTALS_BYTES;
	int err;

	if (!target || !copy)
		return -ENOMEM;
	target->before_bytes = snapshot_bytes(copy);
	if (bytes_before(t) > max) {
		target->before_bytes = 0;
		t->skipped++; /* and is forgotten by totals_end() */
		return 0;
	}
	err = add_interval(t, target, s, decay);
	if (err < 0)
		return err;
	snapshot_free(target->before);
	target->before = TAKE_PTR(copy);
	target->seen = true;
	return 0;
}

void totals_end(struct totals *t, size_t top, uint64_t now_ns)
{
	for (size_t i = t->n; i-- > 0;) {
		if (!t->v[i].seen)
			remove_target(t, i);
		else
			(void)totals_choose(t->v[i].functions, t->v[i].n, top);
	}
	t->at_ns = now_ns;
}

/* ---- what is shown ---- */

struct ranked {
	double score;
	uint32_t index;
};

/* Of equal scores, the function that was there first: the order does not change by itself. */
static int compare_ranks(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

int totals_choose(struct total_function *v, uint32_t n, size_t top)
{
	_cleanup_free_ struct ranked *ranks = calloc((size_t)n + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = (struct ranked){v[i].score, i};
	qsort(ranks, n, sizeof(*ranks), compare_ranks);
	for (uint32_t rank = 0; rank < n; rank++) {
		struct total_function *f = &v[ranks[rank].index];

		f->shown = f->score > 0 && (rank < top || (f->shown && rank < 2 * top));
	}
	return 0;
}
