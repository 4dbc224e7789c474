/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resource counters. If the user enabled them, the program reads the kernel's per-thread counters
 * at every call and return and sends a COUNTERS record before the event if one has changed. Calls
 * that cause no switch, fault or I/O therefore cost one read, and event records stay small.
 */
#ifndef PYPROF_COUNTERS_BPF_H
#define PYPROF_COUNTERS_BPF_H

#include "ring.bpf.h"

#include <bpf/bpf_core_read.h>

static __always_inline void counters_read(struct task_struct *task, __u64 *value)
{
#define PYP_X(name, field)                                                                         \
	value[PYP_COUNTER_##name] = 0;                                                             \
	if (counters & 1u << PYP_COUNTER_##name && bpf_core_field_exists(task->field))             \
		value[PYP_COUNTER_##name] = task->field;
	PYP_COUNTERS_X(PYP_X)
#undef PYP_X
}

static __noinline int counters_send(__u32 tid, const __u64 *value)
{
	struct pyp_rec_counters *r;

	if (!value)
		return -1;
	r = ring_reserve(sizeof(*r));
	if (!r) {
		count(PYP_LOSS_lost_counters);
		return -1;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_COUNTERS, 0, 0);
	for (int i = 0; i < PYP_COUNTERS; i++)
		r->value[i] = value[i];
	ring_submit(r);
	return 0;
}

static __always_inline void counters_look(struct task_struct *task, __u32 tid)
{
	__u64 value[PYP_COUNTERS], mark;

	counters_read(task, value);
	mark = core_counters_mark(value, tid, epoch);
	if (counters_cache[core_thread_slot(tid)] != mark && !counters_send(tid, value))
		counters_cache[core_thread_slot(tid)] = mark;
}

#endif
