/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between the BPF programs and the daemon: what travels in a target's ring buffer,
 * what a probe site's cookie says, and the knobs and counters they share. Included by both sides,
 * so: fixed-width types only, explicit padding, sizes asserted. Anything that changes here changes
 * PYP_BPF_ABI_VERSION.
 *
 * Units: timestamps are CLOCK_MONOTONIC nanoseconds (bpf_ktime_get_ns), run times are the
 * scheduler's sum_exec_runtime in nanoseconds, addresses are the target's virtual addresses.
 */
#ifndef PYPROF_BPF_ABI_H
#define PYPROF_BPF_ABI_H

#ifndef PYP_BPF_SIDE
#include <linux/types.h>
#endif

#define PYP_BPF_ABI_VERSION 17

/*
 * Which hits say something. Between windows nothing is said about calls, and since the epoch goes up
 * before the next one, nothing about switches; but code objects that go are to be known, and so are
 * exits, forks and exec.
 */
#define PYP_ACTIVE_OFF	   0u /* every program returns at once */
#define PYP_ACTIVE_ON	   1u
#define PYP_ACTIVE_BETWEEN 2u

/* What a probe site announces. */
enum pyp_site_kind {
	PYP_SITE_ENTER = 1,	/* a frame starts or resumes (function start, generator resume) */
	PYP_SITE_THROW = 2,	/* a frame resumes because an exception is thrown into it */
	PYP_SITE_LEAVE = 3,	/* a frame is left for good: return or unwinding */
	PYP_SITE_YIELD = 4,	/* a frame is suspended (before 3.11 this is a LEAVE) */
	PYP_SITE_CODE_FREE = 5, /* a code object is deallocated: its address may be reused */
	PYP_SITE_C_ENTER = 6,	/* the frame calls something that may be a function written in C */
	PYP_SITE_C_LEAVE = 7,	/* and that has returned, or raised */
	PYP_SITE_C_INSTANT = 8, /* the evaluator did itself what such a function does */
	PYP_SITE_GC_START = 9,	/* a collection of the garbage collector starts */
	PYP_SITE_GC_STOP = 10,	/* and has ended */
};

/*
 * A site's cookie tells the one uprobe program what to do there:
 *
 *   bits  0-3   kind (enum pyp_site_kind)
 *   bits  4-8   base register that holds the frame (for CODE_FREE: the code object), or whose
 *               memory does; numbered as the instruction set does (plan/arch, arch.bpf.h).
 *               GC_START, GC_STOP: that holds the generation, if disp is not PYP_GC_NO_GENERATION
 *   bit   9     1: the pointer is in memory at [base + disp], 0: it is the register itself
 *   bits 10-15  site number, its lower six bits, carried in every record
 *   bit  16     1: the site is a conditional branch and counts only under the predicate below
 *   bits 17-20  condition code, as arch.bpf.h understands it (x86-64: the low nibble of Jcc)
 *   bit  21     1: counts when the branch is taken, 0: when it is not
 *   bit  22     1: an ENTER is a THROW if the low half of the register below is not 0 (throwflag)
 *   bits 23-27  that register
 *   bit  28     1: what it announces may be executed, and so announced, once more
 *   bit  29     1: that only if the comparison before it found its operands unequal
 *   bits 30-31  site number, its upper two bits
 *   bits 32-63  disp, signed
 */
