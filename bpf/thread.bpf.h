/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads. Before the first event of a thread, and before the first one after a loss, the program
 * sends the thread's whole stack. Events are dropped and counted until the stack has been sent.
 *
 * Only the thread itself, and its exit after it has stopped running, changes its state here, so no
 * lock is needed.
 */
#ifndef PYPROF_THREAD_BPF_H
#define PYPROF_THREAD_BPF_H

#include "maps.bpf.h"

static __always_inline int thread_cached(__u32 tid)
{
	return thread_cache[core_thread_slot(tid)] == core_thread_entry(tid, epoch);
}

static __always_inline void thread_cache_add(__u32 tid)
{
	thread_cache[core_thread_slot(tid)] = core_thread_entry(tid, epoch);
}

static __always_inline void thread_cache_drop(__u32 tid)
{
	__u64 *entry = &thread_cache[core_thread_slot(tid)];

	if (*entry >> 32 == tid)
		*entry = 0;
}

enum thread_sight { SIGHT_NONE, SIGHT_KNOWN, SIGHT_LOST };

/*
 * Returns whether the thread's stack was sent since attach and, if so, whether events were lost
 * since.
 */
static __always_inline enum thread_sight thread_sight(__u32 tid)
{
	struct thread_state *st;

	if (thread_cached(tid))
		return SIGHT_KNOWN;
	st = bpf_map_lookup_elem(&threads, &tid);
	if (!st || st->epoch != epoch)
		return SIGHT_NONE;
	return st->flags & THREAD_LOST ? SIGHT_LOST : SIGHT_KNOWN;
}

/*
 * Record the loss of an event: the thread leaves the cache, and its next event is preceded by its
 * stack. Returns 0.
 */
int thread_lost(__u32 tid);

/*
 * For a thread that is not in the cache: send its stack, innermost frame first starting at `frame`,
 * unless it was sent already. kind: the site's kind, PYP_SITE_*. Returns 0 if the event can follow,
 * -1 if the event must be dropped.
 */
int thread_announce(__u32 tid, __u32 kind, __u64 frame);

#endif
