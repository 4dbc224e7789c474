/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc shows about one process that may run Python, without root as far as the kernel allows.
 * Names, arguments and groups come from the process and are hostile: clean them before printing.
 */
#ifndef PYPROF_FIND_PROCESS_H
#define PYPROF_FIND_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "find/cgroup.h"
#include "python/implementation.h"
#include "target/target.h"

enum process_traceable {
	PROCESS_UNKNOWN, /* not checked, or not permitted to: see why */
	PROCESS_TRACEABLE,
	PROCESS_UNTRACEABLE,
};

/* The files that decide whether a process can be traced: equal ones are checked once */
struct process_files {
	uint64_t dev[2], ino[2]; /* of the executable and the interpreter, as its maps have them */
};

struct process {
	pid_t pid, parent;
	uint64_t starttime; /* field 22 of /proc/PID/stat: distinguishes reuses of the pid */
	uid_t uid;	    /* effective */
	uint32_t threads;
	enum implementation implementation; /* never IMPLEMENTATION_NONE in a list */
	char version[32]; /* "3.11" from the file's name, "3.11.2" once checked; "": unknown */
	char *command;	  /* owned; arguments joined by blanks, never NULL */
	struct cgroup_place place;
	struct process_files files; /* all 0: not known */
	double cpu;		    /* see processes_measure(); negative: not measured */
	enum process_traceable traceable;
	char why[512]; /* unless it is traceable; may be empty */
};

/*
 * Read process pid; the caller owns *ret and frees it with process_deinit(). Has a deadline
 * (target/deadline.h). Returns 0 for a process that may run Python: one whose executable, libraries
 * or extension modules have names of a Python's or, if these cannot be read, whose first argument
 * has. -ENOENT: another program; -EACCES: unreadable, and its first argument is no Python's; -ESRCH:
 * no such process, a zombie or a kernel thread; -ETIMEDOUT, -EBUSY: see deadline.h; -ENOMEM.
 */
int process_read(pid_t pid, struct process *ret);
void process_deinit(struct process *p);

/* Has the process that was found ended, and does another one have its pid? */
bool process_is_replaced(pid_t pid, uint64_t starttime);

#endif
