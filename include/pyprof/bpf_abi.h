/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface between the BPF programs and the daemon: the records in a target's ring buffer, the
 * cookies of probe sites, and the settings and counters that they share. Both sides include this
 * file, so it has only fixed-width types, explicit padding and asserted sizes. Any change here
 * changes PYP_BPF_ABI_VERSION.
 *
 * Units: timestamps are CLOCK_MONOTONIC nanoseconds (bpf_ktime_get_ns), run times are the
 * scheduler's sum_exec_runtime in nanoseconds, addresses are the target's virtual addresses.
 */
#ifndef PYPROF_BPF_ABI_H
#define PYPROF_BPF_ABI_H

#ifndef PYP_BPF_SIDE
#include <linux/types.h>
#endif

#define PYP_BPF_ABI_VERSION 23

/*
 * Which probe hits produce records. Between windows there are no records of calls. Samples, context
 * switches with the stacks of waits, code objects that are freed, exits, forks and execs are still
 * reported.
 */
#define PYP_ACTIVE_OFF	   0u /* every program returns at once */
#define PYP_ACTIVE_ON	   1u
#define PYP_ACTIVE_BETWEEN 2u

/* The kind of event at a probe site. */
enum pyp_site_kind {
	PYP_SITE_ENTER = 1,	/* a frame starts or resumes (function start, generator resume) */
	PYP_SITE_THROW = 2,	/* a frame resumes because an exception is thrown into it */
	PYP_SITE_LEAVE = 3,	/* a frame ends: return or unwinding */
	PYP_SITE_YIELD = 4,	/* a frame is suspended (before 3.11 this is a LEAVE) */
	PYP_SITE_CODE_FREE = 5, /* a code object is deallocated: its address may be reused */
	PYP_SITE_C_ENTER = 6,	/* the frame calls an object that may be a C function */
	PYP_SITE_C_LEAVE = 7,	/* that call has returned or raised */
	PYP_SITE_C_INSTANT = 8, /* the evaluator did the work of a C function without a call */
	PYP_SITE_GC_START = 9,	/* a garbage collection starts */
	PYP_SITE_GC_STOP = 10,	/* a garbage collection has ended */
};

/*
 * A site's cookie has the parameters of the uprobe program, which all sites share:
 *
 *   bits  0-3   kind (enum pyp_site_kind)
 *   bits  4-8   base register: it holds the frame (CODE_FREE: the code object), or the base of the
 *               address of memory that does; numbered as by the instruction set (plan/arch,
 *               arch.bpf.h). GC_START, GC_STOP: it holds the generation, unless disp is
 *               PYP_GC_NO_GENERATION
 *   bit   9     1: the pointer is in memory at [base + disp], 0: it is the register itself
 *   bits 10-15  site number, lower six bits, carried in every record
 *   bit  16     1: the site is a conditional branch and counts only under the predicate below
 *   bits 17-20  condition code as in arch.bpf.h (x86-64: the low nibble of Jcc)
 *   bit  21     1: counts when the branch is taken, 0: when it is not
 *   bit  22     1: an ENTER is a THROW if the low half of the register below is not 0 (throwflag)
 *   bits 23-27  that register
 *   bit  28     1: the instruction may execute again and cause a duplicate event
 *   bit  29     1: only if the comparison before it found its operands unequal
 *   bits 30-31  site number, upper two bits
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
#define PYP_MAX_NATIVE_SITES   96 /* for calls of C functions */
#define PYP_MAX_GC_SITES       16 /* for garbage collections */
#define PYP_ALL_SITES	       (PYP_MAX_SITES + PYP_MAX_NATIVE_SITES + PYP_MAX_GC_SITES)
#define PYP_MARKS	       PYP_ALL_SITES /* see plan/marks.c */
#define PYP_MARK_THREADS       4096

/* In a GC site's disp: the register does not hold the generation. */
#define PYP_GC_NO_GENERATION (-1)