#define PYP_COOKIE_KIND(c)     ((__u32)((c)&0xf))
#define PYP_COOKIE_REG(c)      ((__u32)(((c) >> 4) & 0x1f))
#define PYP_COOKIE_DEREF(c)    ((__u32)(((c) >> 9) & 1))
#define PYP_COOKIE_SITE(c)     ((__u32)(((c) >> 10) & 0x3f) | ((__u32)(((c) >> 30) & 3) << 6))
#define PYP_COOKIE_HAS_CC(c)   ((__u32)(((c) >> 16) & 1))
#define PYP_COOKIE_CC(c)       ((__u32)(((c) >> 17) & 0xf))
#define PYP_COOKIE_TAKEN(c)    ((__u32)(((c) >> 21) & 1))
#define PYP_COOKIE_HAS_FLAG(c) ((__u32)(((c) >> 22) & 1))
#define PYP_COOKIE_FLAG_REG(c) ((__u32)(((c) >> 23) & 0x1f))
#define PYP_COOKIE_RESTARTS(c) ((__u32)(((c) >> 28) & 1))
#define PYP_COOKIE_UNEQUAL(c)  ((__u32)(((c) >> 29) & 1))
#define PYP_COOKIE_DISP(c)     ((__s32)((c) >> 32))
#define PYP_MAX_SITES	       64
#define PYP_MAX_NATIVE_SITES   96 /* of calls of functions written in C */
#define PYP_MAX_GC_SITES       16 /* of the garbage collector */
#define PYP_ALL_SITES	       (PYP_MAX_SITES + PYP_MAX_NATIVE_SITES + PYP_MAX_GC_SITES)

/* In a GC site's disp: its register does not hold the generation. */
#define PYP_GC_NO_GENERATION (-1)

/*
 * Where the kernel has no cookies (a uprobe event of many probes), the sites are found by their
 * address in the target: a table with one slot each, for which the daemon has sought a factor that
 * puts no two sites in one slot.
 */
#define PYP_SITE_BITS  12
#define PYP_SITE_SLOTS (1u << PYP_SITE_BITS)
#define PYP_SITE_SLOT(address, factor)                                                             \
	((__u32)(((__u64)(address) * (__u64)(factor)) >> (64 - PYP_SITE_BITS)))

struct pyp_site_entry {
	__u64 address; /* 0: the slot is free */
	__u64 cookie;
};

_Static_assert(sizeof(struct pyp_site_entry) == 16, "pyp_site_entry changed size");

/*
 * Of C_ENTER and C_INSTANT, by site number: where the object that is called is, as the cookie says it
 * of the frame. Its two lowest bits are a tag in some versions.
 */
struct pyp_native_site {
	__s32 disp;
	__u8 reg;
	__u8 deref;
	__u8 same; /* it is of one and the same PyMethodDef each time */
	__u8 pad;
};

/* And which objects count: addresses of their types in the target, 0: there is none. */
struct pyp_native_types {
	__u64 function;	  /* PyCFunction_Type */
	__u64 cmethod;	  /* PyCMethod_Type (3.9+) */
	__u64 descriptor; /* PyMethodDescr_Type */
};

_Static_assert(sizeof(struct pyp_native_site) == 8, "pyp_native_site changed size");

/*
 * Where things are in the target's frames and code objects; one per target, constant for the
 * verifier. Offsets in bytes. The frame block is the 32 bytes at frame + frame_block: code and
 * previous lie inside it, so that one read fetches both.
 */
struct pyp_layout {
	__u16 frame_block;
	__u16 frame_code;     /* relative to the frame */
	__u16 frame_previous; /* relative to the frame; f_back before 3.11 */
	__u16 frame_owner;    /* 0xffff: frames have no owner (before 3.11) */
	__u8 owner_entry;     /* owner >= this: the interpreter's own entry frame; 0xff: none */
	__u8 code_tag_mask;   /* low bits of the code pointer that are a tag (3.14+), else 0 */
	__u16 code_flags;
	__u16 code_firstlineno;
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname; /* 0xffff: none (before 3.11) */
	__u16 str_length;
	__u16 str_state;
	__u16 str_kind_shift;	/* where the kind's 3 bits start in state */
	__u16 str_ascii_data;	/* offset of the bytes of a compact ASCII string */
	__u16 str_compact_data; /* offset of the units of a compact non-ASCII string */
	__u32 code_skip_flags;	/* co_flags of code that is never counted (3.13+ __init__ shim) */
	/* co_flags of code that is entered once as a function (owner PYP_OWNER_THREAD) when its
	 * generator is created, which is no call (3.15+); 0: none is */
	__u32 code_creation_flags;
	__u16 frame_instr; /* 3.11+: pointer to the current instruction; before: f_lasti, -1 at first */
	__u16 code_start; /* the instructions, 0 before 3.11 */
	__u16 code_first; /* 3.11+: the number of the first instruction of its own, an __s32 */
	/* 3.11: a byte, 1 if C code has called the frame; its caller may then be a frame that was
	 * not entered yet. 0xffff: no frame calls before it is entered */
	__u16 frame_is_entry;
	__u16 object_type; /* ob_type, in every object; types' own fields move with it */
	__u16 pad;
};

