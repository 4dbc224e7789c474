// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Mode sample. A timer on each CPU interrupts the running thread; if it belongs to the target, the
 * program walks its Python stack and sends it. Nothing is attached to the target.
 *
 * No probe reports the end of code objects, so each sample compares a fingerprint of the code
 * object's name and location, and announces a code object at a reused address again.
 *
 * The same timers sample a target with probes. Samples that fall into the own time of probes and marks
 * are dropped (see sample_is_of_trap).
 *
 * The program runs in an interrupt: every loop is bounded, and pages that are not resident are not
 * read.
 */

#include "ids.bpf.h"
#include "native.bpf.h"
#include "ring.bpf.h"
#include "stack.bpf.h"
#include "tstate.bpf.h"
#include "walk.bpf.h"

/* With probes or marks: PYP_TRAP_* by address in the target; filled by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_TRAPS_MAX);
	__type(key, __u64);
	__type(value, __u64);
} traps SEC(".maps");

/* ---- probes' time ---- */

/*
 * Returns 1 if the timer interrupted the execution of a probe. In user mode this is visible only at
 * the first instruction after a breakpoint, where delayed interrupts arrive. In kernel mode the
 * user registers hold the address of entry: while a probe runs, that is the site or the instruction
 * after it. A site's instruction that is being single-stepped runs out of line, in either mode; the
 * kernel's active_uprobe shows that.
 */
static __always_inline int sample_is_of_trap(struct pt_regs *ctx, struct task_struct *task)
{
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 ip = ARCH_IP(user);
	int in_user = ARCH_IS_USER(ctx);
	__u64 *trap = bpf_map_lookup_elem(&traps, &ip);

	/* These loads read 0 from a NULL pointer. */
	if (!task->utask->active_uprobe &&
	    (!trap || !(*trap & (in_user ? PYP_TRAP_USER : PYP_TRAP_KERNEL))))
		return 0;
	__sync_fetch_and_add(in_user ? &trap_samples.after : &trap_samples.in_kernel, 1);
	return 1;
}

/* ---- code objects ---- */

/*
 * The bytes that distinguish code objects: from 64 bytes before the filename field to the end of
 * the name field.
 */
#define CODE_BEFORE 64
#define CODE_BLOCK  88

static __always_inline __u64 mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/*
 * A fingerprint of the code object, above the CORE_CODE_* bits; 0 if `code` is not a code object. Not
 * inlined: see frame_load.
 */
static __noinline __u64 fingerprint(__u64 code)
{
	__u64 block[CODE_BLOCK / 8];
	__u32 line = layout.code_firstlineno - (layout.code_filename - CODE_BEFORE);
	__u64 h;

	if (user_read(block, sizeof(block), code + layout.code_filename - CODE_BEFORE))
		return 0;
	h = mix(0, *(__u32 *)((__u8 *)block + (line & 0x3c)));
	h = mix(h, block[CODE_BEFORE / 8]);
	h = mix(h, block[CODE_BEFORE / 8 + 1]);
	h = mix(h, block[CODE_BEFORE / 8 + 2]);
	return (h | 1ull << 63) & ~(__u64)CORE_CODE_FLAGS;
}

static __always_inline int is_code(__u64 code)
{
	__u64 type = 0;

	return !user_read(&type, sizeof(type), code + layout.object_type) &&
	       type == sampling_at.code_type;
}

/* With probes, the ends of code objects are reported, so code objects share the probes' cache. */
static __always_inline int sample_code_probed(__u64 code, __u32 tid)
{
	__u64 *known = bpf_map_lookup_elem(&codes, &code);

	if (known)
		return *known & CORE_CODE_FLAGS;
	return is_code(code) ? code_announce(code, tid) : -1;
}

/* Returns CORE_CODE_* bits; -1 if it is not a code object or could not be announced. */
__noinline int sample_code(__u64 code, __u32 tid)
{
	__u64 *known, print, value;
	int flags;

	if (sampling.when != PYP_SAMPLING_ALONE)
		return sample_code_probed(code, tid);
	print = fingerprint(code);
	if (!print)
		return -1;
	known = bpf_map_lookup_elem(&codes, &code);
	if (known && (*known & ~(__u64)CORE_CODE_FLAGS) == print)
		return *known & CORE_CODE_FLAGS;
	if (!is_code(code))
		return -1;
	flags = code_announce(code, tid);
	if (flags < 0)
		return -1;
	value = print | (flags & CORE_CODE_FLAGS);
	if (bpf_map_update_elem(&codes, &code, &value, BPF_ANY))
		count(PYP_LOSS_map_full);
	return flags;
}

/* ---- functions written in C ---- */

