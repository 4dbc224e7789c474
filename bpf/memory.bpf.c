// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Changes of the process's memory: see memory.bpf.h. */
#include "memory.bpf.h"

#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "ring.bpf.h"
#include "stack.bpf.h"
#include "thread.bpf.h"
#include "tstate.bpf.h"

/*
 * Stacks: 2,000 per second on average, and a second's worth at once. Walking one takes some us. What
 * is not sent remains in the difference that the next record reports.
 */
#define STACK_NS       500000ull
#define STACK_BURST_NS 1000000000ull

/* When all stacks sent so far have been paid for, at one per STACK_NS. */
__u64 memory_paid_ns = 0;

/* Returns 1 if a stack may be sent now. Threads that race here may send one more each. */
static __always_inline int memory_affords(void)
{
	__u64 now = bpf_ktime_get_ns(), paid = memory_paid_ns;

	if (paid > now + STACK_BURST_NS)
		return 0;
	memory_paid_ns = (paid > now ? paid : now) + STACK_NS;
	return 1;
}

static __always_inline __u32 memory_flags(__u32 tid, int stack)
{
	if (memory == PYP_MEMORY_STACKS)
		return stack ? PYP_MEMORY_STACK : 0;
	return thread_sight(tid) == SIGHT_LOST ? PYP_MEMORY_LOST : 0;
}

/*
 * Sends the current thread's stack for the MEMORY or BLOCK record before it. Inlined, because the
 * kernel limits the depth of calls.
 */
static __always_inline void memory_stack_send(__u32 tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct stack_request q = {
		.frame = current_frame(tid, ARCH_PTHREAD_SELF(task)),
		.tid = tid,
		.flags = PYP_SAMPLE_MEMORY,
	};

	stack_send(&q);
}

__noinline int memory_send(__u32 tid, __s64 resident, __s64 mapped)
{
	struct pyp_rec_memory *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_memory);
		__sync_fetch_and_add(&memory_resident_last, -resident);
		__sync_fetch_and_add(&memory_mapped_last, -mapped);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_MEMORY, 0, memory_flags(tid, 1));
	r->resident = resident * MEMORY_PAGE;
	r->mapped = mapped * MEMORY_PAGE;
	r->pools = __sync_lock_test_and_set(&memory_pools, 0);
	r->pages = memory_resident_last;
	ring_submit(r);
	return 1;
}

static __always_inline void memory_changed(struct mm_struct *mm, __u32 tid)
{
	__s64 resident, mapped = 0;
	int sent = 0;

	if (!memory_is_known(mm))
		return;
	resident = memory_resident(mm) - memory_resident_last;
	if (memory == PYP_MEMORY_STACKS && (resident >= MEMORY_STEP || resident <= -MEMORY_STEP) &&
	    !memory_affords())
		return;
	resident = memory_moved(&memory_resident_last, memory_resident(mm), MEMORY_STEP);
	if (!memory_blocks)
		mapped = memory_moved(&memory_mapped_last, mm->total_vm, MEMORY_LARGE);
	if (resident || mapped)
		sent = memory_send(tid, resident, mapped);
	if (sent && memory == PYP_MEMORY_STACKS)
		memory_stack_send(tid);
}

/* Fires for every process; the program returns unless the mm is the target's. */
SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss, struct mm_struct *mm)
{
	struct task_struct *task;

	if (!active || (memory_of && memory_of != (__u64)mm))
		return 0;
	task = (struct task_struct *)bpf_get_current_task_btf();
	if (task_tgid(task) != target_tgid) {
		/*
		 * The change comes from page reclaim or from a debugger, not from a function of the
		 * target.
		 */
		if (memory_of)
			memory_resident_last = memory_resident(mm);
		return 0;
	}
	if (task->mm == mm)
		memory_changed(mm, task_tid(task));
	return 0;
}

/* ---- large blocks ---- */

#define MAP_ANONYMOUS 0x20
#define MAP_STACK     0x20000
#define MAP_PRIVATE   0x2
#define HUGE_PAGE     (2ull << 20)
#define PROT_READ     0x1
#define PROT_WRITE    0x2

static __always_inline __u64 page_align(__u64 size)
{
	return (size + MEMORY_PAGE - 1) & ~(__u64)(MEMORY_PAGE - 1);
}

/*
 * pymalloc's arenas by address: the start of the arena that starts in this slot of an arena's size.
 * An arena need not be aligned, but no two start in the same slot.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_ARENAS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
} arenas SEC(".maps");

/* The arguments of _PyObject_ArenaMmap (Objects/obmalloc.c) in all versions. */
static __always_inline int is_arena(const struct pt_regs *regs)
{
	return arena_layout.arena_bits && !ARCH_SYSCALL_ARG0(regs) &&
	       ARCH_SYSCALL_ARG1(regs) == 1ull << arena_layout.arena_bits &&
	       ARCH_SYSCALL_ARG2(regs) == (PROT_READ | PROT_WRITE) &&
	       ARCH_SYSCALL_ARG3(regs) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static __always_inline void arena_mapped(__u64 start)
{
	__u64 slot = start >> arena_layout.arena_bits;

	if (bpf_map_update_elem(&arenas, &slot, &start, BPF_ANY))
		count(PYP_LOSS_map_full);
}

static __always_inline void arena_unmapped(__u64 start, __u64 size)
{
	__u64 slot = start >> arena_layout.arena_bits;
	__u64 *known;

	if (!arena_layout.arena_bits || size != 1ull << arena_layout.arena_bits)
		return;
	known = bpf_map_lookup_elem(&arenas, &slot);
	if (known && *known == start)
		bpf_map_delete_elem(&arenas, &slot);
}

static __always_inline int is_in_arena(__u64 address)
{
	__u64 slot = address >> arena_layout.arena_bits;
	__u64 *start = bpf_map_lookup_elem(&arenas, &slot);

	if (start && address >= *start)
		return 1;
	slot--;
	start = bpf_map_lookup_elem(&arenas, &slot);
	return start && address - *start < 1ull << arena_layout.arena_bits;
}

#define FAULT_PROTECTION 1 /* in the error code: the page is present (copy on write) */

/*
 * pymalloc writes to the first page of a pool before it uses the others, so the first fault of that
 * page is the pool's first use. Fires for every process, like on_rss. Pools that are freed and used
 * again fault only if the kernel has taken the page.
 */
SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	if (!active || (__u64)task->mm != memory_of || !memory_of ||
	    error_code & FAULT_PROTECTION ||
	    (address & (arena_layout.pool_size - 1)) >= MEMORY_PAGE || !is_in_arena(address))
		return 0;
	__sync_fetch_and_add(&memory_pools, 1);
	return 0;
}

