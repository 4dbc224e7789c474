/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters of the BPF programs besides the layout of frames: how to take samples, and how to read
 * instructions. Part of the interface in bpf_abi.h, whose version covers them.
 */
#ifndef PYPROF_BPF_PARAMS_H
#define PYPROF_BPF_PARAMS_H

#include "pyprof/bpf_abi.h"

/* How changes of memory are sent. */
#define PYP_MEMORY_OFF 0u
#define PYP_MEMORY_EVENTS                                                                          \
	1u /* to be charged to the stack that the thread's calls and returns show */
#define PYP_MEMORY_STACKS 2u /* each with its stack, in a limited number per second */

/*
 * pymalloc's arenas are mappings of this many bytes, divided into pools. Powers of two; 0: the
 * interpreter has none, or pools are not counted.
 */
struct pyp_arenas {
	__u32 arena_bits; /* log2 of the size */
	__u32 pool_size;
};
#define PYP_ARENAS_MAX 65536u /* 64 GiB of arenas of 1 MiB */

/* When samples are taken. */
#define PYP_SAMPLING_ALONE 0u /* for targets without probes */
#define PYP_SAMPLING_BESIDE                                                                        \
	1u /* along with probes or marks, also between windows; samples of their time are dropped */

/*
 * Sampling along with probes: addresses in the target, and what an interrupt there means. A timer
 * that expires while the processor handles a breakpoint with interrupts disabled interrupts the
 * first instruction after it.
 */
#define PYP_TRAP_KERNEL	 1u    /* in the kernel, entered from this address: a probe is running */
#define PYP_TRAP_USER	 2u    /* also if user code is interrupted at this address */
#define PYP_TICK_TARGETS 1024u /* targets that share sampling timers */
#define PYP_TRAPS_MAX	 (4u * (PYP_ALL_SITES + PYP_MARKS))

/* Samples that were dropped because they hit the probes' time. */
struct pyp_trap_samples {
	__u64 in_kernel, after;
};

/* How sampling finds threads: offsets as in struct layout; 0xffff: no such field. */
struct pyp_sampling {
	__u64 period; /* ns of CPU time between samples */
	__u16 interp_next, interp_threads;
	__u16 ts_next, ts_thread_id, ts_frame, ts_cframe, cframe_current;
	__u8 when;	 /* PYP_SAMPLING_* */
	__u8 top;	 /* send only the innermost frame of the stack */
	__u8 instr_unit; /* unit of frame_instr in bytes; 0: it is a pointer */
	__u8 ahead;	 /* walk stacks when waits begin, not when they end */
	__u16 walks;	 /* stacks of waiting threads to walk per second; 0: none */
	__u8 pad[4];
};

/*
 * How many waiting threads' stacks are walked, adapted so that about sampling.walks are per second.
 */
struct pyp_walk_rate {
	__u64 threshold; /* ns; longer waits are always walked, shorter ones with length / threshold */
	__u64 begin;	 /* of the current interval */
	__u64 walks;	 /* in the current interval */
	/*
	 * Walks that are ahead: one wait in `factor`, 0: each; and the walks in the current interval.
	 * Index 1: waits for a CPU, which are numerous and short.
	 */
	__u64 factor[2], ahead[2];
};

/* A range of code in the target; size 0: unused. */
struct pyp_code_range {
	__u64 start, size;
};

/* Ranges of the evaluator, and of the code that calls and leaves Python functions. */
#define PYP_OWN_CODE 16

/* Addresses that sampling needs; an exec changes them. */
struct pyp_sampling_at {
	__u64 interp_head; /* address of the pointer to the first interpreter */
	__u64 code_type;   /* address of PyCode_Type */
	struct pyp_code_range own[PYP_OWN_CODE]; /* size of the first is 0: unknown */
};

/*
 * C functions in samples. op: for each opcode, whether it calls a C function. 0: no. Else PYP_CALL
 * and the position of the called object: the number of slots below the top of the value stack, plus
 * the instruction's argument if PYP_CALL_ARGS is set.
 */
#define PYP_CALL       0x80u
#define PYP_CALL_ARGS  0x40u
#define PYP_CALL_SLOTS 0x0fu
struct pyp_native_calls {
	__u8 on;
	__u8 remember;	 /* counting: calls are probed, and remembered by frame */
	__u8 index_unit; /* unit of frame_instr in bytes; 0: it is a pointer */
	__u8 pad;
	__u16 frame_stack; /* pointer to the top of the value stack during calls (3.14+); 0: none */
	__u16 code_bytes;  /* if frame_instr is an index: as in struct pyp_waiting */
	__u16 bytes_data;
	__u8 pad2[6];
	__u8 op[256];
};

/*
 * How to detect that a generator waits in `yield from` or `await`: by the instruction at which it
 * resumes, either RESUME with a certain argument, or YIELD_FROM (before 3.11).
 */
enum pyp_waiting_style {
	PYP_WAITING_NONE,  /* not needed: exceptions pass without an event (before 3.9) */
	PYP_WAITING_INDEX, /* f_lasti: index in co_code of the instruction before */
	PYP_WAITING_PREV,  /* pointer to the instruction before */
	PYP_WAITING_NEXT,  /* pointer to the instruction */
};
#define PYP_WAITING_OPS 5

struct pyp_waiting {
	__u8 style;
	__u8 index_unit; /* bytes: 1 (3.9), 2 (3.10) */
	__u8 least_arg;	 /* minimum of its two lowest bits */
	__u8 op[PYP_WAITING_OPS];
	__u16 frame_instr;
	__u16 code_bytes; /* co_code, and in that bytes object */
	__u16 bytes_data; /* the first byte */
	__u16 pad;
};

/*
 * How to detect that an exception leaves a frame: its current instruction is none that returns from
 * it or suspends it. Before 3.11 a frame that waits in `yield from` is at the instruction before.
 */
struct pyp_raising {
	__u8 index_unit;  /* unit of frame_instr in bytes; 0: it is a pointer */
	__u8 yield_from;  /* opcode; 0: there is none */
	__u16 code_bytes; /* if frame_instr is an index: as in struct pyp_waiting */
	__u16 bytes_data;
	__u16 pad;
	__u64 ends[4]; /* bit per opcode: it returns, suspends, or hides another instruction */
};

/*
 * 3.12 and later: a RESUME whose code object is out of date (because sys.monitoring was used)
 * updates it and is executed again. Counting must ignore the second execution.
 */
struct pyp_restart {
	__u16 code_version; /* fields that are compared, 64 bits each; 0: not used */
	__u16 interp_version;
	__u32 pad;
};

_Static_assert(sizeof(struct pyp_native_calls) == 272, "pyp_native_calls changed size");
_Static_assert(sizeof(struct pyp_raising) == 40, "pyp_raising changed size");
_Static_assert(sizeof(struct pyp_restart) == 8, "pyp_restart changed size");
_Static_assert(sizeof(struct pyp_waiting) == 16, "pyp_waiting changed size");
_Static_assert(sizeof(struct pyp_sampling) == 32, "pyp_sampling changed size");

#endif