#define PYP_OWNER_THREAD 0

/* co_flags of generators, coroutines, asynchronous generators; the same in all versions. */
#define PYP_CO_GENERATOR       0x20u
#define PYP_CO_COROUTINE       0x80u
#define PYP_CO_ASYNC_GENERATOR 0x200u
#define PYP_CO_SUSPENDS	       (PYP_CO_GENERATOR | PYP_CO_COROUTINE | PYP_CO_ASYNC_GENERATOR)

_Static_assert(sizeof(struct pyp_layout) == 52, "pyp_layout changed size");

/* Record types in the ring. */
enum pyp_rec_type {
	PYP_REC_ENTER = 1,
	PYP_REC_THROW, /* as ENTER */
	PYP_REC_LEAVE,
	PYP_REC_YIELD,	    /* as LEAVE */
	PYP_REC_SWITCH_OUT, /* the thread leaves a CPU */
	PYP_REC_SWITCH_IN,  /* the thread gets a CPU */
	PYP_REC_CODE,	    /* a code object is seen for the first time; its strings came before */
	PYP_REC_STRING,
	PYP_REC_CODE_FREE,
	PYP_REC_CHAIN, /* the frames of a thread first seen (or seen again after a loss) */
	PYP_REC_THREAD_EXIT,
	PYP_REC_FORK, /* the target, or a descendant, made a child process */
	PYP_REC_EXEC,
	PYP_REC_COUNTERS,  /* a thread's resource counters, where they have changed */
	PYP_REC_SAMPLE,	   /* sampling: a stack; the names of its code came before */
	PYP_REC_CODE_ID,   /* counting: the number of a code object whose CODE came before */
	PYP_REC_C_ENTER,   /* a frame calls a function written in C; its METHOD came before */
	PYP_REC_C_LEAVE,   /* and that has returned */
	PYP_REC_C_INSTANT, /* both at once */
	PYP_REC_METHOD,	   /* a function written in C is seen for the first time */
	PYP_REC_GC_START,  /* a collection of the garbage collector starts */
	PYP_REC_GC_STOP,   /* and has ended */
	PYP_REC_MEMORY,	   /* the process's memory has grown or shrunk */
	PYP_REC_MAX
};

/* Head of every record. */
struct pyp_rec {
	__u64 ts;
	__u32 tid; /* in the daemon's pid namespace */
	__u8 type; /* enum pyp_rec_type */
	__u8 site; /* site number, 0 where there is none */
	__u16 arg; /* per type, see below; else 0 */
};

/* In h.arg of ENTER and THROW. */
#define PYP_ENTER_GENERATOR 1u /* the frame can be suspended: a generator's or coroutine's */
#define PYP_ENTER_START	    2u /* and has not run before */

/* ENTER, THROW. caller: the Python frame below, entry frames skipped; 0: none. 40 bytes. */
struct pyp_rec_enter {
	struct pyp_rec h;
	__u64 frame;
	__u64 code;
	__u64 caller;
};

/* LEAVE, YIELD: the frame that stops running. */
struct pyp_rec_leave {
	struct pyp_rec h;
	__u64 frame;
};

/*
 * C_ENTER, C_INSTANT, C_LEAVE (method is 0): the Python frame whose call it is, which has one such call
 * at a time. method: the address of the PyMethodDef, by which such functions are told apart.
 */
