/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of one target: the table that owns them, and the index of the living ones by their
 * tid. Each thread gets a root in the calling-context tree. Pure; growth is capped.
 *
 * Entries are living threads, ended ones, and rows: a row stands for many ended threads
 * (thread.folded > 0) and comes on top of the cap.
 */
#ifndef PYPROF_STACK_THREADS_H
#define PYPROF_STACK_THREADS_H

#include <stdint.h>

#include "base/map.h"
#include "stack/thread.h"
#include "stats/calltree.h"

/* This entry stands for all threads that do not fit: only their calls are counted. */
#define THREADS_OVERFLOW 0u

struct threads {
	struct calltree *tree; /* borrowed */
	struct thread **v;
	uint32_t n, cap;
	uint32_t limit; /* entries, without the overflow and rows */
	uint32_t nrows;
	struct map by_tid;	/* of living threads: tid → index in v */
	struct stack_room room; /* of the stacks of all threads */
};

/* An empty table with its overflow entry. frames: the limit of activations on all stacks together.
 * 0 or -ENOMEM; threads_deinit() is needed in both cases. */
int threads_init(struct threads *t, struct calltree *tree, uint32_t limit, uint64_t frames);
void threads_deinit(struct threads *t);

/* The living thread with this tid, or NULL. Borrowed until it is removed. */
struct thread *threads_find(const struct threads *t, uint32_t tid);
/* The same, added as of ts (ns) if there is none; NULL: it does not fit. */
struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t ts);
/* A row: it has no tid and is not alive; NULL: out of memory. */
struct thread *threads_add_row(struct threads *t);

/* The thread has ended: it stays, but is no longer found by its tid. */
void threads_retire(struct threads *t, struct thread *th);
/* Free an ended thread, whose contexts have been moved elsewhere. */
void threads_remove(struct threads *t, struct thread *th);
/* Free all ended threads and rows. The others keep their order. */
void threads_forget_dead(struct threads *t);

#endif