/*
 * If the kernel provides no cookies (one uprobe event with many probes), sites are found by their
 * address in the target: a hash table with one slot per site, for which the daemon searches a
 * factor without collisions. Where there are cookies, the table is a faster way to them. A link that
 * removes breakpoints from a forked child has no cookies, and its hits have the same addresses: the
 * program must then compare the process.
 */
#define PYP_BY_COOKIE  0u
#define PYP_BY_ADDRESS 1u
#define PYP_BY_BOTH    2u /* the table may be empty */

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
 * The location of the called object at C_ENTER and C_INSTANT sites, by site number; encoded as the
 * frame's in the cookie. In some versions, the two lowest bits of the pointer are a tag.
 */
struct pyp_native_site {
	__s32 disp;
	__u8 reg;
	__u8 deref;
	__u8 same; /* the object always has the same PyMethodDef */
	__u8 pad;
};

/*
 * The types of objects that are C functions: addresses in the target; 0: the type does not exist.
 * Then the place of the interpreter's file in memory, which is never freed.
 */
struct pyp_native_types {
	__u64 function;	  /* PyCFunction_Type */
	__u64 cmethod;	  /* PyCMethod_Type (3.9+) */
	__u64 descriptor; /* PyMethodDescr_Type */
	__u64 image, image_size;
};

_Static_assert(sizeof(struct pyp_native_site) == 8, "pyp_native_site changed size");

/*
 * Offsets in bytes of fields of the target's frames and code objects; one per target, constant for
 * the verifier. The frame block is the 32 bytes at frame + frame_block: it contains code and
 * previous, so that one read fetches both.
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
	__u16 str_kind_shift;	/* position of the kind's 3 bits in state */
	__u16 str_ascii_data;	/* offset of the bytes of a compact ASCII string */
	__u16 str_compact_data; /* offset of the units of a compact non-ASCII string */
	__u32 code_skip_flags;	/* co_flags of code that is never counted (3.13+ __init__ shim) */
	/*
	 * co_flags of code that is entered once as a function (owner PYP_OWNER_THREAD) when its
	 * generator is created, which is not a call (3.15+); 0: none
	 */
	__u32 code_creation_flags;
	__u16 frame_instr; /* 3.11+: pointer to current instruction; else f_lasti, -1 at first */
	__u16 code_start;  /* offset of the instructions; 0 before 3.11 */
	__u16 code_first;  /* 3.11+: index of the function's own first instruction, an __s32 */
	/*
	 * 3.11: a byte, 1 if C code has called the frame; its caller may then be a frame that was
	 * not entered yet. 0xffff: no frame makes calls before it is entered
	 */
	__u16 frame_is_entry;
	__u16 object_type; /* ob_type, in every object; offsets of types' own fields depend on it */
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
	PYP_REC_CODE,	    /* a code object is seen for the first time; its strings precede */
	PYP_REC_STRING,
	PYP_REC_CODE_FREE,
	PYP_REC_CHAIN, /* the frames of a thread first seen (or seen again after a loss) */
	PYP_REC_THREAD_EXIT,
	PYP_REC_FORK, /* the target, or a descendant, has created a child process */
	PYP_REC_EXEC,
	PYP_REC_COUNTERS,  /* a thread's resource counters, if they have changed */
	PYP_REC_SAMPLE,	   /* sampling: a stack; the names of its code precede */
	PYP_REC_CODE_ID,   /* counting: the number of a code object whose CODE precedes */
	PYP_REC_C_ENTER,   /* a frame calls a C function, whose METHOD precedes */
	PYP_REC_C_LEAVE,   /* that call has returned */
	PYP_REC_C_INSTANT, /* both at once */
	PYP_REC_METHOD,	   /* a C function is seen for the first time */
	PYP_REC_GC_START,  /* a garbage collection starts */
	PYP_REC_GC_STOP,   /* a garbage collection has ended */
	PYP_REC_MEMORY,	   /* the process's memory has grown or shrunk */
	PYP_REC_BLOCK,	   /* a large block of memory is mapped or unmapped */
	PYP_REC_DELAY,	   /* the delay of the wait that has begun will be wrong */
	PYP_REC_MARK,	   /* in windows: the thread passes a mark */
	PYP_REC_MAX
};

