// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reports the processes of the machine that may run Python, for continuous mode: every exec, except
 * of files that the daemon has found to be other programs, and the forks and ends of processes that
 * are watched. A process is watched from its exec until the daemon has found that it runs no Python.
 *
 * The daemon loads it once, without the other programs, and tests each process itself a moment
 * later. What the ring or the map has no room for is counted, and the daemon then scans /proc.
 */
#include "ids.bpf.h"

#include <bpf/bpf_tracing.h>

#include "pyprof/bpf_arrivals.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PYP_ARRIVALS_BYTES);
} arrivals SEC(".maps");

/* Pids in the daemon's namespace */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_ARRIVALS_WATCHED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} arrivals_watched SEC(".maps");

/* Files of programs that do not run Python */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PYP_ARRIVALS_FOREIGN);
	__type(key, struct pyp_arrival_file);
	__type(value, __u8);
} arrivals_foreign SEC(".maps");

__u64 arrivals_lost = 0;

static __always_inline void arrival_lose(void)
{
	__sync_fetch_and_add(&arrivals_lost, 1);
}

static __always_inline void arrival_send(__u32 type, __u32 pid, const struct pyp_arrival_file *file)
{
	struct pyp_arrival *r = bpf_ringbuf_reserve(&arrivals, sizeof(*r), 0);

	if (!r) {
		arrival_lose();
		return;
	}
	r->ts = bpf_ktime_get_ns();
	r->type = type;
	r->pid = pid;
	r->file = *file;
	bpf_ringbuf_submit(r, 0);
}

static __always_inline int arrival_is_watched(__u32 pid)
{
	return pid && bpf_map_lookup_elem(&arrivals_watched, &pid);
}

static __always_inline void arrival_watch(__u32 pid)
{
	__u8 one = 1;

	if (bpf_map_update_elem(&arrivals_watched, &pid, &one, BPF_ANY))
		arrival_lose();
}

/* A watched process that executes another program ends as what it was. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_arrival_exec, struct task_struct *task, int old_pid)
{
	const struct pyp_arrival_file none = {};
	struct pyp_arrival_file file = {};
	__u32 pid = task_tgid(task);

	if (!pid)
		return 0;
	file.dev = task->mm->exe_file->f_inode->i_sb->s_dev;
	file.ino = task->mm->exe_file->f_inode->i_ino;
	if (!bpf_map_lookup_elem(&arrivals_foreign, &file)) {
		arrival_watch(pid);
		arrival_send(PYP_ARRIVAL_EXEC, pid, &file);
	} else if (arrival_is_watched(pid)) {
		bpf_map_delete_elem(&arrivals_watched, &pid);
		arrival_send(PYP_ARRIVAL_EXIT, pid, &none);
	}
	return 0;
}

/* A child that shares its parent's memory (vfork) runs nothing of its own before its exec. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_arrival_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct pyp_arrival_file none = {};
	__u32 pid;

	if (child->pid != child->tgid || child->mm == parent->mm)
		return 0;
	if (!arrival_is_watched(task_tgid(parent)))
		return 0;
	pid = task_tgid(child);
	if (!pid)
		return 0;
	arrival_watch(pid);
	arrival_send(PYP_ARRIVAL_FORK, pid, &none);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_arrival_exit, struct task_struct *task)
{
	const struct pyp_arrival_file none = {};
	__u32 pid;

	if (task->signal->live.counter)
		return 0;
	pid = task_tgid(task);
	if (!arrival_is_watched(pid))
		return 0;
	bpf_map_delete_elem(&arrivals_watched, &pid);
	arrival_send(PYP_ARRIVAL_EXIT, pid, &none);
	return 0;
}
