/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capabilities of this process and the features of this kernel, and the resulting mechanism for
 * probes. Tests features by using them, never by the kernel's version.
 */
#ifndef PYPROF_PROBE_KCAPS_H
#define PYPROF_PROBE_KCAPS_H

#include <stdbool.h>

#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "probe/mechanism.h"

/*
 * The tests to run, on the kernel or on a stub in unit tests. Each returns 0 or a negative errno.
 */
struct kcaps_system {
	int (*capabilities)(uint64_t *ret); /* effective capabilities, one bit each */
	int (*btf)(void);
	int (*ring)(void);
	int (*loop)(void);	    /* helper bpf_loop */
	int (*switch_state)(void);  /* sched_switch passes the previous task's state */
	int (*empty_program)(void); /* loaded for uprobe_multi; returns a descriptor */
	/*
	 * Tries a link on a file that cannot be probed; the error shows what the kernel supports.
	 */
	int (*multi_link)(int prog_fd, pid_t pid);
	int (*tracefs)(void);
};
extern const struct kcaps_system kcaps_kernel;

/* The environment variable that selects a mechanism. */
#define KCAPS_WISH "PYPROFD_ATTACH"

/*
 * Returns 0 with the mechanism to use, or an error that names the missing capability (exit code 4)
 * or kernel feature (exit code 5). wish: the name of the only permitted mechanism, or NULL.
 */
int kcaps_check(const struct kcaps_system *sys, const char *wish, enum probe_mechanism *ret,
		struct diag *diag);

/*
 * The diagnosis for a perf event that the kernel refuses with err, a negative errno: "cannot WHAT".
 * Names CAP_SYS_ADMIN if it is missing, as some kernels require more than CAP_PERFMON. Returns err.
 */
int kcaps_no_event(const struct kcaps_system *sys, int err, const char *what, struct diag *diag);

/* Returns whether BPF programs can use this tracepoint (tp_btf). */
bool kcaps_has_tracepoint(const char *name);

/* Returns whether a thread that goes to sleep can stay in its run queue: see bpf/sched.bpf.c. */
bool kcaps_delays_dequeues(void);

/* Returns whether a tracepoint runs when a thread has got a CPU (Linux 6.16 and later). */
bool kcaps_has_resume(void);

#endif
