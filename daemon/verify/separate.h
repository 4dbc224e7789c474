/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper processes of the self-test and of calibration (private to verify/). */
#ifndef PYPROF_VERIFY_SEPARATE_H
#define PYPROF_VERIFY_SEPARATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "verify/result.h"

struct separate {
	pid_t helper;	      /* 0: it has ended, or was given to the reaper */
	int from;	      /* readable when there is an answer; -1: none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	size_t have;	      /* bytes received */
};

/*
 * Starts a helper that calls work(o, out), which writes one answer to `out`, and then exits. It ends with its
 * parent, ignores signals from the terminal, which are for the daemon, and closes all descriptors but `out` and the
 * target's pidfd, which detects that the pid was reused. A link that stays open would keep its probes attached after
 * the daemon's end. Returns 0, or the error of a system call.
 */
int separate_start(struct separate *s, const struct verify_opts *o,
		   void (*work)(const struct verify_opts *o, int out), uint64_t limit_ns);

/*
 * Receives its answer of `size` bytes, without blocking. Returns 0: it is complete; -EINPROGRESS, not yet; -ETIMEDOUT;
 * -EPIPE: the helper has ended before.
 */
int separate_receive(struct separate *s, void *answer, size_t size);

/*
 * Ends the helper and closes `from`. answered: it is about to end by itself; else it is killed. The reaper waits
 * for a helper that does not end soon. The uprobe holder process detaches its probes (probe/holder.h).
 */
void separate_end(struct separate *s, bool answered);

#endif
