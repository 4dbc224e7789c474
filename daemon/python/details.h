/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process's own objects contain about its threads: names, local variables, asyncio tasks. All
 * texts are UTF-8 and controlled by the target.
 */
#ifndef PYPROF_PYTHON_DETAILS_H
#define PYPROF_PYTHON_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python.h"

/* ---- thread names ------------------------------------------------------------------------ */

#define PYTHON_NAME_MAX 128 /* characters that are read of a name */

/* The name of a thread in the module threading, e.g. "MainThread". */
struct python_thread_name {
	uint64_t tstate;
	char *name; /* owned */
};

struct python_names {
	struct python_thread_name *v; /* owned */
	size_t n;
	bool no_threading; /* the program has not imported the module; not set if that is unknown */
	bool moving;	   /* they changed while they were read: some may be wrong or missing */
};

/* Reads the names of all threads that have one, until two readings agree. Returns 0 or -ENOMEM; free *ret with
 * python_names_deinit(). */
int python_names(const struct python *py, const struct memory *mem, struct python_names *ret);
void python_names_deinit(struct python_names *n);

/* ---- local variables --------------------------------------------------------------------- */

#define PYTHON_LOCALS_MAX 32 /* variables of a frame that are read */
#define PYTHON_REPR_MAX	  192

struct python_local {
	char *name;		     /* owned */
	char value[PYTHON_REPR_MAX]; /* see values_repr */
};

struct python_locals {
	uint64_t code; /* the frame's code object when they were read */
	uint64_t frame;
	struct python_local *v; /* owned */
	size_t n, more;		/* more: further variables of the frame */
};

/*
 * Reads the local variables of the frame at this address that have values. Returns 0, -EFAULT if
 * there is no frame, or -ENOMEM; free *ret with python_locals_deinit().
 */
int python_locals(const struct python *py, const struct memory *mem, uint64_t frame,
		  struct python_locals *ret);
void python_locals_deinit(struct python_locals *l);

/* ---- asyncio tasks ----------------------------------------------------------------------- */

#define PYTHON_TASKS_MAX       4096
#define PYTHON_TASK_FRAMES_MAX 64
#define PYTHON_TASK_AWAITS_MAX 256
#define PYTHON_TASK_WAITS_MAX  96

struct python_task_frame {
	uint64_t frame, code;
	int32_t line; /* LINE_UNKNOWN */
};

struct python_task {
	uint64_t task;	 /* address */
	uint64_t tstate; /* the thread that runs its event loop; 0: unknown */
	char *name;	 /* owned; NULL: it has none (before 3.8), or it cannot be read */
	/* the type of the object that the innermost coroutine awaits; "": none, or not read */
	char waits[PYTHON_TASK_WAITS_MAX];
	bool moving;			  /* it changed while it was read */
	struct python_task_frame *frames; /* owned; coroutines, innermost first */
	size_t n;
	uint64_t *awaits; /* owned; addresses of the tasks that it waits for */
	size_t nawaits;
};

enum python_tasks_note {
	PYTHON_TASKS_READ,
	PYTHON_TASKS_NO_MODULE,	  /* the program has not imported asyncio, or greenlet */
	PYTHON_TASKS_UNSUPPORTED, /* they cannot be found in this build */
	PYTHON_TASKS_NOTES
};

struct python_tasks {
	struct python_task *v; /* owned */
	size_t n;
	uint32_t unread; /* tasks that could not be read, or too many */
	uint32_t note;	 /* enum python_tasks_note */
};

/*
 * Reads the tasks that are not done, several times in succession until two readings agree, and
 * marks those that did not. Returns 0 or -ENOMEM; free *ret with python_tasks_deinit().
 */
int python_tasks(const struct python *py, const struct memory *mem, struct python_tasks *ret);
void python_tasks_deinit(struct python_tasks *t);

/*
 * Reads the greenlets that are suspended, if the program has imported greenlet: `waits` is the type,
 * `frames` their stacks; names and awaits are not set. They are found in the garbage collector's
 * lists. note: PYTHON_TASKS_READ, PYTHON_TASKS_NO_MODULE, or PYTHON_TASKS_UNSUPPORTED. Returns 0 or -ENOMEM.
 */
int python_greenlets(const struct python *py, const struct memory *mem, struct python_tasks *ret);

#endif
