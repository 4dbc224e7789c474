// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The definitions for maps.bpf.h. This file is linked first, because libbpf 1.1 misplaces a map
 * whose definition follows a declaration; maps that several files use therefore belong here.
 */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 pid_ns = 0;
const volatile __u32 check_tgid = 0;
const volatile __u32 by_address = 0;
const volatile __u32 counters = 0;
const volatile __u32 memory = 0;
const volatile __u32 memory_blocks = 0;
const volatile struct pyp_arenas arena_layout = {};
const volatile __u64 ring_size = 0;
const volatile __u64 ring_mask = 0;
const volatile __u64 ring_key = 0;
const volatile struct pyp_layout layout = {};
const volatile struct pyp_sampling sampling = {};

__u32 active = 0;
__u32 target_tgid = 0;
__u64 latency_ns = 0, latency_n = 0;
__u32 follow = 0;
__u32 epoch = 0;
struct pyp_ring_pos ring_pos __attribute__((aligned(64))) = {};
__u32 woken = 0;
struct pyp_sampling_at sampling_at = {};
struct pyp_trap_samples trap_samples = {};
struct pyp_walk_rate walk_rate = {};
__u32 walking[WALKING_CPUS] = {};
__u64 losses[PYP_LOSS_MAX] = {};
__u64 memory_of = 0;
__s64 memory_resident_last = 0, memory_mapped_last = 0;
__u32 memory_pools = 0;
__u64 pid_ns_address = 0;
__u32 pid_ns_level = 0;
struct pyp_site_entry site_table[PYP_SITE_SLOTS] = {};
__u64 site_factor = 0;
__u64 code_cache[CORE_CODE_SLOTS] = {};
__u64 thread_cache[CORE_THREAD_SLOTS] = {};
__u64 frame_cache[CORE_FRAME_SLOTS] = {};
__u64 counters_cache[CORE_THREAD_SLOTS] = {};

struct records_map records SEC(".maps");
struct wakes_map wakes SEC(".maps");
struct codes_map codes SEC(".maps");
struct threads_map threads SEC(".maps");
struct process_tree_map process_tree SEC(".maps");
struct tstates_map tstates SEC(".maps");
struct methods_map methods SEC(".maps");
