/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Python of a target: the mapped file of the interpreter, version and build, runtime address,
 * and the stacks of its threads.
 */
#ifndef PYPROF_PYTHON_PYTHON_H
#define PYPROF_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/code_names.h"
#include "base/diag.h"
#include "elf/image.h"
#include "python/layout.h"
#include "target/memory.h"
#include "target/target.h"

/*
 * The location of the GIL, as addresses in the file; all 0: unknown. GIL structures begin with the
 * switch interval. Up to 3.11 there is one GIL, at `at`, or at offset `behind` from the pointer
 * stored at `at`; in 3.6 its members are separate variables (`parts`). From 3.12 on each
 * interpreter has a pointer to its GIL (`interp`).
 */
#define PYTHON_GIL_PARTS 6
struct python_gil {
	uint64_t at, behind;
	uint64_t parts[PYTHON_GIL_PARTS];
	uint16_t interp; /* offset of the pointer in PyInterpreterState */
	bool pointer;	 /* `at` holds a pointer, and `behind` applies */
};

/*
 * 3.14+: offsets in the task objects of the module _asyncio, and of the heads of its lists of tasks;
 * all 0: unknown.
 */
struct python_asyncio {
	uint32_t task_name, task_coro, task_node;
	uint32_t interp_tasks, thread_tasks;
};

struct python {
	struct image *image;  /* owned */
	struct layout layout; /* this target's copy */
	uint8_t major, minor, micro;
	char version[32];   /* "3.11.2", "3.13.0+" as the build calls itself */
	char file[4096];    /* path of the file as in the target's maps, for display */
	char via[64];	    /* /proc path to open or attach to; "" when found by file name */
	uint64_t bias;	    /* runtime address - virtual address in the file; 0 without a process */
	uint64_t runtime;   /* runtime address of _PyRuntime; 0: unknown */
	uint64_t evaluator; /* runtime address of the evaluator if the image was freed, else 0 */
	uint64_t code_type; /* address of PyCode_Type in the file; 0: unknown */
	uint64_t gc_generation0; /* before 3.7; only set in the process that read the file */
	struct pyp_native_types native_types;	      /* in the file; 0: unknown or none */
	struct pyp_code_range own_code[PYP_OWN_CODE]; /* in the file, see plan/own_code.h */
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	size_t build_id_len;
	struct python_gil gil;
	struct python_asyncio asyncio; /* only set by python_find_asyncio() */
	bool debug_offsets;	       /* layout was confirmed or refined from _Py_DebugOffsets */
};

/* Addresses in the process of the pointer to the first interpreter, and of PyCode_Type; 0:
 * unknown */
static inline uint64_t python_interp_head(const struct python *py)
{
	if (!py->runtime || py->layout.runtime_interpreters_head == LAYOUT_NONE)
		return 0;
	return py->runtime + py->layout.runtime_interpreters_head;
}

static inline uint64_t python_code_type(const struct python *py)
{
	return py->code_type ? py->code_type + py->bias : 0;
}

static inline bool python_free_threaded(const struct python *py)
{
	return py->layout.abi & LAYOUT_ABI_FREE_THREADED;
}

/* Addresses in the process of the types of C functions. */
static inline struct pyp_native_types python_native_types(const struct python *py)
{
	struct pyp_native_types t = py->native_types;

	t.function += t.function ? py->bias : 0;
	t.cmethod += t.cmethod ? py->bias : 0;
	t.descriptor += t.descriptor ? py->bias : 0;
	t.image += py->bias;
	return t;
}

/* Find a process's interpreter; *ret is owned by the caller. Exit code 5: none, or one that is not
 * supported. */
int python_discover(const struct target *t, struct python **ret, struct diag *diag);

/* The interpreter in a file (an executable or a libpython), for `doctor FILE`. If the executable
 * only links libpython, the hint names the library. */
int python_open_file(const char *path, struct python **ret, struct diag *diag);

/* The same for an open file (not kept). path: its name. */
int python_open_fd(int fd, const char *path, struct python **ret, struct diag *diag);

void python_free(struct python *py);
DEFINE_FREEP(struct python, python_free)

/*
 * The offsets of a layout that a build may refine, as numbers for another process. set: *l must be
 * the version's table; -EINVAL, with *l unchanged, if they are invalid. Pure.
 */
#define PYTHON_REFINED 15
void python_refined_get(const struct layout *l, uint16_t out[PYTHON_REFINED]);
int python_refined_set(struct layout *l, const uint16_t in[PYTHON_REFINED]);

