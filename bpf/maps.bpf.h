/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the BPF programs share with the daemon, one instance per target: the ring, the maps of what
 * has been seen, the knobs set before load (.rodata), and the state that the daemon changes through
 * its mapping of .bss.
 */
#ifndef PYPROF_MAPS_BPF_H
#define PYPROF_MAPS_BPF_H

#include "core.bpf.h"

/* Knobs: constants to the verifier, so what a target does not need costs nothing. */
const volatile __u32 pid_ns = 0;     /* the daemon's pid namespace's inode; 0: the init one */
const volatile __u32 check_tgid = 0; /* 1: the link cannot filter by process, do it here */
const volatile __u32 by_address = 0; /* 1: no cookies, sites are told by their address */
const volatile __u32 metrics = 0;    /* bits: which resource counters are looked at */
const volatile __u64 ring_half = 0;  /* bytes in the ring that are worth a wake-up */
const volatile struct pyp_layout layout = {};
const volatile struct pyp_sampling sampling = {};

/* State. */
__u32 active = 0;		 /* PYP_ACTIVE_*: the daemon's to set, and cleared by an exec */
__u32 target_tgid = 0;		 /* in the daemon's pid namespace; no knob: see probe_set_target */
__u64 gauge_ns = 0, gauge_n = 0; /* from events' clocks to their ends, and of how many */
__u32 follow = 0;		 /* tell at once about children, and about theirs */
__u32 epoch = 0; /* bumped at attach: what was learnt about threads before is void */
__u32 woken = 0; /* the daemon was woken for a half full ring and has not drained it since */
struct pyp_sampling_at sampling_at = {};
__u64 stray_ns = 0; /* the last hit between windows: see on_sample */
struct pyp_trap_samples trap_samples = {};
__u64 counters[PYP_CNT_MAX] = {};

/* Where the daemon's pid namespace is in the kernel, found when first needed. */
__u64 pid_ns_address = 0;
__u32 pid_ns_level = 0;

/* Where there are no cookies: the sites by address, no two in one slot. */
struct pyp_site_entry site_table[PYP_SITE_SLOTS] = {};
__u64 site_factor = 0;

/*
 * Direct-mapped caches in front of the maps below: a plain load (~1 ns) instead of a hash lookup
 * (~27 ns) on every event. Entries are single aligned words, so racing writers are harmless: the
 * loser's entry is found again in the map.
 */
__u64 code_cache[CORE_CODE_SLOTS] = {};
__u64 thread_cache[CORE_THREAD_SLOTS] = {};
/* Frames that run: set by their entry, cleared by their end. Such a frame is nobody else's. */
__u64 frame_cache[CORE_FRAME_SLOTS] = {};

/* What each thread's resource counters were when they were last sent, mixed into one word. */
__u64 metrics_cache[CORE_THREAD_SLOTS] = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20); /* the daemon sets it */
} ring SEC(".maps");

/* Code objects whose names were sent; value: CORE_CODE_* bits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
} codes SEC(".maps");

#define THREAD_LOST 1u /* an event of it was lost: its stack must be sent again */

struct thread_state {
	__u32 epoch;
	__u32 flags;
};

/* Threads whose stack was sent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct thread_state);
} threads SEC(".maps");

/*
 * Descendants of the target, while it is followed, that have not executed another program: their
 * forks are told as well, so that no grandchild is missed before the child has a probe of its own.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} process_tree SEC(".maps");

static __always_inline void count(enum pyp_counter which)
{
	__sync_fetch_and_add(&counters[which], 1);
}

#endif
