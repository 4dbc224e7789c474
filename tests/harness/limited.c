// SPDX-License-Identifier: BSD-2-Clause
#include "harness/limited.h"

#include <math.h>

#include "accuracy/finish.h"
#include "harness/numbered.h"
#include "harness/test.h"
#include "stack/waits.h"

const struct cost limited_unknown_cost = {0};
uint64_t limited_now;

struct profile *limited_new(void)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);

	cr_assert(p);
	assert_ok(profile_keep_walks(p));
	limited_now = 1000;
	profile_in_windows(p, limited_now);
	profile_set_accuracy(p, true, 1, 0);
	return p;
}

void limited_begin(struct profile *p, uint64_t length_ns, bool whole)
{
	profile_begin(p, limited_now);
	profile_limit(p, &(struct profile_limit){length_ns, &limited_unknown_cost, whole});
}

uint64_t limited_end(struct profile *p)
{
	const uint64_t shown = profile_window_end(p, limited_now, 1);

	profile_fold(p, &(struct evidence_window){.length_ns = (double)shown,
						  .cpu_ns = INFINITY,
						  .cost = &limited_unknown_cost,
						  .times = 1});
	return shown;
}

void limited_keep(struct profile *p, bool light)
{
	profile_window_end(p, limited_now, 1);
	profile_keep(p, light);
}

static void limited_send(struct profile *p, uint32_t tid, uint8_t type, uint64_t frame,
			 unsigned int func, uint64_t caller)
{
	struct event e = {.ts = limited_now, .tid = tid, .type = type};

	e.u.call.frame = frame;
	e.u.call.code = NUMBERED_CODE(func);
	e.u.call.caller = caller;
	profile_event(p, &e);
}

void limited_enter(struct profile *p, uint32_t tid, uint64_t ns, uint64_t frame, unsigned int func,
		   uint64_t caller)
{
	limited_now += ns;
	limited_send(p, tid, PYP_REC_ENTER, frame, func, caller);
}

void limited_leave(struct profile *p, uint32_t tid, uint64_t ns, uint64_t frame)
{
	limited_now += ns;
	limited_send(p, tid, PYP_REC_LEAVE, frame, 0, 0);
}

void limited_mark(struct profile *p, uint32_t tid, uint64_t ns)
{
	limited_now += ns;
	limited_send(p, tid, PYP_REC_MARK, 0, 0, 0);
}

void limited_sample(struct profile *p, uint32_t tid, unsigned int func)
{
	const uint64_t codes[] = {NUMBERED_CODE(func), NUMBERED_CODE(0)};
	struct event e = {.ts = limited_now, .tid = tid, .type = PYP_REC_SAMPLE};

	e.u.sample = (struct event_sample){.period = LIMITED_PERIOD,
					   .count = 2,
					   .flags = PYP_SAMPLE_LAST,
					   .offset = PYP_SAMPLE_NO_OFFSET,
					   .codes = codes};
	profile_event(p, &e);
}

void limited_take_into(struct profile *p, struct snapshot *s, uint32_t pid)
{
	struct snapshot_target *t;

	s->targets = snapshot_grow(s, &(struct snapshot_room){0}, s->targets, s->ntargets, 1,
				   sizeof(*s->targets));
	cr_assert(s->targets);
	t = &s->targets[s->ntargets++];
	t->pid = pid;
	t->mode = MODE_TRACE;
	t->estimate.rate = 999;
	t->estimate.period_ns = LIMITED_PERIOD;
	assert_ok(profile_snapshot(p, limited_now, pid, s, t));
	cr_assert(snapshot_valid(s));
}

struct snapshot *limited_take(struct profile *p)
{
	struct snapshot *s = snapshot_new();

	cr_assert(s);
	limited_take_into(p, s, 7);
	return s;
}

struct snapshot *limited_finished(struct profile *p)
{
	struct snapshot *s = limited_take(p);

	assert_ok(snapshot_finish(s, false));
	cr_assert(snapshot_valid(s));
	return s;
}

bool limited_is_named(const struct snapshot *s, uint32_t node, const char *name)
{
	const uint32_t func = s->nodes[node].func;

	return func != SNAPSHOT_NONE && strcmp(s->funcs[func].name, name) == 0;
}

struct limited_sums limited_sums(const struct snapshot *s, const char *name)
{
	struct limited_sums ret = {0};

	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (!limited_is_named(s, i, name))
			continue;
		ret.calls += s->nodes[i].calls;
		ret.cpu += s->nodes[i].self[SNAPSHOT_CPU];
		ret.wall += s->nodes[i].self[SNAPSHOT_WALL];
		ret.rest_calls += s->rest ? s->rest[i].calls : 0;
		ret.rest_cpu += s->rest ? s->rest[i].cpu : 0;
		ret.x += s->wholes ? s->wholes[i].x : 0;
		ret.y += s->wholes ? s->wholes[i].y : 0;
	}
	return ret;
}

uint64_t limited_column(const struct snapshot *s, const char *name, int column)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!name || limited_is_named(s, i, name))
			sum += snapshot_figure(s, column, i);
	return sum;
}

void limited_check_sums(const struct snapshot *s)
{
	for (uint32_t t = 0; t < s->nthreads; t++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			uint64_t sum = 0;

			for (uint32_t i = 0; i < s->nnodes; i++)
				sum += s->nodes[i].thread == t ? s->nodes[i].self[c] : 0;
			cr_assert_eq(s->threads[t].total[c], sum);
		}
	for (uint32_t i = 0; i < s->nnodes; i++) {
		uint64_t sum = 0;

		for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
			sum += snapshot_figure(s, c, i);
		cr_assert_eq(sum, s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU]);
	}
}

struct evidence_node limited_seen(const struct profile *p, unsigned int func)
{
	struct evidence_node sum = {.calls = 0};
	char name[16];

	snprintf(name, sizeof(name), "f%u", func);
	for (uint32_t i = 0; i < p->evidence.n; i++) {
		const struct node *n = &p->rb.tree.nodes[i];

		if (n->func == SNAPSHOT_NONE || strcmp(profile_func(p, n->func).name, name) != 0)
			continue;
		sum.calls += p->evidence.nodes[i].calls;
		sum.cpu += p->evidence.nodes[i].cpu;
	}
	return sum;
}

void limited_drop(struct profile *p)
{
	profile_free(p);
	check_no_leaks();
}

void limited_c_call(struct profile *p, uint8_t type, uint64_t frame)
{
	struct event e = {.ts = limited_now += 10, .tid = 1, .type = type};

	e.u.c_call.frame = frame;
	e.u.c_call.method = 0x7000;
	profile_event(p, &e);
}
