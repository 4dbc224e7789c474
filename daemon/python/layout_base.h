/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common parts of the tables in layout_3_NN.c. Each table starts with its base and lists the
 * differences; the last initialiser of a field applies.
 */
#ifndef PYPROF_PYTHON_LAYOUT_BASE_H
#define PYPROF_PYTHON_LAYOUT_BASE_H

#include "python/layout.h"

#pragma GCC diagnostic ignored "-Woverride-init"

/* One field per line. */
/* clang-format off */

/* All versions. Fields that only some versions have are set to "none". */
#define LAYOUT_BASE										\
	.major = 3,										\
	.proven = true,										\
	.bpf.frame_owner = LAYOUT_NONE,								\
	.bpf.code_qualname = LAYOUT_NONE,							\
	.bpf.str_length = 16,									\
	.bpf.str_state = 32,									\
	.bpf.str_kind_shift = 2,								\
	.bpf.object_type = 8,									\
	.op.resume = LAYOUT_NO_OPCODE,								\
	.op.resume_quick = LAYOUT_NO_OPCODE,							\
	.op.resume_check = LAYOUT_NO_OPCODE,							\
	.op.resume_check_jit = LAYOUT_NO_OPCODE,						\
	.op.instrumented_resume = LAYOUT_NO_OPCODE,						\
	.op.return_const = LAYOUT_NO_OPCODE,							\
	.op.instrumented_return_value = LAYOUT_NO_OPCODE,					\
	.op.instrumented_return_const = LAYOUT_NO_OPCODE,					\
	.op.instrumented_yield_value = LAYOUT_NO_OPCODE,					\
	.op.return_generator = LAYOUT_NO_OPCODE,						\
	.op.do_tracing = LAYOUT_NO_OPCODE,							\
	.op.yield_from = LAYOUT_NO_OPCODE,							\
	.bpf.frame_is_entry = LAYOUT_NONE,								\
	.bytes_data = 32,									\
	.type_dealloc = 48,									\
	.type_vectorcall = 56,									\
	.type_call = 128,									\
	.type_descr_get = 272,									\
	.method_meth = 8,									\
	.ts_next = 8,										\
	.ts_interp = 16,									\
	.ts_frame = LAYOUT_NONE,								\
	.ts_cframe = LAYOUT_NONE,								\
	.cframe_current = LAYOUT_NONE,								\
	.ts_native_thread_id = LAYOUT_NONE,							\
	.gc_head = 16,										\
	.gc_size = 240

/* 3.6 to 3.10: frames are objects, one C call of the evaluator each */
#define LAYOUT_FRAME_OBJECTS									\
	LAYOUT_BASE,										\
	.model = LAYOUT_FRAME_OBJECT,								\
	.arg_throwflag = 1,									\
	.bpf.frame_block = 24,									\
	.bpf.frame_code = 32,									\
	.bpf.frame_previous = 24,								\
	.bpf.owner_entry = 0xff,								\
	.bpf.code_flags = 36,									\
	.bpf.code_firstlineno = 40,								\
	.bpf.code_filename = 104,								\
	.bpf.code_name = 112,									\
	.bpf.str_ascii_data = 48,								\
	.bpf.str_compact_data = 72,								\
	.bpf.frame_instr = 104,									\
	.op.return_value = 83,									\
	.op.yield_value = 86,									\
	.op.yield_from = 72,									\
	.calls.generic = {131, 141, 142, 161},	/* CALL_FUNCTION, _KW, _EX, CALL_METHOD */	\
	.frame_localsplus = 360,								\
	.ts_frame = 24,										\
	.ts_recursion = 32,									\
	.ts_thread_id = 176,									\
	.interp_threads_head = 8,								\
	.interp_modules = 856,									\
	.type_cached_keys = 872,								\
	.gen_frame = 16,									\
	.runtime_interpreters_head = 32,							\
	.ts_profilefunc = 56,									\
	.ts_tracefunc = 64,									\
	.waiting_style = PYP_WAITING_NONE

/* 3.11 and later: frames are not objects, and calls between Python functions stay in one C call of
 * the evaluator */
#define LAYOUT_INTERPRETER_FRAMES								\
	LAYOUT_BASE,										\
	.arg_frame = 1,										\
	.arg_throwflag = 2,									\
	.bpf.frame_previous = 8,								\
	.bpf.owner_entry = 3,									\
	.bpf.code_flags = 48,									\
	.bpf.code_firstlineno = 68,								\
	.bpf.code_filename = 112,								\
	.bpf.code_name = 120,									\
	.bpf.code_qualname = 128,								\
	.bpf.str_ascii_data = 40,								\
	.bpf.str_compact_data = 56,								\
	.bpf.frame_instr = 56,									\
	.type_cached_keys = 880,								\
	.gen_frame = 72,									\
	.resume_delegates = 2

/* 3.12 and later: each C call of the evaluator pushes an entry frame */
#define LAYOUT_ENTRY_FRAMES									\
	LAYOUT_INTERPRETER_FRAMES,								\
	.model = LAYOUT_CLEAR_AND_POP,								\
	.bpf.code_skip_flags = 0x2000000,							\
	.code_version = 168,									\
	.ts_frame = 72,										\
	.waiting_style = PYP_WAITING_NEXT

/* clang-format on */

/* The tables */
extern const struct layout layout_3_06;
extern const struct layout layout_3_07;
extern const struct layout layout_3_08;
extern const struct layout layout_3_09;
extern const struct layout layout_3_10;
extern const struct layout layout_3_11;
extern const struct layout layout_3_12;
extern const struct layout layout_3_13, layout_3_13t;
extern const struct layout layout_3_14;
extern const struct layout layout_3_15;

#endif