static __always_inline int block_send(__u64 address, __u64 size, __u32 arg)
{
	__u32 tid = current_process_ids();
	int stack = memory == PYP_MEMORY_STACKS && memory_affords();
	struct pyp_rec_block *r = ring_reserve(sizeof(*r));

	if (!r) {
		count(PYP_LOSS_lost_memory);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_BLOCK, 0, memory_flags(tid, stack) | arg);
	r->address = address;
	r->size = page_align(size);
	ring_submit(r);
	if (memory == PYP_MEMORY_STACKS && stack)
		memory_stack_send(tid);
	return 0;
}

/*
 * The kernel's memory lock is taken for writing by all system calls that map and unmap, once each.
 * The thread's registers at kernel entry hold its number and its arguments. What is about to be
 * mapped is therefore known by one thread at a time, from the search for an address until the lock
 * is released.
 */
static __u64 mapping_address, mapping_size, mapping_total;

static __always_inline struct pt_regs *syscall_of_target(const struct mm_struct *mm)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	if (!active || !memory_of || (__u64)mm != memory_of || task->mm != mm)
		return NULL;
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

/* An address has been found for a new mapping, or for one that mremap() moves. */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(on_mapping, unsigned long address, struct vm_unmapped_area_info *info)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct pt_regs *regs = syscall_of_target(task->mm);
	__u64 size, more;

	if (!regs || address >= -4095ull)
		return 0;
	size = page_align(ARCH_SYSCALL(regs) == ARCH_NR_MREMAP ? ARCH_SYSCALL_ARG2(regs)
							       : ARCH_SYSCALL_ARG1(regs));
	more = info->length - size;
	/*
	 * __thp_get_unmapped_area() (mm/huge_memory.c) asks for one huge page more, and aligns the
	 * address from below.
	 */
	if (more == HUGE_PAGE)
		address += -address & (HUGE_PAGE - 1) ?: HUGE_PAGE;
	mapping_address = more && more != HUGE_PAGE ? 0 : address;
	mapping_size = size;
	mapping_total = task->mm->total_vm;
	return 0;
}

/* Before it is done: once it is, another thread can map a block at the same address. */
SEC("tp_btf/mmap_lock_start_locking")
int BPF_PROG(on_lock, struct mm_struct *mm)
{
	struct pt_regs *regs = syscall_of_target(mm);

	if (!regs || !ARCH_SYSCALL_ARG1(regs))
		return 0;
	if (ARCH_SYSCALL(regs) == ARCH_NR_MUNMAP)
		arena_unmapped(ARCH_SYSCALL_ARG0(regs), ARCH_SYSCALL_ARG1(regs));
	else if (ARCH_SYSCALL(regs) != ARCH_NR_MREMAP)
		return 0;
	return block_send(ARCH_SYSCALL_ARG0(regs), ARCH_SYSCALL_ARG1(regs), PYP_BLOCK_UNMAP);
}

/* Anonymous and writable: neither files, nor stacks, nor address space that is only reserved. */
static __always_inline int is_block(const struct pt_regs *regs)
{
	return ARCH_SYSCALL_ARG2(regs) & PROT_WRITE && ARCH_SYSCALL_ARG3(regs) & MAP_ANONYMOUS &&
	       !(ARCH_SYSCALL_ARG3(regs) & MAP_STACK);
}

static __always_inline int mapped(struct mm_struct *mm, struct pt_regs *regs, __u64 address)
{
	/* It can fail after an address was found, for lack of memory. */
	if (!address || mapping_size < PYP_BLOCK_MIN || !is_block(regs) ||
	    mm->total_vm < mapping_total + mapping_size / MEMORY_PAGE)
		return 0;
	if (is_arena(regs))
		arena_mapped(address);
	return block_send(address, mapping_size, 0);
}

/* mremap() in place searches for no address. realloc() calls it. */
static __always_inline int remapped(struct pt_regs *regs, __u64 address)
{
	__u64 size = page_align(ARCH_SYSCALL_ARG2(regs));

	if (size < PYP_BLOCK_MIN)
		return 0;
	return block_send(address ? address : ARCH_SYSCALL_ARG0(regs), size, 0);
}

SEC("tp_btf/mmap_lock_released")
int BPF_PROG(on_unlock, struct mm_struct *mm)
{
	struct pt_regs *regs = syscall_of_target(mm);
	__u64 address = mapping_address;
	int r = 0;

	if (!regs)
		return 0;
	if (ARCH_SYSCALL(regs) == ARCH_NR_MMAP)
		r = mapped(mm, regs, address);
	else if (ARCH_SYSCALL(regs) == ARCH_NR_MREMAP)
		r = remapped(regs, address);
	mapping_address = 0;
	return r;
}