struct pyp_rec_c_call {
	struct pyp_rec h;
	__u64 frame;
	__u64 method;
};

/*
 * GC_START, GC_STOP: h.arg is the generation, or PYP_GC_UNKNOWN. frame: GC_START: the thread's innermost
 * Python frame, entry frames skipped; 0: it could not be read, or there is none. GC_STOP: 0.
 */
#define PYP_GC_GENERATIONS 3
#define PYP_GC_UNKNOWN	   PYP_GC_GENERATIONS

struct pyp_rec_gc {
	struct pyp_rec h;
	__u64 frame;
};

_Static_assert(sizeof(struct pyp_rec_gc) == 24, "pyp_rec_gc changed size");

/* In h.arg of METHOD: what is called. */
enum pyp_method_kind {
	PYP_METHOD_FUNCTION =
		1,	      /* of a module, or of no known one: "<built-in method math.sqrt>" */
	PYP_METHOD_BOUND = 2, /* of an object: "<built-in method fromkeys of type object …>" */
	PYP_METHOD_DESCRIPTOR = 3, /* of a type: "<method 'append' of 'list' objects>" */
};
#define PYP_METHOD_UNREADABLE 0x100u /* the name could not be read */

/*
 * METHOD: from now on this PyMethodDef is this function (again, where its name or type has changed:
 * memory is used again). Strings end with a NUL, and are cut where they do not fit.
 */
struct pyp_rec_method {
	struct pyp_rec h;
	__u64 method;
	__u64 self_type; /* FUNCTION, BOUND: address of the type of the object it is bound to */
	char name[96];	 /* ml_name */
	char type[96];	 /* tp_name of the type whose method it is; "" for a module's function */
	char module[96]; /* m_module, where that is a str; else "" */
};

/* In h.arg of SWITCH_OUT: still runnable, preempted. */
#define PYP_SWITCH_RUNNABLE 1u
/* In h.arg of both: calls or returns of the thread were lost, and its stack was not sent since. */
#define PYP_SWITCH_LOST 2u

/* SWITCH_IN: the thread's run time so far. */
struct pyp_rec_switch {
	struct pyp_rec h;
	__u64 runtime;
};

/* In wait of SWITCH_OUT: what the thread waits for, as far as the kernel side knows. */
enum pyp_wait {
	PYP_WAIT_CPU,	  /* it could go on: it was preempted, or yielded */
	PYP_WAIT_SYSCALL, /* blocked in a system call */
	PYP_WAIT_GIL,	  /* in a futex call on one of the ranges below */
	PYP_WAIT_FAULT,	  /* blocked outside of system calls: a page fault */
	PYP_WAIT_STOPPED, /* by a signal or a debugger */
	PYP_WAIT_MAX
};

/* What a descriptor is, as far as it matters for why a thread waits. */
enum pyp_fd_kind {
	PYP_FD_UNKNOWN, /* not looked at, closed, or unreadable */
	PYP_FD_FILE,	/* a regular file, a directory or a block device */
	PYP_FD_SOCKET,
	PYP_FD_PIPE,
	PYP_FD_OTHER, /* a terminal, an eventfd */
	PYP_FD_MAX
};

/*
 * SWITCH_OUT: besides, why. delay: how long the thread has waited in run queues in all its life, the
 * wait that ended last included; 0: the kernel does not count it. syscall and its first two arguments:
 * where wait is SYSCALL or GIL, else -1 and 0. fd: enum pyp_fd_kind of the first argument, for calls that
 * the daemon has asked to be looked at. gil: the number of the GIL, where wait is GIL.
 */
struct pyp_rec_switch_out {
	struct pyp_rec h;
	__u64 runtime;
	__u64 delay;
	__u64 arg[2];
	__s32 syscall;
	__u8 wait; /* enum pyp_wait */
	__u8 fd;
	__u8 gil;
	__u8 pad;
};

/*
 * Where futexes mean a GIL: addresses in the target. Several ranges can be of one GIL; each
 * interpreter (3.12+) can have one. size 0: none.
 */