/* The header of every record. */
struct pyp_rec {
	__u64 ts;
	__u32 tid; /* in the daemon's pid namespace */
	__u8 type; /* enum pyp_rec_type */
	__u8 site; /* site number; 0: none */
	__u16 arg; /* depends on the type, see below; else 0 */
};

/* In h.arg of ENTER and THROW. */
#define PYP_ENTER_GENERATOR 1u /* the frame can be suspended: generator or coroutine */
#define PYP_ENTER_START	    2u /* the frame has not run before */

/* ENTER, THROW. caller: the calling Python frame, entry frames skipped; 0: none. 40 bytes. */
struct pyp_rec_enter {
	struct pyp_rec h;
	__u64 frame;
	__u64 code;
	__u64 caller;
};

/* In h.arg of LEAVE, if that is asked for (struct pyp_raising). */
#define PYP_LEAVE_RAISED 1u /* an exception leaves the frame */

/* LEAVE, YIELD: the frame that stops running. */
struct pyp_rec_leave {
	struct pyp_rec h;
	__u64 frame;
};

/*
 * C_ENTER, C_INSTANT, C_LEAVE. frame: the calling Python frame, which has at most one such call at
 * a time. method: the address of the PyMethodDef, which identifies the C function; C_LEAVE: 0.
 */
struct pyp_rec_c_call {
	struct pyp_rec h;
	__u64 frame;
	__u64 method;
};

/*
 * GC_START, GC_STOP. h.arg: the generation, or PYP_GC_UNKNOWN. frame: of GC_START, the thread's
 * innermost Python frame, entry frames skipped; 0: none, or it could not be read. Of GC_STOP, 0.
 */
#define PYP_GC_GENERATIONS 3
#define PYP_GC_UNKNOWN	   PYP_GC_GENERATIONS

struct pyp_rec_gc {
	struct pyp_rec h;
	__u64 frame;
};

_Static_assert(sizeof(struct pyp_rec_gc) == 24, "pyp_rec_gc changed size");

/* In h.arg of METHOD: the kind of C function. */
enum pyp_method_kind {
	PYP_METHOD_FUNCTION =
		1,	      /* of a module or of an unknown one: "<built-in method math.sqrt>" */
	PYP_METHOD_BOUND = 2, /* of an object: "<built-in method fromkeys of type object …>" */
	PYP_METHOD_DESCRIPTOR = 3, /* of a type: "<method 'append' of 'list' objects>" */
};
#define PYP_METHOD_UNREADABLE 0x100u /* the name could not be read */

/*
 * METHOD: names the function of a PyMethodDef. Sent again if the name or type at this address has
 * changed, because memory is reused. Strings are NUL-terminated and truncated to fit.
 */
struct pyp_rec_method {
	struct pyp_rec h;
	__u64 method;
	__u64 self_type; /* FUNCTION, BOUND: address of the type of the bound object */
	char name[96];	 /* ml_name */
	char type[96];	 /* tp_name of the method's type; "" for a module's function */
	char module[96]; /* m_module if that is a str; else "" */
};

/* In h.arg of SWITCH_OUT: the thread is still runnable (preempted). */
#define PYP_SWITCH_RUNNABLE 1u
/* In h.arg of both: calls or returns of the thread were lost since its stack was last sent. */
#define PYP_SWITCH_LOST 2u

/* SWITCH_IN. runtime: the thread's run time so far. */
struct pyp_rec_switch {
	struct pyp_rec h;
	__u64 runtime;
};

