/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dump: what a Python process is doing at this moment. Contains the Python stack of each thread
 * with current lines, the kernel's data about the thread, and asyncio's tasks. dumper.h takes dumps.
 */
#ifndef PYPROF_DUMP_DUMP_H
#define PYPROF_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "dump/doing.h"
#include "python/details.h"

enum dump_locals_state {
	DUMP_LOCALS_NONE, /* not requested, or unreadable */
	DUMP_LOCALS_READ,
	DUMP_LOCALS_MOVING, /* they changed while they were read: may be wrong */
	DUMP_LOCALS_GONE,   /* the frame had ended */
};

/* One frame. Names are UTF-8 and controlled by the target; "?" if they could not be read. */
struct dump_frame {
	char *filename, *name; /* owned; name: the qualified name if there is one (3.11+) */
	int32_t line;	       /* 0: unknown */
	bool moving; /* the thread changed this part of its stack meanwhile: see python_dump */
	enum dump_locals_state locals_state;
	struct python_locals locals;
};

struct dump_thread {
	pid_t tid;	   /* 0: a thread of the interpreter whose id is unknown */
	char name[16];	   /* the thread's name in the kernel */
	char *python_name; /* owned; its name in the module threading; NULL: unknown */
	char state;	   /* as in /proc/PID/stat; '?': it has ended meanwhile */
	bool python;	   /* it belongs to the interpreter */
	bool truncated;	   /* the outermost frames are missing: too deep, or unreadable */
	struct doing doing;
	struct dump_frame *frames; /* owned; innermost first */
	size_t n;
};

/*
 * A task of asyncio that is not done, or a suspended greenlet, which has only frames, and its type in
 * `waits`.
 */
struct dump_task {
	char *name; /* owned; NULL: it has none */
	pid_t tid;  /* the thread that runs its event loop; 0: unknown */
	bool running, moving;
	bool awaited;			   /* by another task in the list */
	char waits[PYTHON_TASK_WAITS_MAX]; /* the type of the object that it awaits; "": unknown */
	struct dump_frame *frames; /* owned; its coroutines, innermost first. Of a running task,
				    * without those that are in its thread's stack */
	size_t n;
	size_t *awaits; /* owned; indices of the tasks that it waits for */
	size_t nawaits;
};

struct dump_tasks {
	struct dump_task *v; /* owned */
	size_t n;
	int err;       /* 0, or why there are none */
	uint32_t note; /* enum python_tasks_note */
	uint32_t unread;
};

struct dump {
	pid_t pid;
	char *cmdline, *version, *file; /* owned; file: the interpreter's */
	struct dump_thread *threads;	/* owned; the interpreter's threads first, then others */
	size_t nthreads;
	bool names_moving;	 /* threads' names changed while they were read: may be wrong */
	bool no_threading;	 /* there are no names: the program has not imported threading */
	struct dump_tasks tasks; /* of asyncio */
	struct dump_tasks greenlets; /* suspended ones */
};

void dump_free(struct dump *d);
DEFINE_FREEP(struct dump, dump_free)

/*
 * Print a dump. Return 0, or a negative errno if writing failed. If out is a terminal, text must be
 * written through a terminal stream (base/terminal.h).
 */
int dump_print_text(const struct dump *d, FILE *out);
int dump_print_json(const struct dump *d, FILE *out);

#endif