#define PYP_GIL_RANGES 16
struct pyp_gil_range {
	__u64 start;
	__u32 size;
	__u32 gil; /* its number, below PYP_GIL_RANGES */
};

/* System calls whose descriptor is looked at: bits by number. */
#define PYP_FD_CALLS 512

/* Which of a code object's strings a STRING record carries (h.arg). */
enum pyp_string_which { PYP_STR_FILENAME = 0, PYP_STR_NAME = 1, PYP_STR_QUALNAME = 2 };

#define PYP_STRING_UNREADABLE 1u /* the target's page was not in memory: ask the target's memory */
#define PYP_STRING_TRUNCATED  2u

/*
 * One string, in CPython's own representation: `units` characters of `kind` bytes each (1: ASCII
 * or Latin-1, 2: UCS-2, 4: UCS-4), of which the first `bytes` bytes follow. The record's size is
 * one of a few classes, so it may be longer than its content.
 */
struct pyp_rec_string {
	struct pyp_rec h;
	__u64 code;
	__u64 object; /* address of the str object */
	__u32 units;
	__u16 bytes;
	__u8 kind;
	__u8 flags;
	__u8 data[];
};
#define PYP_STRING_SMALL  96u
#define PYP_STRING_MEDIUM 512u
#define PYP_STRING_LARGE  16384u
#define PYP_STRING_HUGE	  49152u /* in a small ring, or a full one, such a string is cut to LARGE */

#define PYP_CODE_UNREADABLE 1u

struct pyp_rec_code {
	struct pyp_rec h; /* arg: PYP_CODE_* */
	__u64 code;
	__u32 flags; /* co_flags */
	__s32 firstlineno;
};

struct pyp_rec_code_free {
	struct pyp_rec h;
	__u64 code;
};

/*
 * A thread's frames, innermost first, in as many records as needed: `first` counts from the
 * innermost frame. The event that caused it follows: a chain sent with an ENTER starts at the
 * caller; one sent with a LEAVE starts at the frame that is left. A record with first = 0 starts a
 * chain: a chain before it that had no LAST was given up because the ring was full.
 */
#define PYP_CHAIN_FRAMES    32
#define PYP_CHAIN_LAST	    1u /* h.arg: no more to come */
#define PYP_CHAIN_TRUNCATED 2u /* too deep or unreadable: the outermost frames are missing */
#define PYP_CHAIN_RESYNC    4u /* in the first record: the thread was known, events were lost */
#define PYP_CHAIN_MAX_DEPTH 16384

struct pyp_chain_frame {
	__u64 frame;
	__u64 code;
};

struct pyp_rec_chain {
	struct pyp_rec h;
	__u32 first;
	__u32 count;
	struct pyp_chain_frame frames[PYP_CHAIN_FRAMES];
};

/*
 * THREAD_EXIT: the name the thread had; runtime: its run time as of its last switch or scheduler
 * tick, so up to a tick short. h.arg: PYP_EXIT_*.
 */
#define PYP_EXIT_GROUP 1u /* the group died */
#define PYP_EXIT_LOST  2u /* as PYP_SWITCH_LOST */

struct pyp_rec_thread {
	struct pyp_rec h;
	__u64 runtime;
	char comm[16];
};

/* In h.arg of FORK: the child runs in its parent's memory until it executes a program (vfork). */
#define PYP_FORK_SHARED 1u
/* In h.arg of EXEC: a thread that was not the leader executed, and has become it. */
#define PYP_EXEC_OTHER_THREAD 1u

/*
 * FORK: tid is the forking thread, parent its process, child the new one. parent is the target or,
 * while it is followed, a descendant; children that share their parent's memory are told only then.
 * EXEC: parent is 0; child is 0 if it was the target that executed, else the descendant.
 */
struct pyp_rec_process {
	struct pyp_rec h;
	__u32 child;
	__u32 parent;
};

