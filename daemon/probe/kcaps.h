/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process may do and what this kernel can do, and hence by which of its mechanisms the
 * probes get on. Every question is answered by trying, never by the kernel's version.
 */
#ifndef PYPROF_PROBE_KCAPS_H
#define PYPROF_PROBE_KCAPS_H

#include <stdbool.h>

#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "probe/mechanism.h"

/* What is tried: the kernel itself, or a test's idea of one. Each returns 0 or a negative errno. */
struct kcaps_system {
	int (*capabilities)(uint64_t *ret); /* effective ones, a bit each */
	int (*btf)(void);
	int (*ring)(void);
	int (*loop)(void);	    /* the helper bpf_loop */
	int (*switch_state)(void);  /* sched_switch passes the previous task's state */
	int (*empty_program)(void); /* loaded for uprobe_multi; a descriptor */
	/* A link on a file that cannot be probed: how it is refused tells what the kernel knows. */
	int (*multi_link)(int prog_fd, pid_t pid);
	int (*tracefs)(void);
};
extern const struct kcaps_system kcaps_kernel;

/* The environment's wish: PYPROFD_ATTACH. */
#define KCAPS_WISH "PYPROFD_ATTACH"

/*
 * 0 and the mechanism to use, or a diag that names what is missing: a capability (exit 4) or a
 * feature of the kernel (exit 5). wish: the name of the only mechanism to be used, or NULL.
 */
int kcaps_check(const struct kcaps_system *sys, const char *wish, enum probe_mechanism *ret,
		struct diag *diag);

/* Does the kernel have this tracepoint for BPF programs (tp_btf)? */
bool kcaps_has_tracepoint(const char *name);

#endif
