// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The BPF programs: one uprobe program for every site of the plan, and four scheduler tracepoints.
 * Only entry points live here: filter, fill a record, submit it. What is sent and who reads it:
 * README.md and pyprof/bpf_abi.h.
 *
 * Two rules hold everywhere. uprobe programs can be preempted, and a target's threads run on many
 * CPUs, so there is no scratch memory but the stack and the reserved record. And the ring does not
 * zero its memory, so every byte of a record is written.
 */
#include "kern_min.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "metrics.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The first four site kinds announce the record of the same number. */
_Static_assert((int)PYP_SITE_ENTER == (int)PYP_REC_ENTER, "kinds are types");
_Static_assert((int)PYP_SITE_THROW == (int)PYP_REC_THROW, "kinds are types");
_Static_assert((int)PYP_SITE_LEAVE == (int)PYP_REC_LEAVE, "kinds are types");
_Static_assert((int)PYP_SITE_YIELD == (int)PYP_REC_YIELD, "kinds are types");

/*
 * Wake the daemon, once, when the ring is more than half full. The daemon drains on a timer, so
 * this is for bursts only; asking the ring costs 8 ns and waking 5 us, hence one event in 64.
 */
#define WAKE_SAMPLE 63

__noinline int wake_check(void)
{
	if (woken || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < ring_half)
		return BPF_RB_NO_WAKEUP;
	woken = 1; /* the daemon clears it when it drains */
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline __u64 wake_flags(__u64 ts)
{
	return ts & WAKE_SAMPLE ? BPF_RB_NO_WAKEUP : (__u32)wake_check();
}

/*
 * What a hit takes varies with what else the machine does, by a third from one second to the next
 * where it is shared. The time from an event's clock to the end of its program varies with it, and
 * is measured for one event in 16: none of those that may wake the daemon. What a hit costs is
 * known as a multiple of it.
 */
#define GAUGE_SAMPLE  15
#define GAUGE_AT      8
#define GAUGE_MOST_NS 1024 /* it was interrupted */

__noinline int gauge_take(__u64 ts)
{
	__u64 ns = bpf_ktime_get_ns() - ts;

	if (ns >= GAUGE_MOST_NS)
		return 0;
	__sync_fetch_and_add(&gauge_ns, ns);
	__sync_fetch_and_add(&gauge_n, 1);
	return 0;
}

static __always_inline void gauge_look(__u64 ts)
{
	if ((ts & GAUGE_SAMPLE) == GAUGE_AT)
		gauge_take(ts);
}

/*
 * The Python frame below a frame, 0 if there is none; `below` is what the frame calls previous.
 * Reading it costs as much as all else together, so only where it may not be the answer itself.
 * Below an entry frame may be another one: a frame that C code had called is being cleared, and
 * what that sets free calls Python.
 */
__noinline __u64 caller_resolve(__u64 below, __u32 tid, __u64 sp)
{
	struct frame_head h;

	for (int i = 0; i < 4 && below; i++) {
		if (frame_load(below, &h)) {
			count(PYP_CNT_fault_frame);
			return 0;
		}
		if (!h.entry) {
			int marks = code_lookup(h.code, tid);

			if (marks < 0 || !(marks & CORE_CODE_SKIP))
				break;
		}
		below = h.previous;
		if (h.entry && !layout.code_skip_flags && !core_on_stack(below, sp))
			break;
	}
	return below;
}

/* Versions in which what a frame calls previous may not be a Python frame. */
#define FRAMES_HAVE_OTHERS (layout.owner_entry != 0xff || layout.code_skip_flags)

static __always_inline void frame_entered(__u64 frame, __u32 tid)
{
	if (FRAMES_HAVE_OTHERS)
		frame_cache[core_frame_slot(frame)] = core_frame_entry(frame, tid, epoch);
}

static __always_inline void frame_left(__u64 frame, __u32 tid)
{
	__u64 *entry = &frame_cache[core_frame_slot(frame)];

	if (FRAMES_HAVE_OTHERS && *entry == core_frame_entry(frame, tid, epoch))
		*entry = 0;
}

static __always_inline int caller_is_clear(__u64 frame, __u64 below, __u32 tid, __u64 sp)
{
	if (FRAMES_HAVE_OTHERS &&
	    frame_cache[core_frame_slot(below)] == core_frame_entry(below, tid, epoch))
		return 1;
	if (layout.owner_entry != 0xff && core_near_stack(below, sp))
		return 0;
	if (layout.code_skip_flags && core_may_be_shim(frame, below))
		return 0;
	return 1;
}

static __always_inline int frame_fault(__u32 tid)
{
	count(PYP_CNT_fault_frame);
	return thread_lost(tid);
}

/* Which record an entry site makes: where one site serves both, throwflag tells. */
static __always_inline __u32 enter_type(struct pt_regs *ctx, __u64 cookie)
{
	if (PYP_COOKIE_HAS_FLAG(cookie) && (__u32)arch_reg(ctx, PYP_COOKIE_FLAG_REG(cookie)))
		return PYP_REC_THROW;
	return PYP_COOKIE_KIND(cookie);
}

/* What is known of the code of a frame that is entered; nothing if it could not be announced. */
static __always_inline __u64 code_marks(__u64 code, __u32 tid)
{
	int marks = code_lookup(code, tid);

	return marks < 0 ? 0 : marks;
}

/*
 * From 3.15 on a generator expression executes RESUME as a function of its own first, before the
 * RETURN_GENERATOR that makes the generator: that is its creation, no call. (3.15.2
 * Python/codegen.c, codegen_comprehension; seen on the binary.)
 */
static __always_inline int is_creation(__u64 frame, __u64 marks)
{
	__u8 owner = 0xff;

	if (!layout.code_creation_flags || !(marks & CORE_CODE_CREATES))
		return 0;
	user_read(&owner, sizeof(owner), frame + layout.frame_owner);
	return owner == PYP_OWNER_THREAD;
}

/* What an ENTER says of a frame that can be suspended. Where it cannot be read it was not the first. */
static __noinline __u32 generator_arg(__u64 frame, __u64 code)
{
	__u64 at = 0;
	__s32 first = 0, lasti = 0;
	int start = 0;

	if (!layout.code_start)
		start = !user_read(&lasti, sizeof(lasti), frame + layout.frame_instr) && lasti < 0;
	else if (!user_read(&at, sizeof(at), frame + layout.frame_instr) &&
		 !user_read(&first, sizeof(first), code + layout.code_first))
		start = core_is_start(at - (code + layout.code_start), first);
	return PYP_ENTER_GENERATOR | (start ? PYP_ENTER_START : 0);
}

static __always_inline int on_enter(struct pt_regs *ctx, __u64 cookie, __u64 frame, __u32 tid)
{
	__u64 block[FRAME_BLOCK / 8];
	struct pyp_rec_enter *r;
	__u64 code, caller, entry, ts;
	__u32 arg = 0;

	if (user_read(block, sizeof(block), frame + layout.frame_block))
		return frame_fault(tid);
	code = frame_code(block);
	caller = FRAME_FIELD(block, previous);
	if (!code) /* not a frame: 0 would pass for a known code object */
		return frame_fault(tid);

	entry = code_cache[core_code_slot(code)];
	if (!core_code_hit(entry, code))
		entry = code_marks(code, tid);
	if (entry & CORE_CODE_SKIP || is_creation(frame, entry))
		return 0;
	if (!caller_is_clear(frame, caller, tid, ARCH_SP(ctx)))
		caller = caller_resolve(caller, tid, ARCH_SP(ctx));
	if (entry & CORE_CODE_SUSPENDS)
		arg = generator_arg(frame, code);
	frame_entered(frame, tid);
	if (!thread_cached(tid) && thread_announce(tid, PYP_COOKIE_KIND(cookie), caller))
		return 0;
	if (metrics)
		metrics_look(bpf_get_current_task_btf(), tid);

	ts = bpf_ktime_get_ns();
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return thread_lost(tid);
	rec_head(&r->h, ts, tid, enter_type(ctx, cookie), PYP_COOKIE_SITE(cookie), arg);
	r->frame = frame;
	r->code = code;
	r->caller = caller;
	bpf_ringbuf_submit(r, wake_flags(ts));
	gauge_look(ts);
	return 0;
}

static __always_inline int on_leave(__u64 cookie, __u64 frame, __u32 tid)
{
	struct pyp_rec_leave *r;
	__u64 ts;

	frame_left(frame, tid);
	if (!thread_cached(tid) && thread_announce(tid, PYP_COOKIE_KIND(cookie), frame))
		return 0;
	if (metrics)
		metrics_look(bpf_get_current_task_btf(), tid);

	ts = bpf_ktime_get_ns();
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return thread_lost(tid);
	rec_head(&r->h, ts, tid, PYP_COOKIE_KIND(cookie), PYP_COOKIE_SITE(cookie), 0);
	r->frame = frame;
	bpf_ringbuf_submit(r, wake_flags(ts));
	gauge_look(ts);
	return 0;
}

/* A code object nobody has seen needs no record. */
static __always_inline int on_code_free(__u64 cookie, __u64 code, __u32 tid)
{
	struct pyp_rec_code_free *r;

	if (!code_forget(code))
		return 0;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		/* No harm: whatever comes to live at the address is announced anew. */
		count(PYP_CNT_lost_codes);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_CODE_FREE, PYP_COOKIE_SITE(cookie), 0);
	r->code = code;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A site's cookie. One uprobe event has many probes and one cookie: there it is in a table. */
static __always_inline __u64 cookie_of(struct pt_regs *ctx)
{
	struct pyp_site_entry *e;

	if (!by_address)
		return bpf_get_attach_cookie(ctx);
	e = &site_table[PYP_SITE_SLOT(ARCH_IP(ctx), site_factor)];
	if (e->address == ARCH_IP(ctx))
		return e->cookie;
	count(PYP_CNT_unknown_site);
	return 0;
}

/* A hit that counts. */
struct hit {
	__u64 cookie;
	__u64 ptr; /* the frame or code object it is about */
	__u32 tid;
};

static __always_inline int hit_take(struct pt_regs *ctx, struct hit *h)
{
	__u64 id;

	if (!active)
		return -1;
	h->cookie = cookie_of(ctx);
	/* Between windows only code objects that go are to be known. */
	if (active == PYP_ACTIVE_BETWEEN && PYP_COOKIE_KIND(h->cookie) != PYP_SITE_CODE_FREE) {
		if (sampling.when == PYP_SAMPLING_BETWEEN)
			stray_ns = bpf_ktime_get_ns();
		return -1;
	}
	if (!h->cookie || !core_counts(h->cookie, ARCH_FLAGS(ctx)))
		return -1;
	id = current_ids();
	if (check_tgid && id >> 32 != target_tgid)
		return -1;
	h->tid = id;
	h->ptr = arch_reg(ctx, PYP_COOKIE_REG(h->cookie));
	if (PYP_COOKIE_DEREF(h->cookie) &&
	    user_read(&h->ptr, sizeof(h->ptr), h->ptr + (__s64)PYP_COOKIE_DISP(h->cookie))) {
		frame_fault(h->tid);
		return -1;
	}
	return 0;
}

#include "native.bpf.h" /* needs what is above it */

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	struct hit h;

	if (hit_take(ctx, &h))
		return 0;
	switch (PYP_COOKIE_KIND(h.cookie)) {
	case PYP_SITE_ENTER:
	case PYP_SITE_THROW:
		return on_enter(ctx, h.cookie, h.ptr, h.tid);
	case PYP_SITE_LEAVE:
	case PYP_SITE_YIELD:
		return on_leave(h.cookie, h.ptr, h.tid);
	case PYP_SITE_CODE_FREE:
		return on_code_free(h.cookie, h.ptr, h.tid);
	case PYP_SITE_C_ENTER:
	case PYP_SITE_C_INSTANT:
		return builtins ? on_native(ctx, &h) : 0;
	case PYP_SITE_C_LEAVE:
		return builtins ? on_native_leave(&h) : 0;
	}
	return 0; /* a sweep's link: its hits mean nothing */
}