/* In `wait` of SWITCH_OUT: why the thread waits, as far as the BPF program knows. */
enum pyp_wait {
	PYP_WAIT_CPU,	  /* runnable: it was preempted, or has yielded */
	PYP_WAIT_SYSCALL, /* blocked in a system call */
	PYP_WAIT_GIL,	  /* in a futex call on one of the ranges below */
	PYP_WAIT_FAULT,	  /* blocked outside of system calls, e.g. in a page fault */
	PYP_WAIT_STOPPED, /* stopped by a signal or a debugger */
	PYP_WAIT_MAX
};

/* The kind of file of a descriptor, as far as it affects why a thread waits. */
enum pyp_fd_kind {
	PYP_FD_UNKNOWN, /* not determined, closed, or unreadable */
	PYP_FD_FILE,	/* a regular file, a directory or a block device */
	PYP_FD_SOCKET,
	PYP_FD_PIPE,
	PYP_FD_OTHER, /* a terminal, an eventfd */
	PYP_FD_MAX
};

/*
 * SWITCH_OUT: also the reason. delay: total time in ns that the thread has waited in run queues in
 * its life, including the wait that ended last; 0: the kernel does not measure it. syscall, arg:
 * the system call and its first two arguments if wait is SYSCALL or GIL, else -1 and 0. fd: enum
 * pyp_fd_kind of the first argument, for system calls that the daemon has selected. gil: the number
 * of the GIL if wait is GIL.
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
 * DELAY: an empty record (struct pyp_rec). The kernel has moved a thread that waits to another CPU's
 * run queue, and counts the rest of its wait as time in run queues (`delay` of SWITCH_OUT).
 */

/*
 * Addresses in the target whose futexes belong to a GIL. A GIL can have several ranges; each
 * interpreter (3.12+) can have its own GIL. size 0: unused.
 */
#define PYP_GIL_RANGES 16
struct pyp_gil_range {
	__u64 start;
	__u32 size;
	__u32 gil; /* number of the GIL, below PYP_GIL_RANGES */
};

/* System calls whose descriptor's kind is determined: bits by number. */
#define PYP_FD_CALLS 512

/* The string of a code object that a STRING record carries (h.arg). */
enum pyp_string_which { PYP_STR_FILENAME = 0, PYP_STR_NAME = 1, PYP_STR_QUALNAME = 2 };

#define PYP_STRING_UNREADABLE 1u /* the page was not in memory: read it from the target's memory */
#define PYP_STRING_TRUNCATED  2u

/*
 * A string in CPython's own representation: `units` characters of `kind` bytes each (1: ASCII or
 * Latin-1, 2: UCS-2, 4: UCS-4), of which the first `bytes` bytes follow. Records have one of a few
 * sizes, so a record may be longer than its content.
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
#define PYP_STRING_HUGE	  49152u /* truncated to LARGE if the ring is small or full */

#define PYP_CODE_UNREADABLE 1u
/* Names, from the time when it is freed, of a code object some of whose names could not be read. */
#define PYP_CODE_LATE 2u

struct pyp_rec_code {
	struct pyp_rec h; /* arg: PYP_CODE_* */
	__u64 code;
	__u32 flags; /* co_flags */
	__s32 firstlineno;
};

/*
 * A stamp of an announcement, by the time of its CODE record; in the values of the map `codes`, above
 * what else they contain. While a code object's value has its stamp, the object has not been freed.
 */
#define PYP_CODE_STAMP_SHIFT 40
#define PYP_CODE_STAMP(ts)   ((ts)&0xffffffu)

struct pyp_rec_code_free {
	struct pyp_rec h;
	__u64 code;
};

/*
 * CHAIN: a thread's frames, innermost first, in as many records as needed; `first` is the index
 * from the innermost frame. The event that caused it follows: a chain sent with an ENTER starts at
 * the caller, one sent with a LEAVE at the frame that is left. A record with first = 0 starts a
 * chain; if the chain before had no LAST, it was abandoned because the ring was full.
 */
