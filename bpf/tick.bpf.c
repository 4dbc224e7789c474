// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Sampling timers that several targets share. A timer interrupts its CPU whatever runs there, so one
 * for each target would cost every process on the machine that much more. The program looks up the
 * interrupted process and passes the interrupt to its target's on_sample, by a tail call.
 *
 * The daemon loads it once per sampling rate, without the other programs.
 */
#include "ids.bpf.h"

/* Processes in the daemon's pid namespace → index in tick_programs */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_TICK_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} tick_targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PYP_TICK_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} tick_programs SEC(".maps");

SEC("perf_event")
int on_tick(struct pt_regs *ctx)
{
	__u32 tgid = current_process_ids() >> 32;
	__u32 *index = bpf_map_lookup_elem(&tick_targets, &tgid);

	if (index)
		bpf_tail_call(ctx, &tick_programs, *index);
	return 0;
}
