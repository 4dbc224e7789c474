/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes of the whole machine as they come and go: records of bpf/arrivals.bpf.c. Versioned with
 * bpf_abi.h.
 */
#ifndef PYPROF_BPF_ARRIVALS_H
#define PYPROF_BPF_ARRIVALS_H

#include <linux/types.h>

#define PYP_ARRIVAL_EXEC 1u /* the process has executed a program */
#define PYP_ARRIVAL_FORK 2u /* a process that is watched has forked it */
#define PYP_ARRIVAL_EXIT 3u /* a process that is watched has ended */

#define PYP_ARRIVALS_WATCHED 32768u
#define PYP_ARRIVALS_FOREIGN 4096u
#define PYP_ARRIVALS_BYTES   (256u << 10)

/* The file of a program: the kernel's own encoding of the device, and the inode. */
struct pyp_arrival_file {
	__u64 dev, ino;
};

struct pyp_arrival {
	__u64 ts;   /* CLOCK_MONOTONIC, ns */
	__u32 type; /* PYP_ARRIVAL_* */
	__u32 pid;
	struct pyp_arrival_file file; /* EXEC only */
};

#ifndef PYP_BPF_SIDE
_Static_assert(sizeof(struct pyp_arrival) == 32, "layout of records");
#endif

#endif