#define PYP_CHAIN_FRAMES    32
#define PYP_CHAIN_LAST	    1u /* h.arg: the last record of the chain */
#define PYP_CHAIN_TRUNCATED 2u /* too deep or unreadable: the outermost frames are missing */
#define PYP_CHAIN_RESYNC    4u /* in the first record: the thread was known, but events were lost */
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
 * THREAD_EXIT. comm: the thread's last name. runtime: its run time at its last switch or scheduler
 * tick, so up to a tick too small. h.arg: PYP_EXIT_*.
 */
#define PYP_EXIT_GROUP 1u /* the whole thread group has ended */
#define PYP_EXIT_LOST  2u /* as PYP_SWITCH_LOST */

struct pyp_rec_thread {
	struct pyp_rec h;
	__u64 runtime;
	char comm[16];
};

/* In h.arg of FORK: the child shares its parent's memory until it executes a program (vfork). */
#define PYP_FORK_SHARED 1u
/* In h.arg of EXEC: a thread that was not the leader has executed, and has become the leader. */
#define PYP_EXEC_OTHER_THREAD 1u

/*
 * FORK: tid is the forking thread, parent its process, child the new process. parent is the target
 * or, while it is followed, a descendant; children that share their parent's memory are reported
 * only then. EXEC: parent is 0; child is 0 if the target has executed, else the descendant.
 */
struct pyp_rec_process {
	struct pyp_rec h;
	__u32 child;
	__u32 parent;
};

/*
 * Resource counters that the kernel maintains for each thread, each optional. X(name, kernel
 * field). The daemon's table of columns describes them. Bytes are those passed to read(2), write(2)
 * and the like, whatever the kind of file; recv(2) and send(2) are not included.
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
 * COUNTERS: the values since the thread's start of the requested counters; others are 0. Sent
 * before the thread's next event if one of them has changed since they were last sent.
 */
struct pyp_rec_counters {
	struct pyp_rec h;
	__u64 value[PYP_COUNTERS];
};

_Static_assert(sizeof(struct pyp_rec_counters) == 64, "pyp_rec_counters changed size");

/*
 * MEMORY: the bytes by which this thread has changed the process's memory since the last record
 * (negative: it has shrunk); a value is 0 if it has changed by less than a step. h.arg:
 * PYP_MEMORY_*.
 */
struct pyp_rec_memory {
	struct pyp_rec h;
	__s64 resident; /* resident in RAM */
	__s64 mapped;	/* mapped addresses, resident or not; 0 if BLOCK records are sent */
	__u32 pools;	/* pools of pymalloc that were touched for the first time since then */
	__u32 pages;	/* resident now, in all; 0: unknown */
};

/*
 * BLOCK: a block of anonymous, writable memory was mapped at this address, or a range of addresses
 * is about to be unmapped. Sizes in bytes, multiples of a page.
 */
struct pyp_rec_block {
	struct pyp_rec h;
	__u64 address;
	__u64 size;
};

_Static_assert(sizeof(struct pyp_rec_memory) == 40, "pyp_rec_memory changed size");
_Static_assert(sizeof(struct pyp_rec_block) == 32, "pyp_rec_block changed size");

/* In h.arg of MEMORY and BLOCK. */
#define PYP_MEMORY_LOST 1u /* as PYP_SWITCH_LOST */
/* Not in mode trace: the thread's stack follows, in SAMPLE records with PYP_SAMPLE_MEMORY. */
#define PYP_MEMORY_STACK 2u
#define PYP_BLOCK_UNMAP	 4u /* BLOCK only */

#define PYP_BLOCK_MIN (128u * 1024) /* smaller blocks are not reported when they are mapped */

