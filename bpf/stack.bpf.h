/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The current thread's stack, sent in SAMPLE records: sample.bpf.c. */
#ifndef PYPROF_STACK_BPF_H
#define PYPROF_STACK_BPF_H

#include <linux/types.h>

struct stack_request {
	__u64 frame;  /* the innermost frame; 0: the thread runs no Python code */
	__u64 period; /* as in struct pyp_rec_sample */
	__u64 ip;     /* the user-mode instruction pointer; used with native_calls.on only */
	__u32 tid;
	__u32 flags; /* PYP_SAMPLE_*, of each record */
};

/* Returns 0. */
int stack_send(struct stack_request *q);

#endif