#include "count.bpf.h" /* of what is above it uses much */

SEC("uprobe")
int on_site_count(struct pt_regs *ctx)
{
	struct hit h;

	if (hit_take(ctx, &h))
		return 0;
	switch (PYP_COOKIE_KIND(h.cookie)) {
	case PYP_SITE_ENTER:
	case PYP_SITE_THROW:
		return count_enter(ctx, &h);
	case PYP_SITE_CODE_FREE:
		return count_code_free(&h);
	case PYP_SITE_C_ENTER:
	case PYP_SITE_C_INSTANT:
		return builtins ? count_native(ctx, &h) : 0;
	}
	return 0;
}

#include "sample.bpf.h"

/*
 * A window's breakpoints are there for some moments before it is open and after it is closed, and
 * hits cost the same: then what runs is disturbed, too. Long after a hit there are none.
 */
#define STRAY_NS 2000000

static __always_inline int is_sampled(void)
{
	if (sampling.when != PYP_SAMPLING_BETWEEN)
		return active != PYP_ACTIVE_OFF;
	return active == PYP_ACTIVE_BETWEEN && bpf_ktime_get_ns() > stray_ns + STRAY_NS;
}

/* Where the thread runs, or has entered the kernel. */
static __always_inline __u64 user_ip(struct pt_regs *ctx, struct task_struct *task)
{
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 ip = ARCH_IP(ctx);

	/* The verifier refuses one load through either pointer. */
	barrier_var(ip);
	return ARCH_IS_USER(ctx) ? ip : ARCH_IP(user);
}

