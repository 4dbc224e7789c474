/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the BPF programs share with the daemon, one instance per target: the ring, the maps of what
 * has been seen, the knobs set before load (.rodata), and the state that the daemon changes through
 * its mapping of .bss.
 */
#ifndef PYPROF_MAPS_BPF_H
#define PYPROF_MAPS_BPF_H

#include "kern_min.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core.bpf.h"

/* Knobs: constants to the verifier, so what a target does not need costs nothing. */
extern const volatile __u32 pid_ns;	/* the daemon's pid namespace's inode; 0: the init one */
extern const volatile __u32 check_tgid; /* 1: the link cannot filter by process, do it here */
extern const volatile __u32 by_address; /* 1: no cookies, sites are told by their address */
extern const volatile __u32 counters;	/* bits: which resource counters are looked at */
extern const volatile __u32 memory;	/* 1: changes of the process's memory are sent */
extern const volatile __u64 ring_half;	/* bytes in the ring that are worth a wake-up */
extern const volatile struct pyp_layout layout;
extern const volatile struct pyp_sampling sampling;

/* State. */
extern __u32 active;		/* PYP_ACTIVE_*: the daemon's to set, and cleared by an exec */
extern __u32 target_tgid;	/* in the daemon's pid namespace; no knob: see probe_set_target */
extern __u64 gauge_ns, gauge_n; /* from events' clocks to their ends, and of how many */
extern __u32 follow;		/* tell at once about children, and about theirs */
extern __u32 epoch;		/* bumped at attach: what was learnt about threads before is void */
extern __u32 woken; /* the daemon was woken for a half full ring and has not drained it since */
extern struct pyp_sampling_at sampling_at;
extern __u64 stray_ns; /* the last hit between windows: see on_sample */
extern struct pyp_trap_samples trap_samples;
extern __u64 losses[PYP_LOSS_MAX];

/* The memory whose figures these are, as last sent, in pages; 0: none yet. See memory.bpf.h. */
extern __u64 memory_of;
extern __s64 memory_resident_last, memory_mapped_last;

/* Where the daemon's pid namespace is in the kernel, found when first needed. */
extern __u64 pid_ns_address;
extern __u32 pid_ns_level;

/* Where there are no cookies: the sites by address, no two in one slot. */
extern struct pyp_site_entry site_table[PYP_SITE_SLOTS];
extern __u64 site_factor;

/*
 * Direct-mapped caches in front of the maps below: a plain load (~1 ns) instead of a hash lookup
 * (~27 ns) on every event. Entries are single aligned words, so racing writers are harmless: the
 * loser's entry is found again in the map.
 */
extern __u64 code_cache[CORE_CODE_SLOTS];
extern __u64 thread_cache[CORE_THREAD_SLOTS];
/* Frames that run: set by their entry, cleared by their end. Such a frame is nobody else's. */
extern __u64 frame_cache[CORE_FRAME_SLOTS];

/* What each thread's resource counters were when they were last sent, mixed into one word. */
extern __u64 counters_cache[CORE_THREAD_SLOTS];

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20); /* the daemon sets it */
};
extern struct ring_map ring SEC(".maps");

/* Code objects whose names were sent; value: CORE_CODE_* bits. */
struct codes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
};
extern struct codes_map codes SEC(".maps");

#define THREAD_LOST 1u /* an event of it was lost: its stack must be sent again */

struct thread_state {
	__u32 epoch;
	__u32 flags;
};

/* Threads whose stack was sent. */
struct threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct thread_state);
};
extern struct threads_map threads SEC(".maps");

/*
 * Descendants of the target, while it is followed, that have not executed another program: their
 * forks are told as well, so that no grandchild is missed before the child has a probe of its own.
 */
struct process_tree_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
};
extern struct process_tree_map process_tree SEC(".maps");

/* Where a thread's state was found last. */
struct tstates_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct tstates_map tstates SEC(".maps");

struct method_state {
	__u64 print;
	__u32 id; /* counting: its number; 0: none yet */
	__u32 pad;
};

/* C functions whose names were sent, by PyMethodDef. */
struct methods_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct method_state);
};
extern struct methods_map methods SEC(".maps");

static __always_inline void count(enum pyp_loss which)
{
	__sync_fetch_and_add(&losses[which], 1);
}

#endif
