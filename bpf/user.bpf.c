// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user.bpf.h"

/*
 * Waits of 3 to 55 us were seen with compaction all the time. They are longer if the thread that
 * moves the page is preempted.
 */
#define USER_WAIT_NS	20000000
#define USER_WAIT_TURNS (1 << 16)

/* Further waits if memory cannot be read after them: it was swapped out, or the pointer is none. */
#define USER_WAITS_VAIN 16

__u32 user_waits_vain = 0;

struct user_waiting {
	__u64 addr;
	__u64 until; /* ns */
	__s64 absent;
};

static long user_wait_turn(__u64 index, struct user_waiting *w)
{
	__u8 byte;

	w->absent = user_read(&byte, sizeof(byte), w->addr);
	return !w->absent || bpf_ktime_get_ns() >= w->until;
}

__noinline int user_wait(__u64 addr, __u32 size)
{
	struct user_waiting w = {.addr = addr, .until = bpf_ktime_get_ns() + USER_WAIT_NS};

	if (addr < 4096 || addr >> 47 || user_waits_vain >= USER_WAITS_VAIN)
		return -1;
	bpf_loop(USER_WAIT_TURNS, user_wait_turn, &w, 0);
	if (!w.absent) {
		w.addr = addr + size - 1; /* may be on another page */
		bpf_loop(USER_WAIT_TURNS, user_wait_turn, &w, 0);
	}
	if (w.absent)
		__sync_fetch_and_add(&user_waits_vain, 1);
	return w.absent ? -1 : 0;
}