/* A clock interrupts every process, whatever the mechanism of the probes: it must check which. */
SEC("perf_event")
int on_sample(struct pt_regs *ctx)
{
	__u64 id = current_process_ids();
	struct task_struct *task;

	if (id >> 32 != target_tgid || !is_sampled())
		return 0;
	task = (struct task_struct *)bpf_get_current_task_btf();
	if (sampling.when == PYP_SAMPLING_BESIDE && sample_is_of_trap(ctx, task))
		return 0;
	sample_send(id, current_frame(id, ARCH_PTHREAD_SELF(task)), sampling.period,
		    native_calls.on ? user_ip(ctx, task) : 0);
	return 0;
}

static __always_inline void switch_send(struct task_struct *task, __u32 type, __u32 arg)
{
	__u32 tid = task_tid(task);
	enum thread_sight sight = thread_sight(tid);
	struct pyp_rec_switch *r;

	if (sight == SIGHT_NONE)
		return;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		count(PYP_CNT_lost_switches);
		return;
	}
	if (sight == SIGHT_LOST)
		arg |= PYP_SWITCH_LOST;
	rec_head(&r->h, bpf_ktime_get_ns(), tid, type, 0, arg);
	r->runtime = task->se.sum_exec_runtime;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, int preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (!active)
		return 0;
	if (task_tgid(prev) == target_tgid)
		switch_send(prev, PYP_REC_SWITCH_OUT,
			    (preempt & 1) || !prev_state ? PYP_SWITCH_RUNNABLE : 0);
	if (task_tgid(next) == target_tgid)
		switch_send(next, PYP_REC_SWITCH_IN, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct pyp_rec_thread *r;
	__u32 tid = task_tid(task), tgid = task_tgid(task), arg = 0;

	if (!active)
		return 0;
	if (tgid != target_tgid) {
		if (follow && task->signal->live.counter == 0)
			bpf_map_delete_elem(&process_tree, &tgid);
		return 0;
	}
	if (metrics && thread_sight(tid) == SIGHT_KNOWN)
		metrics_look(task, tid);
	if (thread_sight(tid) == SIGHT_LOST)
		arg |= PYP_EXIT_LOST;
	if (task->signal->live.counter == 0)
		arg |= PYP_EXIT_GROUP;
	thread_cache_drop(tid);
	bpf_map_delete_elem(&threads, &tid);
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		count(PYP_CNT_lost_threads);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_THREAD_EXIT, 0, arg);
	r->runtime = task->se.sum_exec_runtime;
	bpf_get_current_comm(r->comm, sizeof(r->comm)); /* an exiting task is the current one */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void process_send(__u32 type, struct task_struct *task, __u32 child,
					 __u32 arg, __u64 wake)
{
	struct pyp_rec_process *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		count(PYP_CNT_lost_processes);
		return;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), task_tid(task), type, 0, arg);
	r->child = child;
	r->parent = type == PYP_REC_FORK ? task_tgid(task) : 0;
	bpf_ringbuf_submit(r, wake);
}

