// SPDX-License-Identifier: BSD-2-Clause
/* Adds asyncio's tasks to a dump: see tasks.h. */
#include "dump/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static pid_t tid_of(const struct python_stack *stacks, size_t n, uint64_t tstate)
{
	for (size_t i = 0; tstate && i < n; i++)
		if (stacks[i].tstate == tstate)
			return stacks[i].tid;
	return 0;
}

/* A task runs if its coroutine is in a thread's stack. */
static pid_t running_in(const struct python_stack *stacks, size_t n, const struct python_task *t)
{
	uint64_t frame = t->n ? t->frames[t->n - 1].frame : 0;

	for (size_t i = 0; frame && i < n; i++)
		for (size_t k = 0; k < stacks[i].n; k++)
			if (stacks[i].frames[k].frame == frame)
				return stacks[i].tid;
	return 0;
}

static int fill_frames(struct frames *f, const struct python_task *from, struct dump_task *to)
{
	to->frames = calloc(from->n + 1, sizeof(*to->frames));
	if (!to->frames)
		return -ENOMEM;
	while (to->n < from->n) {
		const struct python_task_frame *x = &from->frames[to->n];
		struct dump_frame *y = &to->frames[to->n++];
		int r = frames_fill(f, x->code, y, NULL);

		if (r < 0)
			return r;
		y->line = x->line;
		y->moving = to->moving;
		frames_fill_locals(f, x->frame, x->code, y);
	}
	return 0;
}

/* Turns addresses into indices. Tasks that are done by now, or were not listed, are left out. */
static int fill_awaits(const struct python_tasks *all, const struct map *at,
		       const struct python_task *from, struct dump_tasks *d, struct dump_task *to)
{
	uint32_t i;

	to->awaits = calloc(from->nawaits + 1, sizeof(*to->awaits));
	if (!to->awaits)
		return -ENOMEM;
	for (size_t k = 0; k < from->nawaits; k++) {
		if (!map_get(at, from->awaits[k], &i) || i >= all->n)
			continue;
		to->awaits[to->nawaits++] = i;
		d->v[i].awaited = true;
	}
	return 0;
}

static int fill_tasks(struct dump_tasks *d, struct frames *f, const struct python_tasks *all,
		      const struct map *at, const struct python_stack *stacks, size_t n)
{
	int r = 0;

	d->v = calloc(all->n + 1, sizeof(*d->v));
	if (!d->v)
		return -ENOMEM;
	d->n = all->n;
	for (size_t i = 0; i < all->n && r == 0; i++) {
		const struct python_task *from = &all->v[i];
		struct dump_task *to = &d->v[i];
		pid_t running = running_in(stacks, n, from);

		to->moving = from->moving;
		to->running = running != 0;
		to->tid = running ? running : tid_of(stacks, n, from->tstate);
		memcpy(to->waits, from->waits, sizeof(to->waits));
		if (from->name) {
			to->name = strdup(from->name);
			r = to->name ? 0 : -ENOMEM;
		}
		if (r == 0)
			r = fill_frames(f, from, to);
		if (r == 0)
			r = fill_awaits(all, at, from, d, to);
	}
	return r;
}

static int take(struct dump_tasks *d, struct frames *f, const struct python_tasks *all,
		const struct python_stack *stacks, size_t n)
{
	struct map at = {0};
	int r = 0;

	d->note = all->note;
	d->unread = all->unread;
	for (uint32_t i = 0; i < all->n && r == 0; i++)
		r = map_put(&at, all->v[i].task, i);
	if (r == 0)
		r = fill_tasks(d, f, all, &at, stacks, n);
	map_deinit(&at);
	return r;
}

int dump_tasks(struct dump_tasks *d, struct frames *f, bool greenlets,
	       const struct python_stack *stacks, size_t n)
{
	struct python_tasks all;
	int r = (greenlets ? inspect_greenlets : inspect_tasks)(f->in, &all);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		d->err = r;
		return 0;
	}
	r = take(d, f, &all, stacks, n);
	python_tasks_deinit(&all);
	return r;
}
