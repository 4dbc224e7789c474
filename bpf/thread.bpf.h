/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads: a thread first seen, or seen again after one of its events was lost, sends its whole
 * stack before the event. Until that has worked its events are dropped, and counted.
 *
 * Only the thread itself changes what we know about it (and its exit, when it runs no more), so
 * nothing here needs a lock.
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

/* Was its stack sent since attach, and have events of it been lost since then? */
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

/* The caches know nothing of the thread: from now on its events follow its stack again. */
int thread_lost(__u32 tid);

/*
 * A thread that is not in the cache: send its stack, innermost frame first from `frame` on, unless
 * it was sent already. Returns 0: its event may follow; -1: drop the event.
 */
int thread_announce(__u32 tid, __u32 kind, __u64 frame);

#endif
