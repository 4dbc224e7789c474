/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between CPython versions: structure offsets and opcode numbers. Const tables, one
 * file per version (python/layout_3_NN.c), copied per target (a target may refine its copy).
 * Offsets in bytes; LAYOUT_NONE: the version has no such field. Source: CPython's headers at the
 * tag the table names, confirmed on binaries.
 */
#ifndef PYPROF_PYTHON_LAYOUT_H
#define PYPROF_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pyprof/bpf_abi.h"

#define LAYOUT_NONE	 0xffffu
#define LAYOUT_NO_OPCODE (-1)

/* How frames live and leave in this version: decides how the plan is made. */
enum layout_model {
	LAYOUT_FRAME_OBJECT,  /* 3.6-3.10: one C call of the evaluator per activation */
	LAYOUT_CFRAME_ENTRY,  /* 3.11: inlined calls, is_entry, RESUME; no FrameClearAndPop call */
	LAYOUT_CLEAR_AND_POP, /* 3.12+: RESUME to enter, _PyEval_FrameClearAndPop to leave */
};

struct layout_opcodes {
	int16_t resume, resume_quick, resume_check, resume_check_jit, instrumented_resume;
	int16_t return_value, return_const, instrumented_return_value, instrumented_return_const;
	int16_t yield_value, instrumented_yield_value;
	int16_t return_generator;
	int16_t do_tracing; /* 3.11 */
};

struct layout {
	uint8_t major, minor; /* the version this table describes */
	const char *tag;      /* CPython tag it was read from and checked against */
	bool proven;	      /* traced and compared with cProfile; others are refused */
	enum layout_model model;
	uint8_t arg_frame, arg_throwflag; /* arguments of the evaluator, from 0 */
	struct pyp_layout bpf;		  /* what the BPF side needs */
	struct layout_opcodes op;

	/* code; 0: the version has none, or nobody asks */
	uint16_t code_bytes;   /* co_code (3.9, 3.10) */
	uint16_t code_version; /* _co_instrumentation_version, 64 bits (3.12+) */

	/* frame */
	uint16_t frame_is_entry; /* 3.11 */
	uint16_t frame_localsplus;

	/* PyThreadState */
	uint16_t ts_next, ts_interp;
	uint16_t ts_frame;	      /* frame (<= 3.10), current_frame (3.13+) */
	uint16_t ts_cframe;	      /* 3.11, 3.12 */
	uint16_t cframe_current;      /* current_frame in _PyCFrame */
	uint16_t ts_recursion;	      /* the recursion counter */
	uint16_t ts_thread_id;	      /* pthread_t */
	uint16_t ts_native_thread_id; /* 3.11+ */

	/* PyInterpreterState, _PyRuntime */
	uint16_t interp_next, interp_threads_head, interp_eval_frame;
	uint16_t interp_version; /* what code_version is compared with */
	uint16_t runtime_interpreters_head;

	/* tools that watch: a thread's sys.setprofile and sys.settrace; sys.monitoring's names of its
	 * eight tools in the interpreter (3.12+; 0: none) */
	uint16_t ts_profilefunc, ts_tracefunc;
	uint32_t interp_tool_names;
};

/* The table for a version, or NULL. */
const struct layout *layout_find(unsigned int major, unsigned int minor);

/* The versions that are proven, for people: "3.10-3.13". Returns out. */
const char *layout_proven_range(char *out, size_t size);

/* All tables, in order of version; NULL-terminated. */
extern const struct layout *const layout_tables[];

#endif
