/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Differences between CPython builds: structure offsets and opcode numbers. Constant tables, one
 * for each version and set of ABI flags (python/layout_3_NN.c), derived from common bases
 * (layout_base.h). Each target has a copy, which may be refined. They apply to all 64-bit
 * instruction sets. Offsets are in bytes; LAYOUT_NONE: the version has no such field. Source:
 * CPython's headers at the table's tag, confirmed on binaries.
 */
#ifndef PYPROF_PYTHON_LAYOUT_H
#define PYPROF_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pyprof/bpf_abi.h"
#include "pyprof/bpf_params.h"

#define LAYOUT_NONE	 0xffffu
#define LAYOUT_NO_OPCODE (-1)

/* Build options that change structures; sys.abiflags has a letter for each. */
enum layout_abi {
	LAYOUT_ABI_DEBUG = 1,	      /* d: --with-pydebug, --with-trace-refs */
	LAYOUT_ABI_FREE_THREADED = 2, /* t: --disable-gil */
};

/* How frames begin and end in a version; selects the planner's model. */
enum layout_model {
	LAYOUT_FRAME_OBJECT,  /* 3.6-3.10: one C call of the evaluator per activation */
	LAYOUT_CFRAME_ENTRY,  /* 3.11: inlined calls, is_entry, RESUME; no FrameClearAndPop call */
	LAYOUT_CLEAR_AND_POP, /* 3.12+: RESUME to enter, _PyEval_FrameClearAndPop to leave */
};

/* The location of the garbage collector's state. */
enum layout_gc {
	LAYOUT_GC_INTERPRETER, /* in each interpreter (3.9+) */
	LAYOUT_GC_RUNTIME,     /* in _PyRuntime */
	LAYOUT_GC_POINTER,     /* where _PyGC_generation0 points to (3.6) */
};

struct layout_opcodes {
	int16_t resume, resume_quick, resume_check, resume_check_jit, instrumented_resume;
	int16_t return_value, return_const, instrumented_return_value, instrumented_return_const;
	int16_t yield_value, instrumented_yield_value;
	int16_t return_generator;
	int16_t do_tracing; /* 3.11 */
	int16_t yield_from; /* until 3.10 */
};

/*
 * Opcodes that call, by kind of callable; 0 ends a list. Only these call C functions that cProfile
 * counts.
 */
struct layout_calls {
	uint8_t generic[12];   /* any callable */
	uint8_t function[6];   /* builtin_function_or_method, through its PyMethodDef */
	uint8_t descriptor[6]; /* method_descriptor, through its PyMethodDef */
	uint8_t cached[3];     /* one known function: len, isinstance */
	uint8_t append;	       /* list.append, which the opcode performs without a call; 0: none */
	uint8_t related[16];   /* never call a C function, but can become a generic opcode */
	bool tagged;	       /* the lowest two bits of stack entries are tags */
	/* Generic opcodes of versions with frame_stack whose callable is not right below the
	 * arguments: in between are keyword names, or the arguments are in a tuple. */
	uint8_t keywords[4], unpacked[4];
};

struct layout {
	uint8_t major, minor; /* version */
	uint8_t abi;	      /* LAYOUT_ABI_* bits of its builds */
	const char *tag;      /* CPython tag it was read from and checked against */
	bool proven;	      /* traced and compared with cProfile; others are refused */
	bool frees_code_late; /* code objects wait for the garbage collector (free-threaded) */
	bool unspecialized;   /* opcodes never turn into RESUME_CHECK and the like */
	enum layout_model model;
	uint8_t arg_frame, arg_throwflag; /* arguments of the evaluator, from 0 */
	struct pyp_layout bpf;		  /* the part for the BPF programs */
	struct layout_opcodes op;
	struct layout_calls calls;

	/* code object; 0: missing or unused */
	uint16_t code_bytes;   /* co_code (up to 3.10) */
	uint16_t code_version; /* _co_instrumentation_version, 64 bits (3.12+) */

	/* frame */
	uint16_t frame_localsplus;
	uint16_t frame_stack; /* stackpointer, saved during calls (3.14+); 0: not saved */

	/* objects */
	uint16_t type_dealloc;	  /* tp_dealloc in PyTypeObject */
	uint16_t type_vectorcall; /* tp_vectorcall_offset; 0: types have none (before 3.8) */
	uint16_t type_call, type_descr_get; /* tp_call, tp_descr_get */
	uint16_t method_meth;		    /* ml_meth in PyMethodDef */
	uint16_t bytes_data;		    /* ob_sval in PyBytesObject */

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
	uint16_t interp_version; /* compared with code_version */
	uint16_t runtime_interpreters_head;
	uint16_t interp_modules; /* sys.modules */

	/* PyHeapTypeObject, generators */
	uint16_t type_cached_keys; /* ht_cached_keys */
	uint16_t gen_frame;	   /* gi_frame: a pointer (up to 3.10), gi_iframe: the frame */

	/* tools: a thread's sys.setprofile and sys.settrace functions; names of sys.monitoring's
	 * eight tools in the interpreter (3.12+; 0: none) */
	uint16_t ts_profilefunc, ts_tracefunc;
	uint32_t interp_tool_names;

	/*
	 * the garbage collector's lists: its state has gc_size bytes (0: no lists) and is gc_state
	 * bytes after the location given by gc_place; gc_head bytes precede each object in a list
	 */
	uint8_t gc_place; /* enum layout_gc */
	uint8_t gc_head;
	uint16_t gc_state, gc_size;

	/* how a generator shows that it waits in `yield from` or `await` */
	uint8_t waiting_style;	  /* enum pyp_waiting_style */
	uint8_t lasti_unit;	  /* up to 3.10: unit of f_lasti, bytes */
	uint8_t resume_delegates; /* 3.11+: RESUME's argument in that case, lowest two bits */
};

/* The table for a version's regular build, or NULL */
const struct layout *layout_find(unsigned int major, unsigned int minor);
/* The same for a build with these LAYOUT_ABI_* bits */
const struct layout *layout_find_abi(unsigned int major, unsigned int minor, unsigned int abi);

/* How to detect that an exception leaves a frame */
struct pyp_raising layout_raising(const struct layout *l);
/* Returns whether these can be distinguished: until 3.7, `finally` returns and raises by one instruction. */
bool layout_distinguishes_raising(const struct layout *l);
/* For counting calls: how to detect waiting generators */
struct pyp_arenas layout_arenas(const struct layout *l);
struct pyp_waiting layout_waiting(const struct layout *l);
/* For counting calls: how to detect that an entry instruction is executed again. */
struct pyp_restart layout_restart(const struct layout *l);

/* For sampling C functions. remember: calls are counted as well. */
struct pyp_native_calls layout_native_calls(const struct layout *l, bool remember);

/* The supported versions as text: "3.10-3.13". Returns out. */
const char *layout_proven_range(char *out, size_t size);

/* All tables, ordered by version; ends with NULL */
extern const struct layout *const layout_tables[];

#endif
