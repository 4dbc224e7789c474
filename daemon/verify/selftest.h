/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-tests that a target needs before it is traced: that of its plan, and then, if C functions
 * are traced, that of their calls. A cached result needs no process; each other test runs in a
 * helper process (offload.h), one after the other, while the daemon continues.
 */
#ifndef PYPROF_VERIFY_SELFTEST_H
#define PYPROF_VERIFY_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "verify/result.h"

struct selftest;

struct selftest_result {
	struct verify_result plan;
	bool has_builtins; /* the second test was run; only if the first one was successful */
	struct verify_result builtins;
};

/*
 * Start. opts->builtins: both tests. opts and all it points to are borrowed until selftest_free().
 * NULL: out of memory. A helper that cannot be started gives VERIFY_NOT_RUN.
 */
struct selftest *selftest_start(const struct verify_opts *opts);
/* End the tests; a helper that still runs is killed. NULL is accepted. */
void selftest_free(struct selftest *s);
DEFINE_FREEP(struct selftest, selftest_free)

/* Continue without blocking. True: all tests have ended, and *ret is set. */
bool selftest_poll(struct selftest *s, struct selftest_result *ret);
/* After selftest_poll() has returned false: call it again when the descriptor is readable, or at
 * the deadline (CLOCK_MONOTONIC ns). Both may change with each call. */
int selftest_fd(const struct selftest *s);
uint64_t selftest_deadline(const struct selftest *s);

#endif