/*
 * What the kernel counts for each thread, at choice. X(name, field of the kernel's); what each is, is in
 * the daemon's table of columns.
 * The bytes are those that read(2), write(2) and the like were asked to move, whatever the file is;
 * recv(2) and send(2) are not among these.
 */
#define PYP_COUNTERS_X(X)                                                                          \
	X(vcsw, nvcsw)                                                                             \
	X(ivcsw, nivcsw)                                                                           \
	X(minflt, min_flt)                                                                         \
	X(majflt, maj_flt)                                                                         \
	X(rbytes, ioac.rchar)                                                                      \
	X(wbytes, ioac.wchar)

enum pyp_counter {
#define PYP_X(name, field) PYP_COUNTER_##name,
	PYP_COUNTERS_X(PYP_X)
#undef PYP_X
		PYP_COUNTERS
};

/*
 * COUNTERS: the thread's counters since it began, those that were asked for, else 0. Sent before the
 * thread's next event when one of them has changed since they were last sent.
 */
struct pyp_rec_counters {
	struct pyp_rec h;
	__u64 value[PYP_COUNTERS];
};

_Static_assert(sizeof(struct pyp_rec_counters) == 64, "pyp_rec_counters changed size");

/*
 * MEMORY: by how many bytes (negative: it has shrunk) the process's memory has changed since it was last
 * sent, by this thread's doing; either is 0 where it has not moved by a step. h.arg: PYP_MEMORY_*.
 */
struct pyp_rec_memory {
	struct pyp_rec h;
	__s64 resident; /* in RAM */
	__s64 mapped;	/* addresses mapped, resident or not */
};

_Static_assert(sizeof(struct pyp_rec_memory) == 32, "pyp_rec_memory changed size");

#define PYP_MEMORY_LOST 1u /* as PYP_SWITCH_LOST */

/*
 * SAMPLE: the code on a thread's stack, innermost first, in as many records as needed, each with the
 * CPU time that the sample stands for. A record with first = 0 starts a sample: one before it that had
 * no LAST was given up. No code at all: the thread runs no Python.
 *
 * With METHOD or NATIVE in its first record, a function written in C runs on top of the stack, and the
 * first of the codes is the address of its PyMethodDef, whose METHOD came before, or the address of the
 * instruction that runs.
 */
#define PYP_SAMPLE_CODES     64
#define PYP_SAMPLE_LAST	     1u /* h.arg: no more to come */
#define PYP_SAMPLE_TRUNCATED 2u /* too deep or unreadable: the outermost frames are missing */
#define PYP_SAMPLE_METHOD    4u
#define PYP_SAMPLE_NATIVE    8u
#define PYP_SAMPLE_MAX_DEPTH 1024

struct pyp_rec_sample {
	struct pyp_rec h;
	__u64 period;
	__u32 first;
	__u32 count;
	__u64 codes[PYP_SAMPLE_CODES];
};

/* When samples are taken. */
#define PYP_SAMPLING_ALONE   0u /* while PYP_ACTIVE_ON, of a target without probes */
#define PYP_SAMPLING_BETWEEN 1u /* between windows, that is while PYP_ACTIVE_BETWEEN */
#define PYP_SAMPLING_BESIDE                                                                        \
	2u /* while PYP_ACTIVE_ON, beside probes: those of their time are dropped */

/*
 * Sampling beside probes: addresses in the target, with what an interrupt there means. A clock that
 * fell due while the processor handled a breakpoint with interrupts disabled interrupts the first
 * instruction after it.
 */
#define PYP_TRAP_KERNEL 1u /* the kernel, entered from there, runs a probe */
#define PYP_TRAP_USER	2u /* as well if user code is interrupted there */
#define PYP_TRAPS_MAX	(4u * PYP_ALL_SITES)

/* Samples that were dropped because they are of probes' time. */
struct pyp_trap_samples {
	__u64 in_kernel, after;
};

