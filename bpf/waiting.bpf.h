/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waits of threads that send no events (modes sample and count): every context switch is reported,
 * but the stack on which the thread waits must be walked, which costs some microseconds. So the
 * number of walks per second is bounded, and the choice of waits is part of each stack's record.
 *
 * A stack does not change while its thread waits. It is therefore walked after the wait, when its
 * length is known: long waits always, short ones with a probability in proportion to their length.
 * That takes a tracepoint in the context of the thread that gets the CPU, because the memory of a
 * thread that has no CPU cannot be read: sched_exit_tp (Linux 6.16). Without it (sampling.ahead),
 * one in `factor` waits is walked when it begins.
 */
#ifndef PYPROF_WAITING_BPF_H
#define PYPROF_WAITING_BPF_H

#include "stack.bpf.h"
#include "tstate.bpf.h"
#include "wait.bpf.h"

#define PF_EXITING 0x4

/* The time of a thread's last switch from a CPU, and from which it has one again; 0: it has none. */
struct off_cpu {
	__u64 since, until;
};

/* Preallocated, because no memory can be allocated during a context switch. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct off_cpu);
} off_cpu SEC(".maps");

/* ---- the choice -------------------------------------------------------------------------- */

#define RATE_NS	     100000000ull
#define RATE_QUOTA   (sampling.walks * RATE_NS / 1000000000)
#define THRESHOLD_NS 1000u /* the smallest above 0 */

/*
 * Adapt the choice to the walks in the last interval. Races between CPUs are harmless: the record
 * of each wait contains the value by which it was chosen.
 */
static __always_inline void rate_turn(__u64 now)
{
	if (now - walk_rate.begin < RATE_NS)
		return;
	if (walk_rate.walks < RATE_QUOTA / 2)
		walk_rate.threshold -= walk_rate.threshold / 4;
	if (walk_rate.threshold < THRESHOLD_NS)
		walk_rate.threshold = 0;
	for (int i = 0; i < 2; i++) {
		if (walk_rate.ahead[i] < RATE_QUOTA / 4)
			walk_rate.factor[i] -= (walk_rate.factor[i] + 3) / 4;
		walk_rate.ahead[i] = 0;
	}
	walk_rate.begin = now;
	walk_rate.walks = 0;
}

static __always_inline void rate_count_after(void)
{
	if (++walk_rate.walks > RATE_QUOTA && walk_rate.threshold < PYP_WALK_LENGTH_MAX / 2)
		walk_rate.threshold += walk_rate.threshold / 16 + THRESHOLD_NS;
}

/* Each kind of wait has half of the walks. */
static __always_inline void rate_count_ahead(int kind)
{
	if (++walk_rate.ahead[kind] > RATE_QUOTA / 2 &&
	    walk_rate.factor[kind] < PYP_WALK_FACTOR_MAX / 2)
		walk_rate.factor[kind] += walk_rate.factor[kind] / 16 + 1;
}

/* Returns 1 if the stack is to be walked, with the record's period. */
static __always_inline int choose_after(__u64 ns, __u64 *period)
{
	__u64 threshold = walk_rate.threshold;

	*period = ns < threshold ? threshold : 0;
	return ns >= threshold || bpf_get_prandom_u32() * threshold >> 32 < ns;
}

static __always_inline int choose_ahead(int kind, __u64 *period)
{
	__u64 factor = walk_rate.factor[kind];

	*period = factor ? factor : 1;
	return !(bpf_get_prandom_u32() * *period >> 32);
}

/* ---- the walk ---------------------------------------------------------------------------- */

static __always_inline void waiting_walk(__u32 tid, __u64 period, __u32 flags)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);
	struct stack_request q = {.tid = tid, .period = period, .flags = flags | PYP_SAMPLE_WAIT};

	q.ip = ARCH_IP(user);
	q.frame = current_frame(tid, ARCH_PTHREAD_SELF(task));
	stack_send(&q);
}

static __always_inline void waiting_ahead(__u32 tid, int kind)
{
	__u64 period;

	rate_turn(bpf_ktime_get_ns());
	if (!choose_ahead(kind, &period))
		return;
	rate_count_ahead(kind);
	waiting_walk(tid, period, PYP_SAMPLE_AHEAD);
}

/* ---- switches ---------------------------------------------------------------------------- */

static __always_inline void off_cpu_begin(__u32 tid)
{
	struct off_cpu *off = bpf_map_lookup_elem(&off_cpu, &tid);
	struct off_cpu fresh = {.since = bpf_ktime_get_ns()};

	if (off)
		*off = fresh;
	else if (bpf_map_update_elem(&off_cpu, &tid, &fresh, BPF_ANY))
		count(PYP_LOSS_map_full);
}

/* The thread that leaves its CPU is still the current one, so its memory can be read. */
static __always_inline void waiting_begin(struct task_struct *task, int runnable, __u32 state)
{
	__u32 tid = task_tid(task);

	if (task->flags & PF_EXITING)
		return;
	if (sampling.ahead)
		waiting_ahead(tid, !!runnable);
	else
		off_cpu_begin(tid);
	switch_out_write(task, tid, runnable, state, 0);
}

static __always_inline void waiting_end(struct task_struct *task)
{
	__u32 tid = task_tid(task);
	struct off_cpu *off;

	if (task->flags & PF_EXITING)
		return;
	if (!sampling.ahead) {
		off = bpf_map_lookup_elem(&off_cpu, &tid);
		if (off)
			off->until = bpf_ktime_get_ns();
	}
	switch_in_write(task, tid, 0);
}

/*
 * The current thread has a CPU again; its memory can be read. Some kernels do not report all of its
 * switches before (see "Switches" in README.md), so that is made up for here.
 */
static __always_inline void waiting_resume(__u32 tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct off_cpu *off = bpf_map_lookup_elem(&off_cpu, &tid);
	__u32 cpu = bpf_get_smp_processor_id() & (WALKING_CPUS - 1);
	__u64 period;

	if (!off || !off->since)
		return;
	if (!off->until) {
		off->until = bpf_ktime_get_ns();
		switch_in_write(task, tid, 0);
	}
	rate_turn(off->until);
	if (choose_after(off->until - off->since, &period)) {
		walking[cpu] = tid;
		rate_count_after();
		waiting_walk(tid, period, 0);
		walking[cpu] = 0;
	}
	off->since = 0;
}

static __always_inline void waiting_exit(__u32 tid)
{
	if (sampling.walks && !sampling.ahead)
		bpf_map_delete_elem(&off_cpu, &tid);
}

#endif
