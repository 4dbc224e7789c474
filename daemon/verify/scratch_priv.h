/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private interface between the daemon's side of a scratch process (scratch.c), its keeper
 * (scratch_keep.c) and the filter of its threads (scratch_calls.c)
 */
#ifndef PYPROF_VERIFY_SCRATCH_PRIV_H
#define PYPROF_VERIFY_SCRATCH_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "target/target.h"
#include "verify/scratch_group.h"

#define SCRATCH_CPU_S	  5u
#define SCRATCH_TIME_S	  10u /* a busy machine may let it run for half of the time */
#define SCRATCH_ARGS_MAX  16
#define SCRATCH_ARGS_SIZE 8192

/* The keeper's steps in order, for error messages */
enum scratch_stage {
	SCRATCH_PREPARE,
	SCRATCH_ARGS,
	SCRATCH_IDENTITY,
	SCRATCH_ISOLATE,
	SCRATCH_USER,
	SCRATCH_FILES,
	SCRATCH_ROOT,
	SCRATCH_READ_ONLY,
	SCRATCH_DROP,
	SCRATCH_THREADS,
	SCRATCH_FORK,
};

/* The keeper's only message */
struct scratch_report {
	pid_t pid; /* the interpreter's pid, or a negative errno */
	enum scratch_stage stage;
};

/* The keeper's input. The daemon opens each descriptor before the fork; -1: not needed. */
struct scratch_job {
	const struct target *target; /* NULL: none */
	int exe;
	int root; /* the target's root directory, if it is not ours */
	int mnt;  /* its mount namespace, likewise */
	int in, out, null;
	bool drop;   /* change to uid and gid, which are not ours */
	bool linked; /* started by the dynamic linker: the keeper completes argv */
	uid_t uid;
	gid_t gid;
	const struct scratch_group *group; /* borrowed */
	unsigned int nargs;
	char *argv[SCRATCH_ARGS_MAX + 8];
	char text[SCRATCH_ARGS_SIZE];
	char origin[PATH_MAX + 32]; /* LD_ORIGIN_PATH=…, see become_interpreter() */
};

/*
 * The keeper: forks the interpreter, reports, and supervises it. Its context is a struct
 * scratch_job; its channel carries a struct scratch_report, and the end of the channel ends both
 * processes.
 */
struct helper_side;
void scratch_keep(struct helper_side *side);

/* Does the path's base name start like a Python interpreter's? */
bool scratch_is_python(const char *path);

/*
 * Installs a permanent filter in this process and its children, which needs no_new_privs: each
 * start of a thread waits for an answer on *ret_listener. Returns 0 or a negative errno.
 */
int scratch_watch_threads(int *ret_listener);
/* Answer one start of a thread. *started: number of those allowed; there is a small limit. */
void scratch_answer_thread(int listener, unsigned int *started);

#endif
