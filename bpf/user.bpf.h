/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads of the target's memory.
 *
 * A page that the target has written can be absent for a moment: the kernel moves pages to make
 * room for large ones (compaction), and a page has no entry in the page table while it is copied
 * (Linux 6.18, mm/migrate.c, migrate_pages_batch). The target itself would wait in its page fault.
 * Programs of probes wait as well. They do not sleep for the page, as a target could let them sleep
 * forever (userfaultfd, a file of FUSE), which would block the removal of every sleepable BPF
 * program of the machine.
 */
#ifndef PYPROF_USER_BPF_H
#define PYPROF_USER_BPF_H

#include "maps.bpf.h"

static __always_inline long user_read(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

/*
 * Wait until memory can be read, for USER_WAIT_NS at most. Returns 0, or -1 if it still cannot be
 * read. To be called by programs of probes only: those of interrupts and of the scheduler must not
 * wait.
 */
int user_wait(__u64 addr, __u32 size);

/* Like user_read. Waits for pages that are absent for a moment; see user_wait. */
static __always_inline long user_read_wait(void *dst, __u32 size, __u64 addr)
{
	long r = user_read(dst, size, addr);

	return r && !user_wait(addr, size) ? user_read(dst, size, addr) : r;
}

typedef long (*user_read_fn)(void *dst, __u32 size, __u64 addr);

/* What a str object says about its characters, by user_read or user_read_wait; kind 0: unreadable. */
static __always_inline struct core_string string_shape(user_read_fn read, __u64 object)
{
	struct core_string none = {};
	__u64 length = 0;
	__u32 state = 0;

	if (read(&length, sizeof(length), object + layout.str_length) ||
	    read(&state, sizeof(state), object + layout.str_state) || length > 1u << 30)
		return none;
	return core_string_shape(length, state, layout.str_kind_shift, layout.str_ascii_data,
				 layout.str_compact_data);
}

#endif
