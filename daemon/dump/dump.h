/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a Python process is doing at this moment: the Python stack of each thread with current lines,
 * and what the kernel says about the thread. Read from outside, by an inspector (inspect/inspect.h):
 * nothing is written to the process, and it is not stopped.
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

/* One frame. The names are UTF-8 of the target's choice; "?" where they could not be read. */
struct dump_frame {
	char *filename, *name; /* owned; name is the qualified one where there is one (3.11+) */
	int32_t line;	       /* 0: not known */
	bool moving; /* the thread changed this part of its stack while it was read: see python_dump */
};

struct dump_thread {
	pid_t tid;	 /* 0: the interpreter has the thread, but its id is not known */
	char name[16];	 /* the kernel's name of the thread */
	char state;	 /* as in /proc/PID/stat; '?': it has ended meanwhile */
	bool python;	 /* it is one of the interpreter's */
	bool truncated;	 /* the outermost frames are missing: too deep, or unreadable */
	char doing[256]; /* "running", "poll", "read from 5 (socket:[81])", ...; "": not known */
	struct dump_frame *frames; /* owned; innermost first */
	size_t n;
};

struct dump {
	pid_t pid;
	char *cmdline, *version, *file; /* owned; file: of the interpreter */
	struct dump_thread *threads;	/* owned; the interpreter's first, then others */
	size_t nthreads;
};

/* Exit codes as for attach: 3 no such process, 4 no permission, 5 not a Python that can be read. */
int dump_take(pid_t pid, struct dump **ret, struct diag *diag);
void dump_free(struct dump *d);
DEFINE_FREEP(struct dump, dump_free)

/* 0 or a negative errno of the stream. Text goes through a terminal stream where out is a terminal. */
int dump_print_text(const struct dump *d, FILE *out);
int dump_print_json(const struct dump *d, FILE *out);

#endif
