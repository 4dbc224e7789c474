/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Process and thread ids in the daemon's pid namespace. If that is the init namespace, the kernel's
 * own numbers apply and the conversion costs nothing.
 */
#ifndef PYPROF_IDS_BPF_H
#define PYPROF_IDS_BPF_H

#include "maps.bpf.h"

#include <bpf/bpf_core_read.h>

/* The kernel's limit on nested pid namespaces (MAX_PID_NS_LEVEL). */
#define PID_NS_LEVELS 32

/*
 * Same layout as struct upid: a number and its namespace. Read with one helper call, because each
 * call is expensive.
 */
struct id {
	__u32 nr;
	__u32 pad;
	__u64 ns;
};

/* The number of a struct pid at a namespace level. */
static __always_inline struct id id_at(__u64 pid, __u32 level)
{
	struct id id = {};

	bpf_probe_read_kernel(&id, sizeof(id),
			      (void *)(pid + bpf_core_field_offset(struct pid, numbers) +
				       level * bpf_core_type_size(struct upid)));
	return id;
}

static __always_inline __u32 ns_inode(__u64 ns)
{
	__u32 inode = 0;

	bpf_probe_read_kernel(&inode, sizeof(inode),
			      (void *)(ns + bpf_core_field_offset(struct pid_namespace, ns) +
				       bpf_core_field_offset(struct ns_common, inum)));
	return inode;
}

/* Search the process's namespaces for the daemon's, and cache the level at which it was found. */
static __always_inline __u32 id_search(__u64 pid, __u32 deepest)
{
	for (__u32 level = 0; level < PID_NS_LEVELS && level <= deepest; level++) {
		struct id id = id_at(pid, level);

		if (ns_inode(id.ns) != pid_ns)
			continue;
		pid_ns_level = level;
		pid_ns_address = id.ns;
		return id.nr;
	}
	return 0;
}

/* The number of a struct pid in the daemon's namespace; 0 if it has none there, or no longer. */
static __noinline __u32 id_of(struct pid *pid)
{
	__u32 deepest;
	struct id id;

	if (!pid)
		return 0;
	deepest = pid->level;
	if (!pid_ns_address)
		return id_search((__u64)pid, deepest);
	if (deepest < pid_ns_level)
		return 0;
	id = id_at((__u64)pid, pid_ns_level);
	return id.ns == pid_ns_address ? id.nr : 0;
}

static __always_inline __u32 task_tid(struct task_struct *task)
{
	return pid_ns ? id_of(task->thread_pid) : (__u32)task->pid;
}

static __always_inline __u32 task_tgid(struct task_struct *task)
{
	return pid_ns ? id_of(task->group_leader->thread_pid) : (__u32)task->tgid;
}

/* Returns the ids of the current process (upper half) and thread, like bpf_get_current_pid_tgid. */
static __always_inline __u64 current_process_ids(void)
{
	struct task_struct *task;

	if (!pid_ns)
		return bpf_get_current_pid_tgid();
	task = (struct task_struct *)bpf_get_current_task_btf();
	return (__u64)task_tgid(task) << 32 | task_tid(task);
}

/*
 * Like current_process_ids, for a program whose link may filter by process. If the link filters,
 * the program does not need the process id; in a pid namespace, where the lookup is expensive, it
 * is 0.
 */
static __always_inline __u64 current_ids(void)
{
	if (!pid_ns)
		return bpf_get_current_pid_tgid();
	if (check_tgid)
		return current_process_ids();
	return task_tid((struct task_struct *)bpf_get_current_task_btf());
}

/*
 * Builds for tests only (make HITS_SLOWER_NS=3000): each hit takes this much longer, as on a machine whose
 * hypervisor handles traps in software.
 */
#ifdef HITS_SLOWER_NS
static __always_inline void hit_slower(void)
{
	const __u64 begun = bpf_ktime_get_ns();

	/* The verifier wants a bound; a look at the clock takes 20 ns and more. */
	for (int i = 0; i < HITS_SLOWER_NS / 20 && bpf_ktime_get_ns() - begun < HITS_SLOWER_NS; i++)
		;
}
#else
static __always_inline void hit_slower(void)
{
}
#endif

#endif
