// SPDX-License-Identifier: BSD-2-Clause
/* Reads tasks several times: see task_readings.h. */
#include "python/task_readings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define MAX_READS (1u << 20)
#define ROUNDS	  6u

static bool same_task(const struct python_task *a, const struct python_task *b)
{
	if (a->task != b->task || a->n != b->n || a->nawaits != b->nawaits ||
	    a->tstate != b->tstate || strcmp(a->waits, b->waits) != 0 || !a->name != !b->name ||
	    (a->name && strcmp(a->name, b->name) != 0))
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->frames[i].frame != b->frames[i].frame ||
		    a->frames[i].code != b->frames[i].code ||
		    a->frames[i].line != b->frames[i].line)
			return false;
	return !a->nawaits || memcmp(a->awaits, b->awaits, a->nawaits * sizeof(*a->awaits)) == 0;
}

/* Marks tasks that differ from the earlier reading. Returns whether there are none. */
static bool compare(struct python_tasks *now, const struct python_tasks *before, struct map *at)
{
	bool same = now->n == before->n && now->unread == before->unread;
	uint32_t i;

	map_clear(at);
	for (i = 0; i < before->n; i++)
		if (map_put(at, before->v[i].task, i) < 0)
			return false;
	for (size_t k = 0; k < now->n; k++) {
		struct python_task *t = &now->v[k];

		t->moving = !map_get(at, t->task, &i) || !same_task(t, &before->v[i]);
		same &= !t->moving;
	}
	return same;
}

int task_readings(const struct python *py, const struct memory *mem, task_reading_fn fn, void *ctx,
		  struct python_tasks *ret)
{
	_cleanup_(values_freep) struct values *v = values_new(py, mem, MAX_READS);
	struct python_tasks now = {0};
	struct map at = {0};
	bool same = false;
	int r = v ? fn(v, ctx, &now) : -ENOMEM;

	for (unsigned int i = 1; r == 0 && !same && i < ROUNDS; i++) {
		struct python_tasks before = now;

		values_refresh(v);
		now = (struct python_tasks){0};
		r = fn(v, ctx, &now);
		same = r == 0 && compare(&now, &before, &at);
		python_tasks_deinit(&before);
	}
	map_deinit(&at);
	if (r < 0) {
		python_tasks_deinit(&now);
		return r;
	}
	*ret = now;
	return 0;
}

void python_task_deinit(struct python_task *t)
{
	free(t->name);
	free(t->frames);
	free(t->awaits);
}

void python_tasks_deinit(struct python_tasks *t)
{
	for (size_t i = 0; i < t->n; i++)
		python_task_deinit(&t->v[i]);
	free(t->v);
	*t = (struct python_tasks){0};
}