/* How sampling finds threads: offsets as in struct layout; 0xffff: no such field. */
struct pyp_sampling {
	__u64 period; /* ns of CPU time between samples */
	__u16 interp_next, interp_threads;
	__u16 ts_next, ts_thread_id, ts_frame, ts_cframe, cframe_current;
	__u8 when; /* PYP_SAMPLING_* */
	__u8 top;  /* of the stack the first frame alone is sent: who runs, not who called it */
};

/* Code in the target; size 0: none. */
struct pyp_code_range {
	__u64 start, size;
};

/* Of the evaluator, and of what it takes to call and to leave a Python function. */
#define PYP_OWN_CODE 16

/* And where: addresses, which are others after an exec. */
struct pyp_sampling_at {
	__u64 interp_head;			 /* of the pointer to the first interpreter */
	__u64 code_type;			 /* of PyCode_Type */
	struct pyp_code_range own[PYP_OWN_CODE]; /* the first: none if not known */
};

/*
 * C functions in samples. op: what an instruction calls: 0, no C function; else PYP_CALL, and where
 * the called object lies, so many slots below the top of the value stack, with PYP_CALL_ARGS the
 * instruction's argument besides.
 */
#define PYP_CALL       0x80u
#define PYP_CALL_ARGS  0x40u
#define PYP_CALL_SLOTS 0x0fu
struct pyp_native_calls {
	__u8 on;
	__u8 remember;	 /* counting: calls are probed, and remembered by frame */
	__u8 index_unit; /* bytes that frame_instr counts in; 0: it is a pointer */
	__u8 pad;
	__u16 frame_stack; /* the pointer to the value stack's top during a call (3.14+); 0: none */
	__u16 code_bytes;  /* where it is an index: as in struct pyp_waiting */
	__u16 bytes_data;
	__u8 pad2[6];
	__u8 op[256];
};

/* CODE_ID: from now on this number stands for what is at this address now, for ever. */
struct pyp_rec_code_id {
	struct pyp_rec h;
	__u64 code;
	__u32 id;
	__u32 pad;
};

/* Numbers of code objects; the first ones mean something else. */
#define PYP_COUNT_OUTSIDE 1u /* as caller: no Python code */
#define PYP_COUNT_LOST	  2u /* code whose names or number could not be sent */
#define PYP_COUNT_SKIP	  3u /* never counted, never sent */
#define PYP_COUNT_GC	  4u /* as callee: a collection of generation 0; then 1, 2, unknown */
#define PYP_COUNT_FIRST	  (PYP_COUNT_GC + PYP_GC_UNKNOWN + 1)
#define PYP_COUNT_IDS	  524288u /* what comes after these is lost, and counted so */

/* Counting's map: how often a thread has called one from the other, by number; value: __u64. */
struct pyp_edge {
	__u32 tid;
	__u32 caller;
	__u32 callee;
};
#define PYP_COUNT_EDGES 262144u

/*
 * How to tell that a generator waits in `yield from` or `await`: by the instruction with which it
 * goes on, RESUME with an argument that says so, or YIELD_FROM (before 3.11).
 */
enum pyp_waiting_style {
	PYP_WAITING_NONE,  /* needs not be known: exceptions pass without a trace (before 3.9) */
	PYP_WAITING_INDEX, /* f_lasti: the instruction before it, as an index into co_code */
	PYP_WAITING_PREV,  /* a pointer to the instruction before it */
	PYP_WAITING_NEXT,  /* a pointer to it */
};
#define PYP_WAITING_OPS 5

struct pyp_waiting {
	__u8 style;
	__u8 index_unit; /* bytes: 1 (3.9), 2 (3.10) */
	__u8 least_arg;	 /* of its two lowest bits */
	__u8 op[PYP_WAITING_OPS];
	__u16 frame_instr;
	__u16 code_bytes; /* co_code, and of that object ... */
	__u16 bytes_data; /* ... the first byte */
	__u16 pad;
};

/*
 * 3.12 and later: a RESUME that finds its code out of date (sys.monitoring has been used) brings it up
 * to date and is executed again. Counting must not see it twice.
 */
