/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-test in a helper process (private to verify/ and its tests), while the daemon continues.
 * The helper has the daemon's rights, because it loads and attaches probes, but none of its
 * descriptors, and it ends with the daemon. It parses nothing of the target: as in the daemon, the
 * inspector does. Its answer is checked nevertheless.
 */
#ifndef PYPROF_VERIFY_OFFLOAD_H
#define PYPROF_VERIFY_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "verify/result.h"

struct offload;

/* Start a helper that runs verify_run(). opts is only used during this call. *ret is owned by the
 * caller. Returns 0, -EBUSY (too many earlier helpers wait for processes that cannot be killed) or
 * the error of a system call, with a diagnosis. */
int offload_start(const struct verify_opts *opts, struct offload **ret, struct diag *diag);
/* Kill the helper, unless it has answered. NULL is accepted. */
void offload_free(struct offload *o);
DEFINE_FREEP(struct offload, offload_free)

/* Call offload_poll() when the descriptor is readable, or at the deadline (CLOCK_MONOTONIC ns). */
int offload_fd(const struct offload *o);
uint64_t offload_deadline(const struct offload *o);

/*
 * Get the result without blocking. False: it is not available yet. A helper that ends without a
 * complete and possible answer, or does not answer in time, gives VERIFY_NOT_RUN and a reason.
 */
bool offload_poll(struct offload *o, struct verify_result *ret);

/* For tests: called in the helper instead of the self-test. out: where the answer is written. */
extern void (*offload_test_helper)(const struct verify_opts *opts, int out);
/* Time limit of a helper; tests shorten it. A self-test has shorter ones; this applies if the helper
 * itself hangs. */
extern uint64_t offload_limit_ns;

#endif
