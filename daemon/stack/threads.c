// SPDX-License-Identifier: BSD-2-Clause
/* The threads of one target: see threads.h. */
#include "stack/threads.h"

#include <errno.h>
#include <stdlib.h>

static int reserve(struct threads *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 16;
	struct thread **v;

	if (t->n < t->cap)
		return 0;
	v = reallocarray(t->v, cap, sizeof(struct thread *));
	if (!v)
		return -ENOMEM;
	t->v = v;
	t->cap = cap;
	return 0;
}

/* Adds a thread without indexing its tid. NULL: out of memory. */
static struct thread *append(struct threads *t, uint32_t tid)
{
	struct thread *th;
	uint32_t root;

	if (reserve(t))
		return NULL;
	root = calltree_add_root(t->tree);
	if (root == NODE_NONE)
		return NULL;
	th = thread_new(tid, root);
	if (!th) {
		calltree_remove_root(t->tree, root);
		return NULL;
	}
	th->room = &t->room;
	th->at = t->n;
	t->v[t->n++] = th;
	return th;
}

int threads_init(struct threads *t, struct calltree *tree, uint32_t limit, uint64_t frames)
{
	struct thread *th;

	*t = (struct threads){.tree = tree, .limit = limit, .room.limit = frames};
	th = append(t, 0);
	if (!th)
		return -ENOMEM;
	thread_set_name(th, "(truncated)");
	th->alive = false;
	return 0;
}

void threads_deinit(struct threads *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		thread_free(t->v[i]);
	free(t->v);
	map_deinit(&t->by_tid);
}

struct thread *threads_find(const struct threads *t, uint32_t tid)
{
	uint32_t i;

	return map_get(&t->by_tid, tid, &i) ? t->v[i] : NULL;
}

struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t ts)
{
	struct thread *th = threads_find(t, tid);

	if (th)
		return th;
	/* The overflow entry is not counted in the limit; neither are rows. */
	if (t->n - t->nrows > t->limit)
		return NULL;
	th = append(t, tid);
	if (!th)
		return NULL;
	th->start_ns = th->end_ns = ts;
	if (map_put(&t->by_tid, tid, th->at)) {
		calltree_remove_root(t->tree, th->root);
		th->alive = false;
		threads_remove(t, th);
		return NULL;
	}
	return th;
}

struct thread *threads_add_row(struct threads *t)
{
	struct thread *row = append(t, 0);

	if (!row)
		return NULL;
	row->alive = false;
	t->nrows++;
	return row;
}

void threads_retire(struct threads *t, struct thread *th)
{
	th->live = th->alive = th->on_cpu = false;
	map_del(&t->by_tid, th->tid);
}

void threads_remove(struct threads *t, struct thread *th)
{
	struct thread *moved = t->v[--t->n];

	/* Cannot fail: the key exists, so the map does not grow. */
	if (moved->alive)
		map_put(&t->by_tid, moved->tid, th->at);
	t->v[th->at] = moved;
	moved->at = th->at;
	thread_free(th);
}

void threads_forget_dead(struct threads *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		struct thread *th = t->v[i];

		if (i != THREADS_OVERFLOW && !th->alive) {
			thread_free(th);
			continue;
		}
		t->v[kept] = th;
		th->at = kept;
		/* Cannot fail: the key exists, so the map does not grow. */
		if (kept != THREADS_OVERFLOW)
			map_put(&t->by_tid, th->tid, kept);
		kept++;
	}
	t->n = kept;
	t->nrows = 0;
}
