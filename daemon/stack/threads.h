/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of one target: the table that owns them and the index of live threads by tid. Each
 * thread gets a root in the calling-context tree. Pure; growth is limited.
 *
 * Entries are live threads, ended threads and rows. A row stands for many ended threads
 * (thread.folded > 0) and is not counted in the limit.
 */
#ifndef PYPROF_STACK_THREADS_H
#define PYPROF_STACK_THREADS_H

#include <stdint.h>

#include "base/map.h"
#include "stack/thread.h"
#include "stats/calltree.h"

/* The entry for all threads beyond the limit: only their calls are counted. */
#define THREADS_OVERFLOW 0u

struct threads {
	struct calltree *tree; /* borrowed */
	struct thread **v;
	uint32_t n, cap;
	uint32_t limit; /* maximum number of entries, not counting the overflow entry and rows */
	uint32_t nrows;
	struct map by_tid;	/* live threads: tid → index in v */
	struct stack_room room; /* shared by the stacks of all threads */
};

/*
 * Creates an empty table with its overflow entry. frames: maximum number of activations on all
 * stacks. Returns 0 or -ENOMEM; call threads_deinit() in both cases.
 */
int threads_init(struct threads *t, struct calltree *tree, uint32_t limit, uint64_t frames);
void threads_deinit(struct threads *t);

/* Returns the live thread with this tid, or NULL. Borrowed until it is removed. */
struct thread *threads_find(const struct threads *t, uint32_t tid);
/*
 * Like threads_find, but adds a missing thread as of ts (ns). NULL: limit reached or out of memory.
 */
struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t ts);
/* Adds a row, which has no tid and is not alive; NULL: out of memory. */
struct thread *threads_add_row(struct threads *t);

/* Removes an ended thread from the index; the entry stays. */
void threads_retire(struct threads *t, struct thread *th);
/* Frees an ended thread, whose contexts have been moved elsewhere. */
void threads_remove(struct threads *t, struct thread *th);
/* Frees all ended threads and rows. The others keep their order. */
void threads_forget_dead(struct threads *t);

#endif
