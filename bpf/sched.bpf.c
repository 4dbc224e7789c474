// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The scheduler's tracepoints. All modes use thread exits, forks and execs, and context switches for
 * the reasons of waiting: mode trace, which also derives CPU time from them, through on_switch, the
 * others through on_wait and on_resume.
 */
#include "counters.bpf.h"
#include "ids.bpf.h"
#include "ring.bpf.h"
#include "thread.bpf.h"
#include "wait.bpf.h"
#include "waiting.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, int preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (!active)
		return 0;
	if (task_tgid(prev) == target_tgid)
		switch_out_send(prev, (preempt & 1) || !prev_state, prev_state);
	if (task_tgid(next) == target_tgid)
		switch_in_send(next);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_wait, int preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (!active)
		return 0;
	if (task_tgid(prev) == target_tgid)
		waiting_begin(prev, (preempt & 1) || !prev_state, prev_state);
	if (task_tgid(next) == target_tgid)
		waiting_end(next);
	return 0;
}

SEC("tp_btf/sched_exit_tp")
int BPF_PROG(on_resume, int is_switch)
{
	__u64 id;

	if (!active || !is_switch)
		return 0;
	id = current_process_ids();
	if (id >> 32 == target_tgid)
		waiting_resume(id);
	return 0;
}

/*
 * Since 6.12, a thread that goes to sleep can stay in its run queue for a while, as "delayed"
 * (kernel/sched/fair.c, dequeue_entity). If load balancing moves it then to another CPU's run queue,
 * enqueue_task() begins to measure its time in that queue, and the end of the delay does not end it:
 * the kernel takes the whole sleep for time without a CPU. (Seen on 6.18: about one sleep in 1,000
 * of 8 threads on 2 CPUs.)
 */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task)
{
	if (active && task_tgid(task) == target_tgid && task->se.sched_delayed)
		delay_send(task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct pyp_rec_thread *r;
	__u32 tid = task_tid(task), tgid = task_tgid(task), arg = 0;

	if (!active)
		return 0;
	if (tgid != target_tgid) {
		if (follow && task->signal->live.counter == 0)
			bpf_map_delete_elem(&process_tree, &tgid);
		return 0;
	}
	if (counters && thread_sight(tid) == SIGHT_KNOWN)
		counters_look(task, tid);
	if (thread_sight(tid) == SIGHT_LOST)
		arg |= PYP_EXIT_LOST;
	if (task->signal->live.counter == 0)
		arg |= PYP_EXIT_GROUP;
	thread_cache_drop(tid);
	bpf_map_delete_elem(&threads, &tid);
	waiting_exit(tid);
	r = ring_reserve(sizeof(*r));
	if (!r) {
		count(PYP_LOSS_lost_threads);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_THREAD_EXIT, 0, arg);
	r->runtime = task->se.sum_exec_runtime;
	bpf_get_current_comm(r->comm, sizeof(r->comm)); /* an exiting task is the current one */
	ring_submit(r);
	return 0;
}

static __always_inline void process_send(__u32 type, struct task_struct *task, __u32 child,
					 __u32 arg, int wake)
{
	struct pyp_rec_process *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_processes);
		return;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), task_tid(task), type, 0, arg);
	r->child = child;
	r->parent = type == PYP_REC_FORK ? task_tgid(task) : 0;
	ring_submit(r);
	if (wake)
		ring_wake();
}

static __always_inline int is_in_tree(__u32 tgid)
{
	return follow && bpf_map_lookup_elem(&process_tree, &tgid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = task_tid(child), from = task_tgid(parent), arg = 0;
	__u8 one = 1;

	if (!active || child->pid != child->tgid)
		return 0;
	if (from != target_tgid && !is_in_tree(from))
		return 0;
	if (child->mm == parent->mm)
		arg = PYP_FORK_SHARED;
	if (follow && bpf_map_update_elem(&process_tree, &tgid, &one, 0))
		count(PYP_LOSS_lost_processes);
	if (follow || !arg)
		process_send(PYP_REC_FORK, parent, tgid, arg, follow);
	return 0;
}

/*
 * The process runs another program: the state of code objects and threads is invalid, and the plan
 * may be. The program reports the exec and disables all records until the daemon has checked. At
 * this point the thread that called exec already has the leader's id; old_pid is its previous one.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	__u32 tgid = task_tgid(task);

	if (!active)
		return 0;
	if (tgid == target_tgid) {
		active = 0;
		process_send(PYP_REC_EXEC, task, 0,
			     old_pid == task->pid ? 0 : PYP_EXEC_OTHER_THREAD, 1);
	} else if (is_in_tree(tgid)) {
		bpf_map_delete_elem(&process_tree, &tgid);
		process_send(PYP_REC_EXEC, task, tgid, 0, 1);
	}
	return 0;
}
