/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between CPython builds: structure offsets and opcode numbers. Const tables, one for
 * each version and set of ABI flags (python/layout_3_NN.c), derived from common bases
 * (layout_base.h), copied per target (a target may refine its copy). They are for 64-bit processors,
 * whatever the instruction set.
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

/* What a build may have been configured with that changes its structures; sys.abiflags has letters
 * for them. */
enum layout_abi {
	LAYOUT_ABI_DEBUG = 1,	      /* d: --with-pydebug, --with-trace-refs */
	LAYOUT_ABI_FREE_THREADED = 2, /* t: --disable-gil */
};

/* How frames live and leave in this version: decides how the plan is made. */
enum layout_model {
	LAYOUT_FRAME_OBJECT,  /* 3.6-3.10: one C call of the evaluator per activation */
	LAYOUT_CFRAME_ENTRY,  /* 3.11: inlined calls, is_entry, RESUME; no FrameClearAndPop call */
	LAYOUT_CLEAR_AND_POP, /* 3.12+: RESUME to enter, _PyEval_FrameClearAndPop to leave */
};

/* Where the state of the garbage collector is. */
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
 * Opcodes that call, by what they call; 0 ends a list. Only these run functions written in C as what
 * cProfile counts.
 */
struct layout_calls {
	uint8_t generic[12];   /* anything */
	uint8_t function[6];   /* builtin_function_or_method, through its PyMethodDef */
	uint8_t descriptor[6]; /* method_descriptor, through its PyMethodDef */
	uint8_t cached[3];     /* one known function: len, isinstance */
	uint8_t append;	       /* list.append, which is not called but done; 0: none */
	uint8_t related[16];   /* call no such function, but become a generic one */
	bool tagged;	       /* objects on the stack are tagged in their lowest two bits */
	/* Of the generic ones of versions with frame_stack, those whose called object is not right
	 * below its arguments: above these are names of arguments, or there is a tuple of them. */
	uint8_t keywords[4], unpacked[4];
};

struct layout {
	uint8_t major, minor; /* the version this table describes */
	uint8_t abi;	      /* LAYOUT_ABI_* bits of its builds */
	const char *tag;      /* CPython tag it was read from and checked against */
	bool proven;	      /* traced and compared with cProfile; others are refused */
	bool frees_code_late; /* code objects wait for the garbage collector (free-threaded) */
	bool unspecialized;   /* opcodes never turn into RESUME_CHECK and the like */
	enum layout_model model;
	uint8_t arg_frame, arg_throwflag; /* arguments of the evaluator, from 0 */
	struct pyp_layout bpf;		  /* what the BPF side needs */
	struct layout_opcodes op;
	struct layout_calls calls;

	/* code; 0: the version has none, or nobody asks */
	uint16_t code_bytes;   /* co_code (up to 3.10) */
	uint16_t code_version; /* _co_instrumentation_version, 64 bits (3.12+) */

	/* frame */
	uint16_t frame_localsplus;
	uint16_t frame_stack; /* stackpointer, kept during calls (3.14+); 0: it is not */

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
	uint16_t interp_version; /* what code_version is compared with */
	uint16_t runtime_interpreters_head;

	/* tools that watch: a thread's sys.setprofile and sys.settrace; sys.monitoring's names of its
	 * eight tools in the interpreter (3.12+; 0: none) */
	uint16_t ts_profilefunc, ts_tracefunc;
	uint32_t interp_tool_names;

	/* the garbage collector's lists: its state, of gc_size bytes (0: it has no lists), is gc_state
	 * bytes from where gc_place says; gc_head bytes precede each object in a list */
	uint8_t gc_place; /* enum layout_gc */
	uint8_t gc_head;
	uint16_t gc_state, gc_size;

	/* how a generator shows that it waits in `yield from` or `await` */
	uint8_t waiting_style;	  /* enum pyp_waiting_style */
	uint8_t lasti_unit;	  /* up to 3.10: bytes that f_lasti counts in */
	uint8_t resume_delegates; /* 3.11+: RESUME's argument then, in its two lowest bits */
};

/* The table for a version's ordinary build, or NULL. */
const struct layout *layout_find(unsigned int major, unsigned int minor);
/* The same for a build with these LAYOUT_ABI_* bits. */
const struct layout *layout_find_abi(unsigned int major, unsigned int minor, unsigned int abi);

/* For counting calls: how generators show that they wait. */
struct pyp_waiting layout_waiting(const struct layout *l);
/* For counting calls: when entries are executed again. interp_head: the address of the pointer to the
 * interpreter, 0: not known. */
struct pyp_restart layout_restart(const struct layout *l, uint64_t interp_head);

/* For samples of C functions; remember: calls are counted as well. */
struct pyp_native_calls layout_native_calls(const struct layout *l, bool remember);

/* The versions that are proven, for people: "3.10-3.13". Returns out. */
const char *layout_proven_range(char *out, size_t size);

/* All tables, in order of version; NULL-terminated. */
extern const struct layout *const layout_tables[];

#endif
