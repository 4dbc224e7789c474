/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the process: its resident pages, which the kernel reports on each change (rss_stat).
 * The program sends a record when they have changed by a step; the thread that ran then made the
 * change. Large blocks are reported where the kernel maps and unmaps them, with their addresses. If
 * the kernel lacks these tracepoints, the program instead reads the number of mapped pages at the
 * same times and at every call and return. None of this needs a probe in the target.
 *
 * In the modes without stacks of calls, each record is followed by the thread's stack, as long as
 * that costs little: see memory_affords().
 *
 * The kernel counts resident pages in batches per CPU (32 pages, more on machines with many CPUs),
 * so a record can be late by one batch per CPU. Sums are exact except for the last step and the
 * pending batches.
 */
#ifndef PYPROF_MEMORY_BPF_H
#define PYPROF_MEMORY_BPF_H

#include "kern_min.h"

#include <bpf/bpf_core_read.h>

#include "maps.bpf.h"

#define MEMORY_STEP  16 /* resident pages */
#define MEMORY_LARGE 32 /* mapped pages: 128 KiB, malloc's threshold for a mapping of its own */
#define MEMORY_PAGE  4096

/* Indices of rss_stat; index 2 counts swapped pages. */
#define MM_FILEPAGES  0
#define MM_ANONPAGES  1
#define MM_SHMEMPAGES 3

static __always_inline __s64 memory_resident(struct mm_struct *mm)
{
	struct mm_struct___6_1 *old = (struct mm_struct___6_1 *)mm;
	__s64 count[MM_SHMEMPAGES + 1] = {0};

	/*
	 * Test for the field, not for the type: for a type that the kernel lacks, libbpf searches
	 * the BTF of the modules, which needs CAP_SYS_ADMIN.
	 */
	if (!bpf_core_field_exists(old->rss_stat.count))
		return mm->rss_stat[MM_FILEPAGES].count + mm->rss_stat[MM_ANONPAGES].count +
		       mm->rss_stat[MM_SHMEMPAGES].count;
	/* By a helper: the verifier of 6.1 does not know the members of an atomic_long_t in an array. */
	bpf_core_read(count, sizeof(count), &old->rss_stat.count);
	return count[MM_FILEPAGES] + count[MM_ANONPAGES] + count[MM_SHMEMPAGES];
}

/*
 * Returns now - *last in pages if that is at least a step and this thread is the first to update
 * *last; otherwise 0.
 */
static __always_inline __s64 memory_moved(__s64 *last, __s64 now, __s64 step)
{
	__s64 before = *last, moved = now - before;

	if (moved < step && moved > -step)
		return 0;
	return __sync_val_compare_and_swap(last, before, now) == before ? moved : 0;
}

/*
 * Send a MEMORY record with changes in pages. Returns 1; 0 if the ring is full: the change is sent
 * with the next record.
 */
int memory_send(__u32 tid, __s64 resident, __s64 mapped);

/* Returns 1 if the last values belong to mm. If not, resets them from mm. */
static __always_inline int memory_is_known(struct mm_struct *mm)
{
	if (memory_of == (__u64)mm)
		return 1;
	memory_resident_last = memory_resident(mm);
	memory_mapped_last = mm->total_vm;
	memory_of = (__u64)mm;
	return 0;
}

/*
 * At calls and returns: pools, before another function runs; and mapped pages, because a new mapping
 * does not change resident pages, so rss_stat does not fire.
 */
static __always_inline void memory_look(struct task_struct *task, __u32 tid)
{
	struct mm_struct *mm;
	__s64 mapped;

	if (memory_pools)
		memory_send(tid, 0, 0);
	if (memory_blocks)
		return;
	mm = task->mm;
	if (!mm || !memory_is_known(mm))
		return;
	mapped = memory_moved(&memory_mapped_last, mm->total_vm, MEMORY_LARGE);
	if (mapped)
		memory_send(tid, 0, mapped);
}

#endif
