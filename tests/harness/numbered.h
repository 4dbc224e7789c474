/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of events without names: functions are numbers, f0, f1, …, of t.py, line 1. */
#ifndef PYPROF_TESTS_HARNESS_NUMBERED_H
#define PYPROF_TESTS_HARNESS_NUMBERED_H

#include "profile/profile.h"

/* The address of a function's code object */
#define NUMBERED_CODE(f) (0x1000u + (uint64_t)(f)*0x10)

/* For profile_new(): the names of code objects by address. */
int numbered_resolve(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret);

/* Send one event of thread 1 about a frame: PYP_REC_ENTER, PYP_REC_LEAVE. caller: 0: none. */
void profile_send(struct profile *p, uint64_t ts, uint8_t type, uint64_t frame, uint64_t code,
		  uint64_t caller);

/* A valid snapshot of one target, 42, at this time. The caller frees it. */
struct snapshot *profile_take(const struct profile *p, uint64_t now);

#endif
