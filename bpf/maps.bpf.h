/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the BPF programs share with the daemon, one instance per target: the ring, the maps of
 * announced objects, the parameters that the daemon sets before load (.rodata), and the state that
 * it changes through its mapping of .bss.
 */
#ifndef PYPROF_MAPS_BPF_H
#define PYPROF_MAPS_BPF_H

#include "kern_min.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core.bpf.h"
#include "pyprof/bpf_params.h"
#include "pyprof/bpf_ring.h"

/*
 * Parameters. The verifier treats them as constants, so features that a target does not use cost
 * nothing.
 */
extern const volatile __u32 pid_ns;	/* inode of the daemon's pid namespace; 0: the init one */
extern const volatile __u32 check_tgid; /* 1: the link cannot filter by process */
extern const volatile __u32 by_address; /* how sites are identified: PYP_BY_* */
extern const volatile __u32 counters;	/* bit mask of the resource counters to read */
extern const volatile __u32 memory;	/* PYP_MEMORY_* */
extern const volatile __u32 memory_blocks; /* 1: send BLOCK records */
extern const volatile struct pyp_arenas arena_layout;
extern const volatile __u64 ring_size; /* bytes, a power of two */
extern const volatile __u64 ring_mask; /* of an offset in a chunk */
extern const volatile __u64 ring_key;  /* see bpf_ring.h */
extern const volatile struct pyp_layout layout;
extern const volatile struct pyp_sampling sampling;

/* State that changes while programs run. */
extern __u32 active;		    /* PYP_ACTIVE_*; the daemon sets it, an exec clears it */
extern __u32 target_tgid;	    /* in the daemon's pid namespace; see probe_set_target */
extern __u64 latency_ns, latency_n; /* ns from clock to end of program, summed; number of events */
extern __u32 follow;		    /* 1: report children and grandchildren at once */
extern __u32 epoch; /* increased at attach; invalidates what is known about threads */
extern struct pyp_ring_pos ring_pos;
extern __u32 woken; /* 1: daemon woken for a half-full ring and not drained since */
extern struct pyp_sampling_at sampling_at;
extern struct pyp_trap_samples trap_samples;
extern struct pyp_walk_rate walk_rate;
/* By CPU, modulo the size: the waiting thread whose stack is being walked; 0: none. */
#define WALKING_CPUS 1024
extern __u32 walking[WALKING_CPUS];
extern __u64 losses[PYP_LOSS_MAX];

/* The mm whose sizes (in pages) were last sent; 0: none yet. See memory.bpf.h. */
extern __u64 memory_of;
extern __s64 memory_resident_last, memory_mapped_last;
extern __u32 memory_pools; /* pools that were touched and not sent yet */

/* Kernel address of the daemon's struct pid_namespace; set at the first lookup. */
extern __u64 pid_ns_address;
extern __u32 pid_ns_level;

/* If there are no cookies: the sites, hashed by address without collisions. */
extern struct pyp_site_entry site_table[PYP_SITE_SLOTS];
extern __u64 site_factor;

/*
 * Direct-mapped caches in front of the maps below: a plain load (~1 ns) replaces a hash lookup (~27
 * ns) at every event. Each entry is one aligned word, so concurrent writers are harmless: the map
 * still holds the entry that was overwritten.
 */
extern __u64 code_cache[CORE_CODE_SLOTS];
extern __u64 thread_cache[CORE_THREAD_SLOTS];
/*
 * Frames that run. The entry adds a frame, its end removes it; no other thread uses it meanwhile.
 */
extern __u64 frame_cache[CORE_FRAME_SLOTS];

/* Per thread: the hash of its resource counters when they were last sent. */
extern __u64 counters_cache[CORE_THREAD_SLOTS];

/* The ring's memory, see bpf_ring.h. The daemon replaces both sizes before load. */
struct records_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, PYP_RING_CHUNK + PYP_RING_SLACK);
};
extern struct records_map records SEC(".maps");

/* Wakes the daemon; has no contents. */
struct wakes_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
extern struct wakes_map wakes SEC(".maps");

/* Code objects whose names were sent; value: CORE_CODE_* bits. */
struct codes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
};
extern struct codes_map codes SEC(".maps");

#define THREAD_LOST 1u /* an event was lost: send the stack again */

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
 * With `follow`: the target's descendants that have not called exec. Their forks are reported too,
 * so that no grandchild is missed before the daemon probes the child.
 */
struct process_tree_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
};
extern struct process_tree_map process_tree SEC(".maps");

/* The address of each thread's state at the last lookup. */
struct tstates_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct tstates_map tstates SEC(".maps");

struct method_state {
	__u64 print;
	__u32 id; /* mode count: its number; 0: none yet */
	__u32 pad;
};

/* C functions whose names were sent, keyed by the address of their PyMethodDef. */
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
