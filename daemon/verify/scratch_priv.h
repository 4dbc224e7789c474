/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon's side of a scratch process (scratch.c), its keeper (scratch_keeper.c) and the
 * filters of its system calls (scratch_calls.c) share.
 */
#ifndef PYPROF_VERIFY_SCRATCH_PRIV_H
#define PYPROF_VERIFY_SCRATCH_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "target/target.h"
#include "verify/scratch_group.h"

#define SCRATCH_TIME_S	  5u
#define SCRATCH_ARGS_MAX  16
#define SCRATCH_ARGS_SIZE 8192

/* The steps of the keeper, in this order; for the message when one fails. */
enum scratch_stage {
	SCRATCH_PREPARE,
	SCRATCH_ARGS,
	SCRATCH_IDENTITY,
	SCRATCH_APART,
	SCRATCH_USER,
	SCRATCH_FILES,
	SCRATCH_ROOT,
	SCRATCH_READ_ONLY,
	SCRATCH_DROP,
	SCRATCH_THREADS,
	SCRATCH_FORK,
};

/* What the keeper sends once. */
struct scratch_report {
	pid_t pid; /* the interpreter's, or a negative errno */
	enum scratch_stage stage;
};

/* What the keeper needs. The daemon opens each descriptor before the fork; -1: not needed. */
struct scratch_job {
	const struct target *target; /* NULL: none */
	int exe;
	int root; /* the target's root directory, where it is not ours */
	int mnt;  /* its mount namespace, likewise */
	int in, out, null;
	int leash;    /* socket to the daemon: a struct scratch_report goes out; its end ends all */
	pid_t parent; /* the keeper's */
	bool drop;    /* uid and gid are not ours: become them */
	bool linked;  /* started through the dynamic linker: the keeper completes argv */
	uid_t uid;
	gid_t gid;
	const struct scratch_group *group; /* borrowed */
	unsigned int nargs;
	char *argv[SCRATCH_ARGS_MAX + 8];
	char text[SCRATCH_ARGS_SIZE];
	char origin[PATH_MAX + 32]; /* LD_ORIGIN_PATH=…, see become_interpreter() */
};

/* The keeper's life: forks the interpreter, reports, watches over it. */
_Noreturn void scratch_keep(struct scratch_job *job);

/* Whether path is called as Python's interpreters are. */
bool scratch_is_python(const char *path);

/*
 * Filters of system calls for this process and its children, for good. Both return 0 or a negative
 * errno and need no_new_privs.
 *
 * scratch_watch_threads: each start of a thread waits for an answer to *ret_listener.
 * scratch_allow_calls: all but what an interpreter needs to start and to compute fails.
 */
int scratch_watch_threads(int *ret_listener);
int scratch_allow_calls(void);
/* Answer one start of a thread; *started counts those that were allowed, up to a small number. */
void scratch_answer_thread(int listener, unsigned int *started);

#endif