/* The build-id in hex; "" if there is none */
#define PYTHON_BUILD_ID_HEX (2 * IMAGE_BUILD_ID_MAX + 1)
void python_build_id_hex(const struct python *py, char out[PYTHON_BUILD_ID_HEX]);
/* Returns whether both are the same build of Python. */
bool python_same_build(const struct python *a, const struct python *b);

/*
 * The version of the interpreter in an image, from its contents (Py_Version, the version string
 * next to known text, the debug offsets), never from the file name alone. Sets major, minor, micro
 * and version. -ENOENT: no interpreter (no _PyEval_EvalFrameDefault). Pure.
 */
int python_version_of_image(const struct image *img, const char *file_hint, struct python *ret,
			    struct diag *diag);

/* One thread's Python stack, innermost frame first, without entry frames */
struct python_stack {
	pid_t tid; /* 0: unknown (before 3.11, see python_stacks()) */
	uint64_t tstate;
	bool truncated;
	size_t n;
	size_t stable; /* dump: number of outermost frames that are certain, see python_dump */
	struct pyp_chain_frame *frames; /* owned */
	int32_t *lines; /* dump: current line per frame, or LINE_UNKNOWN; owned; NULL: not read */
};

/*
 * Reads the stacks of all threads. The process is not stopped, so a stack that changes during the
 * read may be wrong: use only stacks of threads that are known not to have run. Before 3.11, the
 * tid is read from glibc's struct pthread at thread_id, and set to 0 if it is not in
 * /proc/PID/task. The numbers of threads, frames and reads are limited. pid PYTHON_TIDS_INNER: tids
 * are those of the process's pid namespace, unchecked; python_stacks_check() converts them to the
 * daemon's, or to 0 if the process has no such thread.
 */
#define PYTHON_TIDS_INNER ((pid_t)-1)
int python_stacks(const struct python *py, const struct memory *mem, pid_t pid,
		  struct python_stack **ret, size_t *n, struct diag *diag);
/*
 * The same with the current line of each frame. A running thread changes its stack during the read,
 * so each stack is read several times in succession, and only frames that are the same in all
 * readings are certain (of the innermost frame, the line may differ). If readings differ, this is
 * repeated, up to a limit.
 */
int python_dump(const struct python *py, const struct memory *mem, pid_t pid,
		struct python_stack **ret, size_t *n, struct diag *diag);
int python_stacks_check(struct python_stack *v, size_t n, pid_t pid, struct diag *diag);
void python_stacks_free(struct python_stack *v, size_t n);

/*
 * Check that the layout matches this process: read its threads' stacks until one is consistent,
 * with frames that refer to code objects of the interpreter's code type. Exit code 5: only
 * inconsistent ones were found, as when a release has moved fields. Also returns 0 if no thread
 * runs Python. Needs py->image.
 */
int python_check(const struct python *py, const struct memory *mem, pid_t pid, struct diag *diag);

/*
 * Finds py->asyncio, 3.14 and later, in the file of the module _asyncio or of the interpreter. Needs
 * py->image.
 */
void python_find_asyncio(const struct target *t, struct python *py);

/* Runtime address of CPython's own evaluator; 0: unknown */
uint64_t python_evaluator(const struct python *py);

/*
 * Describes, joined by "; ", the causes that may hide or add calls in this process: the JIT,
 * another frame evaluator, several interpreters, tracing tools. Returns the text's length, 0 if
 * there are none. *misses: calls may have been missed.
 */
size_t python_hidden(const struct python *py, const struct memory *mem, const struct target *t,
		     bool *misses, char *out, size_t size);

/*
 * Names of a code object in memory, owned by the caller; qualname is NULL before 3.11. Fails
 * without changing *ret if anything is unreadable, not a str or too long.
 */
int python_code_read(const struct layout *l, const struct memory *mem, uint64_t code,
		     struct code_names *ret);

/* Read the str object at addr as UTF-8, malloc'd and NUL-terminated. ret_len: bytes. At most 64
 * KiB. */
int python_str_read(const struct layout *l, const struct memory *mem, uint64_t addr, char **ret,
		    size_t *ret_len);
/* Read its first characters, up to max. ret_length: the number of characters that it has. */
int python_str_start(const struct layout *l, const struct memory *mem, uint64_t addr, size_t max,
		     char **ret, uint64_t *ret_length);
/* Convert bytes / kind characters to UTF-8 (surrogates become U+FFFD). malloc'd. Pure. */
char *python_units_to_utf8(const uint8_t *data, size_t bytes, unsigned int kind, size_t *ret_len);

#endif
