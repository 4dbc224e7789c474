// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Changes of the process's memory: see memory.bpf.h. */
#include "memory.bpf.h"

#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "ring.bpf.h"
#include "thread.bpf.h"

int memory_send(__u32 tid, __s64 resident, __s64 mapped)
{
	struct pyp_rec_memory *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_memory);
		__sync_fetch_and_add(&memory_resident_last, -resident);
		__sync_fetch_and_add(&memory_mapped_last, -mapped);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_MEMORY, 0,
		 thread_sight(tid) == SIGHT_LOST ? PYP_MEMORY_LOST : 0);
	r->resident = resident * MEMORY_PAGE;
	r->mapped = mapped * MEMORY_PAGE;
	ring_submit(r);
	return 0;
}

static __always_inline void memory_changed(struct mm_struct *mm, __u32 tid)
{
	__s64 resident, mapped;

	if (!memory_is_known(mm))
		return;
	resident = memory_moved(&memory_resident_last, memory_resident(mm), MEMORY_STEP);
	mapped = memory_moved(&memory_mapped_last, mm->total_vm, MEMORY_LARGE);
	if (resident || mapped)
		memory_send(tid, resident, mapped);
}

/* Fires for every process; the program returns unless the mm is the target's. */
SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss, struct mm_struct *mm)
{
	struct task_struct *task;

	if (!active || (memory_of && memory_of != (__u64)mm))
		return 0;
	task = (struct task_struct *)bpf_get_current_task_btf();
	if (task_tgid(task) != target_tgid) {
		/*
		 * The change comes from page reclaim or from a debugger, not from a function of the
		 * target.
		 */
		if (memory_of)
			memory_resident_last = memory_resident(mm);
		return 0;
	}
	if (task->mm == mm)
		memory_changed(mm, task_tid(task));
	return 0;
}