static __always_inline int is_in_tree(__u32 tgid)
{
	return follow && bpf_map_lookup_elem(&process_tree, &tgid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = task_tid(child), from = task_tgid(parent), arg = 0;
	__u8 one = 1;

	if (!active || child->pid != child->tgid)
		return 0;
	if (from != target_tgid && !is_in_tree(from))
		return 0;
	if (child->mm == parent->mm)
		arg = PYP_FORK_SHARED;
	if (follow && bpf_map_update_elem(&process_tree, &tgid, &one, 0))
		count(PYP_CNT_lost_processes);
	if (follow || !arg)
		process_send(PYP_REC_FORK, parent, tgid, arg,
			     follow ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * The process runs another program now: what is known about code objects and threads is void, and
 * so may the plan be. Say so and fall silent until the daemon has looked. By now the thread that
 * executes has the leader's id; old_pid is the one that it had.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	__u32 tgid = task_tgid(task);

	if (!active)
		return 0;
	if (tgid == target_tgid) {
		active = 0;
		process_send(PYP_REC_EXEC, task, 0,
			     old_pid == task->pid ? 0 : PYP_EXEC_OTHER_THREAD, BPF_RB_FORCE_WAKEUP);
	} else if (is_in_tree(tgid)) {
		bpf_map_delete_elem(&process_tree, &tgid);
		process_send(PYP_REC_EXEC, task, tgid, 0, BPF_RB_FORCE_WAKEUP);
	}
	return 0;
}