/*
 * The C function that runs above a frame. There is one if the frame's current instruction is a call
 * and the instruction pointer is outside the interpreter's code for running Python. The callee
 * comes from the frame's value stack if the evaluator stores the stack's top in the frame (3.14+),
 * or from the probe that counted the call. Types and other callables without a PyMethodDef are not
 * C functions, as in cProfile; their time belongs to the frame. If the callee is unknown, the
 * program sends only the instruction's address.
 *
 * Some time before and after a call is attributed to it by mistake: the interpreter's allocator
 * while it creates or frees a Python frame, and destructors that this runs (before 3.11, and later
 * at unspecialised instructions); arguments that are freed after the call; the garbage collector
 * and signal handlers.
 */
struct native_top {
	__u64 at;   /* address of the PyMethodDef or of the instruction */
	__u32 flag; /* PYP_SAMPLE_METHOD or PYP_SAMPLE_NATIVE; 0: no C function */
	__u32 op;   /* an opcode of struct pyp_native_calls */
	__u32 arg;  /* the instruction's argument */
	__u32 tid;
};

static __always_inline int is_own_code(__u64 ip)
{
	for (int i = 0; i < PYP_OWN_CODE; i++) {
		const struct pyp_code_range *own = &sampling_at.own[i];

		if (!own->size)
			return !i;
		if (ip - own->start < own->size)
			return 1;
	}
	return 0;
}

static __always_inline int frame_instruction(__u64 frame, const struct frame_head *h, __u64 *ret)
{
	__s32 index = 0;

	if (!native_calls.index_unit)
		return user_read(ret, sizeof(*ret), frame + layout.frame_instr);
	if (user_read(&index, sizeof(index), frame + layout.frame_instr) || index < 0 ||
	    user_read(ret, sizeof(*ret), h->code + native_calls.code_bytes))
		return -1;
	*ret += native_calls.bytes_data + (__u64)index * native_calls.index_unit;
	return 0;
}

/* Returns 1 if the frame's current instruction is a call. */
static __always_inline int frame_calls(__u64 frame, struct native_top *top)
{
	struct frame_head h = {};
	__u64 at = 0;
	__u8 insn[2];

	if (!frame || frame_load(frame, &h) || h.entry || frame_instruction(frame, &h, &at) ||
	    user_read(insn, sizeof(insn), at))
		return 0;
	top->op = native_calls.op[insn[0]];
	top->arg = insn[1];
	return top->op & PYP_CALL;
}

/* Read the callee from the frame's value stack. */
static __always_inline void top_read(__u64 frame, struct native_top *top)
{
	struct native_call c = {.tid = top->tid};
	__u64 stack = 0, object = 0, slots = top->op & PYP_CALL_SLOTS;

	if (top->op & PYP_CALL_ARGS)
		slots += top->arg;
	if (user_read(&stack, sizeof(stack), frame + native_calls.frame_stack) || !stack ||
	    user_read(&object, sizeof(object), stack - 8 * slots) || !(object & ~3ull))
		return;
	if (native_call_read(object & ~3ull, user_read, &c) <= 0)
		return;
	method_known(&c);
	top->at = c.method;
	top->flag = PYP_SAMPLE_METHOD;
}

static __noinline int native_top(struct native_top *top, __u64 frame, __u64 ip)
{
	__u64 method = 0;

	if (!top || is_own_code(ip) || !frame_calls(frame, top))
		return 0;
	if (native_calls.frame_stack) {
		top_read(frame, top);
		return 0;
	}
	top->at = ip;
	top->flag = PYP_SAMPLE_NATIVE;
	if (native_calls.remember && !native_recall(frame, &method)) {
		top->at = method;
		top->flag = method ? PYP_SAMPLE_METHOD : 0;
	}
	return 0;
}

/* ---- the walk ---- */

/* Like walk_next; global for the same reason. */
__noinline int sample_next(struct walk *w)
{
	return walk_step(w, frame_load, sample_code, WALK_CUT);
}

/*
 * The position of the frame's current instruction in its code. The evaluator stores it at each
 * instruction, in all versions.
 */
static __always_inline __s32 frame_offset(const struct walk *w)
{
	__u64 at = 0;

	if (user_read(&at, sizeof(at), w->frame + layout.frame_instr))
		return PYP_SAMPLE_NO_OFFSET;
	if (sampling.instr_unit)
		return (__u32)at * sampling.instr_unit;
	at -= w->code + layout.code_start;
	return (at + 0x7fffffff) >> 32 ? PYP_SAMPLE_NO_OFFSET : (__s32)at;
}

struct sample {
	struct walk walk;
	__u64 period;
	__u64 native; /* see struct native_top */
	__u32 native_flag;
	__s32 offset;
	__u32 failed;
	__u32 flags; /* of each record */
};

static long sample_names(__u64 index, struct sample *s)
{
	if (sample_next(&s->walk) != WALK_FRAME)
		return 1;
	if (!index)
		s->offset = frame_offset(&s->walk);
	return 0;
}

#define SAMPLE_RECORDS (PYP_SAMPLE_MAX_DEPTH / PYP_SAMPLE_CODES)