/*
 * SAMPLE: the code objects on a thread's stack, innermost first, in as many records as needed, each
 * with the CPU time that the sample represents (with MEMORY: 0). A record with first = 0 starts a
 * sample; if the one before had no LAST, it was abandoned. No code objects: the thread is not running Python.
 *
 * With METHOD or NATIVE in the first record, a C function runs on top of the stack. The first entry
 * is then the address of its PyMethodDef, whose METHOD precedes, or the address of the current
 * instruction.
 *
 * With WAIT, no period of CPU time has passed: it is the stack on which the thread waits. The record
 * follows the SWITCH_IN that ended the wait; with AHEAD it precedes the SWITCH_OUT that begins it. Not
 * all waits have one. `period` then says how likely it was: after a wait, 0: certain, else the wait's
 * length divided by `period` (ns); AHEAD: 1 / `period`.
 *
 * offset: in the first record, the position in bytes of the innermost Python frame's instruction in
 * its code; negative: before the first one. PYP_SAMPLE_NO_OFFSET: unknown, or in a later record.
 */
#define PYP_SAMPLE_CODES     64
#define PYP_SAMPLE_LAST	     1u /* h.arg: the last record of the sample */
#define PYP_SAMPLE_TRUNCATED 2u /* too deep or unreadable: the outermost frames are missing */
#define PYP_SAMPLE_METHOD    4u
#define PYP_SAMPLE_NATIVE    8u
#define PYP_SAMPLE_WAIT	     16u
#define PYP_SAMPLE_AHEAD     32u
#define PYP_SAMPLE_MEMORY                                                                          \
	64u /* in all its records: the stack of the thread's last MEMORY or BLOCK */
#define PYP_SAMPLE_MAX_DEPTH 1024
#define PYP_WALK_FACTOR_MAX  4096u	 /* largest period with AHEAD */
#define PYP_WALK_LENGTH_MAX  4000000000u /* largest period with WAIT alone: below 2^32 */
#define PYP_SAMPLE_NO_OFFSET (-0x7fffffff - 1)

struct pyp_rec_sample {
	struct pyp_rec h;
	__u64 period;
	__u32 first;
	__u32 count;
	__s32 offset;
	__u32 pad;
	__u64 codes[PYP_SAMPLE_CODES];
};

/* CODE_ID: permanently assigns this number to the code object now at this address. */
struct pyp_rec_code_id {
	struct pyp_rec h;
	__u64 code;
	__u32 id;
	__u32 pad;
};

/* Numbers of code objects; the first ones are special. */
#define PYP_COUNT_OUTSIDE 1u /* as caller: no Python code */
#define PYP_COUNT_LOST	  2u /* code whose names or number could not be sent */
#define PYP_COUNT_SKIP	  3u /* never counted, never sent */
#define PYP_COUNT_GC	  4u /* as callee: collection of generation 0; then 1, 2, unknown */
#define PYP_COUNT_FIRST	  (PYP_COUNT_GC + PYP_GC_UNKNOWN + 1)
#define PYP_COUNT_IDS	  524288u /* maximum; further code objects are counted as lost */

/*
 * Key of the counting map: number of calls of one code object by another in a thread. The value is
 * a __u64.
 */
struct pyp_edge {
	__u32 tid;
	__u32 caller;
	__u32 callee;
};
#define PYP_COUNT_EDGES 262144u

_Static_assert(sizeof(struct pyp_rec_sample) == 40 + 8 * PYP_SAMPLE_CODES, "pyp_rec_sample size");
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
 * Counters of everything that the BPF programs could not do. X(name, description). They are in the
 * .bss section as an array of __u64, indexed by enum pyp_loss.
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
	X(lost_samples, "samples of a trace that could not be sent")                               \
	X(lost_memory, "changes of memory that could not be sent (sent again later)")              \
	X(lost_walks, "stacks of waiting threads that could not be sent")                          \
	X(samples_truncated, "sampled stacks cut off: too deep or unreadable")

enum pyp_loss {
#define PYP_X(name, text) PYP_LOSS_##name,
	PYP_LOSSES(PYP_X)
#undef PYP_X
		PYP_LOSS_MAX
};

#endif
