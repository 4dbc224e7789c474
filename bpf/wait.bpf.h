/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Context switches, and the reason why a thread leaves its CPU, derived from its registers at
 * kernel entry. The thread that is switched out is the current one, so the program can read its
 * descriptor table. RCU keeps a file that another thread closes meanwhile readable until the
 * program ends.
 */
#ifndef PYPROF_WAIT_BPF_H
#define PYPROF_WAIT_BPF_H

#include "ids.bpf.h"
#include "ring.bpf.h"
#include "thread.bpf.h"

const volatile __u64 fd_calls[PYP_FD_CALLS / 64] =
	{}; /* system calls to report the kind of descriptor for */
struct pyp_gil_range gil_ranges[PYP_GIL_RANGES] = {}; /* ends at the first range of size 0 */

#define TASK_STOPPED_OR_TRACED (0x4 | 0x8)

#define MODE_TYPE	    0170000
#define MODE_FIFO	    0010000
#define MODE_DIRECTORY	    0040000
#define MODE_BLOCK	    0060000
#define MODE_FILE	    0100000
#define MODE_SOCKET	    0140000
#define ANON_INODE_FS_MAGIC 0x09041934 /* eventfd, timerfd: S_IFREG since 6.16 */

static __always_inline __u8 kind_of_inode(struct inode *inode)
{
	switch (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) {
	case MODE_SOCKET:
		return PYP_FD_SOCKET;
	case MODE_FIFO:
		return PYP_FD_PIPE;
	case MODE_FILE:
		if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
			return PYP_FD_OTHER;
		return PYP_FD_FILE;
	case MODE_DIRECTORY:
	case MODE_BLOCK:
		return PYP_FD_FILE;
	default:
		return PYP_FD_OTHER;
	}
}

/*
 * The task is a pointer that the verifier knows, so loads through it need no helper call (26 ns
 * each) up to the array of descriptors, whose elements it does not know.
 */
static __always_inline __u8 kind_of_fd(struct task_struct *task, __u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *table = files ? files->fdt : NULL;
	struct file *file = NULL;
	struct inode *inode;

	if (!table || fd >= table->max_fds)
		return PYP_FD_UNKNOWN;
	if (bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd) || !file)
		return PYP_FD_UNKNOWN;
	inode = BPF_CORE_READ(file, f_inode);
	return inode ? kind_of_inode(inode) : PYP_FD_UNKNOWN;
}

static __always_inline int gil_find(__u64 address, __u8 *ret)
{
	for (int i = 0; i < PYP_GIL_RANGES; i++) {
		if (!gil_ranges[i].size)
			return 0;
		if (address - gil_ranges[i].start >= gil_ranges[i].size)
			continue;
		*ret = gil_ranges[i].gil;
		return 1;
	}
	return 0;
}

/* Fill the reason for a thread that is blocked in a system call. */
static __always_inline void wait_of_call(struct pyp_rec_switch_out *r, struct task_struct *task,
					 struct pt_regs *user)
{
	__s64 nr = ARCH_SYSCALL(user);
	__u8 gil = 0;

	r->wait = PYP_WAIT_SYSCALL;
	r->syscall = nr;
	r->arg[0] = ARCH_SYSCALL_ARG0(user);
	r->arg[1] = ARCH_SYSCALL_ARG1(user);
	if (nr == ARCH_NR_FUTEX && gil_find(r->arg[0], &gil)) {
		r->wait = PYP_WAIT_GIL;
		r->gil = gil;
	}
	if (nr < PYP_FD_CALLS &&
	    fd_calls[((__u64)nr >> 6) & (PYP_FD_CALLS / 64 - 1)] >> (nr & 63) & 1)
		r->fd = kind_of_fd(task, r->arg[0]);
}

static __always_inline void wait_fill(struct pyp_rec_switch_out *r, struct task_struct *task,
				      int runnable, __u32 state)
{
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);

	r->arg[0] = r->arg[1] = 0;
	r->syscall = -1;
	r->fd = r->gil = r->pad = 0;
	if (runnable)
		r->wait = PYP_WAIT_CPU;
	else if (state & TASK_STOPPED_OR_TRACED)
		r->wait = PYP_WAIT_STOPPED;
	else if (ARCH_SYSCALL(user) < 0)
		r->wait = PYP_WAIT_FAULT;
	else
		wait_of_call(r, task, user);
}

static __always_inline void switch_out_write(struct task_struct *task, __u32 tid, int runnable,
					     __u32 state, __u32 arg)
{
	struct pyp_rec_switch_out *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_switches);
		return;
	}
	if (runnable)
		arg |= PYP_SWITCH_RUNNABLE;
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_SWITCH_OUT, 0, arg);
	r->runtime = task->se.sum_exec_runtime;
	r->delay = bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay
								     : 0;
	wait_fill(r, task, runnable, state);
	ring_submit(r);
}

static __always_inline void switch_out_send(struct task_struct *task, int runnable, __u32 state)
{
	__u32 tid = task_tid(task);
	enum thread_sight sight = thread_sight(tid);

	if (sight != SIGHT_NONE)
		switch_out_write(task, tid, runnable, state,
				 sight == SIGHT_LOST ? PYP_SWITCH_LOST : 0);
}

static __always_inline void delay_send(struct task_struct *task)
{
	__u32 tid = task_tid(task);
	struct pyp_rec *r;

	if (!sampling.walks && thread_sight(tid) == SIGHT_NONE)
		return;
	r = ring_reserve(sizeof(*r));
	if (!r) {
		count(PYP_LOSS_lost_switches);
		return;
	}
	rec_head(r, bpf_ktime_get_ns(), tid, PYP_REC_DELAY, 0, 0);
	ring_submit(r);
}

static __always_inline void switch_in_write(struct task_struct *task, __u32 tid, __u32 arg)
{
	struct pyp_rec_switch *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_switches);
		return;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_SWITCH_IN, 0, arg);
	r->runtime = task->se.sum_exec_runtime;
	ring_submit(r);
}

static __always_inline void switch_in_send(struct task_struct *task)
{
	__u32 tid = task_tid(task);
	enum thread_sight sight = thread_sight(tid);

	if (sight != SIGHT_NONE)
		switch_in_write(task, tid, sight == SIGHT_LOST ? PYP_SWITCH_LOST : 0);
}

#endif
