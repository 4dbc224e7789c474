/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory: the process's resident pages, which the kernel reports as it changes them (rss_stat), and
 * its mapped pages, looked at when it does and with every call and return. A record is sent when either
 * has moved by a step. The thread at work then is the one that moved it: nothing is attached to
 * the target for this.
 *
 * The kernel counts resident pages in portions per CPU (of 32 pages, on machines with many CPUs of more),
 * so a record can be late by one portion per CPU. Sums are exact but for the last step and portions.
 */
#ifndef PYPROF_MEMORY_BPF_H
#define PYPROF_MEMORY_BPF_H

#include "kern_min.h"

#include <bpf/bpf_core_read.h>

#include "maps.bpf.h"

#define MEMORY_STEP  16 /* resident pages */
#define MEMORY_LARGE 32 /* mapped pages: 128 KiB, what malloc maps as a block of its own */
#define MEMORY_PAGE  4096

/* Kinds of resident pages. 2 is of swapped ones. */
#define MM_FILEPAGES  0
#define MM_ANONPAGES  1
#define MM_SHMEMPAGES 3

static __always_inline __s64 memory_resident(struct mm_struct *mm)
{
	struct mm_struct___6_1 *old = (struct mm_struct___6_1 *)mm;

	/* By the field, not by its type: for a type that the kernel lacks, libbpf searches the modules',
	 * which takes CAP_SYS_ADMIN. */
	if (!bpf_core_field_exists(old->rss_stat.count))
		return mm->rss_stat[MM_FILEPAGES].count + mm->rss_stat[MM_ANONPAGES].count +
		       mm->rss_stat[MM_SHMEMPAGES].count;
	return old->rss_stat.count[MM_FILEPAGES].counter +
	       old->rss_stat.count[MM_ANONPAGES].counter +
	       old->rss_stat.count[MM_SHMEMPAGES].counter;
}

/* By how much *last is behind, if that is a step, and nobody else has seen it. */
static __always_inline __s64 memory_moved(__s64 *last, __s64 now, __s64 step)
{
	__s64 before = *last, moved = now - before;

	if (moved < step && moved > -step)
		return 0;
	return __sync_val_compare_and_swap(last, before, now) == before ? moved : 0;
}

/* Returns 0. A change that finds the ring full is sent with the next one. */
int memory_send(__u32 tid, __s64 resident, __s64 mapped);

/* Is it the memory that the last figures are of? If not, they are taken from it. */
static __always_inline int memory_is_known(struct mm_struct *mm)
{
	if (memory_of == (__u64)mm)
		return 1;
	memory_resident_last = memory_resident(mm);
	memory_mapped_last = mm->total_vm;
	memory_of = (__u64)mm;
	return 0;
}

/* With calls and returns: mapping alone changes nothing that is resident. */
static __always_inline void memory_look(struct task_struct *task, __u32 tid)
{
	struct mm_struct *mm = task->mm;
	__s64 mapped;

	if (!mm || !memory_is_known(mm))
		return;
	mapped = memory_moved(&memory_mapped_last, mm->total_vm, MEMORY_LARGE);
	if (mapped)
		memory_send(tid, 0, mapped);
}

#endif
