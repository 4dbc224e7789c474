/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resource counters: what the kernel counts for each thread, looked at with every call and return,
 * if that was asked for, and sent when it has changed, before the event. So calls that neither
 * switch nor fault nor read cost a look, and the records of events stay as they are.
 */
#ifndef PYPROF_METRICS_BPF_H
#define PYPROF_METRICS_BPF_H

#include "ring.bpf.h"

#include <bpf/bpf_core_read.h>

static __always_inline void metrics_read(struct task_struct *task, __u64 *value)
{
#define PYP_X(name, text, field)                                                                   \
	value[PYP_METRIC_##name] = 0;                                                              \
	if (metrics & 1u << PYP_METRIC_##name && bpf_core_field_exists(task->field))               \
		value[PYP_METRIC_##name] = task->field;
	PYP_METRICS_X(PYP_X)
#undef PYP_X
}

static __noinline int metrics_send(__u32 tid, const __u64 *value)
{
	struct pyp_rec_metrics *r;

	if (!value)
		return -1;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		count(PYP_CNT_lost_metrics);
		return -1;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_METRICS, 0, 0);
	for (int i = 0; i < PYP_METRICS; i++)
		r->value[i] = value[i];
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void metrics_look(struct task_struct *task, __u32 tid)
{
	__u64 value[PYP_METRICS], mark;

	metrics_read(task, value);
	mark = core_metrics_mark(value, tid, epoch);
	if (metrics_cache[core_thread_slot(tid)] != mark && !metrics_send(tid, value))
		metrics_cache[core_thread_slot(tid)] = mark;
}

#endif
