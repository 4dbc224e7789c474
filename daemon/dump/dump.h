/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dump: what a Python process is doing at this moment. Contains the Python stack of each thread
 * with current lines, and the kernel's data about the thread. An inspector (inspect/inspect.h)
 * reads it from outside: it writes nothing to the process and does not stop it.
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

/* One frame. Names are UTF-8 and controlled by the target; "?" if they could not be read. */
struct dump_frame {
	char *filename, *name; /* owned; name: the qualified name if there is one (3.11+) */
	int32_t line;	       /* 0: unknown */
	bool moving; /* the thread changed this part of its stack meanwhile: see python_dump */
};

struct dump_thread {
	pid_t tid;	 /* 0: a thread of the interpreter whose id is unknown */
	char name[16];	 /* the thread's name in the kernel */
	char state;	 /* as in /proc/PID/stat; '?': it has ended meanwhile */
	bool python;	 /* it belongs to the interpreter */
	bool truncated;	 /* the outermost frames are missing: too deep, or unreadable */
	char doing[256]; /* "read of descriptor 5 (socket:[81])", "running", ...; "": unknown */
	struct dump_frame *frames; /* owned; innermost first */
	size_t n;
};

struct dump {
	pid_t pid;
	char *cmdline, *version, *file; /* owned; file: the interpreter's */
	struct dump_thread *threads;	/* owned; the interpreter's threads first, then others */
	size_t nthreads;
};

/* The source of dumps of one process. */
struct dumper;

/*
 * Locates the interpreter of the process; the caller frees *ret. Exit codes as for attach: 3 no
 * such process, 4 no permission, 5 not a Python that can be read.
 */
int dumper_open(pid_t pid, struct dumper **ret, struct diag *diag);
/* Takes a dump; the caller frees *ret. May be repeated. Errors: the process has ended or executed
 * another program, or its memory cannot be read. */
int dumper_take(struct dumper *from, struct dump **ret, struct diag *diag);
void dumper_free(struct dumper *d);
DEFINE_FREEP(struct dumper, dumper_free)

/* All three. */
int dump_take(pid_t pid, struct dump **ret, struct diag *diag);
void dump_free(struct dump *d);
DEFINE_FREEP(struct dump, dump_free)

/*
 * Print a dump. Return 0, or a negative errno if writing failed. If out is a terminal, text must be
 * written through a terminal stream (base/terminal.h).
 */
int dump_print_text(const struct dump *d, FILE *out);
int dump_print_json(const struct dump *d, FILE *out);

#endif