/* Send one SAMPLE record. Returns 1 after the last. For `n` see chain_record. */
static long sample_record(__u64 index, struct sample *s)
{
	struct pyp_rec_sample *r = ring_reserve_cold(sizeof(*r));
	int end = WALK_FRAME;
	__u32 arg = index ? 0 : s->native_flag;
	volatile __u32 *n;

	if (!r) {
		s->failed = 1;
		return 1;
	}
	n = &r->count;
	*n = 0;
	/* Before the loop, so that the verifier does not follow the rest of it from each end. */
	__builtin_memset(r->codes, 0, sizeof(r->codes));
	for (int i = 0; i < PYP_SAMPLE_CODES; i++) {
		if (native_calls.on && !i && arg) {
			r->codes[0] = s->native;
			*n = 1;
			continue;
		}
		end = sampling.top && i ? WALK_END : sample_next(&s->walk);
		if (end != WALK_FRAME)
			break;
		r->codes[i] = s->walk.code;
		++*n;
	}
	arg |= s->flags | walk_flags(end, index == SAMPLE_RECORDS - 1);
	if (arg & PYP_SAMPLE_TRUNCATED && !sampling.top)
		count(PYP_LOSS_samples_truncated);
	rec_head(&r->h, bpf_ktime_get_ns(), s->walk.tid, PYP_REC_SAMPLE, 0, arg);
	r->period = s->period;
	r->first = index * PYP_SAMPLE_CODES;
	r->offset = index ? PYP_SAMPLE_NO_OFFSET : s->offset;
	r->pad = 0;
	ring_submit(r);
	wake_check();
	return !!(arg & PYP_SAMPLE_LAST);
}

static __always_inline enum pyp_loss sample_loss(__u32 flags)
{
	if (flags & PYP_SAMPLE_WAIT)
		return PYP_LOSS_lost_walks;
	if (flags & PYP_SAMPLE_MEMORY)
		return PYP_LOSS_lost_memory;
	return sampling.when == PYP_SAMPLING_ALONE ? PYP_LOSS_lost_events : PYP_LOSS_lost_samples;
}

/* Sends names first, for the reason given at chain_send. */
__noinline int stack_send(struct stack_request *q)
{
	struct sample s = {.offset = PYP_SAMPLE_NO_OFFSET};

	if (!q)
		return 0;
	s.walk.next = q->frame;
	s.walk.tid = q->tid;
	s.period = q->period;
	s.flags = q->flags;
	if (native_calls.on && !(q->flags & PYP_SAMPLE_MEMORY)) {
		struct native_top top = {.tid = q->tid};

		native_top(&top, q->frame, q->ip);
		s.native = top.at;
		s.native_flag = top.flag;
	}
	bpf_loop(sampling.top ? 1 : PYP_SAMPLE_MAX_DEPTH, sample_names, &s, 0);
	s.walk.next = q->frame;
	bpf_loop(SAMPLE_RECORDS, sample_record, &s, 0);
	if (s.failed)
		count(sample_loss(s.flags));
	return 0;
}

/* ---- the clock ---- */

/* Returns 1 if the timer interrupted the walk of on_resume, which is not the target's own time. */
static __always_inline int is_walking(__u32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return sampling.walks && walking[cpu & (WALKING_CPUS - 1)] == tid;
}

/* Continuous mode takes fewer samples if they cost too much: one in so many; 0, 1: all. */
__u32 sample_skip = 0;

/* Returns 1 if this one is left out. Those that are taken stand for the others. */
static __always_inline int is_skipped(__u64 *period)
{
	__u32 n = sample_skip;

	*period = sampling.period;
	if (n < 2)
		return 0;
	*period *= n;
	return bpf_get_prandom_u32() % n != 0;
}

/* The thread's user-mode instruction pointer, or the address at which it entered the kernel. */
static __always_inline __u64 user_ip(struct pt_regs *ctx, struct task_struct *task)
{
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 ip = ARCH_IP(ctx);

	/* The verifier rejects one load through either of two pointers. */
	barrier_var(ip);
	return ARCH_IS_USER(ctx) ? ip : ARCH_IP(user);
}

/*
 * The timer interrupts every process, whatever mechanism the probes use, so the program filters by
 * process.
 */
SEC("perf_event")
int on_sample(struct pt_regs *ctx)
{
	__u64 id = current_process_ids();
	struct stack_request q = {.tid = id};
	struct task_struct *task;

	if (id >> 32 != target_tgid || active == PYP_ACTIVE_OFF || is_walking(id) ||
	    is_skipped(&q.period))
		return 0;
	task = (struct task_struct *)bpf_get_current_task_btf();
	if (sampling.when != PYP_SAMPLING_ALONE && sample_is_of_trap(ctx, task))
		return 0;
	q.frame = current_frame(id, ARCH_PTHREAD_SELF(task));
	q.ip = native_calls.on ? user_ip(ctx, task) : 0;
	stack_send(&q);
	return 0;
}