struct pyp_restart {
	__u64 interp_head;  /* address of the pointer to the interpreter; 0: no such thing */
	__u16 code_version; /* what is compared, 64 bits each */
	__u16 interp_version;
	__u16 pad[2];
};

_Static_assert(sizeof(struct pyp_native_calls) == 272, "pyp_native_calls changed size");
_Static_assert(sizeof(struct pyp_restart) == 16, "pyp_restart changed size");
_Static_assert(sizeof(struct pyp_waiting) == 16, "pyp_waiting changed size");
_Static_assert(sizeof(struct pyp_sampling) == 24, "pyp_sampling changed size");
_Static_assert(sizeof(struct pyp_rec_sample) == 32 + 8 * PYP_SAMPLE_CODES, "pyp_rec_sample size");
_Static_assert(sizeof(struct pyp_edge) == 12, "pyp_edge changed size");
_Static_assert(sizeof(struct pyp_rec_code_id) == 32, "pyp_rec_code_id changed size");
_Static_assert(sizeof(struct pyp_rec) == 16, "pyp_rec changed size");
_Static_assert(sizeof(struct pyp_rec_enter) == 40, "pyp_rec_enter changed size");
_Static_assert(sizeof(struct pyp_rec_c_call) == 32, "pyp_rec_c_call changed size");
_Static_assert(sizeof(struct pyp_rec_method) == 320, "pyp_rec_method changed size");
_Static_assert(sizeof(struct pyp_rec_leave) == 24, "pyp_rec_leave changed size");
_Static_assert(sizeof(struct pyp_rec_switch) == 24, "pyp_rec_switch changed size");
_Static_assert(sizeof(struct pyp_rec_switch_out) == 56, "pyp_rec_switch_out changed size");
_Static_assert(sizeof(struct pyp_gil_range) == 16, "pyp_gil_range changed size");
_Static_assert(sizeof(struct pyp_rec_string) == 40, "pyp_rec_string changed size");
_Static_assert(sizeof(struct pyp_rec_code) == 32, "pyp_rec_code changed size");
_Static_assert(sizeof(struct pyp_rec_code_free) == 24, "pyp_rec_code_free changed size");
_Static_assert(sizeof(struct pyp_rec_chain) == 24 + 16 * PYP_CHAIN_FRAMES, "pyp_rec_chain size");
_Static_assert(sizeof(struct pyp_rec_thread) == 40, "pyp_rec_thread changed size");
_Static_assert(sizeof(struct pyp_rec_process) == 24, "pyp_rec_process changed size");

/*
 * Named counters of everything the BPF side could not do. X(name, what it means). They live in
 * the target's .bss as an array of __u64 indexed by enum pyp_loss.
 */
#define PYP_LOSSES(X)                                                                              \
	X(lost_events, "calls and returns lost because the ring was full")                         \
	X(lost_switches, "thread switches lost because the ring was full")                         \
	X(lost_codes, "code objects whose names could not be sent (sent again later)")             \
	X(lost_chains, "stacks that could not be sent (sent again later)")                         \
	X(lost_threads, "thread ends lost because the ring was full")                              \
	X(lost_processes, "fork and exec records dropped because the ring was full")               \
	X(fault_frame, "events dropped because the frame could not be read")                       \
	X(fault_string, "names that could not be read in place")                                   \
	X(chain_truncated, "stacks cut off: too deep or unreadable")                               \
	X(name_truncated, "names cut off: too long")                                               \
	X(map_full, "code objects or threads that did not fit the maps")                           \
	X(lost_counters, "resource counters that could not be sent (sent again later)")            \
	X(unknown_site, "hits at an address that is no site of the plan")                          \
	X(lost_samples, "samples between windows or beside probes that could not be sent")         \
	X(lost_memory, "changes of memory that could not be sent (sent again later)")

enum pyp_loss {
#define PYP_X(name, text) PYP_LOSS_##name,
	PYP_LOSSES(PYP_X)
#undef PYP_X
		PYP_LOSS_MAX
};

#endif
